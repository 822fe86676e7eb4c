"""The result of one probe, as values. Times are seconds since 1970 on the host's clock."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from comborun.attempt import Begin, End
from comborun.monitor.progress import NOTHING, Counter
from comborun.monitor.slurm import Scheduler, Task
from comborun.rules.tally import Counts
from comborun.rules.words import Life

if TYPE_CHECKING:
    from collections.abc import Mapping

PAUSED, DRAINING, HALTED = "paused", "draining", "halted"


def indexes(written: str) -> tuple[int, ...]:
    """GPUs as the dispatcher wrote them; what is no number is left out."""
    return tuple(int(word) for word in written.split(",") if re.fullmatch(r"[0-9]{1,9}", word))


class Mark(NamedTuple):
    """How much was done at a moment."""

    time: float
    done: int


@dataclass(frozen=True)
class Hold:
    """Nothing new starts. PAUSED keeps the dispatcher; after DRAINING and HALTED it leaves."""

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
    """A queued session that waits for something besides its turn."""

    session: str
    reason: str
    """a word of monitor/waiting.py"""
    until: float | None = None
    """when it will be tried; None: when something happens"""
    detail: str = ""
    """for people"""


@dataclass(frozen=True)
class Server:
    """One model server."""

    name: str
    state: str
    """queued, starting, loading, ready, silent (it does not answer) or ended"""
    attempt: int = 0
    """0 before the first"""
    since: float | None = None
    """when it began to be in that state"""
    gpus: tuple[int, ...] = ()
    """those that it has, or had"""
    port: int | None = None
    cause: str = ""
    """how its latest attempt ended"""
    why: str = ""
    """for people"""

    @property
    def alive(self) -> bool:
        return self.state not in {"queued", "ended"}


@dataclass(frozen=True)
class Gpu:
    """One GPU, with the memory (bytes) that all programs use. None is unknown, never 0."""

    index: int
    memory_used: int | None
    memory_total: int | None
    utilization_percent: int | None
    """of the time during which something ran on it"""


@dataclass(frozen=True)
class Space:
    """A size in bytes, and how much of it is free."""

    total: int
    free: int

    @property
    def scarce(self) -> bool:
        """A twentieth or less is left."""
        return self.free * 20 <= self.total


@dataclass(frozen=True)
class HostUse:
    """How full the host is."""

    load: float | None = None
    """over the last minute"""
    cpus: int | None = None
    memory: Space | None = None
    """free means without swapping"""
    disk: Space | None = None
    """of the file system of the run"""
    gpus: tuple[Gpu, ...] = ()
    """asked for only where the run uses any"""


UNKNOWN_USE = HostUse()


@dataclass(frozen=True)
class Attempt:
    """One attempt of a session as the probe found it."""

    session: str
    number: int
    begin: Begin | None = None
    end: End | None = None
    life: str = ""
    """in the host's words: starting, running, orphaned, lost or ended (comborun/host/attempts.py)"""
    claimed: bool = False
    """a supervisor has claimed it, though it may not have written `begin` yet"""
    stalled: float | None = None
    """since when it has shown no progress, where that is longer than allowed"""
    wrong_gpu: str = ""
    """`GPU:MiB,GPU:MiB` that its processes held, if some of it lay on a GPU that was not granted"""
    live: Counts = field(default_factory=Counts)
    """what its result files show while it runs"""
    log_size: int = 0
    log_changed: float | None = None
    tail: bytes = b""
    """the last bytes of the log: untrusted"""
    counter: Counter = NOTHING
    """how much is done, by its log; kept by the watcher"""
    marks: tuple[Mark, ...] = ()
    """when more was seen to be done, oldest first; kept by the watcher"""

    @property
    def done(self) -> int:
        """Episodes (or steps) that its records or its log tell of, whichever is more."""
        return max(self.counts.records, self.counter.done or 0)

    @property
    def whole(self) -> bool:
        """Whether `done` is all that it has done, and not the least of it."""
        return not self.counter.missed or self.counts.records >= (self.counter.done or 0)

    @property
    def counts(self) -> Counts:
        return self.end.counts if self.end else self.live

    @property
    def started(self) -> float | None:
        return (self.begin.started if self.begin else self.end.started if self.end else None) or None

    @property
    def alive(self) -> bool:
        return self.life in (Life.RUNNING, Life.ORPHANED) or (self.life == Life.STARTING and self.claimed)


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """What a probe reports about a run as a whole."""

    stopped: bool = False
    hold: Hold | None = None
    quarantine: tuple[Quarantine, ...] = ()
    dispatcher: int | None = None
    """its pid, None when it is gone"""
    slots: int | None = None
    use: HostUse = UNKNOWN_USE
    multiplexer: str = ""
    servers: tuple[Server, ...] = ()
    """the model servers that its sessions ask"""
    scheduler: Scheduler | None = None
    """None unless Slurm starts the sessions"""
    again: Mapping[str, int] = field(default_factory=dict)
    """session -> the attempt after which a person asked for another one"""


@dataclass(frozen=True, kw_only=True)
class Snapshot(RunFacts):
    """The result of one probe."""

    run: str
    now: float
    boot: str
    done: bool
    """all sessions have ended"""
    attempts: tuple[Attempt, ...]
    """those that are newer than what the watcher knows"""
    plan: int | None = None
    """the number of the newest plan"""
    notice_failed: tuple[int, float] | None = None
    """exit code of the notify command and time, if it did not take the latest notice"""
    waiting: tuple[Waiting, ...] = ()
    tasks: tuple[Task, ...] = ()
