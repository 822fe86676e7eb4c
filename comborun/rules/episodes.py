"""What a row of a result file is: a record, an episode, a verdict, and why it does not count. Pure.

A row is one whole JSON object on a line. It is a record of a session where it names the session's own combo, or none,
and holds the index of an episode. It counts where that episode is planned. A record without a verdict is an errored
episode: it ran, and its program says nothing about how it went. The host while a run lasts, the live table and the
report all ask here.
"""

from __future__ import annotations

import json
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Mapping

LINE_LIMIT = 16 << 20
"""bytes; a longer line is no record but a program gone wrong, and is passed over without being held in memory"""
DEPTH_LIMIT = 100
"""of lists and objects in a field"""
DIGITS_LIMIT = 4300
"""of an integer: newer Pythons refuse longer ones, and older ones take minutes"""
HEAD = 1 << 16
"""bytes from the beginning of a file that tell its format"""
_HEAD_LINES = 100
DOCUMENT_MOST = 4 << 20
"""bytes of a document of no known format that are looked at to say what it is"""

TORN, NO_RECORD, POLICY, ENVIRONMENT = "torn", "no_record", "policy", "environment"
INDEX, OUTSIDE, REPEATED, UNREADABLE, FORMAT = "index", "outside", "repeated", "unreadable", "format"
"""why a row does not count"""

JSONL_ROWS, COMPLETION_ROWS, JOB_ROWS = "jsonl-rows", "completion-rows", "job-rows"
ROW_FORMATS = (JSONL_ROWS, COMPLETION_ROWS, JOB_ROWS)
"""formats with one record a line, which can be counted while they are written"""
SUMMARY, PER_FILE, LIST_LAST, EVAL_INFO = "summary", "json-per-file", "json-list-last", "eval-info"
LINES, DOCUMENTS, LOGS = (".jsonl", ".ndjson"), (".json",), (".log", ".txt", ".out", ".err")
LOG_NAMES = ("log", "stdout", "stderr", "nohup")
"""logs without a suffix"""

COMPLETION, EPISODE_ID = "completion", "episode_id"
JOB, COPY, ORDER, OUTCOMES = "job_name", "env_id", "episode_in_env", "outcomes"
INDICES = ("global_episode_index", "episode_idx")
JOB_MARKS = (COPY, ORDER, OUTCOMES, *INDICES)
"""one of these beside the job's name makes a row of job-rows"""

