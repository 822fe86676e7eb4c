"""How rows are written: the JSON values of a line, and the formats of files. Pure."""

from __future__ import annotations

import json
import re

from comborun.rules.fields import MISSING, TORN, UNREADABLE, RefusedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping

    from comborun.rules.fields import Identity

LINE_LIMIT = 16 << 20
"""bytes; a longer line is no record but a program gone wrong, and is passed over without being held in memory"""
DEPTH_LIMIT = 100
"""of lists and objects in a field"""
DIGITS_LIMIT = 4300
"""of an integer: newer Pythons refuse longer ones, and older ones take minutes"""
HEAD = 1 << 16
"""bytes from the beginning of a file that tell its format"""
_HEAD_LINES = 100

JSONL_ROWS, COMPLETION_ROWS, JOB_ROWS, HISTORY = "jsonl-rows", "completion-rows", "job-rows", "history-rows"
TABLE, ARRAYS, INSPECT, EPISODES, DATABASE = "table", "arrays", "inspect-log", "episode-list", "database"
PER_FILE, LIST_LAST, EVAL_INFO, STATISTICS = "json-per-file", "json-list-last", "eval-info", "rollout-stats"
LOG_PATTERN, EPISODE_LOG, TUPLES, COUNTED = "log-pattern", "log-lines", "log-tuple", "kn-aggregate"
RANKS, STATISTICS_LOG, TRAINING = "rank-metrics", "log-rollout-stats", "train-step"
NAMED, SUMMARY = "filename-encoded", "summary"
FORMATS = (
    *(JSONL_ROWS, COMPLETION_ROWS, JOB_ROWS, HISTORY, TABLE, ARRAYS, INSPECT, EPISODES, DATABASE, PER_FILE, LIST_LAST),
    *(EVAL_INFO, STATISTICS, EPISODE_LOG, TUPLES, COUNTED, RANKS, STATISTICS_LOG, TRAINING, NAMED),
)
"""that a grid may name (of a pattern it says the pattern); rules/formats.py says what reads each"""
LOG = "log"
"""a log of which its lines have to say which kind it is"""
TABLES, DATABASES, PICKLES = (".csv", ".tsv"), (".db", ".sqlite", ".sqlite3"), (".stats", ".pkl", ".pickle", ".pt")
ARCHIVES = {".npz": ARRAYS, ".eval": INSPECT}
LINES, DOCUMENTS, LOGS = (".jsonl", ".ndjson"), (".json",), (".log", ".txt", ".out", ".err")
LOG_NAMES = ("log", "stdout", "stderr", "nohup")
"""logs without a suffix"""

COMPLETION, EPISODE_ID = "completion", "episode_id"
JOB, COPY, ORDER, OUTCOMES = "job_name", "env_id", "episode_in_env", "outcomes"
INDICES = ("global_episode_index", "episode_idx")
JOB_MARKS = (COPY, ORDER, OUTCOMES, *INDICES)
"""one of these beside the job's name makes a row of job-rows"""

