"""The formats of result files: one table of how each is recognized, and which reader reads it.

A format is recognized by the content and the path of a file, never by a program's name. Callers open the files.
"""

from __future__ import annotations

import os
import re
from importlib import import_module

from comborun.rules.results import readers
from comborun.rules.results.episodes import (
    COMPLETION,
    EPISODE_ID,
    JOB,
    JOB_MARKS,
    LIST_LAST_FOLDER,
    PER_FILE_NAME,
    decode,
    decode_line,
)
from comborun.rules.results.fields import FORMAT, MISSING, TORN, TRAINING, UNREADABLE, RefusedError
from comborun.rules.results.packed import MARK, narrowed, packing, unpacked, unpacked_name, wide_encoding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO, Callable, Mapping

    from comborun.rules.results.fields import Identity
    from comborun.rules.results.readers import Decoded, Reader

    Row = Mapping[str, Any]

JSONL_ROWS, COMPLETION_ROWS, JOB_ROWS, HISTORY = "jsonl-rows", "completion-rows", "job-rows", "history-rows"
TABLE, ARRAYS, INSPECT, EPISODES, DATABASE = "table", "arrays", "inspect-log", "episode-list", "database"
PER_FILE, LIST_LAST, EVAL_INFO = "json-per-file", "json-list-last", "eval-info"
LOG_PATTERN, TUPLES, NAMED, SUMMARY = "log-pattern", "log-tuple", "filename-encoded", "summary"

LINES, DOCUMENTS, LOGS = (".jsonl", ".ndjson"), (".json",), (".log", ".txt", ".out", ".err")
TABLES, DATABASES, PICKLES = (".csv", ".tsv"), (".db", ".sqlite", ".sqlite3"), (".stats", ".pkl", ".pickle", ".pt")
LOG_NAMES = ("log", "stdout", "stderr", "nohup")
"""logs without a suffix"""
_FOR_PEOPLE = ("readme", "license", "licence", "notice", "changelog", "requirements")
"""texts with these names hold no results, whatever they quote"""

HEAD = 1 << 16
"""bytes at the beginning of a file by which its format is recognized"""
_HEAD_LINES = 100

