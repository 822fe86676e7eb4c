"""The probe's answer (docs/architecture.md, "The probe") as values: bytes -> Snapshot, pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from comborun.attempt import Begin, End
from comborun.errors import HostError, UserError
from comborun.monitor.answer.cluster import Scheduler, Task, scheduler_of, task_of
from comborun.monitor.answer.fields import Fields
from comborun.monitor.answer.holds import Hold, Quarantine, Waiting, hold_of, quarantine_of, waiting_of
from comborun.monitor.answer.host import HostUse, host_use
from comborun.monitor.answer.progress import NOTHING, Counter
from comborun.monitor.answer.servers import ServerStatus, server_of
from comborun.rules.names import RUN
from comborun.rules.records import seconds
from comborun.rules.tally import Counts

VERSION = "2"
_MAGIC = b"comborun-probe "
STARTING, RUNNING, ORPHANED = "starting", "running", "orphaned"


class Mark(NamedTuple):
    """So much was done at this moment; seconds since 1970 on the host's clock."""

    time: float
    done: int


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
    """a supervisor has made it its own, whether it got as far as the begin or not"""
    stalled: float | None = None
    """since when it has shown no progress, where that is longer than allowed"""
    wrong_gpu: str = ""
    """`GPU:MiB,GPU:MiB` that its processes held when some of it lay on a GPU that it was not granted"""
    live: Counts = field(default_factory=Counts)
    """what its result files show while it runs"""
    log_size: int = 0
    log_changed: float | None = None
    tail: bytes = b""
    """the last bytes of the log: untrusted"""
    counter: Counter = NOTHING
    """what its log has told so far of how much is done; kept by the asker"""
    marks: tuple[Mark, ...] = ()
    """when more was seen to be done, oldest first; kept by the asker"""

    @property
    def done(self) -> int:
        """Episodes (or steps) that its records or its log tell of, whichever is more."""
        return max(self.counts.records, self.counter.done or 0)

    @property
    def whole(self) -> bool:
        """Whether `done` is all that it has done, and not the least of it."""
        return self.counter.whole or self.counts.records >= (self.counter.done or 0)

    @property
    def counts(self) -> Counts:
        return self.end.counts if self.end else self.live

    @property
    def alive(self) -> bool:
        return self.life in (RUNNING, ORPHANED) or (self.life == STARTING and self.claimed)

    @property
    def log(self) -> str:
        """The log's path below the run directory."""
        return RUN.attempt(self.session, self.number).log


@dataclass(frozen=True)
class Snapshot:
    """What one probe saw. Times are seconds since 1970 on the host's clock."""

    run: str
    now: float
    boot: str
    dispatcher: int | None
    """its pid, None when it is gone"""
    slots: int | None
    stopped: bool
    use: HostUse
    multiplexer: str
    done: Mapping[str, str] | None
    """the fields of dispatch/done; None while the run goes on"""
    attempts: tuple[Attempt, ...]
    """those that are newer than what the asker said it knows"""
    plan: int | None = None
    """the number of the newest plan"""
    notice_failed: tuple[int, float] | None = None
    """with which code the notify command ended, and when, if it did not take the latest notice"""
    hold: Hold | None = None
    quarantine: tuple[Quarantine, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    servers: tuple[ServerStatus, ...] = ()
    scheduler: Scheduler | None = None
    """None unless Slurm starts the sessions"""
    tasks: tuple[Task, ...] = ()


def parse_snapshot(answer: bytes) -> Snapshot:
    """Read the probe's standard output.

    Raises HostError when it is no such answer, UserError when it is one of another version.
    """
    document, tails = _cut(answer)
    attempts = []
    for told in document.parts("attempts"):
        length = min(max(0, told.part("log").integer("tail") or 0), len(tails))
        attempts.append(_attempt(told, tails[:length]))
        tails = tails[length:]
    return _snapshot(document, tuple(attempts))


def _cut(answer: bytes) -> tuple[Fields, bytes]:
    """The document, and what follows it."""
    start = 0 if answer.startswith(_MAGIC) else answer.find(b"\n" + _MAGIC) + 1
    if not answer.startswith(_MAGIC, start):
        raise HostError("the host did not answer as a probe does", f"it said: {_excerpt(answer)}")
    first, _, rest = answer[start:].partition(b"\n")
    version = first[len(_MAGIC) :].decode("utf-8", "replace").strip()
    if version != VERSION:
        raise UserError(f"the run's probe speaks version {version[:20]!r}, not {VERSION}", "update comborun here")
    line, end, tails = rest.partition(b"\n")
    try:
        document = json.loads(line.decode("utf-8", "replace")) if end else None
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise HostError("the probe's answer is cut off", "the next look will show whether that was the link")
    return Fields(document), tails


def _excerpt(answer: bytes) -> str:
    return repr(answer[:80].decode("utf-8", "replace")) if answer else "nothing"


def _attempt(told: Fields, tail: bytes) -> Attempt:
    session, number, log = told.text("session"), told.integer("attempt"), told.part("log")
    if not session or not number or number < 1:
        raise HostError("the probe's answer can't be read: it names no session or no attempt")
    begin, end, counts = told.record("begin"), told.record("end"), told.record("counts") or {}
    return Attempt(
        session=session,
        number=number,
        begin=Begin.of(begin) if begin else None,
        end=End.of(end) if end else None,
        life=told.text("life"),
        claimed=told.flag("claimed"),
        stalled=seconds({"since": told.text("stalled")}, "since"),
        wrong_gpu=told.text("wrong_gpu"),
        live=Counts.of(counts),
        log_size=log.integer("size") or 0,
        log_changed=log.number("changed"),
        tail=tail,
    )


def _snapshot(told: Fields, attempts: tuple[Attempt, ...]) -> Snapshot:
    now, run, notice, slurm = told.number("now"), told.text("run"), told.part("notice"), told.part("slurm")
    if now is None or not run:
        raise HostError("the probe's answer names no run or no time")
    code = notice.integer("code")
    return Snapshot(
        run=run,
        now=now,
        boot=told.text("boot"),
        dispatcher=told.integer("dispatcher"),
        slots=told.integer("slots"),
        stopped=told.flag("stopped"),
        use=host_use(told),
        multiplexer=told.text("multiplexer"),
        done=told.record("done"),
        attempts=attempts,
        plan=told.integer("plan"),
        notice_failed=None if code is None else (code, notice.number("at") or 0.0),
        hold=hold_of(told.part("hold")),
        quarantine=tuple(filter(None, map(quarantine_of, told.parts("quarantine")))),
        waiting=tuple(map(waiting_of, told.parts("waiting"))),
        servers=tuple(map(server_of, told.parts("servers"))),
        scheduler=scheduler_of(slurm),
        tasks=tuple(filter(None, map(task_of, slurm.parts("tasks")))),
    )
