"""The probe's answer (docs/architecture.md, "The probe") as values: bytes -> Snapshot, pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from comborun.attempt import Begin, End, integer, seconds
from comborun.errors import HostError, UserError
from comborun.layout import RUN
from monitor.answer.cluster import Scheduler, Task
from monitor.answer.fields import fields_of
from monitor.answer.header import Header, read_header, read_record
from monitor.answer.holds import Hold, Quarantine, Waiting
from monitor.answer.host import HostUse, host_use
from monitor.answer.progress import NOTHING, Counter
from monitor.answer.servers import ServerStatus
from monitor.answer.tails import split_tails

VERSION = "1"
_MAGIC = b"comborun-probe "


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
    supervised: bool = False
    """session.sh lives"""
    working: bool = False
    """the command, or what it started, lives"""
    claimed: bool = False
    """a supervisor has made it its own, whether it got as far as the begin or not"""
    stalled: float | None = None
    """since when it has shown no progress, where that is longer than allowed"""
    wrong_gpu: str = ""
    """`GPU:MiB,GPU:MiB` that its processes held when some of it lay on a GPU that it was not granted"""
    records: int = 0
    successes: int = 0
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
        return max(self.recorded[0], self.counter.done or 0)

    @property
    def whole(self) -> bool:
        """Whether `done` is all that it has done, and not the least of it."""
        return self.counter.whole or self.recorded[0] >= (self.counter.done or 0)

    @property
    def recorded(self) -> tuple[int, int]:
        """Records, and the successes among them."""
        return (self.end.records, self.end.successes) if self.end else (self.records, self.successes)

    @property
    def alive(self) -> bool:
        return self.end is None and (self.supervised or self.working)

    @property
    def log(self) -> str:
        """The log's path below the run directory."""
        return str(RUN.attempt(self.session, self.number).log)


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


def parse_snapshot(answer: bytes, tail: int) -> Snapshot:
    """Read the probe's standard output; `tail` is the TAIL it was asked for.

    Raises HostError when it is no such answer, UserError when it is one of another version.
    """
    text, tails = _cut(answer)
    lines = deque(text.split("\n"))
    header = read_header(lines)
    attempts, sizes, bounds = [], {}, {}
    while lines:
        one, told = _attempt(lines)
        attempts.append(one)
        if told is not None:
            sizes[one.log] = one.log_size
            bounds[one.log] = min(tail, told)
    pieces = split_tails(tails, sizes, bounds)
    told_attempts = tuple(replace(one, tail=pieces.get(one.log, b"")) for one in attempts)
    return _snapshot(header, told_attempts)


def _cut(answer: bytes) -> tuple[str, bytes]:
    """The text part without its first line, and what follows `tails`."""
    start = 0 if answer.startswith(_MAGIC) else answer.find(b"\n" + _MAGIC) + 1
    if not answer.startswith(_MAGIC, start):
        raise HostError("the host did not answer as a probe does", f"it said: {_excerpt(answer)}")
    first, _, rest = answer[start:].partition(b"\n")
    version = first[len(_MAGIC) :].decode("utf-8", "replace").strip()
    if version != VERSION:
        raise UserError(f"the run's probe speaks version {version[:20]!r}, not {VERSION}", "update comborun here")
    text, mark, tails = (b"\n" + rest).partition(b"\ntails\n")
    if not mark:
        raise HostError("the probe's answer is cut off", "the next look will show whether that was the link")
    return text[1:].decode("utf-8", "replace"), tails


def _excerpt(answer: bytes) -> str:
    return repr(answer[:80].decode("utf-8", "replace")) if answer else "nothing"


def _attempt(lines: deque[str]) -> tuple[Attempt, int | None]:
    """One block, a `session` line and all that follows up to the next one; and how much of its log is sent at most."""
    words = lines.popleft().split(" ")
    number = integer({"attempt": words[-1]}, "attempt")
    if len(words) != 3 or number is None:
        raise HostError(f"the probe's answer can't be read at {' '.join(words)[:80]!r}")
    begin = end = None
    fields: dict[str, dict[str, str]] = {}
    while lines and not lines[0].startswith("session "):
        keyword, _, rest = lines.popleft().partition(" ")
        if keyword == "begin":
            begin = Begin.parse(read_record(lines))
        elif keyword == "end":
            end = End.parse(read_record(lines))
        else:
            fields[keyword] = fields_of(rest)
    live, counts, log = (fields.get(keyword, {}) for keyword in ("live", "counts", "log"))
    attempt = Attempt(
        session=words[1],
        number=number,
        begin=begin,
        end=end,
        supervised=live.get("supervisor") == "1",
        working=live.get("command") == "1",
        claimed=live.get("claimed") == "1",
        stalled=seconds(live, "stalled"),
        wrong_gpu=live.get("wrong_gpu", ""),
        records=integer(counts, "records") or 0,
        successes=integer(counts, "successes") or 0,
        log_size=integer(log, "size") or 0,
        log_changed=seconds(log, "changed"),
    )
    return attempt, integer(log, "tail")


def _snapshot(header: Header, attempts: tuple[Attempt, ...]) -> Snapshot:
    fields = header.fields
    now = seconds(fields, "now")
    if now is None or not fields.get("run"):
        raise HostError("the probe's answer names no run or no time")
    return Snapshot(
        run=fields["run"],
        now=now,
        boot=fields.get("boot", ""),
        dispatcher=integer(fields, "dispatcher"),
        slots=integer(fields, "slots"),
        stopped=fields.get("stopped") == "1",
        use=host_use(fields, header.gpus),
        multiplexer=fields.get("multiplexer", ""),
        done=header.done,
        attempts=attempts,
        plan=integer(fields, "plan"),
        notice_failed=None
        if (code := integer(fields, "notice_code")) is None
        else (code, seconds(fields, "notice_at") or 0.0),
        hold=header.hold,
        quarantine=tuple(header.quarantine),
        waiting=tuple(header.waiting),
        servers=tuple(header.servers),
        scheduler=header.scheduler,
        tasks=tuple(header.tasks),
    )
