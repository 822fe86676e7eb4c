"""Answers about a grid, a host, and the program itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from comborun.answers import Untrusted, UntrustedFacts, UntrustedLines
from comborun.model.plan import Plan
from comborun.planner.knowledge import Calibration
from comborun.planner.packing import Outlook
from comborun.rules.facts import Fact


@dataclass(frozen=True)
class LatestCounts:
    """The last results of the grid's try or run on this machine, counted by the present grid."""

    session: str
    counted: int
    why: Untrusted
    facts: UntrustedFacts


@dataclass(frozen=True)
class Checked:
    grid: str
    combos: int
    latest: LatestCounts | None
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class WrittenFile:
    path: Untrusted
    bytes: int


@dataclass(frozen=True)
class Tried:
    """One session of a try, and what of its results counts."""

    policy: str
    environment: str
    episodes: int
    command: str
    seconds: float | None
    counts: bool
    """whether the results of such a session count, and no line for `results:` would make more of them count"""
    seed: Untrusted
    """the field with a seed under another name; empty without one"""
    folder: str
    code: int | None
    """exit code"""
    outcome: str
    note: Untrusted
    files: tuple[WrittenFile, ...]
    successes: int
    verdicts: int
    facts: UntrustedFacts
    counted: int
    why: Untrusted
    """why rows don't count"""
    log: UntrustedLines
    """its last lines"""


@dataclass(frozen=True)
class ListedPreset:
    name: str
    own: bool
    """whether it is the user's"""
    summary: str


@dataclass(frozen=True)
class ShownPreset:
    name: str
    file: str
    sha256: str
    about: Mapping[str, Any]


@dataclass(frozen=True)
class Text:
    """A text that a command writes: a starter grid, a page, a script."""

    name: str
    """what it is"""
    text: str


@dataclass(frozen=True)
class Pages:
    pages: tuple[str, ...]


@dataclass(frozen=True)
class Example:
    """A copy of the example."""

    folder: str
    grid: str


@dataclass(frozen=True)
class Disconnected:
    """The hosts whose kept connections were ended."""

    hosts: tuple[str, ...]


@dataclass(frozen=True)
class Page:
    """Where a live page is, until the command ends."""

    address: str
    """with its key: whoever has it sees the run"""
    tunnel: str | None
    """the command that brings it to the machine from which the user has logged in"""
    record: Literal["page"] = "page"


@dataclass(frozen=True)
class Bundle:
    """A page as static files."""

    folder: str
    videos: int
    left_out: int
    """videos that were too large, or are not on this machine"""
    record: Literal["bundle"] = "bundle"


@dataclass(frozen=True)
class FoundOnHost:
    check: str
    level: str
    """error, warning, note or ok"""
    found: Untrusted
    cost: Untrusted
    """what happens if nothing is done"""
    fix: Untrusted
    fact: Fact


@dataclass(frozen=True)
class Examined:
    host: str
    healthy: bool
    """no finding is an error"""
    findings: tuple[FoundOnHost, ...]
    about: Mapping[str, Any]


@dataclass(frozen=True)
class PlannedHost:
    host: str
    sessions: tuple[str, ...]
    seconds: float | None
    """how long it is expected to take"""


@dataclass(frozen=True, kw_only=True)
class Planned(Plan):
    """A plan, and what is to be expected of it."""

    expected: Outlook | None
    power: Mapping[str, Mapping[str, float | None]]
    """scope -> the gaps that comparisons can find, and the episodes that a gap needs"""
    hosts: tuple[PlannedHost, ...] = ()
    """of a grid on several hosts who would run what"""


@dataclass(frozen=True, kw_only=True)
class Calibrated(Calibration):
    file: str
    """where the measurements are now"""
