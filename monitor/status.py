"""The status of a run as values.

Times are seconds since 1970 on the host's clock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, NamedTuple

from comborun.model.plan import Unit
from comborun.model.work import Spans, grouped, size, union
from comborun.monitor.slurm_seen import SlurmTask
from comborun.monitor.snapshot import NOT_STARTED, Attempt, Hold, HostUse, RunFacts, Waiting
from comborun.monitor.wording import visible
from comborun.rules.endings.failures import Failure
from comborun.rules.facts import Fact
from comborun.rules.names import SAYS
from comborun.rules.records import NOTE_MOST
from comborun.rules.results.counts import FORMER
from comborun.rules.vocabulary import Life, Outcome
from comborun.text import alike, harmless
from comborun.words import say
from comborun.words.rows import why_not_counted
from comborun.words.times import brief

SMOKE, SUPERSEDED, ELSEWHERE = "smoke", "superseded", "on another host"


class Expected(NamedTuple):
    earliest: float
    likeliest: float
    latest: float

    def fact(self, now: float) -> Fact:
        first, last = {"earliest": self.earliest, "in_s": self.earliest - now}, {"latest": self.latest}
        return Fact("ends_about", **first, **last)


class Link(NamedTuple):
    """Whether the host answers; this never changes the state of a session."""

    reachable: bool = True
    since: float = 0.0
    """since when it is unreachable; seconds since 1970 on the watcher's clock"""
    lasting: float = 0.0
    """seconds since it became unreachable"""
    last_seen: float | None = None
    """seconds since the last answer; None without one"""
    failures: int = 0
    complaint: str = ""
    gone: bool = False
    """whether the host answers but the run's folder is missing"""
    silent: float = 0.0
    """seconds that a look has waited for its answer, if that is longer than usual"""
    late: bool = False
    """whether the other hosts of the run have answered, and the look at this one goes on"""
    lost: bool = False
    """whether this host of the run was given up"""

    @property
    def trouble(self) -> str:
        if self.lost:
            return "given up"
        return "run folder gone" if self.gone else "no answer yet" if self.late else "unreachable"

    @property
    def absence(self) -> str:
        """The trouble, and when the last answer came, of a host that does not answer, or was given up."""
        if self.lost:
            return self.trouble
        return f"{self.trouble}, " + ("never seen" if self.last_seen is None else f"seen {brief(self.last_seen)} ago")

    @property
    def comfort(self) -> str:
        """What goes on meanwhile. Of a run whose folder is gone nobody knows."""
        return "" if self.gone else "the sessions don't need the link"


UP = Link()


class Outage(NamedTuple):
    """Something that happened to the host and ended many sessions at once."""

    kind: Literal["restarted", "vanished"]
    last_sign: float | None
    """last sign of life of one of the sessions"""
    sessions: tuple[str, ...]
    """the sessions that it ended"""
    host: str = ""
    """of a run on several hosts"""

    def fact(self, host: str) -> Fact:
        code = "host_rebooted" if self.kind == "restarted" else "all_sessions_vanished"
        return Fact(code, host=visible(self.host or host), at=self.last_sign, sessions=len(self.sessions))


def _alike(one: str, other: str) -> bool:
    """Whether two are the same line; each may have been cut on its way."""
    cuts = [(a[:-1], b) for a, b in ((one, other), (other, one)) if len(a) > 1 and a.endswith("…")]
    return one == other or any(b.startswith(begin) for begin, b in cuts)


