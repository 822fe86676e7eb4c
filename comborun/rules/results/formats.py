"""Every format of result files: how it is recognized, and which reader reads it.

A format is recognized by the content and the path of a file, never by a program's name. Callers open the files.
"""

from __future__ import annotations

import os
import re

from comborun.rules.results import readers
from comborun.rules.results.episodes import (
    COMPLETION,
    EPISODE_ID,
    JOB,
    JOB_MARKS,
    LIST_LAST_FOLDER,
    PER_FILE_NAME,
    UNKNOWN,
    decode,
)
from comborun.rules.results.fields import FORMAT, MISSING, TRAINING, UNREADABLE, RefusedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO, Callable, Iterable, Mapping

    from comborun.rules.results.fields import Identity
    from comborun.rules.results.readers import Decoded, Reader

JSONL_ROWS, COMPLETION_ROWS, JOB_ROWS, HISTORY = "jsonl-rows", "completion-rows", "job-rows", "history-rows"
TABLE, ARRAYS, INSPECT, EPISODES, DATABASE = "table", "arrays", "inspect-log", "episode-list", "database"
PER_FILE, LIST_LAST, EVAL_INFO, STATISTICS = "json-per-file", "json-list-last", "eval-info", "rollout-stats"
LOG_PATTERN, EPISODE_LOG, TUPLES, COUNTED = "log-pattern", "log-lines", "log-tuple", "kn-aggregate"
RANKS, STATISTICS_LOG = "rank-metrics", "log-rollout-stats"
NAMED, SUMMARY = "filename-encoded", "summary"
LOG = "log"
"""a log whose lines must show its kind"""
TABLES, DATABASES, PICKLES = (".csv", ".tsv"), (".db", ".sqlite", ".sqlite3"), (".stats", ".pkl", ".pickle", ".pt")
ARCHIVES = {".npz": ARRAYS, ".eval": INSPECT}
LINES, DOCUMENTS, LOGS = (".jsonl", ".ndjson"), (".json",), (".log", ".txt", ".out", ".err")
LOG_NAMES = ("log", "stdout", "stderr", "nohup")
"""logs without a suffix"""

HEAD = 1 << 16
"""bytes at the beginning of a file by which its format is recognized"""
_HEAD_LINES = 100

MARK, WIDE_MARKS = b"\xef\xbb\xbf", (b"\xff\xfe", b"\xfe\xff")
"""byte order marks of UTF-8 and of UTF-16"""
_SQLITE = b"SQLite format 3\0"
_PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\0": "xz", b"(\xb5/\xfd": "zstd", b"PK\x03\x04": "zip"}
_KEY = re.compile(r'"(\w{1,64})"\s*:')
_SUMMARY_FILE = re.compile(r"summary(?:_all)?\.json")
REACH = 1 << 20
"""bytes at the beginning and at the end of a log that are searched: some programs report only at the end"""
WHOLE = (ARRAYS, INSPECT, EPISODES, DATABASE, PER_FILE, LIST_LAST, EVAL_INFO, STATISTICS)
"""formats that are read only when the file is complete"""
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
"""By what each format is recognized."""
FORMATS = tuple(name for name in WHY if name not in (LOG_PATTERN, SUMMARY))
"""Formats that a grid may name. For LOG_PATTERN it gives a pattern instead."""


def candidate(path: str) -> bool:
    """Whether a file with this name may hold results. Packed files are reported and not read."""
    name = (path[: -len(".gz")] if path.endswith(".gz") else path).rpartition("/")[2]
    known = (*LINES, *DOCUMENTS, *LOGS, *TABLES, *ARCHIVES, *DATABASES)
    return suffix_of(name) in known or name in LOG_NAMES


class File:
    """The format of a file (empty: no row can be read yet), and the byte from which it is read."""

    __slots__ = ("kind", "place", "start")

    def __init__(self, kind: str, start: int, place: str = "") -> None:
        self.kind = kind
        self.start = start
        self.place = place
        """where a database is opened"""

    def reader(self, identity: Identity, path: str = "", decoded: Decoded = readers.decode_line) -> Reader:
        """Its reader. `decoded` may be a faster decoder for rows."""
        return reader(self.kind or JSONL_ROWS, identity, path, decoded, self.place)


def reader(
    kind: str, identity: Identity, path: str = "", decoded: Decoded = readers.decode_line, place: str = ""
) -> Reader:
    """The reader of a format. `path` is the file's, below the output folder."""
    if kind in _ROWS:
        return _ROWS[kind](identity, path, decoded)
    if kind in WHOLE:
        return readers.Whole(identity, path, _whole(kind, place))
    return _lines()[kind](identity, path)


def _lines() -> dict[str, type[readers.Lines]]:
    """The readers of other lines than rows, imported only if needed: a supervisor must start fast."""
    from comborun.rules.results import logs

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
    from comborun.rules.results import documents, evaluations

    known: dict[str, Callable[[readers.Whole], Iterable[readers.Entry]]] = {
        ARRAYS: documents.arrays,
        INSPECT: documents.inspect,
        EPISODES: documents.read,
        DATABASE: documents.database(place),
        PER_FILE: evaluations.per_file,
        LIST_LAST: evaluations.list_last,
        EVAL_INFO: evaluations.evaluation,
        STATISTICS: evaluations.rollouts,
    }
    return known[kind]


def look(stream: BinaryIO, path: str, identity: Identity, asked: str = "") -> File:
    """Recognizes a file by its content and path; `asked` is the format that the grid names. Raises RefusedError."""
    stream.seek(0)
    head = stream.read(HEAD)
    if suffix_of(path) in PICKLES:
        raise RefusedError(UNREADABLE, "a pickle, which is never opened: have its numbers written as JSON")
    if head.startswith(_SQLITE) or asked == DATABASE:
        return File(DATABASE, stream.seek(0, os.SEEK_END), str(getattr(stream, "name", "")))
    if suffix_of(path) in ARCHIVES:
        return File(ARCHIVES[suffix_of(path)], 0)
    if packed := packing(head):
        raise RefusedError(UNREADABLE, f"packed with {packed}: unpack it first")
    if head.startswith(WIDE_MARKS):
        raise RefusedError(UNREADABLE, "UTF-16: convert it to UTF-8 first")
    start = len(MARK) if head.startswith(MARK) else 0
    kind = file_format(path, head[start:], identity, "" if asked == SUMMARY else asked)
    if kind == LOG:
        kind = _log(stream, identity)
    if kind is None:
        raise RefusedError(FORMAT, UNKNOWN)
    if kind == SUMMARY:
        raise RefusedError(FORMAT, "a summary is not read: only files with single episodes count")
    return File(kind, start)


def _log(stream: BinaryIO, identity: Identity) -> str | None:
    """The kind of a log, from its beginning and its end; None: none, or none yet."""
    from comborun.rules.results.logs import Marks

    stream.seek(0)
    head = stream.read(REACH)
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(len(head), size - REACH))
    marks = Marks(identity)
    list(marks.feed(head + b"\n" + stream.read(REACH)))
    found = marks.settle()
    return next((kind for kind, one in _lines().items() if one is found), None)


