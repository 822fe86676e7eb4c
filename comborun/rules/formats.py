"""Every format of result files: how it is recognized, and which reader reads it. It reads streams that callers open.

A format is recognized by the content and the path of a file, never by a program's name.
"""

from __future__ import annotations

import io
import os

from comborun.rules import readers
from comborun.rules.episodes import (
    ARCHIVES,
    ARRAYS,
    COMPLETION,
    COMPLETION_ROWS,
    COUNTED,
    DATABASE,
    DATABASES,
    DOCUMENTS,
    EPISODE_ID,
    EPISODE_LOG,
    EPISODES,
    EVAL_INFO,
    HEAD,
    HISTORY,
    INSPECT,
    JOB,
    JOB_ROWS,
    JSONL_ROWS,
    LINES,
    LIST_LAST,
    LOG,
    LOG_NAMES,
    LOG_PATTERN,
    LOGS,
    MARK,
    NAMED,
    PER_FILE,
    PICKLES,
    RANKS,
    STATISTICS,
    STATISTICS_LOG,
    SUMMARY,
    TABLE,
    TABLES,
    TRAINING,
    TUPLES,
    UNKNOWN,
    WIDE_MARKS,
    file_format,
    packing,
    suffix_of,
)
from comborun.rules.fields import FORMAT, UNREADABLE, RefusedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO, Callable, Iterable

    from comborun.rules.fields import Identity
    from comborun.rules.readers import Decoded, Reader

SQLITE = b"SQLite format 3\0"
REACH = 1 << 20
"""bytes from the beginning and from the end of a log: some say everything in their last lines"""
UTF16_MOST = 256 << 20
"""bytes; what is not UTF-8 has to be held in memory as a whole"""
WHOLE = (ARRAYS, INSPECT, EPISODES, DATABASE, PER_FILE, LIST_LAST, EVAL_INFO, STATISTICS)
"""formats of which nothing is read before the file is whole"""
_ROWS: dict[str, type[readers.JsonLines]] = {
    JSONL_ROWS: readers.JsonLines,
    COMPLETION_ROWS: readers.CompletionLines,
    JOB_ROWS: readers.JobLines,
    HISTORY: readers.HistoryLines,
}
WHY = {
    JSONL_ROWS: "one object per line",
    COMPLETION_ROWS: f"rows with {EPISODE_ID} and {COMPLETION}",
    JOB_ROWS: f"rows with {JOB} and an episode's place",
    HISTORY: "rows with _step and _timestamp",
    TABLE: "a header and cells",
    ARRAYS: "arrays of numpy",
    INSPECT: "a log of Inspect",
    EPISODES: "a document with episodes",
    DATABASE: "a table with episodes",
    PER_FILE: "an episode's number in its name",
    LIST_LAST: "a list of steps in an episode's folder",
    EVAL_INFO: "successes of tasks or episodes",
    STATISTICS: "a rate with Num_Episode or Num_Success",
    LOG_PATTERN: "lines that match the grid's pattern",
    EPISODE_LOG: "lines that count episodes",
    TUPLES: "a printed tuple of results",
    COUNTED: "a rate with num_trajectories",
    RANKS: "metrics of each rank",
    STATISTICS_LOG: "printed statistics of rollouts",
    TRAINING: "lines that count steps of a training",
    NAMED: "outcomes in files' names",
    SUMMARY: "a summary of other files",
}
"""what a file of each is recognised by"""


def candidate(path: str) -> bool:
    """Whether a file's name lets it hold results; what is packed is named and not read."""
    name = (path[: -len(".gz")] if path.endswith(".gz") else path).rpartition("/")[2]
    known = (*LINES, *DOCUMENTS, *LOGS, *TABLES, *ARCHIVES, *DATABASES)
    return suffix_of(name) in known or name in LOG_NAMES


class File:
    """The format of a file (empty: none of its rows can be read yet), and the byte from which it is read."""

    __slots__ = ("kind", "place", "start", "text")

    def __init__(self, kind: str, start: int, text: bytes, place: str) -> None:
        self.kind = kind
        self.start = start
        self.text = text
        """the whole of it, where it had to be decoded first"""
        self.place = place

    def reader(self, identity: Identity, path: str = "", decoded: Decoded = readers.decode_line) -> Reader:
        """What reads it; of rows a faster decoder may do the same."""
        return reader(self.kind or JSONL_ROWS, identity, path, self.place, decoded)


