"""JSON Lines: one object per episode and line, with any metrics beside the verdict. docs/report.md says what counts."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO

from comborun.reporter.adapters import names
from comborun.reporter.adapters.reading import RefusedFileError, RejectKind
from comborun.rules.episodes import (
    COMPLETION,
    COPY,
    DEPTH_LIMIT,
    EPISODE_ID,
    EPISODES,
    JOB,
    ORDER,
    TABLE,
    JobRows,
    job_success,
    rebuild,
)
from comborun.rules.fields import FORMAT, TORN, UNREADABLE, RefusedError, integer, order_of
from comborun.rules.readers import decode_line, reader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from comborun.reporter.adapters.reading import Context, Reading
    from comborun.rules.readers import Entry, Lines, Whole

try:
    import orjson
except ImportError:  # where it has no wheel
    _loads: Callable[[bytes], Any] = json.loads
else:
    _loads = orjson.loads
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_LONG_NUMBER = b"0" * 19

_CHUNK = 1 << 20
_KINDS = {TORN: RejectKind.TORN, UNREADABLE: RejectKind.UNREADABLE}
Shape = Callable[[Any], Any]
"""a decoded value in the words of another program -> the same in those of the rules"""


def completion_rows(reading: Reading, stream: BinaryIO, context: Context) -> None:
    """A legged robot's runs: `{"episode_id": "stairs_rough_ep0006", "completion": false, "progress": 12.3, ...}`.

    A seed that was given and not used stays in the record, but not as what its episode started from.
    """

    def without_seed(row: Any) -> Any:
        if not isinstance(row, dict) or "seed" not in row:
            return row
        return {"seed_unused" if key == "seed" else key: value for key, value in row.items()}

    _take_entries(reading, stream, context.in_words(COMPLETION, EPISODE_ID), without_seed)
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
            shaped["episode"] = context.first - context.rules.base + (number or 0) if own is None else own
        if integer(row.get(COPY)) is not None:  # a name, no metric; a copy of another rebuild is another copy
            shaped[COPY] = f"{built}:{row[COPY]}" if built else str(row[COPY])
        return shaped

    _take_entries(reading, stream, context, shape)
    reading.note_copies(len(places.copies), len(reading.records))


def _job_names(row: dict[str, Any], context: Context) -> dict[str, str]:
    """The job is the environment where nothing else says so, and its folder doesn't name a policy."""
    job = row.get(JOB)
    if not isinstance(job, str):
        return {}
    policy = {} if context.policy else {"policy": names.policy(context.path, {job})}
    return policy if context.environment else {**policy, "environment": job}


def rows(reading: Reading, stream: BinaryIO, context: Context) -> None:
    """Rows of any format that the host counts as well. Where a document or table names no combo, its path does."""
    found = names.combo(context.path) if reading.format in {TABLE, EPISODES} else ("", "")
    unnamed = (("policy", context.policy, found[0]), ("environment", context.environment, found[1]))
    told = {key: name for key, own, name in unnamed if own is None and name}
    _take_entries(reading, stream, context, lambda row: {**told, **row} if told and isinstance(row, dict) else row)
    if context.identity.episode.word and any(record.seed is None for record in reading.records):
        reading.unpaired = "its rows hold no index and are numbered in the order in which they were written"


def _take_entries(reading: Reading, stream: BinaryIO, context: Context, shape: Shape) -> None:
    """Raises RefusedFileError for a file that is of no known format after all."""
    identity = context.identity
    for line, value, remark, order in _entries(stream, reader(reading.format, identity, _decoded)):
        if isinstance(value, RefusedError):
            if not line and value.reason in {FORMAT, UNREADABLE}:
                asked = value.reason == UNREADABLE or context.rules.format
                raise RefusedFileError(str(value), RejectKind.UNREADABLE if asked else None)
            reading.reject(line, str(value), _KINDS.get(value.reason, RejectKind.NOT_A_RECORD))
            continue
        if remark:
            reading.defect(line, remark)
        number = order_of(value, order, identity)
        reading.take(context, line, shape(value), None if number is None else context.first + number)


def _entries(stream: BinaryIO, source: Lines | Whole) -> Iterator[Entry]:
    while chunk := stream.read(_CHUNK):
        yield from source.feed(chunk)
    yield from source.finish()


def _decoded(line: bytes) -> tuple[list[Any], str]:
    """The values of a line, by orjson where it says the same as the rules' own decoder: that one has the last word on
    whatever orjson refuses, on integers of 19 digits and more, and on what may be nested deeply."""
    if _LONG_NUMBER not in line.translate(_DIGITS) and line.count(b"{") + line.count(b"[") <= DEPTH_LIMIT:
        try:
            return [_loads(line)], ""
        except ValueError:
            return decode_line(line)
    return decode_line(line)