class SessionStatus(NamedTuple):
    name: str
    policy: str
    environment: str
    unit: Unit
    planned: int
    done: int | None = None
    """episodes (or steps) by its records or its log, at most those planned; None if unknown"""
    recorded: int | None = None
    """episodes with a verdict; None if the program leaves no records that can be counted yet"""
    successes: int | None = None
    """episodes that succeeded"""
    first: int = 0
    """index of its first planned episode"""
    reasons: tuple[Fact, ...] = ()
    """why rows of its result files don't count, or have no verdict"""
    life: Life = Life.QUEUED
    outcome: Outcome | None = None
    attempt: int = 0
    again_after: int = 0
    """how many earlier attempts have run; one that was called off before it began is none"""
    gpus: tuple[int, ...] = ()
    """the GPUs of its latest attempt"""
    window: str = ""
    """address of that attempt's window, as its multiplexer has it"""
    idle: float | None = None
    """seconds since its newest record, file of output, or line of its log; None unless it is alive"""
    silent: bool = False
    """whether its program is known to print nothing for long"""
    stall_s: int = 0
    """seconds without progress after which it is ended; 0: never"""
    again: bool = False
    """whether it would be started again then"""
    last_line: str = ""
    started: float | None = None
    seconds: float | None = None
    """run time of its latest attempt so far"""
    facts: tuple[Fact, ...] = ()
    """details beyond its state and outcome, such as how it ended"""
    expected: Expected | None = None
    part: str = ""
    """its difference from other sessions of its combo: `smoke`, `superseded`, or its range"""
    stalled: float | None = None
    """since when it has shown no progress, if that is longer than allowed"""
    waiting: Waiting | None = None
    """set if it waits for more than its turn"""
    failure: Failure | None = None
    """the class of its latest attempt's failure"""
    node: str = ""
    """the node of its latest attempt; empty without Slurm"""
    task: SlurmTask | None = None
    latest: Attempt = NOT_STARTED
    host: str = ""
    """in a run on several hosts, where it runs"""
    trained: Fact | None = None
    """of a training: its newest step and values"""
    numeric: str = ""
    """the field of its verdicts, if it holds 0 and 1 only"""

    @property
    def training(self) -> str:
        """How far its training is, in words."""
        return harmless(say(self.trained)) if self.trained else ""

    @property
    def uncounted(self) -> str:
        """The reasons in one sentence."""
        return visible(why_not_counted(self.reasons), NOTE_MOST)

    @property
    def uncounted_for(self) -> tuple[str, ...]:
        """The codes of the reasons; of a former version its words."""
        return tuple(fact.text("text") if fact.code == FORMER else fact.code for fact in self.reasons)

    @property
    def word(self) -> str:
        """The outcome if it has ended, else the state."""
        return str(self.outcome or self.life)

    @property
    def note(self) -> str:
        return "; ".join(harmless(say(fact)) for fact in self.facts)

    @property
    def unquoted_line(self) -> str:
        """The last line of its log, unless its note says the same: it quotes it, or comborun wrote both."""
        end = self.latest.end if self.life is Life.ENDED else None
        said = [visible(fact.text("said")) for fact in end.facts] if end else []
        told = said and self.last_line.startswith(SAYS)
        return "" if told or any(_alike(one, self.last_line) for one in said) else self.last_line

    @property
    def extra(self) -> bool:
        """Whether its episodes are not planned here: it is a smoke test, was dropped, or runs on another host."""
        return self.part in (SMOKE, SUPERSEDED, ELSEWHERE)

    @property
    def remark(self) -> str:
        """Why its rows don't count, and its note; what ended a program comes first."""
        said = (self.uncounted, self.note)
        failed = self.life is Life.ENDED and self.failure not in (None, Failure.NO_RESULT)
        return "; ".join(filter(None, reversed(said) if failed else said))

    @property
    def likely_end(self) -> float | None:
        return self.expected and self.expected.likeliest

    @property
    def likely_ends(self) -> tuple[float, float] | None:
        return self.expected and (self.expected.earliest, self.expected.latest)

    @property
    def alive(self) -> bool:
        return self.life not in (Life.QUEUED, Life.ENDED)

    @property
    def done_with(self) -> bool:
        """Whether it succeeded, or is not needed any more."""
        return self.outcome in (Outcome.SUCCEEDED, Outcome.NOT_NEEDED)

    @property
    def due(self) -> int:
        """How many episodes count as planned; if it is not needed any more, only those that it did."""
        return (self.done or 0) if self.outcome is Outcome.NOT_NEEDED else self.planned

    @property
    def remaining(self) -> int:
        return max(0, self.planned - (self.done or 0))


class HostStatus(NamedTuple):
    """One of several hosts of a run."""

    host: str
    run: str
    link: Link
    counts: Mapping[str, int]
    use: HostUse
    expected: Expected | None = None
    hold: Hold | None = None
    """its own; that of the run is set only if all hosts with work left have one"""

    @property
    def lost(self) -> bool:
        """Whether it was given up."""
        return self.link.lost


