"""What keeps sessions from starting, as the probe tells it: a hold, GPUs under quarantine, waits."""

from __future__ import annotations

from dataclasses import dataclass

from comborun.attempt import integer, seconds
from monitor.answer.fields import parted

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


def hold_of(line: str) -> Hold:
    """From what follows `hold ` in the probe's header."""
    fields, why = parted(line)
    return Hold(fields.get("kind", ""), seconds(fields, "at"), why)


def quarantine_of(line: str) -> Quarantine | None:
    """From what follows `quarantine `; None when it names no GPU."""
    fields, _ = parted(line)
    gpu = integer(fields, "gpu")
    return None if gpu is None else Quarantine(gpu, fields.get("class", ""), seconds(fields, "at"))


def waiting_of(line: str) -> Waiting:
    """From what follows `waiting `."""
    fields, detail = parted(line)
    return Waiting(fields.get("session", ""), fields.get("for", ""), seconds(fields, "until"), detail)