_BLANKS = re.compile(r"\s*")
_LAST_DIGITS = re.compile(r"[0-9]{1,18}$")
_KEY = re.compile(r'"(\w{1,64})"\s*:')
_SUMMARY_FILE = re.compile(r"summary(?:_all)?\.json")
PER_FILE_NAME = re.compile(r"episode_(?P<number>\d{1,18})_(?:final_)?res\.json")
LIST_LAST_FOLDER = re.compile(r"episode_(?P<number>\d{1,18})")
_NAMED = re.compile(r"(?:success|failure)_obj_")
MARK, WIDE_MARKS = b"\xef\xbb\xbf", (b"\xff\xfe", b"\xfe\xff")
"""byte order marks of UTF-8 and of UTF-16"""
_PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\0": "xz", b"(\xb5/\xfd": "zstd", b"PK\x03\x04": "zip"}
_REBUILD = re.compile(r"_rebuild(\d{1,9})\b")
_WORDS = {"true": True, "false": False}


class RefusedError(Exception):
    """Why something is no record of its session: `reason` is one of the words above, `about` what it named instead."""

    def __init__(self, reason: str, text: str, about: str = "") -> None:
        super().__init__(text)
        self.reason = reason
        self.about = about


class Identity:
    """What a record of a session may say: its combo, and the fields that hold verdict and index.

    A policy or environment of None must be named by each row. An empty one is not known, and nothing is asked.
    """

    __slots__ = ("environment", "episode", "policy", "success")

    def __init__(
        self, policy: str | None, environment: str | None, success: str = "success", episode: str = "episode"
    ) -> None:
        self.policy = policy
        self.environment = environment
        self.success = success
        self.episode = episode

    def fields(self, success: str, episode: str) -> Identity:
        """The same combo in the words of another format."""
        return Identity(self.policy, self.environment, success, episode)


class Record:
    """One episode as a row tells it. `verdict` is None where it tells none; `complaint` says why that is a fault."""

    __slots__ = ("complaint", "environment", "index", "policy", "verdict")

    def __init__(self, policy: str, environment: str, index: int, verdict: bool | None, complaint: str) -> None:
        self.policy = policy
        self.environment = environment
        self.index = index
        self.verdict = verdict
        self.complaint = complaint


def read_row(value: object, identity: Identity) -> Record:
    """The record in a decoded JSON value. Raises RefusedError."""
    if not isinstance(value, dict):
        raise RefusedError(NO_RECORD, "not a JSON object")
    policy = _name(value, "policy", identity.policy)
    environment = _name(value, "environment", identity.environment)
    index = episode_of(value, identity.episode)
    verdict, complaint = verdict_of(value, identity.success)
    return Record(policy, environment, index, verdict, complaint)


def _name(row: Mapping[str, Any], key: str, expected: str | None) -> str:
    """The policy or environment of a row: its session's own, which the row may repeat but not contradict."""
    named = row.get(key)
    if isinstance(named, (int, float)) and not isinstance(named, bool):
        named = str(named)
    if not isinstance(named, str) or not named:
        if expected is None:
            raise RefusedError(key, f"names no {key}")
        return expected
    if expected and named != expected:
        raise RefusedError(key, f"of another {key}: {named!r}, where {expected!r} ran", named)
    return named


def episode_of(row: Mapping[str, Any], key: str) -> int:
    """The index: a whole number, or a text that ends in one. Raises RefusedError."""
    if key not in row:
        raise RefusedError(INDEX, f"no field {key!r} with the episode's index", ", ".join(list(row)[:6]))
    value = row[key]
    index = integer(value)
    if isinstance(value, str):
        digits = _LAST_DIGITS.search(value)
        index = int(digits.group()) if digits else None
    if index is None or index < 0:
        raise RefusedError(INDEX, f"the field {key!r} holds no episode index")
    return index


def verdict_of(row: Mapping[str, Any], key: str) -> tuple[bool | None, str]:
    """true and false, 1 and 0, "true" and "false" are verdicts. Nothing else is: not null, not .5, not "done"."""
    if key not in row:
        return None, f"no field {key!r}: errored"
    value = row[key]
    if value is None:
        return None, ""
    if isinstance(value, str):
        value = _WORDS.get(value.strip().lower())
    if isinstance(value, (bool, int, float)) and value in (True, False):
        return bool(value), ""
    return None, f"the field {key!r} is neither true nor false: errored"


def integer(value: object) -> int | None:
    """The integer that a JSON value holds: 7 and 7.0, but not true, "7" or 7.5."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) else None


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
    position = _after_blanks(line, 0)
    while position < len(line):
        try:
            value, position = decoder.raw_decode(line, position)
        except (ValueError, RecursionError) as error:
            fault = "nested too deeply" if isinstance(error, RecursionError) else "not JSON"
            return values, f"{fault} after a whole record" if values else fault
        if line.count("{") + line.count("[") > DEPTH_LIMIT and _deep(value):
            return values, "nested too deeply"
        values.append(value)
        position = _after_blanks(line, position)
    return values, ""


def _after_blanks(text: str, position: int) -> int:
    blanks = _BLANKS.match(text, position)
    return blanks.end() if blanks else position


def _deep(value: object) -> bool:
    """Whether a row nests its fields deeper than DEPTH_LIMIT."""
    level: list[Any] = [value]
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
            return format_of(values[0].keys(), identity)
    return ""


def format_of(keys: Iterable[str], identity: Identity) -> str:
    """The format of a row with these keys."""
    held = set(keys)
    if {identity.success, identity.episode} <= held:
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
    told = {"per_task", "per_episode", "pc_success"} & keys
    return EVAL_INFO if told and head.startswith("{") else ""


def file_format(path: str, head: bytes, identity: Identity, asked: str = "") -> str | None:
    """What a file is, from its beginning as plain text; empty for rows of which none can be read yet.

    A format of which the grid says that it is so (`asked`) is not asked about. None: of no format that is known. `log`
    and `names` stand for formats that only the report tells apart.
    """
    folder, _, name = path.rpartition("/")
    suffix = suffix_of(name)
    if asked:
        return asked
    if suffix in LINES:
        return row_format(head, identity)
    text = head.decode("utf-8", "replace")
    if suffix in DOCUMENTS:
        return document_format(text, name, folder.rpartition("/")[2]) or None
    if suffix in LOGS or name in LOG_NAMES:
        return None if row_format(head, identity) else "log"
    return "names" if _NAMED.match(name) else None


def describe(text: str) -> str:
    """What a document of no known format is."""
    unknown = "of no format that is known"
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return unknown
    if isinstance(value, list):
        return f"one JSON list of {len(value)} entries, {unknown}"
    lists = [(key, one) for key, one in value.items() if isinstance(one, list)] if isinstance(value, dict) else []
    longest = max(lists, key=lambda pair: len(pair[1]), default=None)
    return f"one JSON document with {len(longest[1])} {longest[0]}, {unknown}" if longest else unknown


def packing(start: bytes) -> str:
    """With what a file is packed; empty for plain text."""
    return next((name for magic, name in _PACKED.items() if start.startswith(magic)), "")


def suffix_of(name: str) -> str:
    """In lower case, as PurePath has it: none of `.hidden` or of `name.`."""
    dot = name.rfind(".")
    return name[dot:].lower() if 0 < dot < len(name) - 1 else ""


def rebuild(name: str) -> int:
    """Which rebuild of its scene a file of job-rows is of; files without a number are of the first one."""
    found = _REBUILD.search(name)
    return int(found.group(1)) if found else 0


class JobRows:
    """Numbers the rows of one file of job-rows; a repeated row gets its number again."""

    __slots__ = ("copies", "numbers")

    def __init__(self) -> None:
        self.numbers: dict[tuple[int, int], int] = {}
        self.copies: set[int] = set()

    def place(self, row: Mapping[str, Any]) -> tuple[int | None, int | None]:
        """The row's own index, and else its number in the order in which such rows came; None: it has neither."""
        copy, order = integer(row.get(COPY)), integer(row.get(ORDER))
        if copy is not None:
            self.copies.add(copy)
        for key in INDICES:
            own = integer(row.get(key))
            if own is not None:
                return own, None
        if copy is None or order is None:
            return None, None
        return None, self.numbers.setdefault((copy, order), len(self.numbers))


def job_success(row: Mapping[str, Any]) -> object:
    """A row's own, else the one among its outcomes; None where none is told."""
    outcomes = row.get(OUTCOMES)
    if "success" in row or not isinstance(outcomes, dict):
        return row.get("success")
    return outcomes.get("success")