@dataclass(frozen=True, kw_only=True)
class RunStatus(RunFacts):
    run: str
    grid: str
    host: str
    directory: str
    sessions: tuple[SessionStatus, ...]
    """the combos, in plan order"""
    after: SessionStatus | None = None
    now: float | None = None
    """None before the first answer"""
    started: float | None = None
    seconds: float | None = None
    """in which at least one of its sessions ran"""
    expected: Expected | None = None
    """the end of the last session"""
    finished: bool = False
    outage: Outage | None = None
    advice: Fact | None = None
    """what to do, for example if nothing starts any more"""
    would_move: Fact | None = None
    """of a run on several hosts: why sessions stay that would end earlier on another one"""
    moved: Fact | None = None
    """the sessions that have gone to another host"""
    notify_problem: Fact | None = None
    """set if the grid's notify command failed for the latest notice"""
    undecided: str = ""
    """why `stop_early` of the grid can't end any comparison"""
    link: Link = UP
    back: tuple[Fact, ...] = ()
    """hosts that did not answer for a while, or had not the run's folder, and what happened meanwhile"""
    hosts: tuple[HostStatus, ...] = ()
    """of a run on several hosts"""
    server_waits: Mapping[str, Waiting] = field(default_factory=lambda: MappingProxyType({}))
    """server -> the reason for its delay"""

    @property
    def abandoned(self) -> bool:
        """Whether its dispatcher is gone before the end, without a stop or a hold."""
        held = self.stopped or self.hold is not None or self.elsewhere is not None
        return self.now is not None and not self.finished and self.dispatcher is None and not held

    @property
    def how_over(self) -> str:
        """Of a run in which nothing goes on: `held` if sessions wait for a `resume`, else `finished`."""
        waits = self.hold is not None and any(one.life is Life.QUEUED for one in self.proper)
        return "held" if waits else "finished"

    @property
    def disk_full(self) -> bool:
        return self.use.disk is not None and not self.use.disk.free

    @property
    def every(self) -> tuple[SessionStatus, ...]:
        return (*self.sessions, *((self.after,) if self.after else ()))

    @property
    def proper(self) -> tuple[SessionStatus, ...]:
        """The planned sessions, without smoke tests and dropped ones."""
        return tuple(session for session in self.sessions if not session.extra)

    @property
    def busy(self) -> tuple[SessionStatus, ...]:
        """The sessions that take a slot."""
        return tuple(session for session in self.sessions if session.alive and session.life is not Life.ENDING)

    @property
    def done(self) -> int:
        """Number of planned episodes that are done. Each counts once, even if two sessions did it."""
        return sum(min(size(due), done) for due, done in self._combos())

    @property
    def planned(self) -> int:
        """Number of planned episodes. Each counts once, even if two sessions have it."""
        return sum(size(due) for due, _ in self._combos())

    def _combos(self) -> Iterator[tuple[Spans, int]]:
        """For each combo its episodes and the number of done ones; without sessions of unknown progress."""
        counted = (session for session in self.proper if session.done is not None)
        for sessions in grouped(counted, lambda session: (session.policy, session.environment)).values():
            due = union(range(one.first, one.first + one.due) for one in sessions)
            yield due, sum(one.done or 0 for one in sessions)

    @property
    def unit(self) -> str:
        """`episodes` or `steps`, or `done` where both occur."""
        units = {session.unit for session in self.sessions}
        return f"{units.pop()}s" if len(units) == 1 else "done"

    @property
    def recorded(self) -> int:
        """Records of the sessions whose successes are known."""
        return sum(session.recorded or 0 for session in self.proper if session.successes is not None)

    @property
    def successes(self) -> int:
        return sum(session.successes or 0 for session in self.proper)

    @property
    def tasks(self) -> tuple[SlurmTask, ...]:
        return tuple(session.task for session in self.sessions if session.task)

    @property
    def slurm(self) -> Fact | None:
        """What Slurm does with the tasks, or that it does not answer; None without Slurm."""
        if self.scheduler is None or self.now is None:
            return None
        if not self.scheduler.answered:
            return self.scheduler.silence(self.now)
        pending, begun = [one for one in self.tasks if one.pending], [one for one in self.tasks if one.begun]
        reasons = dict(Counter(one.why for one in pending).most_common(3))
        nodes = sorted({visible(one.node) for one in begun if one.node})
        return Fact("slurm_summary", pending=len(pending), reasons=reasons, running=len(begun), nodes=nodes)

    @property
    def uncounted(self) -> list[str]:
        """Why rows of its sessions don't count; the same reason of several sessions is one sentence."""
        found = [one for one in self.sessions if one.reasons]
        return alike([(one.name, one.uncounted) for one in found], [one.uncounted_for for one in found])

    def counts(self) -> dict[str, int]:
        """The number of planned sessions in each state; ended ones by outcome."""
        return _tally(self.proper)

    def smoke(self) -> dict[str, int]:
        """The same for the smoke test; empty without one."""
        return _tally([session for session in self.sessions if session.part == SMOKE])


def _tally(sessions: Sequence[SessionStatus]) -> dict[str, int]:
    words = [session.word for session in sessions]
    return {str(word): words.count(str(word)) for word in (*Life, *Outcome) if str(word) in words}
