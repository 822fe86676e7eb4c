"""The status of a run as values, and as the JSON document of `--json`.

Times are seconds since 1970 on the host's clock.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from comborun.documents import as_data, chosen
from comborun.model.plan import Unit
from comborun.model.work import Spans, grouped, size, union
from comborun.monitor.slurm import Task
from comborun.monitor.snapshot import Hold, RunFacts, Waiting
from comborun.monitor.wording import visible
from comborun.rules.endings.failures import Failure
from comborun.rules.facts import Fact, data_of
from comborun.rules.records import clean
from comborun.rules.vocabulary import Life, Outcome
from comborun.text import alike, harmless
from comborun.words import say
from comborun.words.endings import in_words
from comborun.words.rows import why_not_counted

SCHEMA = 1
"""version of the JSON document"""
SMOKE, SUPERSEDED = "smoke", "superseded"


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

    @property
    def trouble(self) -> str:
        return "run folder gone" if self.gone else "unreachable"


UP = Link()


class HostEvent(NamedTuple):
    """Something that happened to the host and ended many sessions at once."""

    kind: Literal["restarted", "vanished"]
    last_sign: float | None
    """last sign of life of one of the sessions"""
    sessions: tuple[str, ...]
    """the sessions that it ended"""

    def fact(self, host: str) -> Fact:
        code = "host_rebooted" if self.kind == "restarted" else "all_sessions_vanished"
        return Fact(code, host=visible(host), at=self.last_sign, sessions=len(self.sessions))


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
    gpus: tuple[int, ...] = ()
    """the GPUs of its latest attempt"""
    window: str = ""
    """address of that attempt's window: the name of its tmux session, or screen's PID.name"""
    idle: float | None = None
    """seconds since its log last grew; None unless it is alive"""
    silent: bool = False
    """whether its program is known to print nothing for long"""
    last_line: str = ""
    started: float | None = None
    seconds: float | None = None
    """run time of its latest attempt so far"""
    own: int = 0
    """episodes (or steps) that its latest attempt has done"""
    whole: bool = True
    """whether `own` is exact; otherwise it is a lower bound and gives no pace"""
    progressed: float | None = None
    """when its progress was last seen to grow"""
    facts: tuple[Fact, ...] = ()
    """details beyond its state and outcome"""
    end_note: str = ""
    """how its latest attempt ended, in words"""
    expected: Expected | None = None
    part: str = ""
    """its difference from other sessions of its combo: `smoke`, `superseded`, or its range"""
    stalled: float | None = None
    """since when it has shown no progress, if that is longer than allowed"""
    waiting: Waiting | None = None
    """set if it waits for more than its turn"""
    failure: Failure | None = None
    """the class of its latest attempt's failure"""
    peak_memory: int | None = None
    """bytes: the highest sample of its latest attempt"""
    ending: tuple[Fact, ...] = ()
    """how its latest attempt ended"""
    node: str = ""
    """the node of its latest attempt; empty without Slurm"""
    task: Task | None = None

    @property
    def uncounted(self) -> str:
        """The reasons in one sentence."""
        return clean(harmless(why_not_counted(self.reasons)))

    @property
    def word(self) -> str:
        """The outcome if it has ended, else the state."""
        return str(self.outcome or self.life)

    @property
    def note(self) -> str:
        return "; ".join(filter(None, (self.end_note, *map(say, self.facts))))

    @property
    def extra(self) -> bool:
        """Whether its episodes are not planned: it is a smoke test, or was dropped."""
        return self.part in (SMOKE, SUPERSEDED)

    @property
    def remark(self) -> str:
        """Why its rows don't count, and its note."""
        return "; ".join(filter(None, (self.uncounted, self.note)))

    @property
    def alive(self) -> bool:
        return self.life not in (Life.QUEUED, Life.ENDED)

    @property
    def done_with(self) -> bool:
        """Whether it succeeded, or is not needed any more."""
        return self.outcome in (Outcome.SUCCEEDED, Outcome.NOT_NEEDED)

    @property
    def due(self) -> int:
        """How many of its planned episodes are still needed."""
        return (self.done or 0) if self.outcome is Outcome.NOT_NEEDED else self.planned

    @property
    def remaining(self) -> int:
        return max(0, self.planned - (self.done or 0))


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
    """seconds from the first start to now, or to the end"""
    expected: Expected | None = None
    """the end of the last session"""
    finished: bool = False
    host_event: HostEvent | None = None
    advice: Fact | None = None
    """what to do, for example if nothing starts any more"""
    notify_problem: Fact | None = None
    """set if the grid's notify command failed for the latest notice"""
    undecided: str = ""
    """why `stop_early` of the grid can't end any comparison"""
    link: Link = UP
    server_waits: Mapping[str, Waiting] = field(default_factory=lambda: MappingProxyType({}))
    """server -> the reason for its delay"""

    @property
    def abandoned(self) -> bool:
        """Whether its dispatcher is gone before the end, without a stop or a hold."""
        held = self.stopped or self.hold is not None
        return self.now is not None and not self.finished and self.dispatcher is None and not held

    @property
    def every(self) -> tuple[SessionStatus, ...]:
        return (*self.sessions, *((self.after,) if self.after else ()))

    @property
    def proper(self) -> tuple[SessionStatus, ...]:
        """The planned sessions, without smoke tests and dropped ones."""
        return tuple(session for session in self.sessions if not session.extra)

    @property
    def busy(self) -> tuple[SessionStatus, ...]:
        return tuple(session for session in self.sessions if session.alive)

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
    def tasks(self) -> tuple[Task, ...]:
        return tuple(session.task for session in self.sessions if session.task)

    @property
    def uncounted(self) -> list[str]:
        """Why rows of its sessions don't count; the same reason of several sessions is one sentence."""
        return alike((session.name, session.uncounted) for session in self.sessions if session.uncounted)

    def counts(self) -> dict[str, int]:
        """The number of planned sessions in each state; ended ones by outcome."""
        return _tally(self.proper)

    def smoke(self) -> dict[str, int]:
        """The same for the smoke test; empty without one."""
        return _tally([session for session in self.sessions if session.part == SMOKE])


