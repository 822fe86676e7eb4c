"""How rows are written: the values of a line, a document or a cell, and what known programs call their fields. Pure."""

from __future__ import annotations

import json
import re

from comborun.rules.results.fields import TORN, UNREADABLE, RefusedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping


LINE_LIMIT = 16 << 20
"""bytes; a longer line is not a record. It is skipped without being held in memory"""
DEPTH_LIMIT = 100
"""of nested lists and objects in a field"""
DIGITS_LIMIT = 4300
"""of an integer: newer Pythons refuse longer ones, and older ones take minutes for them"""
COMPLETION, EPISODE_ID = "completion", "episode_id"
JOB, COPY, ORDER, OUTCOMES = "job_name", "env_id", "episode_in_env", "outcomes"
INDICES = ("global_episode_index", "episode_idx")
JOB_MARKS = (COPY, ORDER, OUTCOMES, *INDICES)
"""a row with the job's name and one of these is one of job-rows"""

_BLANKS = re.compile(r"\s*")
_CELLS = {"true": True, "false": False, "": None, "none": None, "null": None}
_DECIMAL_COMMA = re.compile(r"[+-]?\d{1,300},\d{1,300}")
_BOTH_SIGNS = re.compile(r"[+-]?[1-9]\d{0,2}(?:\.\d{3}){1,90},\d{1,300}")
_UNIT, _BETWEEN = re.compile(r"[(\[][^()\[\]]*[)\]]\s*$"), re.compile(r"[\s-]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+")
"""a number with commas, which may be thousands: a log does not say which"""
_NUMBER = re.compile(r"[+-]?(\d+|\d*\.\d+|\d+\.\d*)([eE][+-]?\d{1,4})?")
PER_FILE_NAME = re.compile(r"episode_(?P<number>\d{1,18})_(?:final_)?res\.json")
LIST_LAST_FOLDER = re.compile(r"episode_(?P<number>\d{1,18})")
_REBUILD = re.compile(r"_rebuild(\d{1,9})\b")


def _short_integer(text: str) -> int:
    if len(text) > DIGITS_LIMIT:
        raise ValueError("a number too long")
    return int(text)


_decoder = json.JSONDecoder()
_wary_decoder = json.JSONDecoder(parse_int=_short_integer)


def decode(line: str) -> tuple[list[Any], str]:
    """The JSON values of one line, and the code of the fault after the last of them (empty: none). Parsing ends at the
    first fault: what follows could be a part of it.
    """
    decoder = _decoder if len(line) < DIGITS_LIMIT else _wary_decoder
    values: list[Any] = []
    nests = line.count("{") + line.count("[") > DEPTH_LIMIT
    position = _after_blanks(line, 0)
    while position < len(line):
        try:
            value, position = decoder.raw_decode(line, position)
        except (ValueError, RecursionError) as error:
            if isinstance(error, RecursionError):
                return values, "nested_too_deeply"
            if line.startswith("{'", position):
                return values, "python_object"
            return values, "not_json_after_record" if values else "not_json"
        if nests and deep(value):
            return values, "nested_too_deeply"
        values.append(value)
        position = _after_blanks(line, position)
    return values, ""


def decode_line(line: bytes) -> tuple[list[Any], str]:
    """The JSON values of a line, and the code of the fault after the last."""
    return decode(line.decode("utf-8", "replace"))


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


def decode_whole(text: str) -> Any:
    """The value of a whole document. Raises RefusedError."""
    if not text.strip():
        raise RefusedError(TORN, "empty_file")
    try:
        value, end = _wary_decoder.raw_decode(text, _after_blanks(text, 0))
    except json.JSONDecodeError as error:
        begun = text.lstrip().startswith(("{", "["))
        if begun and (error.pos >= len(text.rstrip()) or not text.rstrip().endswith(("}", "]"))):
            raise RefusedError(TORN, "half_written_json") from error
        raise RefusedError(UNREADABLE, "not_json_document", error=error.msg, at=error.lineno) from error
    except RecursionError as error:
        raise RefusedError(UNREADABLE, "nested_too_deeply") from error
    except ValueError as error:  # an integer of thousands of digits
        raise RefusedError(UNREADABLE, "number_too_long") from error
    if _after_blanks(text, end) < len(text):
        raise RefusedError(UNREADABLE, "several_documents")
    if deep(value):
        raise RefusedError(UNREADABLE, "nested_too_deeply")
    return value


def cell(text: str, comma: bool = False, table: bool = False) -> Any:
    """The value of a cell: a number, true or false, nothing, or text. `comma`: it may stand for the decimal point; in a
    `table` whose cells lie between other signs it always does.
    """
    text = text.strip()
    if comma and _DECIMAL_COMMA.fullmatch(text) and (table or not THOUSANDS.fullmatch(text)):
        return float(text.replace(",", "."))
    if table and comma and _BOTH_SIGNS.fullmatch(text):  # 1.234,5
        return float(text.replace(".", "").replace(",", "."))
    if text.lower() in _CELLS:
        return _CELLS[text.lower()]
    if len(text) < 400 and _NUMBER.fullmatch(text):
        return int(text) if text.lstrip("+-").isdigit() else float(text)
    return float("nan") if text.lower() == "nan" else text


def plain(path: str) -> str:
    """The last name of a path in small letters, without its unit: `is_success` of `eval/isSuccess (bool)`."""
    name = _UNIT.sub("", path).replace("/", ".").rpartition(".")[2]
    return _BETWEEN.sub("_", _HUMP.sub("_", name.strip())).lower()


def rebuild(name: str) -> int:
    """The number of the scene's rebuild that a file of job-rows belongs to; 0 without a number."""
    found = _REBUILD.search(name)
    return int(found.group(1)) if found else 0


def job_success(row: Mapping[str, Any]) -> object:
    """The row's own verdict, else the one in its outcomes; None without either."""
    outcomes = row.get(OUTCOMES)
    if "success" in row or not isinstance(outcomes, dict):
        return row.get("success")
    return outcomes.get("success")
