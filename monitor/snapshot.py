"""One look at a run: the probe's answer (docs/architecture.md, "Hosts over SSH") as values. Pure.

Times are seconds since 1970 on the host's clock.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from comborun.errors import HostError, UserError
from comborun.model.attempt import Begin, End
from comborun.model.codec import decoded
from comborun.monitor.progress import NOTHING, LogProgress
from comborun.monitor.slurm_seen import Scheduler, SlurmTask
from comborun.monitor.wording import visible
from comborun.rules.facts import Fact, data_of
from comborun.rules.holds import LEAVING
from comborun.rules.results.counts import Counts
from comborun.rules.room.capacity import Card
from comborun.rules.room.waits import Wait, waits_for
from comborun.rules.vocabulary import Life
from comborun.text import harmless
from comborun.words import say

if TYPE_CHECKING:
    from collections.abc import Iterable

    from comborun.rules.events import Event

VERSION = "3"
"""version of the probe's answer"""
_MAGIC = b"comborun-probe "


class Hold(NamedTuple):
    """A hold: nothing new starts."""

    kind: str
    since: float | None = None
    why: str = ""
    """words of the former version, which gave no reason"""
    reason: Fact | None = None

    @property
    def ends(self) -> bool:
        """Whether the dispatcher leaves once nothing runs any more."""
        return self.kind in LEAVING

    @property
    def words(self) -> str:
        return say(self.reason) if self.reason else self.why

    @property
    def because(self) -> dict[str, object]:
        """The fields of a fact that say why."""
        return _because(self.reason, self.why)


class Quarantine(NamedTuple):
    """A closed GPU: the same failure came too often in a row."""

    gpu: int
    failure: str
    since: float | None = None


class Order(NamedTuple):
    """The last stop, pause or drain: who gave it, and from where. Times are of the host's clock."""

    order: str
    user: str
    origin: str
    """an address, or `local`"""
    at: float | None = None
    host: str = ""
    """of a run on several hosts, if it was given to this one only"""

    @classmethod
    def that_stopped(cls, events: Iterable[Event], session: str, began: float, ended: float) -> Order | None:
        """The last order to stop a session while it ran, if it is known who gave it."""
        given = [one for one in events if one.fields.get("order") == "stop" and began <= one.at <= ended]
        for fields, at in sorted(((one.fields, one.at) for one in given), key=lambda one: -one[1]):
            names = fields.get("names", [])
            partly = isinstance(names, list) and len(names) == fields.get("sessions")  # else of all, or of many
            if fields.get("user") and (not partly or session in names):
                return cls("stop", str(fields["user"]), str(fields.get("from")), at)
        return None

    @property
    def fact(self) -> Fact:
        where = {} if self.origin == "local" else {"origin": visible(self.origin)}
        host = {"on": self.host} if self.host else {}
        return Fact("ordered_by", order=self.order, user=visible(self.user), at=self.at, **where, **host)


class ClosedEnvironment(NamedTuple):
    """An environment that gets no new sessions: the same failure came too often in a row, while others went on."""

    environment: str
    failure: str
    since: float | None = None


class Waiting(NamedTuple):
    """A queued session that waits for something besides its turn."""

    session: str
    until: float | None = None
    """the next try; None: after an event"""
    fact: Fact | None = None
    reason: str = ""
    """what is waited for, and `detail`: words; both of the former version, which gave no fact"""
    detail: str = ""

    @property
    def waits_for(self) -> str:
        return waits_for(self.fact) if self.fact else self.reason

    @property
    def words(self) -> str:
        return say(self.fact) if self.fact else visible(self.detail)

    @property
    def in_process(self) -> bool:
        """Whether a process that runs now comes to it after others, so that no slot helps it."""
        return self.fact is not None and self.fact.code == Wait.LATER_IN_PROCESS

    @property
    def because(self) -> dict[str, object]:
        """The fields of a fact that say why."""
        return _because(self.fact, self.detail)


def _because(reason: Fact | None, words: str) -> dict[str, object]:
    return {"reason": reason.as_data()} if reason else {"words": harmless(words)} if words else {}


class ServerStatus(NamedTuple):
    name: str
    state: str
    """queued, starting, loading, ready, silent (it does not answer) or ended"""
    attempt: int = 0
    since: float | None = None
    """since when it is in that state"""
    gpus: tuple[int, ...] = ()
    """its present or last GPUs"""
    port: int | None = None
    cause: str = ""
    """how its latest attempt ended"""
    ending: tuple[Fact, ...] = ()
    why: str = ""
    """the same in words, of the former version"""

    @property
    def alive(self) -> bool:
        return self.state not in {"queued", "ended"}

    def fact(self, now: float | None) -> Fact:
        """Its state, since when, and how it ended."""
        fields: dict[str, object] = {"state": visible(self.state)}
        if self.since is not None and now is not None:
            fields["since_s"] = now - self.since
        if self.state == "ended":
            fields |= {"cause": visible(self.cause), "ending": data_of(self.ending)}
            fields |= {"note": visible(self.why)} if self.why else {}
        return Fact("server_state", **fields)


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
    load: float | None = None
    cpus: int | None = None
    memory: Space | None = None
    """free: available without swapping"""
    disk: Space | None = None
    """of the file system of the run"""
    gpus: tuple[Card, ...] = ()
    """empty unless the run uses GPUs"""


UNKNOWN_USE = HostUse()