_SQLITE = b"SQLite format 3\0"
_ARRAY = b"\x93NUMPY"
_FOREIGN = (
    ("HDF5", (".h5", ".hdf5"), b"\x89HDF\r\n\x1a\n"),
    ("Parquet", (".parquet",), b"PAR1"),
    ("YAML", (".yaml", ".yml"), b"%YAML"),
    ("MATLAB", (".mat",), b"MATLAB 5.0 MAT-file"),
    ("Excel", (".xlsx", ".xls", ".ods"), b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"),
    ("Arrow", (".feather", ".arrow"), b"ARROW1"),
)
"""kinds of files that the standard library does not read: name, suffixes, first bytes"""
_KEY = re.compile(r'"(\w{1,64})"\s*:')
_SUMMARY_FILE = re.compile(r"summary(?:_all)?\.json|_resume_.*\.json")


class Head:
    """What is known of a document by which its format is recognized: the beginning of its text, its keys, its path."""

    def __init__(self, text: str, name: str, folder: str) -> None:
        self.text, self.name, self.folder = text.lstrip(), name, folder
        self.keys = set(_KEY.findall(self.text))


class Format:
    """A row of the table. Of those that a file may have, the first one that fits is its format.

    `reader` is the module and the name of its reader: a class of `Lines` for files that grow, a function of `Whole` for
    those that are read as a whole, or of `PrintedLog` for values that a log prints behind its `mark` and that `end`
    with a bracket. `row`, `document` and `mark` recognize it by its first row, the head of a document,
    or a line of a log; `at_end` by all lines of a log together, where no mark was found.
    """

    def __init__(
        self, name: str, words: str, reader: str, whole: bool = False, named: bool = True, **recognized: Any
    ) -> None:
        self.name, self.words, self.whole = name, words, whole
        """`words`: by what it is recognized"""
        self.reader = reader
        self.named = named
        """whether a grid may name it"""
        self.suffix: str = recognized.get("suffix", "")
        self.row: Callable[[Row, Identity], bool] | None = recognized.get("row")
        self.document: Callable[[Head], bool] | None = recognized.get("document")
        self.mark: str = recognized.get("mark", "")
        self.end: str = recognized.get("end", "")
        self.at_end: str = recognized.get("at_end", "")
        """name of a test in logs.py"""

    def load(self) -> Any:
        """Its reader, imported only if needed: a supervisor must start fast."""
        module, _, name = self.reader.partition(".")
        return getattr(import_module(f".{module}", __package__), name)


def _own(row: Row, identity: Identity) -> bool:
    """Whether a row has the fields that the grid names."""
    return all(field.word or field.find(row) is not MISSING for field in (identity.success, identity.episode))


def _list_of_steps(head: Head) -> bool:
    steps = head.text.startswith("[") and (not head.keys or "step" in head.keys)
    return bool(LIST_LAST_FOLDER.fullmatch(head.folder)) and (not head.text or steps)


_ALL = (
    # files of rows
    Format(
        HISTORY,
        "rows with _step and _timestamp",
        "row_readers.HistoryLines",
        row=lambda row, _: {"_step", "_timestamp"} <= row.keys(),
    ),
    Format(JSONL_ROWS, "one object per line", "row_readers.JsonLines", row=_own),
    Format(
        COMPLETION_ROWS,
        f"rows with {EPISODE_ID} and {COMPLETION}",
        "row_readers.CompletionLines",
        row=lambda row, identity: {COMPLETION, EPISODE_ID} <= row.keys() and not _other_verdict(row, identity),
    ),
    Format(
        JOB_ROWS,
        f"rows with {JOB} and an episode's place",
        "row_readers.JobLines",
        row=lambda row, _: JOB in row and bool(row.keys() & set(JOB_MARKS)),
    ),
    Format(TABLE, "a header and cells", "row_readers.Table"),
    # whole files
    Format(
        SUMMARY,
        "a summary of other files",
        "documents.summary",
        True,
        named=False,
        document=lambda head: (
            bool(_SUMMARY_FILE.fullmatch(head.name)) or {"total_num_tasks", "success_rate"} <= head.keys
        ),
    ),
    Format(
        PER_FILE,
        "an episode's number in its name",
        "evaluations.per_file",
        True,
        document=lambda head: bool(PER_FILE_NAME.fullmatch(head.name)) and not head.text.startswith("["),
    ),
    Format(LIST_LAST, "a list of steps in an episode's folder", "evaluations.list_last", True, document=_list_of_steps),
    Format(
        EVAL_INFO,
        "successes of tasks or episodes",
        "evaluations.evaluation",
        True,
        document=lambda head: head.text.startswith("{") and bool(head.keys & {"per_task", "per_episode", "pc_success"}),
    ),
    Format(
        "rollout-stats",
        "a rate with Num_Episode or Num_Success",
        "documents.rollouts",
        True,
        document=lambda head: "Success_Rate" in head.keys and bool(head.keys & {"Num_Episode", "Num_Success"}),
    ),
    Format(
        INSPECT,
        "a log of Inspect",
        "documents.inspect",
        True,
        suffix=".eval",
        document=lambda head: {"eval", "plan", "version"} <= head.keys,
    ),
    Format(EPISODES, "a document with episodes", "documents.read", True, document=lambda head: bool(head.text)),
    Format(ARRAYS, "arrays of numpy", "documents.arrays", True, suffix=".npz"),
    Format(DATABASE, "a table with episodes", "documents.database", True),
    # logs
    Format(LOG_PATTERN, "lines that match the grid's pattern", "log_patterns.LogPattern", named=False),
    Format(
        "log-lines", "lines that count episodes", "logs.EpisodeLog", mark=r"# episodes completed so far:\s*(\d{1,18})\b"
    ),
    Format(TUPLES, "a printed tuple of results", "logs.tuples", mark=r"^\s*results:\s*(?P<value>\(.*)$", end=")"),
    Format(
        "rank-metrics",
        "metrics of each rank",
        "logs.ranks",
        mark=r"\[Rank (?P<rank>\d{1,5})/(?P<ranks>\d{1,5})\] Metrics: (?P<value>\{.*\})",
        end="}",
    ),
    Format(
        "log-rollout-stats",
        "printed statistics of rollouts",
        "logs.statistics",
        mark=r"^[\s=]*Average Rollout Stats\b",
        end="}",
    ),
    Format("kn-aggregate", "a rate with num_trajectories", "logs.Trajectories", at_end="has_rate"),
    Format(TRAINING, "lines that count steps of a training", "logs.Training", at_end="has_steps"),
    # files that are not opened
    Format(NAMED, "outcomes in files' names", "filename_results.Named"),
)
TABLE_OF_FORMATS = {one.name: one for one in _ALL}
WHY = {one.name: one.words for one in _ALL}
"""by what each format is recognized"""
FORMATS = tuple(one.name for one in _ALL if one.named)
"""formats that a grid may name; for LOG_PATTERN it gives a pattern instead"""
WHOLE = frozenset(one.name for one in _ALL if one.whole)
"""formats that are read only when the file is complete"""
_ARCHIVES = {one.suffix: one.name for one in _ALL if one.suffix}


def _other_verdict(row: Row, identity: Identity) -> bool:
    """Whether a row has the grid's field of verdicts beside its completion, which is a degree then."""
    field = identity.success
    return not field.word and field.name != COMPLETION and field.find(row) is not MISSING


def candidate(path: str) -> bool:
    """Whether a file with this name may hold results."""
    name = unpacked_name(path).rpartition("/")[2]
    known = (*LINES, *DOCUMENTS, *LOGS, *TABLES, *_ARCHIVES, *DATABASES, ".npy")
    if suffix_of(name) == ".txt" and name.partition(".")[0].casefold() in _FOR_PEOPLE:
        return False
    return suffix_of(name) in known or name in LOG_NAMES


class File:
    """The format of a file (empty: no row can be read yet), and the byte from which it is read."""

    def __init__(self, kind: str, start: int, place: str = "") -> None:
        self.kind = kind
        self.content: BinaryIO | None = None
        """what is packed in the file; then `start` is in it"""
        self.start = start
        self.place = place
        """where a database is opened"""

    def reader(self, identity: Identity, path: str = "", decoded: Decoded = decode_line) -> Reader:
        """Its reader. `decoded` may be a faster decoder for rows."""
        return reader(self.kind or JSONL_ROWS, identity, path, decoded, self.place)


def reader(kind: str, identity: Identity, path: str = "", decoded: Decoded = decode_line, place: str = "") -> Reader:
    """The reader of a format. `path` is the file's, below the output folder."""
    known = TABLE_OF_FORMATS[kind]
    read = known.load()
    if known.whole:
        whole = readers.Whole(identity, path, read, place)
        general = known.document and kind not in (EPISODES, SUMMARY)
        whole.general = TABLE_OF_FORMATS[EPISODES].load() if general else None
        return whole
    if known.end:
        from comborun.rules.results.logs import PrintedLog

        return PrintedLog(identity, path, known.mark, known.end, read)
    given = (decoded,) if known.row else (known.mark,) if known.mark else ()
    made: Reader = read(identity, path, *given)
    return made


_SPREAD = re.compile(rb"\s*[{\[]\s*\n\s*(?:\"|\{\s*\n)")
"""an object, or a list of objects, that goes on in the next line"""


def look(stream: BinaryIO, path: str, identity: Identity, asked: str = "") -> File:
    """Recognizes a file by its content and path; `asked` is the format that the grid names. Raises RefusedError."""
    stream.seek(0)
    head = stream.read(HEAD)
    if head and not head.strip(b"\0"):
        raise RefusedError(TORN, "nothing_but_nul")
    if foreign := foreign_kind(path, head):
        raise RefusedError(UNREADABLE, "pickle" if foreign == "pickle" else "foreign_kind", kind=foreign)
    if head.startswith(_SQLITE) or asked == DATABASE:
        return File(DATABASE, stream.seek(0, os.SEEK_END), str(getattr(stream, "name", "")))
    if archive := ARRAYS if head.startswith(_ARRAY) else _ARCHIVES.get(suffix_of(path)):
        return File(archive, 0)
    packed, wide = packing(head), wide_encoding(head)
    if packed or wide:
        content = unpacked(stream, packed) if packed else narrowed(stream, wide)
        file = look(content, unpacked_name(path) if packed else path, identity, asked)
        file.content = file.content or content
        return file
    start = len(MARK) if head.startswith(MARK) else 0
    return File(asked or _recognized(stream, path, head[start:], identity), start)


def _recognized(stream: BinaryIO, path: str, head: bytes, identity: Identity) -> str:
    """The format of plain text; `head` is its beginning. Raises RefusedError."""
    if suffix_of(path) in LINES and _SPREAD.match(head):
        raise RefusedError(UNREADABLE, "object_over_lines")
    if not is_log(path):
        kind = file_format(path, head, identity)
    elif identity.pattern:
        kind = LOG_PATTERN
    else:
        from comborun.rules.results.logs import log_format

        kind = log_format(stream, identity, _ALL)
    if kind is None and suffix_of(path) not in DOCUMENTS and head.lstrip().startswith(b"{"):
        kind = row_format(head, identity) or None  # lines of JSON, whatever the file is called
    if kind is None:
        raise RefusedError(FORMAT, "unknown_text" if is_log(path) else "unknown_format")
    return kind


def foreign_kind(path: str, head: bytes) -> str:
    """What a file is that only other libraries read; empty for others."""
    if suffix_of(path) in PICKLES:
        return "pickle"
    if "tfevents" in path.rpartition("/")[2]:
        return "TensorBoard"
    known = (name for name, suffixes, start in _FOREIGN if suffix_of(path) in suffixes or head.startswith(start))
    return next(known, "")


def ending_of(path: str) -> str:
    """The suffix by which a pattern finds such files: `.json`, `.jsonl.gz`."""
    inner = unpacked_name(path)
    return suffix_of(inner) + path[len(inner) :]


def row_format(head: bytes, identity: Identity) -> str:
    """The format of a file of rows, by its first object; empty until one can be read."""
    for line in head[:HEAD].splitlines()[:_HEAD_LINES]:
        values, fault = decode(line.decode("utf-8", "replace"))
        if not fault and len(values) == 1 and isinstance(values[0], dict) and values[0]:
            return format_of(values[0], identity)
    return ""


def format_of(row: Row, identity: Identity) -> str:
    return next((one.name for one in _ALL if one.row and one.row(row, identity)), JSONL_ROWS)


def file_format(path: str, head: bytes, identity: Identity) -> str | None:
    """The format of a file, from its first bytes as plain text. Empty if it has rows, but none can be read yet; None if
    the format is unknown.
    """
    folder, _, name = path.rpartition("/")
    suffix = suffix_of(name)
    if suffix in LINES:
        return row_format(head, identity)
    if suffix in TABLES:
        return TABLE
    if suffix in DOCUMENTS:
        told = Head(head.decode("utf-8", "replace"), name, folder.rpartition("/")[2])
        return next((one.name for one in _ALL if one.document and one.document(told)), None)
    return None


def is_log(path: str) -> bool:
    return suffix_of(path) in LOGS or path.rpartition("/")[2] in LOG_NAMES


def suffix_of(name: str) -> str:
    """The suffix in lower case, as PurePath gives it: none of `.hidden` or of `name.`."""
    name = name.rpartition("/")[2]
    dot = name.rfind(".")
    return name[dot:].lower() if 0 < dot < len(name) - 1 else ""