UNKNOWN = "of no format that is known"
_BLANKS = re.compile(r"\s*")
_KEY = re.compile(r'"(\w{1,64})"\s*:')
_SUMMARY_FILE = re.compile(r"summary(?:_all)?\.json")
PER_FILE_NAME = re.compile(r"episode_(?P<number>\d{1,18})_(?:final_)?res\.json")
LIST_LAST_FOLDER = re.compile(r"episode_(?P<number>\d{1,18})")
MARK, WIDE_MARKS = b"\xef\xbb\xbf", (b"\xff\xfe", b"\xfe\xff")
"""byte order marks of UTF-8 and of UTF-16"""
_PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\0": "xz", b"(\xb5/\xfd": "zstd", b"PK\x03\x04": "zip"}
_REBUILD = re.compile(r"_rebuild(\d{1,9})\b")


def _short_integer(text: str) -> int:
    if len(text) > DIGITS_LIMIT:
        raise ValueError("a number too long")
    return int(text)


_decoder = json.JSONDecoder()
_wary_decoder = json.JSONDecoder(parse_int=_short_integer)


def decode(line: str) -> tuple[list[Any], str]:
    """The JSON values of one line, and what is wrong after the last of them; empty if nothing is.

    Parsing ends at the first fault: what follows could be a part of it.
    """
    decoder = _decoder if len(line) < DIGITS_LIMIT else _wary_decoder
    values: list[Any] = []
    nests = line.count("{") + line.count("[") > DEPTH_LIMIT
    position = _after_blanks(line, 0)
    while position < len(line):
        try:
            value, position = decoder.raw_decode(line, position)
        except (ValueError, RecursionError) as error:
            fault = "nested too deeply" if isinstance(error, RecursionError) else "not JSON"
            return values, f"{fault} after a whole record" if values else fault
        if nests and deep(value):
            return values, "nested too deeply"
        values.append(value)
        position = _after_blanks(line, position)
    return values, ""


def _after_blanks(text: str, position: int) -> int:
    blanks = _BLANKS.match(text, position)
    return blanks.end() if blanks else position


def deep(value: object) -> bool:
    """Whether a value nests its fields deeper than DEPTH_LIMIT."""
    level: list[Any] = [value] if isinstance(value, (dict, list)) else []
    for _ in range(DEPTH_LIMIT + 2):
        inner = (one.values() if isinstance(one, dict) else one for one in level)
        level = [entry for entries in inner for entry in entries if isinstance(entry, (dict, list))]
        if not level:
            return False
    return True


def row_format(head: bytes, identity: Identity) -> str:
    """The format of a file of rows, by the first object in it; empty while there is none that can be read."""
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
    """The format of a .json file: by its keys, and where it is too short to have any, by its place alone."""
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
    """What a file is, from its beginning as plain text; empty for rows of which none can be read yet.

    A format of which the grid says that it is so (`asked`) is not asked about. None: of no format that is known.
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
    """Whether a file is called like a log."""
    return suffix_of(path) in LOGS or path.rpartition("/")[2] in LOG_NAMES


def decode_whole(text: str) -> Any:
    """The value of a whole document. Raises RefusedError."""
    if not text.strip():
        raise RefusedError(TORN, "empty: being written, or cut off")
    try:
        value, end = _wary_decoder.raw_decode(text, _after_blanks(text, 0))
    except json.JSONDecodeError as error:
        if error.pos >= len(text.rstrip()) or not text.rstrip().endswith(("}", "]")):
            raise RefusedError(TORN, "half-written JSON: being written, or cut off") from error
        raise RefusedError(UNREADABLE, f"not JSON: {error.msg} in line {error.lineno}") from error
    except RecursionError as error:
        raise RefusedError(UNREADABLE, "nested too deeply") from error
    except ValueError as error:  # an integer of thousands of digits
        raise RefusedError(UNREADABLE, "not JSON: a number too long") from error
    if _after_blanks(text, end) < len(text):
        raise RefusedError(UNREADABLE, "not JSON: more than one document")
    if deep(value):
        raise RefusedError(UNREADABLE, "nested too deeply")
    return value


def describe(value: object) -> str:
    """What a document of no known format is."""
    unknown = UNKNOWN
    if isinstance(value, list):
        return f"one JSON list of {len(value)} entries, {unknown}"
    lists = [(key, one) for key, one in value.items() if isinstance(one, list)] if isinstance(value, dict) else []
    longest = max(lists, key=lambda pair: len(pair[1]), default=None)
    return f"one JSON document with {len(longest[1])} {longest[0]}, {unknown}" if longest else unknown


def packing(start: bytes) -> str:
    """With what a file is packed; empty for plain text. Archives of a known suffix are read as they are."""
    return next((name for magic, name in _PACKED.items() if start.startswith(magic)), "")


def suffix_of(name: str) -> str:
    """In lower case, as PurePath has it: none of `.hidden` or of `name.`."""
    name = name.rpartition("/")[2]
    dot = name.rfind(".")
    return name[dot:].lower() if 0 < dot < len(name) - 1 else ""


def rebuild(name: str) -> int:
    """Which rebuild of its scene a file of job-rows is of; files without a number are of the first one."""
    found = _REBUILD.search(name)
    return int(found.group(1)) if found else 0


def job_success(row: Mapping[str, Any]) -> object:
    """A row's own, else the one among its outcomes; None where none is told."""
    outcomes = row.get(OUTCOMES)
    if "success" in row or not isinstance(outcomes, dict):
        return row.get("success")
    return outcomes.get("success")