def reader(
    kind: str, identity: Identity, path: str = "", place: str = "", decoded: Decoded = readers.decode_line
) -> Reader:
    """What reads a format. `path` is the file's below the output folder, `place` where it can be opened."""
    if kind in _ROWS:
        return _ROWS[kind](identity, path, decoded)
    if kind in WHOLE:
        return readers.Whole(identity, path, _whole(kind, place))
    return _lines()[kind](identity, path)


def _lines() -> dict[str, type[readers.Lines]]:
    """What reads line by line, besides rows; imported only for such a file, so that a supervisor starts fast."""
    from comborun.rules import logs

    return {
        TABLE: readers.Table,
        LOG_PATTERN: readers.LogPattern,
        EPISODE_LOG: logs.EpisodeLog,
        TUPLES: logs.PrintedTuples,
        COUNTED: logs.Trajectories,
        RANKS: logs.Ranks,
        STATISTICS_LOG: logs.Statistics,
        TRAINING: logs.Training,
    }


def _whole(kind: str, place: str) -> Callable[[readers.Whole], Iterable[readers.Entry]]:
    from comborun.rules import arrays, databases, documents, evaluations

    known: dict[str, Callable[[readers.Whole], Iterable[readers.Entry]]] = {
        ARRAYS: arrays.read,
        INSPECT: documents.inspect,
        EPISODES: documents.read,
        PER_FILE: evaluations.per_file,
        LIST_LAST: evaluations.list_last,
        EVAL_INFO: evaluations.evaluation,
        STATISTICS: evaluations.rollouts,
        DATABASE: databases.reading(place),
    }
    return known[kind]


def look(stream: BinaryIO, path: str, identity: Identity, asked: str = "") -> File:
    """What a file is, by its content and path; `asked` is the format that the grid names. Raises RefusedError."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(0)
    head = stream.read(HEAD)
    place = stream.name if isinstance(getattr(stream, "name", None), str) else ""
    if suffix_of(path) in PICKLES:
        raise RefusedError(UNREADABLE, "a pickle, which is never opened: have its numbers written as JSON")
    if asked == SUMMARY:
        asked = ""
    if head.startswith(SQLITE) or asked == DATABASE:
        return File(DATABASE, size, b"", place)
    if suffix_of(path) in ARCHIVES:
        return File(ARCHIVES[suffix_of(path)], 0, b"", place)
    packed = packing(head)
    if packed:
        raise RefusedError(UNREADABLE, f"packed with {packed}: unpack it first")
    start, text = (len(MARK) if head.startswith(MARK) else 0), b""
    if head.startswith(WIDE_MARKS):
        start, text = size, _decoded(stream, size)
    plain = io.BytesIO(text) if text else stream
    plain.seek(0 if text else start)
    kind = file_format(path, plain.read(HEAD), identity, asked)
    if kind == LOG:
        kind = _log(plain, identity)
    if kind is None:
        raise RefusedError(FORMAT, UNKNOWN)
    if kind == SUMMARY:
        raise RefusedError(
            FORMAT, "a summary is not read: the episodes' own files count, whatever a mean over them says"
        )
    return File(kind, start, text, place)


def _decoded(stream: BinaryIO, size: int) -> bytes:
    """UTF-16 turned into UTF-8."""
    if size > UTF16_MOST:
        raise RefusedError(UNREADABLE, f"UTF-16 and longer than {UTF16_MOST >> 20} MiB: convert it to UTF-8 first")
    stream.seek(0)
    return stream.read(size).decode("utf-16", "replace").encode("utf-8", "replace")


def _log(stream: BinaryIO, identity: Identity) -> str | None:
    """Which kind of log it is, from its beginning and its end; None: none, or none yet."""
    from comborun.rules.logs import Marks

    stream.seek(0)
    head = stream.read(REACH)
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(len(head), size - REACH))
    marks = Marks(identity)
    list(marks.feed(head + b"\n" + stream.read(REACH)))
    found = marks.settle()
    return next((kind for kind, one in _lines().items() if one is found), None)
