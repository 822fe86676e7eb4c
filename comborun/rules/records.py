"""The records of a run: one JSON object each, each file complete or absent. The one reader and writer of both halves.

Fields are read as text, and those of LISTS as lists of text, whatever their JSON type; `integer` and `seconds` say what
is a number.
Four fields hold facts: `facts` and `ending` a list of them, `reason` and `trained` one; `judging` holds the rules by
which a session is judged. So a record that another program has written never holds a value of an unexpected type.
"""

from __future__ import annotations

import json
import re

from comborun.rules.facts import Fact, data_of, facts_of, json_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Mapping

_INTEGER = re.compile("-?[0-9]{1,18}")
_INTEGERS = re.compile("[0-9]{1,5}(,[0-9]{1,5})*")
_SECONDS = re.compile(r"[0-9]{1,18}(\.[0-9]*)?")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")

FACTS, ENDING, REASON, TRAINED = "facts", "ending", "reason", "trained"
"""the fields that hold facts; ENDING: how an attempt ended; TRAINED: how far a training is"""
JUDGING = "judging"
UNTIMED = "untimed"
"""of an end: its times are those of a process that ran other sessions, too"""
"""of a claim: a JSON object, which `host/record/judging.py` reads"""

LISTS = frozenset(("together", "dropped", "servers", "tokens", "only", "held", "files", "files_then"))
"""the fields that are lists of text; `files` is in claims of the former version"""

NOTE_MOST = 300
"""characters of a note"""


def parse(text: str) -> dict[str, Any]:
    """The fields of a record; none where the text is torn or is not a JSON object."""
    return read(json_of(text))


def read(found: object) -> dict[str, Any]:
    """The fields of a record from its JSON object; none where it is something else."""
    return {key: _value(key, value) for key, value in found.items()} if isinstance(found, dict) else {}


def _value(key: str, value: object) -> object:
    if key in (FACTS, ENDING):
        return facts_of(value)
    if key in (REASON, TRAINED):
        return Fact.of(value)
    if key == JUDGING:
        return value if isinstance(value, dict) else {}
    if key in LISTS:
        return [_text(one) for one in value] if isinstance(value, list) else []
    return _text(value)


def _text(value: object) -> str:
    if value is None or isinstance(value, (dict, list)):
        return ""
    return str(int(value)) if isinstance(value, bool) else str(value)


def texts(record: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """The values of a field that is a list; none where it is absent or no list."""
    value = record.get(key)
    return tuple(value) if isinstance(value, list) else ()


def facts(record: Mapping[str, Any]) -> tuple[Fact, ...]:
    """The facts of a record: its `facts`, then its `reason`."""
    reason = record.get(REASON)
    listed = record.get(FACTS)
    return (*(listed if isinstance(listed, tuple) else ()), *((reason,) if isinstance(reason, Fact) else ()))


def ending(record: Mapping[str, Any]) -> tuple[Fact, ...]:
    """The facts that say how an attempt ended, or why it must end."""
    listed, reason = record.get(ENDING), record.get(REASON)
    found = listed if isinstance(listed, tuple) else facts_of(listed)
    return (*found, *((reason,) if isinstance(reason, Fact) else ()))


def how_ended(record: Mapping[str, Any]) -> dict[str, Any]:
    """Of the record of an end, the fields of a fact that tells it: its facts, or the note of the former version."""
    note = record.get("note")
    return {ENDING: data_of(ending(record)), **({"note": note} if note else {})}


def render(fields: Iterable[tuple[str, object]]) -> str:
    return json.dumps(dict(fields), default=Fact.as_data) + "\n"


def integer(record: Mapping[str, Any], key: str) -> int | None:
    """A field that is an integer of at most 18 digits, or None."""
    value = record.get(key)
    return int(value) if isinstance(value, str) and _INTEGER.fullmatch(value) else None


def integers(record: Mapping[str, Any], key: str) -> tuple[int, ...]:
    """A field that lists numbers, as `0,1`; none where it is anything else."""
    value = record.get(key)
    return tuple(map(int, value.split(","))) if isinstance(value, str) and _INTEGERS.fullmatch(value) else ()


def seconds(record: Mapping[str, Any], key: str) -> float | None:
    """A time or a duration in seconds, finite, or None."""
    value = record.get(key)
    return float(value) if isinstance(value, str) and _SECONDS.fullmatch(value) else None


def clean(text: str, most: int = NOTE_MOST) -> str:
    """One line of limited length, without control characters."""
    return _CONTROL.sub(" ", text)[:most]
