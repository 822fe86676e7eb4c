"""Every format of result files: what a file is known by, and what reads it.

A format is told by the shape of what stands in a file and of its path; never by a program's name. A file where nothing
fits is no result of a known kind. That is no fault: folders hold other things too.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING, BinaryIO

from comborun.reporter.adapters import documents, log_text, logs, names, rates, rows
from comborun.reporter.adapters.reading import Reading, RefusedFileError
from comborun.rules.episodes import (
    ARCHIVES,
    ARRAYS,
    COMPLETION,
    COMPLETION_ROWS,
    DOCUMENTS,
    EPISODE_ID,
    EPISODES,
    EVAL_INFO,
    HEAD,
    INSPECT,
    JOB,
    JOB_ROWS,
    JSONL_ROWS,
    LINES,
    LIST_LAST,
    LOG_NAMES,
    LOG_PATTERN,
    LOGS,
    MARK,
    PER_FILE,
    SUMMARY,
    TABLE,
    TABLES,
    WIDE_MARKS,
    file_format,
    packing,
    suffix_of,
)

if TYPE_CHECKING:
    import re

    from comborun.reporter.adapters.reading import Adapter, Context

REACH = 1 << 20
"""bytes from the beginning and from the end of a log: some tell everything in their last lines"""
UTF16_LIMIT = 256 << 20
"""bytes; what is not UTF-8 has to be held in memory as a whole"""
FILENAME_ENCODED = "filename-encoded"


class Names(Enum):
    """What the records of a format say of their combo."""

    COMBO = "all of it"
    ENVIRONMENT = "the environment, and maybe no policy"
    NOTHING = "nothing: it is in the path"


@dataclass(frozen=True)
class Format:
    why: str
    """what a file of it is recognised by"""
    read: Adapter
    names: Names = Names.NOTHING
    mark: re.Pattern[str] | None = None
    """of logs: what one of their lines looks like"""
    folder: int | None = None
    """where an episode's number is in a name: how many folders further out all of a kind lie"""


def _summary(reading: Reading, stream: BinaryIO, context: Context) -> None:
    del stream, context
    reading.defect(0, "a summary is not read: the episodes' own files count, whatever a mean over them says")


COUNTED, TRAINING = "kn-aggregate", "train-step"
FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        JSONL_ROWS: Format("one object per line", rows.rows, Names.COMBO),
        TABLE: Format("a header and cells", rows.rows, Names.COMBO),
        ARRAYS: Format("arrays of numpy", rows.rows),
        INSPECT: Format("a log of Inspect", rows.rows),
        EPISODES: Format("a document with episodes", rows.rows, Names.COMBO),
        LOG_PATTERN: Format("lines that match the grid's pattern", rows.rows),
        COMPLETION_ROWS: Format(f"rows with {EPISODE_ID} and {COMPLETION}", rows.completion_rows, Names.COMBO),
        JOB_ROWS: Format(f"rows with {JOB} and an episode's place", rows.job_rows, Names.ENVIRONMENT),
        PER_FILE: Format("an episode's number in its name", documents.per_file, folder=0),
        LIST_LAST: Format("a list of steps in an episode's folder", documents.list_last, folder=1),
        EVAL_INFO: Format("successes of tasks or episodes", documents.evaluation, Names.ENVIRONMENT),
        "log-lines": Format("lines that count episodes", logs.episode_lines, mark=logs.COMPLETED),
        "log-tuple": Format("a printed tuple of results", logs.printed_tuples, Names.ENVIRONMENT, logs.RESULTS),
        "rank-metrics": Format("metrics of each rank", rates.ranks, mark=rates.METRICS),
        COUNTED: Format(f"a rate with {rates.TRAJECTORIES}", rates.trajectories),
        TRAINING: Format("lines that count steps of a training", logs.training),
        SUMMARY: Format("a summary of other files", _summary),
    }
)
"""those of one file; `filename-encoded` needs none to be opened"""


def candidate(path: str) -> bool:
    """Whether a file's name lets it hold results; what is packed is told and not read."""
    name = PurePosixPath(path.removesuffix(".gz")).name
    return suffix_of(name) in (*LINES, *DOCUMENTS, *LOGS, *TABLES, *ARCHIVES) or name in LOG_NAMES


def read(stream: BinaryIO, context: Context) -> Reading:
    """What a file says; an empty reading without a format when it is nothing known. The stream is left at its end."""
    reading = Reading(context.path)
    try:
        text = stream if suffix_of(context.path) in ARCHIVES else _plain(stream)
        start = text.tell()
        _recognise(reading, text, context)
        text.seek(start)
        if reading.format:
            _fill(reading, text, context)
    except RefusedFileError as refused:
        if refused.kind:
            reading.reject(0, str(refused), refused.kind)
        else:
            reading.format, reading.why, reading.unknown = "", "", str(refused)
    stream.seek(0, os.SEEK_END)
    return reading


def _fill(reading: Reading, text: BinaryIO, context: Context) -> None:
    known = FORMATS[reading.format]
    known.read(reading, text, context.named(*names.combo(context.path)) if known.names is Names.NOTHING else context)
    if not (reading.records or reading.rejects or reading.defects or reading.aggregates):
        reading.defect(0, "the file holds no records")


def _recognise(reading: Reading, stream: BinaryIO, context: Context) -> None:
    asked, start = context.rules.format, stream.tell()
    if context.rules.pattern and context.rules.source == "log" and PurePosixPath(context.path).name == "log":
        asked = LOG_PATTERN
    if asked in FORMATS:
        reading.format, reading.why = asked, "the grid names it"
        return
    told = file_format(context.path, stream.read(HEAD), context.identity)
    found = JSONL_ROWS if told == "" else told or ""  # rows of which none can be read
    if found not in FORMATS and candidate(context.path) and suffix_of(context.path) not in DOCUMENTS:
        stream.seek(start)
        found = _log_format(stream, {context.verdict_key, *rates.RATES})
    if found in FORMATS:
        reading.format, reading.why = found, FORMATS[found].why


def _log_format(stream: BinaryIO, success: set[str]) -> str:
    seen: set[str] = set()
    trained = False
    for _, text in log_text.lines(io.BytesIO(_ends(stream))):
        for name, known in FORMATS.items():
            if known.mark and known.mark.search(text):
                return name
        trained = trained or logs.STEP.search(text) is not None
        seen.update(key for key, _ in rates.pairs(text))
    if rates.TRAJECTORIES in seen and success & seen:
        return COUNTED
    return TRAINING if trained else ""


def _ends(stream: BinaryIO) -> bytes:
    """The beginning of a file and its end, on lines of their own."""
    head = stream.read(REACH)
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(len(head), size - REACH))
    return head + b"\n" + stream.read(REACH)


def _plain(stream: BinaryIO) -> BinaryIO:
    """The stream from behind its byte order mark, UTF-16 turned into UTF-8. Raises RefusedFileError."""
    start = stream.read(8)
    if name := packing(start):
        raise RefusedFileError(f"packed with {name}: unpack it first")
    if not start.startswith(WIDE_MARKS):
        stream.seek(len(MARK) if start.startswith(MARK) else 0)
        return stream
    stream.seek(0)
    content = stream.read(UTF16_LIMIT + 1)
    if len(content) > UTF16_LIMIT:
        raise RefusedFileError(f"UTF-16 and longer than {UTF16_LIMIT >> 20} MiB: convert it to UTF-8 first")
    return io.BytesIO(content.decode("utf-16", "replace").encode("utf-8", "replace"))
