"""JSON Lines: one object per episode and line, with any metrics beside the verdict. docs/report.md says what counts."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO

from comborun.reporter.adapters import names
from comborun.reporter.adapters.reading import RejectKind
from comborun.rules.episodes import (
    COMPLETION,
    COPY,
    DEPTH_LIMIT,
    EPISODE_ID,
    JOB,
    LINE_LIMIT,
    ORDER,
    JobRows,
    decode,
    job_success,
    rebuild,
)
from comborun.rules.fields import integer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from comborun.reporter.adapters.reading import Context, Reading

try:
    import orjson
except ImportError:  # where it has no wheel
    _loads: Callable[[bytes], Any] = json.loads
else:
    _loads = orjson.loads
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_LONG_NUMBER = b"0" * 19

Shape = Callable[[Any], Any]
"""a decoded value in the words of another program -> the same in those of the rules"""


def rows(reading: Reading, stream: BinaryIO, context: Context) -> None:
    """Rows in comborun's own words, or in those of the grid."""
    _take_lines(reading, stream, context, lambda row: row)


def completion_rows(reading: Reading, stream: BinaryIO, context: Context) -> None:
    """A legged robot's runs: `{"episode_id": "stairs_rough_ep0006", "completion": false, "progress": 12.3, ...}`.

    A seed that was given and not used stays in the record, but not as what its episode started from.
    """

    def without_seed(row: Any) -> Any:
        if not isinstance(row, dict) or "seed" not in row:
            return row
        return {"seed_unused" if key == "seed" else key: value for key, value in row.items()}

    _take_lines(reading, stream, context.in_words(COMPLETION, EPISODE_ID), without_seed)
    if reading.records:
        reading.unpaired = "its program takes a seed and uses none: an index pairs nothing"


def job_rows(reading: Reading, stream: BinaryIO, context: Context) -> None:
    """Jobs with several copies of an environment: `{"job_name": ..., "env_id": 3, "episode_in_env": 0, "success":
    null, ...}`, one file per rebuild of the scene.

    Some generations have an index of their own. Others name only the copy and the place there; then the index is the
    order in which the episodes ended.
    """
    context = context.in_words("success", "episode")
    if metrics := context.rules.metrics:
        context = replace(context, rules=replace(context.rules, metrics=(*metrics, ORDER)))
    places, built = JobRows(), rebuild(PurePosixPath(context.path).name)

    def shape(row: Any) -> Any:
        if not isinstance(row, dict):
            return row
        shaped = {**_job_names(row, context), **row, "success": job_success(row)}
        own, number = places.place(row)
        if own is not None or number is not None:
            shaped["episode"] = context.first + (number or 0) if own is None else own
        if integer(row.get(COPY)) is not None:  # a name, no metric; a copy of another rebuild is another copy
            shaped[COPY] = f"{built}:{row[COPY]}" if built else str(row[COPY])
        return shaped

    _take_lines(reading, stream, context, shape)
    reading.note_copies(len(places.copies), len(reading.records))


def _job_names(row: dict[str, Any], context: Context) -> dict[str, str]:
    """The job is the environment where nothing else says so, and its folder doesn't name a policy."""
    job = row.get(JOB)
    if not isinstance(job, str):
        return {}
    policy = {} if context.policy else {"policy": names.policy(context.path, {job})}
    return policy if context.environment else {**policy, "environment": job}


def _take_lines(reading: Reading, stream: BinaryIO, context: Context, shape: Shape) -> None:
    for number, line in enumerate(_lines(stream), 1):
        if line is None:
            reading.reject(number, f"longer than {LINE_LIMIT >> 20} MiB")
            continue
        values, fault = _decoded(line)
        if len(values) > 1:
            reading.defect(number, "more than one record on a line")
        for value in values:
            reading.take(context, number, shape(value))
        whole = line.endswith(b"\n")
        if fault and whole:
            reading.reject(number, fault)
        elif fault:
            reading.reject(number, "the last line is cut off", RejectKind.TORN)
        elif values and not whole:
            reading.defect(number, "the last line lacks its newline; its record is whole and counts")


def _decoded(line: bytes) -> tuple[list[Any], str]:
    """The values of a line, by orjson where it says the same as the rules' own decoder: that one has the last word on
    whatever orjson refuses, on integers of 19 digits and more, and on what may be nested deeply."""
    if _LONG_NUMBER not in line.translate(_DIGITS) and line.count(b"{") + line.count(b"[") <= DEPTH_LIMIT:
        with suppress(ValueError):
            return [_loads(line)], ""
    return decode(line.decode("utf-8", "replace"))


def _lines(stream: BinaryIO) -> Iterator[bytes | None]:
    """Every line with its newline; only the last one can lack it. None for one that is too long."""
    while line := stream.readline(LINE_LIMIT):
        if len(line) < LINE_LIMIT or line.endswith(b"\n"):
            yield line
        else:
            while (rest := stream.readline(1 << 20)) and not rest.endswith(b"\n"):
                pass
            yield None
