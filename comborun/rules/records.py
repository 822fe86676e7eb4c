"""The records of a run: `key=value` lines, each file complete or absent. The one reader and writer of both halves."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, Mapping

_KEY = re.compile("[a-z_]+")
_INTEGER = re.compile("-?[0-9]{1,18}")
_SECONDS = re.compile(r"[0-9]{1,18}(\.[0-9]*)?")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")

NOTE_MOST = 300
"""characters of a note"""


def parse(text: str) -> dict[str, str]:
    """The fields of a record; whatever is no `key=value` line is passed over. The last of several values counts."""
    fields = {}
    for line in text.split("\n"):
        key, equals, value = line.partition("=")
        if equals and _KEY.fullmatch(key):
            fields[key] = value
    return fields


def parse_all(text: str, key: str) -> tuple[str, ...]:
    """The values of a field that may be there several times, in their order."""
    start = key + "="
    return tuple(line[len(start) :] for line in text.split("\n") if line.startswith(start))


def render(fields: Iterable[tuple[str, object]]) -> str:
    """The text of a record; a value of several lines becomes one line."""
    return "".join(f"{key}={one_line(value)}\n" for key, value in fields)


def one_line(value: object) -> str:
    return str(value).replace("\n", " ")


def integer(record: Mapping[str, str], key: str) -> int | None:
    """A field that is an integer of at most 18 digits, or None."""
    value = record.get(key, "")
    return int(value) if _INTEGER.fullmatch(value) else None


def seconds(record: Mapping[str, str], key: str) -> float | None:
    """A time or a duration in seconds, finite, or None."""
    value = record.get(key, "")
    return float(value) if _SECONDS.fullmatch(value) else None


def clean(text: str) -> str:
    """One line of at most NOTE_MOST characters, with nothing that moves a cursor."""
    return _CONTROL.sub(" ", text)[:NOTE_MOST]
