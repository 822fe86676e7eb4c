"""One look at a run: the probe's answer (docs/architecture.md, "Hosts over SSH") as values. Pure.

Times are seconds since 1970 on the host's clock. A value of an unexpected type counts as unknown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import NamedTuple, TypeVar

from comborun.attempt import Begin, End
from comborun.errors import HostError, UserError
from comborun.monitor.progress import NOTHING, Counter
from comborun.monitor.slurm import Scheduler, Task
from comborun.rules.records import seconds
from comborun.rules.slurm import PENDING
from comborun.rules.tally import Counts
from comborun.rules.words import Life
from comborun.text import KIB, MIB

VERSION = "2"
"""version of the probe's answer"""
_MAGIC = b"comborun-probe "
_MOST = 10**18
Value = TypeVar("Value")

PAUSED, DRAINING, HALTED = "paused", "draining", "halted"


def indexes(written: str) -> tuple[int, ...]:
    """GPUs as the dispatcher wrote them; other text is left out."""
    return tuple(int(word) for word in written.split(",") if re.fullmatch(r"[0-9]{1,9}", word))


class Sample(NamedTuple):
    """The progress at a moment."""

    time: float
    done: int


@dataclass(frozen=True)
class Hold:
    """A hold: nothing new starts. PAUSED keeps the dispatcher; after DRAINING and HALTED it leaves."""

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
    """A closed GPU: the same failure came too often in a row."""

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
    """the next try; None: after an event"""
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
    """since when it is in that state"""
    gpus: tuple[int, ...] = ()
    """its present or last GPUs"""
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
    """share of the time in which it was busy"""


@dataclass(frozen=True)
class Space:
    """A size in bytes, and how much of it is free."""

    total: int
    free: int

    @property
    def scarce(self) -> bool:
        """Whether a twentieth or less is left."""
        return self.free * 20 <= self.total


@dataclass(frozen=True)
class HostUse:
    """The use of the host."""

    load: float | None = None
    """over the last minute"""
    cpus: int | None = None
    memory: Space | None = None
    """free: available without swapping"""
    disk: Space | None = None
    """of the file system of the run"""
    gpus: tuple[Gpu, ...] = ()
    """empty unless the run uses GPUs"""


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
    """since when it has shown no progress, if that is longer than allowed"""
    wrong_gpu: str = ""
    """`GPU:MiB,GPU:MiB` of its processes, if some of it is on a GPU that was not granted"""
    live: Counts = field(default_factory=Counts)
    """counts of its result files while it runs"""
    log_size: int = 0
    log_changed: float | None = None
    tail: bytes = b""
    """the last bytes of the log: untrusted"""
    counter: Counter = NOTHING
    """progress by its log; kept by the watcher"""
    samples: tuple[Sample, ...] = ()
    """observed progress, oldest first; kept by the watcher"""

    @property
    def done(self) -> int:
        """Episodes (or steps) by its records or by its log, whichever is more."""
        return max(self.counts.records, self.counter.done or 0)

    @property
    def whole(self) -> bool:
        """Whether `done` is exact, and not a lower bound."""
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
    """its pid; None if it is gone"""
    slots: int | None = None
    use: HostUse = UNKNOWN_USE
    multiplexer: str = ""
    servers: tuple[Server, ...] = ()
    """the model servers of its sessions"""
    scheduler: Scheduler | None = None
    """None unless Slurm starts the sessions"""
    again: Mapping[str, int] = field(default_factory=dict)
    """session -> the attempt after which a user requested another one"""
    ahead: float = 0.0
    """seconds by which the clock of another host is ahead of this machine's"""


@dataclass(frozen=True, kw_only=True)
class Snapshot(RunFacts):
    """The result of one probe."""

    run: str
    now: float
    boot: str
    done: bool
    """all sessions have ended"""
    attempts: tuple[Attempt, ...]
    """attempts that are newer than those that the watcher knows"""
    plan: int | None = None
    """the number of the newest plan"""
    notice_failed: tuple[int, float] | None = None
    """exit code and time of the notify command, if it failed for the latest notice"""
    waiting: tuple[Waiting, ...] = ()
    tasks: tuple[Task, ...] = ()


class Fields:
    """An object of the JSON document, read by the types of the wanted fields."""

    def __init__(self, value: object) -> None:
        self._values = value if isinstance(value, dict) else {}
        self.there = isinstance(value, dict)

    def as_a(self, kind: type[Value], **keys: str) -> Value:
        """A dataclass with fields named like the keys; `keys` gives other names. Unknown values are left out."""
        readers = {
            "str": self.text,
            "bool": self.flag,
            "int": lambda key: self.integer(key) or 0,
            "int | None": self.integer,
            "float | None": self.number,
            "tuple[int, ...]": self.indexes,
        }
        wanted = [one for one in fields(kind) if one.type in readers]  # type: ignore[arg-type]
        values = {one.name: readers[str(one.type)](keys.get(one.name, one.name)) for one in wanted}
        return kind(**{name: value for name, value in values.items() if value is not None})

    def text(self, key: str) -> str:
        value = self._values.get(key)
        return value if isinstance(value, str) else ""

    def number(self, key: str) -> float | None:
        """A finite number that is not negative, such as a time."""
        value = self._values.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return float(value) if 0 <= value < _MOST else None  # excludes NaN

    def integer(self, key: str) -> int | None:
        value = self._values.get(key)
        good = isinstance(value, int) and not isinstance(value, bool) and -_MOST < value < _MOST
        return value if good else None

    def indexes(self, key: str) -> tuple[int, ...]:
        return indexes(self.text(key))

    def flag(self, key: str) -> bool:
        return self._values.get(key) is True

    def part(self, key: str) -> Fields:
        return Fields(self._values.get(key))

    def parts(self, key: str) -> Iterator[Fields]:
        values = self._values.get(key)
        return (Fields(value) for value in (values if isinstance(values, list) else ()))

    def room(self, key: str) -> Space | None:
        """`[total, free]` in KiB; None if one is unknown."""
        values = self._values.get(key)
        total, free = values if isinstance(values, list) and len(values) == 2 else (None, None)
        return Space(total * KIB, free * KIB) if isinstance(total, int) and isinstance(free, int) else None

    def record(self, key: str) -> dict[str, str]:
        """The fields of a record of the run; empty without one."""
        values = self.part(key)._values  # noqa: SLF001
        return {name: value for name, value in values.items() if isinstance(value, str)}


