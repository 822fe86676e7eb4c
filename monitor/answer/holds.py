"""What keeps sessions from starting, as the probe tells it: a hold, GPUs under quarantine, waits."""

from __future__ import annotations

from dataclasses import dataclass

from comborun.monitor.answer.fields import Fields

PAUSED, DRAINING, HALTED = "paused", "draining", "halted"


@dataclass(frozen=True)
class Hold:
    """Nothing new starts. `paused` keeps the dispatcher; after `draining` and `halted` it leaves."""

    kind: str
    since: float | None = None
    why: str = ""
    """one line for people"""

    @property
    def ends(self) -> bool:
        """Whether the dispatcher leaves once nothing runs any more."""
        return self.kind in (DRAINING, HALTED)


@dataclass(frozen=True)
class Quarantine:
    """A GPU on which nothing is started: the same failure came too often in a row."""

    gpu: int
    failure: str
    since: float | None = None


@dataclass(frozen=True)
class Waiting:
    """A queued session that waits for more than its turn."""

    session: str
    reason: str
    """see monitor/reasons/waits.py"""
    until: float | None = None
    """when it will be tried; None: when something happens"""
    detail: str = ""
    """for people"""


def hold_of(told: Fields) -> Hold | None:
    return Hold(told.text("kind"), told.number("at"), told.text("why")) if told.there else None


def quarantine_of(told: Fields) -> Quarantine | None:
    """None when it names no GPU."""
    gpu = told.integer("gpu")
    return None if gpu is None else Quarantine(gpu, told.text("class"), told.number("at"))


def waiting_of(told: Fields) -> Waiting:
    return Waiting(told.text("session"), told.text("for"), told.number("until"), told.text("detail"))
