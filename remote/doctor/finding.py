"""What the doctor finds, and the facts that it judges."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Self


class Level(StrEnum):
    """How much a finding hurts; the worst comes first."""

    ERROR = "error"
    """sessions can't run, or will be ended or lost"""
    WARNING = "warning"
    """something will go wrong at some point, or already costs a lot"""
    NOTE = "note"
    """worth knowing; nothing has to be done"""
    OK = "ok"


@dataclass(frozen=True)
class Finding:
    check: str
    """a word of docs/doctor.md"""
    level: Level
    found: str
    """what is so, on this host, with its numbers"""
    cost: str = ""
    """what it leads to"""
    fix: str = ""
    """a command where there is one, else a sentence"""


def error(check: str, found: str, cost: str, fix: str = "") -> Finding:
    return Finding(check, Level.ERROR, found, cost, fix)


def warning(check: str, found: str, cost: str, fix: str = "") -> Finding:
    return Finding(check, Level.WARNING, found, cost, fix)


def note(check: str, found: str, cost: str, fix: str = "") -> Finding:
    return Finding(check, Level.NOTE, found, cost, fix)


def fine(check: str, found: str) -> Finding:
    return Finding(check, Level.OK, found)


def graded(check: str, level: Level, found: str, cost: str, fix: str) -> Finding:
    """One whose level depends on a number; what is fine costs nothing."""
    return fine(check, found) if level is Level.OK else Finding(check, level, found, cost, fix)


@dataclass(frozen=True)
class Facts:
    """What host/doctor.py said: for each key its values, in order."""

    values: Mapping[str, tuple[str, ...]]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `key=value` lines. Control characters are replaced, since people will see the values."""
        values: dict[str, list[str]] = {}
        for line in text.split("\n"):
            key, equals, value = line.partition("=")
            if equals and re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", key):
                printable = "".join(character if character.isprintable() else " " for character in value)
                values.setdefault(key, []).append(printable.strip())
        return cls({key: tuple(entries) for key, entries in values.items()})

    def all(self, key: str) -> tuple[str, ...]:
        return self.values.get(key, ())

    def one(self, key: str) -> str:
        """The last value, or nothing."""
        return self.values.get(key, ("",))[-1]

    def number(self, key: str) -> int | None:
        return integer(self.one(key))

    def numbers(self, key: str) -> tuple[int, ...]:
        """The values that are numbers."""
        return tuple(number for value in self.all(key) if (number := integer(value)) is not None)

    def late(self, probe: str) -> bool:
        """Whether a probe was still waiting for something when time was up."""
        return probe in self.all("late")


def integer(text: str) -> int | None:
    return int(text) if re.fullmatch(r"-?[0-9]{1,18}", text) else None


def real(text: str) -> float | None:
    return float(text) if re.fullmatch(r"-?[0-9]{1,18}(\.[0-9]*)?", text) else None


def size(kib: float) -> str:
    """KiB as people read it."""
    for unit in ("KiB", "MiB", "GiB"):
        if kib < 1024 - 0.5:
            return f"{kib:.0f} {unit}" if kib >= 10 or unit == "KiB" else f"{kib:.1f} {unit}"
        kib /= 1024
    return f"{kib:.1f} TiB"


def version(text: str) -> tuple[int, ...]:
    """The first dotted number in a text: `tmux 3.3a` is (3, 3)."""
    match = re.search(r"[0-9]{1,9}(\.[0-9]{1,9})*", text)
    return tuple(map(int, match[0].split("."))) if match else ()