def parse_snapshot(answer: bytes) -> Snapshot:
    """Read the probe's standard output. Raises HostError if it is no answer, UserError if it is of another version."""
    document, tails = _cut(answer)
    attempts = []
    for one in document.parts("attempts"):
        length = min(max(0, one.part("log").integer("tail") or 0), len(tails))
        attempts.append(_attempt(one, tails[:length]))
        tails = tails[length:]
    return _snapshot(document, tuple(attempts))


def _cut(answer: bytes) -> tuple[Fields, bytes]:
    """The document, and the bytes after it."""
    start = 0 if answer.startswith(_MAGIC) else answer.find(b"\n" + _MAGIC) + 1
    if not answer.startswith(_MAGIC, start):
        excerpt = repr(answer[:80].decode("utf-8", "replace")) if answer else "nothing"
        raise HostError("the host did not answer as a probe does", f"it said: {excerpt}")
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


def _attempt(one: Fields, tail: bytes) -> Attempt:
    session, number, log = one.text("session"), one.integer("attempt"), one.part("log")
    if not session or not number or number < 1:
        raise HostError("the probe's answer can't be read: it names no session or no attempt")
    begin, end = one.record("begin"), one.record("end")
    return Attempt(
        session=session,
        number=number,
        begin=Begin.of(begin) if begin else None,
        end=End.of(end) if end else None,
        life=one.text("life"),
        claimed=one.flag("claimed"),
        stalled=seconds({"since": one.text("stalled")}, "since"),
        wrong_gpu=one.text("wrong_gpu"),
        live=Counts.of(one.record("counts")),
        log_size=log.integer("size") or 0,
        log_changed=log.number("changed"),
        tail=tail,
    )


def _snapshot(document: Fields, attempts: tuple[Attempt, ...]) -> Snapshot:
    now, run, notice, slurm = (
        document.number("now"),
        document.text("run"),
        document.part("notice"),
        document.part("slurm"),
    )
    if now is None or not run:
        raise HostError("the probe's answer names no run or no time")
    code, hold = notice.integer("code"), document.part("hold")
    return Snapshot(
        run=run,
        now=now,
        boot=document.text("boot"),
        dispatcher=document.integer("dispatcher"),
        slots=document.integer("slots"),
        stopped=document.flag("stopped"),
        use=HostUse(
            load=document.number("load"),
            cpus=document.integer("cpus"),
            memory=document.room("memory_kib"),
            disk=document.room("disk_kib"),
            gpus=tuple(map(_gpu, document.parts("gpus"))),
        ),
        multiplexer=document.text("multiplexer"),
        done=document.part("done").there,
        attempts=attempts,
        plan=document.integer("plan"),
        again={name: int(number) for name, number in document.record("again").items() if number.isdecimal()},
        notice_failed=None if code is None else (code, notice.number("at") or 0.0),
        hold=hold.as_a(Hold, since="at") if hold.there else None,
        quarantine=tuple(
            one.as_a(Quarantine, failure="class", since="at")
            for one in document.parts("quarantine")
            if one.integer("gpu") is not None
        ),
        waiting=tuple(one.as_a(Waiting, reason="for") for one in document.parts("waiting")),
        servers=tuple(map(server_of, document.parts("servers"))),
        scheduler=slurm.as_a(Scheduler) if slurm.there else None,
        tasks=tuple(filter(None, map(task_of, slurm.parts("tasks")))),
    )


def _gpu(one: Fields) -> Gpu:
    used, total = one.integer("used_mib"), one.integer("total_mib")
    return Gpu(
        index=one.integer("index") or 0,
        memory_used=None if used is None else used * MIB,
        memory_total=None if total is None else total * MIB,
        utilization_percent=one.integer("utilization"),
    )


def server_of(one: Fields) -> Server:
    port = one.text("port")
    return replace(one.as_a(Server), port=int(port) if port.isdecimal() and len(port) <= 5 else None)


def task_of(one: Fields) -> Task | None:
    """A task; None without a session or an attempt."""
    task = one.as_a(Task)
    if not task.session or not task.attempt:
        return None
    return replace(task, state=task.state or PENDING, reason="" if task.reason == "None" else task.reason)