class Attempt(NamedTuple):
    """One attempt of a session as the probe found it."""

    session: str
    number: int
    begin: Begin | None = None
    end: End | None = None
    life: str = ""
    """in the host's words: starting, running, orphaned, lost or ended (comborun/host/record/run_directory.py)"""
    claimed: bool = False
    """a supervisor has claimed it, though it may not have written `begin` yet"""
    closing: bool = False
    """whether its command has ended, though its end is not on record yet"""
    stalled: float | None = None
    """since when it has shown no progress, if that is longer than allowed"""
    problems: tuple[Fact, ...] = ()
    """memory on a GPU that was not granted"""
    wrong_gpu: str = ""
    """as a former version said it: `GPU:MiB,GPU:MiB` of its processes"""
    verdict: tuple[Fact, ...] = ()
    """why its supervisor ends it just now"""
    ending: str = ""
    """the same in words, of the former version"""
    live: Counts = Counts()
    """counts of its result files while it runs"""
    log_size: int = 0
    log_changed: float | None = None
    written: float | None = None
    """when a running one last wrote a record or a file; None if unknown"""
    tail: bytes = b""
    """the last bytes of the log: untrusted"""
    counter: LogProgress = NOTHING
    """progress by its log; kept by the watcher"""
    progressed: float | None = None
    """when its progress was last seen to grow; kept by the watcher"""

    @property
    def done(self) -> int:
        """Episodes (or steps) by its records or by its log, whichever is more."""
        return max(self.counts.records, self.counter.done or 0)

    @property
    def called_off(self) -> bool:
        """Whether it was ended before its program started, so that nothing ran."""
        return self.begin is None and self.end is not None and self.end.called_off

    @property
    def whole(self) -> bool:
        """Whether `done` is exact, and not a lower bound."""
        return not self.counter.missed or self.counts.records >= (self.counter.done or 0)

    @property
    def counts(self) -> Counts:
        return self.end.counts if self.end else self.live

    @property
    def last_sign(self) -> float | None:
        """When it last wrote a record, a file or a line of its log; at least its start."""
        return max(filter(None, (self.log_changed, self.written, self.started)), default=None)

    @property
    def started(self) -> float | None:
        begun = self.begin.started if self.begin else None
        return (self.end.started if self.end else None) or begun or None

    @property
    def took(self) -> float | None:
        """Seconds from its start to its end; None while it runs, or if they are not known."""
        return self.end.ended - self.started if self.end and self.end.timed and self.started else None

    @property
    def alive(self) -> bool:
        return self.life in (Life.RUNNING, Life.ORPHANED) or (self.life == Life.STARTING and self.claimed)


NOT_STARTED = Attempt("", 0)


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """What a probe reports about a run as a whole."""

    stopped: bool = False
    hold: Hold | None = None
    ordered: Order | None = None
    """who has stopped or held it; never written into files that are handed on"""
    quarantine: tuple[Quarantine, ...] = ()
    closed: tuple[ClosedEnvironment, ...] = ()
    dispatcher: int | None = None
    """its pid; None if it is gone"""
    dispatcher_held: bool = False
    """whether a signal holds it, so that nothing new starts"""
    slots: int | None = None
    use: HostUse = UNKNOWN_USE
    multiplexer: str = ""
    servers: tuple[ServerStatus, ...] = ()
    """the model servers of its sessions"""
    scheduler: Scheduler | None = None
    """None unless Slurm starts the sessions"""
    again: tuple[tuple[str, int], ...] = ()
    """session, and the attempt after which a user requested another one"""
    elsewhere: Fact | None = None
    """the machine that it runs on, if its processes can't be seen from this host"""
    environment: Fact | None = None
    """how the variables of a start from here would differ from those of the first launch"""
    following: Fact | None = None
    """the training whose checkpoints it evaluates"""
    part: Fact | None = None
    """of a part of a run on several hosts: whose part it is"""
    ahead: float = 0.0
    """seconds by which the clock of another host is ahead of this machine's"""


@dataclass(frozen=True, kw_only=True)
class Snapshot(RunFacts):
    run: str
    now: float
    boot: str
    done: bool = False
    """all sessions have ended"""
    attempts: tuple[Attempt, ...]
    """attempts that are newer than those that the watcher knows"""
    plan: int | None = None
    """the number of the newest plan"""
    notice_failed: tuple[int, float] | None = None
    """exit code and time of the notify command, if it failed for the latest notice"""
    waiting: tuple[Waiting, ...] = ()
    tasks: tuple[SlurmTask, ...] = ()


def parse_snapshot(answer: bytes) -> Snapshot:
    """Read the probe's standard output. Raises HostError if it is not one, UserError for another version."""
    start = 0 if answer.startswith(_MAGIC) else answer.find(b"\n" + _MAGIC) + 1
    if not answer.startswith(_MAGIC, start):
        excerpt = repr(answer[:80].decode("utf-8", "replace")) if answer else "nothing"
        raise HostError("the host did not answer as a probe does", f"it said: {excerpt}")
    first, _, rest = answer[start:].partition(b"\n")
    version = first[len(_MAGIC) :].decode("utf-8", "replace").strip()
    if version != VERSION:
        raise UserError(
            f"the run's probe speaks version {version[:20]!r}, not {VERSION}",
            "another version of comborun made the run and can show it; stop and report work here, too",
        )
    line, end, tails = rest.partition(b"\n")
    try:
        document = json.loads(line.decode("utf-8", "replace")) if end else None
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise HostError("the probe's answer is cut off", "the next look will show whether that was the link")
    try:
        for one in document["attempts"]:
            length = one.get("tail", 0)
            one["tail"], tails = tails[:length], tails[length:]
        snapshot: Snapshot = decoded(Snapshot, document)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise HostError(f"the probe's answer can't be read: {type(error).__name__}: {error!s:.200}") from error
    return snapshot
