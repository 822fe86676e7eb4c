"""The findings of `combo doctor`."""

from __future__ import annotations

from typing import NamedTuple

from comborun.rules.vocabulary import Word


class Level(Word):
    """The severity of a finding; the worst comes first."""

    ERROR = "error"
    """sessions can't run, or will be ended or lost"""
    WARNING = "warning"
    """something will go wrong at some point, or already costs a lot"""
    NOTE = "note"
    """worth knowing; nothing has to be done"""
    OK = "ok"


class Finding(NamedTuple):
    check: str
    """a word of docs/doctor.md"""
    level: Level
    found: str
    """the fact on this host, with its numbers"""
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
    """A finding whose level depends on a number. If the number is good, nothing is lost."""
    return fine(check, found) if level is Level.OK else Finding(check, level, found, cost, fix)