def row_format(head: bytes, identity: Identity) -> str:
    """The format of a file of rows, by its first object; empty until one can be read."""
    for line in head[:HEAD].splitlines()[:_HEAD_LINES]:
        values, fault = decode(line.decode("utf-8", "replace"))
        if not fault and len(values) == 1 and isinstance(values[0], dict) and values[0]:
            return format_of(values[0], identity)
    return ""


def format_of(row: Mapping[str, Any], identity: Identity) -> str:
    """The format of a row; the fields that the grid names come first."""
    held = set(row)
    if {"_step", "_timestamp"} <= held:
        return HISTORY
    if all(field.word or field.find(row) is not MISSING for field in (identity.success, identity.episode)):
        return JSONL_ROWS
    if {COMPLETION, EPISODE_ID} <= held:
        return COMPLETION_ROWS
    if JOB in held and held & set(JOB_MARKS):
        return JOB_ROWS
    return JSONL_ROWS


def document_format(head: str, name: str, folder: str) -> str:
    """The format of a .json file by its keys. A text that is too short to have keys is recognized by its path."""
    head = head.lstrip()
    keys = set(_KEY.findall(head))
    if _SUMMARY_FILE.fullmatch(name) or {"total_num_tasks", "success_rate"} <= keys:
        return SUMMARY
    if PER_FILE_NAME.fullmatch(name) and not head.startswith("["):
        return PER_FILE
    if LIST_LAST_FOLDER.fullmatch(folder) and (not head or (head.startswith("[") and (not keys or "step" in keys))):
        return LIST_LAST
    known = {"per_task", "per_episode", "pc_success"} & keys
    if known and head.startswith("{"):
        return EVAL_INFO
    if "Success_Rate" in keys and {"Num_Episode", "Num_Success"} & keys:
        return STATISTICS
    return INSPECT if {"eval", "plan", "version"} <= keys else EPISODES if head else ""


def file_format(path: str, head: bytes, identity: Identity, asked: str = "") -> str | None:
    """Recognizes a file from its beginning as plain text; empty for rows of which none can be read yet, None if
    unknown.

    The format that the grid names (`asked`) is believed.
    """
    folder, _, name = path.rpartition("/")
    suffix = suffix_of(name)
    if asked:
        return asked
    if suffix in LINES:
        return row_format(head, identity)
    if suffix in TABLES:
        return TABLE
    if suffix in DOCUMENTS:
        text = head.decode("utf-8", "replace")
        return document_format(text, name, folder.rpartition("/")[2]) or None
    return (LOG_PATTERN if identity.pattern else LOG) if is_log(path) else None


def is_log(path: str) -> bool:
    return suffix_of(path) in LOGS or path.rpartition("/")[2] in LOG_NAMES


def packing(start: bytes) -> str:
    """The program that packed a file; empty for plain text. Archives with a known suffix are read as they are."""
    return next((name for magic, name in _PACKED.items() if start.startswith(magic)), "")


def suffix_of(name: str) -> str:
    """The suffix in lower case, as PurePath gives it: none of `.hidden` or of `name.`."""
    name = name.rpartition("/")[2]
    dot = name.rfind(".")
    return name[dot:].lower() if 0 < dot < len(name) - 1 else ""