def _tally(sessions: Sequence[SessionStatus]) -> dict[str, int]:
    words = [session.word for session in sessions]
    return {str(word): words.count(str(word)) for word in (*Life, *Outcome) if str(word) in words}


# The JSON document


def document(status: RunStatus) -> dict[str, Any]:
    """The document of `--json`; times are seconds since 1970 on the host's clock."""
    slurm, link = status.scheduler, status.link
    return {
        "schema": SCHEMA,
        **chosen(status, "run", "grid", "host", "directory"),
        "reachable": link.reachable,
        "unreachable_since": None if link.reachable else link.since,
        "complaint": link.complaint or None,
        "last_seen_seconds": link.last_seen,
        "hold": status.hold and _hold(status.hold),
        **chosen(status, "finished", "stopped", "quarantine", "dispatcher", "slots"),
        "servers": [
            _or_null(as_data(one) | {"why": in_words(one.why, one.ending)}, "cause", "why")
            | _server_waits(status.server_waits.get(one.name))
            for one in status.servers
        ],
        "slurm": slurm and {"answered": slurm.answered, "last_answer": slurm.at, "complaint": slurm.why or None},
        **as_data(status.use),
        **chosen(status, "now", "started", "seconds", "successes", "host_event"),
        **_expected(status.expected),
        **chosen(status, done="episodes_done", recorded="episodes_recorded", planned="episodes_planned"),
        "counts": status.counts(),
        "smoke": status.smoke(),
        "sessions": [_session(session) for session in status.sessions],
        "after": _session(status.after) if status.after else None,
        **_or_null(chosen(status, "multiplexer", "undecided")),
        "hint": status.advice and say(status.advice),
        "unheard": status.notify_problem and say(status.notify_problem),
        "facts": data_of(filter(None, (status.advice, status.notify_problem))),
    }


def to_json(status: RunStatus, *, indent: int | None = 1) -> str:
    """The document as text, in ASCII, so that no terminal interprets it. `indent` None: on one line, for a stream."""
    return json.dumps(document(status), indent=indent, allow_nan=False)


def _session(session: SessionStatus) -> dict[str, Any]:
    waits = session.waiting
    return {
        **chosen(session, "name", "policy", "environment", "extra", "attempt", "gpus", "unit", "successes", "silent"),
        **chosen(session, "progressed", "last_line", "started", "seconds", "outcome", "failure", "peak_memory", "note"),
        **chosen(session, done="episodes_done", recorded="episodes_recorded", planned="episodes_planned"),
        **chosen(session, life="state", idle="idle_seconds", stalled="stalled_since"),
        **_or_null(chosen(session, "part", "window", "node", "uncounted")),
        **_expected(session.expected),
        "task": _task(session.task),
        "facts": data_of((*session.reasons, *session.facts)),
        "waiting": waits and {"for": waits.waits_for, "until": waits.until, **_because(waits)},
        "ending": data_of(session.ending),
    }


def _because(waits: Waiting) -> dict[str, Any]:
    return {"detail": waits.words, "fact": waits.fact and waits.fact.as_data()}


def _hold(hold: Hold) -> dict[str, Any]:
    return {"kind": hold.kind, "since": hold.since, "why": hold.words, "fact": hold.reason and hold.reason.as_data()}


def _server_waits(waits: Waiting | None) -> dict[str, Any]:
    return {"waits": waits and waits.words, "fact": waits and waits.fact and waits.fact.as_data()}


def _task(task: Task | None) -> dict[str, Any] | None:
    return task and _or_null(chosen(task, "job", "attempt", "state", "reason", "node", "start"), "reason", "node")


def _or_null(data: dict[str, Any], *keys: str) -> dict[str, Any]:
    """With null for texts that are empty: for those of `keys`, or for all."""
    return {key: None if value == "" and (not keys or key in keys) else value for key, value in data.items()}


def _expected(end: Expected | None) -> dict[str, Any]:
    return {
        "estimated_end": end.likeliest if end else None,
        "estimated_end_range": [end.earliest, end.latest] if end else None,
    }
