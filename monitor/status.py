"""What is known of a run, in the words that people and programs get."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from comborun.plan import Unit
from comborun.state import Life, Outcome
from monitor.host import HostUse


class Expected(NamedTuple):
    """When something will end: seconds since 1970 on the host's clock."""

    earliest: float
    likeliest: float
    latest: float


@dataclass(frozen=True)
class Link:
    """Whether the host answers. A state of the link, never of a session."""

    reachable: bool = True
    since: float = 0.0
    """since when it is unreachable; seconds since 1970 on the watcher's clock"""
    lasting: float = 0.0
    """for how many seconds it has been unreachable"""
    last_seen: float | None = None
    """seconds since the last answer; None when there was none"""
    failures: int = 0
    complaint: str = ""


@dataclass(frozen=True)
class HostEvent:
    """Something that happened to the host and ended many sessions at once."""

    kind: Literal["restarted", "vanished"]
    last_sign: float | None
    """when one of the sessions last gave a sign of life; seconds since 1970 on the host's clock"""
    sessions: tuple[str, ...]
    """those that it ended"""


@dataclass(frozen=True)
class SessionStatus:
    """One session. Times are seconds since 1970 on the host's clock."""

    name: str
    policy: str
    environment: str
    unit: Unit
    planned: int
    done: int | None = None
    """episodes (or steps) that its records or its log tell of; None when neither tells"""
    recorded: int | None = None
    """those with a record; None when the program leaves no records"""
    successes: int | None = None
    """of those with a record"""
    life: Life = Life.QUEUED
    outcome: Outcome | None = None
    """None until it has ended"""
    attempt: int = 0
    """0 before the first"""
    gpus: tuple[int, ...] = ()
    """those that its latest attempt was granted"""
    window: str = ""
    """what attaches to that attempt: the name of its tmux session, or screen's PID.name"""
    idle: float | None = None
    """seconds since its log last grew; None unless it is alive"""
    progressed: float | None = None
    """when more was last seen to be done"""
    silent: bool = False
    """its program is known to print nothing for long stretches"""
    last_line: str = ""
    started: float | None = None
    seconds: float | None = None
    """how long its latest attempt ran, or has been running"""
    note: str = ""
    """for people: how it ended, where the outcome alone does not say it"""
    expected: Expected | None = None
    """its end"""

    @property
    def alive(self) -> bool:
        return self.life not in (Life.QUEUED, Life.ENDED)

    @property
    def remaining(self) -> int:
        return max(0, self.planned - (self.done or 0))


@dataclass(frozen=True)
class RunStatus:
    """A run at one moment. Times are seconds since 1970 on the host's clock."""

    run: str
    grid: str
    host: str
    directory: str
    sessions: tuple[SessionStatus, ...]
    """the combos, in plan order"""
    after: SessionStatus | None = None
    """the grid's `after` command"""
    now: float | None = None
    """None before the first answer"""
    started: float | None = None
    seconds: float | None = None
    """from the first start to now, or to the end"""
    expected: Expected | None = None
    """the end of the last session"""
    finished: bool = False
    stopped: bool = False
    dispatcher: int | None = None
    slots: int | None = None
    use: HostUse = field(default_factory=HostUse)
    multiplexer: str = ""
    host_event: HostEvent | None = None
    hint: str = ""
    """what to do, when something is to be done: nothing starts any more, say"""
    link: Link = field(default_factory=Link)

    @property
    def done(self) -> int:
        return sum(session.done or 0 for session in self.sessions)

    @property
    def planned(self) -> int:
        return sum(session.planned for session in self.sessions if session.done is not None)

    @property
    def recorded(self) -> int:
        return sum(session.recorded or 0 for session in self.sessions)

    @property
    def successes(self) -> int:
        return sum(session.successes or 0 for session in self.sessions)

    def counts(self) -> dict[str, int]:
        """How many sessions are in each state; an ended one counts by its outcome."""
        words = [str(session.outcome or session.life) for session in self.sessions]
        order = [*Life, *Outcome]
        return {str(word): words.count(str(word)) for word in order if str(word) in words}
