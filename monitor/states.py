"""The state of a session, by rules in order, and what is known of its attempts beside it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from comborun.model.attempt import SLURM
from comborun.model.plan import Plan, Session
from comborun.monitor.slurm_seen import SlurmTask
from comborun.monitor.snapshot import NOT_STARTED, Attempt, Waiting
from comborun.monitor.status import SessionStatus
from comborun.monitor.waiting import budget, next_start
from comborun.monitor.wording import last_line, visible
from comborun.rules.curves.metrics import STEPS
from comborun.rules.endings.evidence import Evidence
from comborun.rules.endings.failures import Failure
from comborun.rules.facts import Fact, data_of
from comborun.rules.names import AFTER
from comborun.rules.results.counts import (
    FORMER,
    NO_EPISODE,
    WROTE_NOTHING,
    Counts,
    RequiredEvidence,
    in_numbers,
    joined,
    over_all,
    unmarked,
)
from comborun.rules.results.fields import LOG
from comborun.rules.room.waits import ROOM, WaitFor
from comborun.rules.vocabulary import Completeness, Life, Outcome, session_outcome
from comborun.words import say

if TYPE_CHECKING:
    from comborun.rules.results.counts import Verdicts

_FOUND_NOTHING = (WROTE_NOTHING, NO_EPISODE)
"""reasons that say no more than the error which ended a program"""


class Case(NamedTuple):
    """What is known of a session when its state is decided."""

    plan: Plan
    session: Session | None
    """None: the grid's `after`"""
    attempts: Sequence[Attempt] = ()
    """oldest first; the end of the latest one is by the results of all"""
    now: float = 0.0
    waits: tuple[Waiting, ...] = ()
    task: SlurmTask | None = None
    """the Slurm task of its highest attempt"""
    stopped: bool = False
    """whether a stop has ended its run"""
    held: bool = False
    """whether nothing new starts in its run"""

    @property
    def latest(self) -> Attempt:
        return self.attempts[-1] if self.attempts else NOT_STARTED

    @property
    def living(self) -> bool:
        return self.latest.end is None and self.latest.life in (Life.STARTING, Life.RUNNING, Life.ORPHANED)

    @property
    def may_start(self) -> bool:
        """Whether another attempt may follow: none lives, and its work is not done."""
        end = self.latest.end
        done = end is not None and end.outcome in (Outcome.SUCCEEDED, Outcome.NOT_NEEDED)
        return not (self.living or done or self.stopped)

    @property
    def next_task(self) -> SlurmTask | None:
        """A task for its next attempt; one of an earlier attempt will end, or is a leftover."""
        return self.task if self.task and self.may_start and self.task.attempt > self.latest.number else None

    @property
    def retried(self) -> bool:
        """Whether it waits for another attempt. Other waits of one that has ended may be outdated."""
        return self.may_start and any(one.waits_for == WaitFor.RETRY for one in self.waits)


def session_status(case: Case, part: str = "") -> SessionStatus:
    """The status of a combo's session; `part` distinguishes it from others of its combo."""
    session, end = case.session, case.latest.end
    assert session
    counts = _counts(session, case.attempts)
    counted = session.results.counted and counts.countable
    crashed = end is not None and not end.clean and any(fact.code in _FOUND_NOTHING for fact in counts.facts)
    status = SessionStatus(
        name=session.name,
        policy=session.policy,
        environment=session.environment,
        unit=session.unit,
        planned=session.count,
        first=session.first,
        done=_done_so_far(session, case.attempts, counts if counted else None),
        recorded=counts.verdicts if counted else None,
        successes=counts.successes if counted else None,
        reasons=counts.facts if session.results.counted and not crashed else (),
        silent=session.progress.silent,
        stall_s=session.watch.stall_s,
        again=session.watch.stall_s > 0 and budget(case.plan, case.attempts, Failure.STALLED).left > 1,
        part=part,
        latest=case.latest,
        trained=counts.trained,
        numeric=counts.numeric,
    )
    return _with_state(status, _by_all(case, session, counts))


def beside_numbers(sessions: Sequence[SessionStatus]) -> tuple[SessionStatus, ...]:
    """These, as the report counts them: where one session shows that a field holds numbers, the 0 and 1 of the others
    are no verdicts."""
    shown = in_numbers(fact for one in sessions for fact in one.reasons)
    return tuple(
        _undecided(one, shown[one.numeric]) if one.numeric in shown and one.recorded else one for one in sessions
    )


def _undecided(one: SessionStatus, fact: Fact) -> SessionStatus:
    outcome = Outcome.PARTIAL if one.outcome is Outcome.SUCCEEDED else one.outcome
    return one._replace(recorded=0, successes=0, outcome=outcome, reasons=(fact, *one.reasons))


def after_status(case: Case) -> SessionStatus:
    """The status of the grid's last command."""
    return _with_state(SessionStatus(AFTER, "", "", "step", planned=0, latest=case.latest), case)


def _with_state(status: SessionStatus, case: Case) -> SessionStatus:
    """With its state, and with what its latest attempt shows: where it runs, for how long, how it ended."""
    rule, one, task = rule_of(case), case.latest, case.next_task or (case.task if case.living else None)
    if case.next_task and rule.life is Life.STARTING:
        one = Attempt(status.name, case.next_task.attempt)
    begin, end, started = one.begin, one.end, one.started
    until = (end.ended or None) if end else case.now if one.alive else None
    last_sign = one.last_sign
    queued = rule.life is Life.QUEUED
    status = status._replace(
        life=rule.life,
        outcome=end.outcome if end and not queued else rule.outcome,
        facts=tuple(rule.says(case)),
        attempt=one.number,
        again_after=max(0, one.number - 1)
        - sum(other.called_off for other in case.attempts if other.number < one.number),
        gpus=tuple(int(gpu) for gpu in begin.gpus.split(",") if gpu.isdecimal()) if begin and not queued else (),
        window=begin.address if begin and not queued else "",
        node=begin.host if begin and begin.multiplexer == SLURM and not queued else "",
        idle=max(0.0, case.now - last_sign) if one.alive and last_sign else None,
        last_line=last_line(one.tail) if one.tail else "",
        started=started,
        seconds=None if until is None or (end and not end.timed) else max(0.0, until - started) if started else 0.0,
        stalled=one.stalled if rule.life is Life.STALLED else None,
        failure=end.failure if end else Failure.LOST if rule.outcome is Outcome.LOST else None,
        waiting=case.waits[-1] if case.waits and queued else None,
        task=task,
    )
    if task and not queued:
        return status._replace(node=status.node or task.node)
    return status._replace(last_line=say(task.fact)) if task and not case.attempts else status


def _chain(session: Session, attempts: Sequence[Attempt]) -> list[Attempt]:
    """The attempts whose records are added up: the latest one and those that it continues. After the end, the chain of
    attempts with the most records.
    """
    chains: list[list[Attempt]] = [[]]
    for one in attempts:
        if one.begin is None or one.begin.first <= session.first:
            chains.append([])
        chains[-1].append(one)
    if not chains[-1] or chains[-1][-1].end is None:
        return chains[-1]
    return max(reversed(chains), key=lambda chain: sum(one.done for one in chain))


def _counts(session: Session, attempts: Sequence[Attempt]) -> Counts:
    """The counts, merged as in the report: over all attempts, or, while one runs, over those that it continues."""
    parts = attempts if attempts and attempts[-1].end else _chain(session, attempts)
    begins = [(one.begin.first, one.begin.count or session.count) if one.begin else None for one in parts]
    whole = session.first, session.count
    return joined([(span or whole, one.counts) for span, one in zip(begins, parts, strict=True)], whole)


def verdicts_of(session: Session, seen: SessionStatus, attempts: Sequence[Attempt]) -> Verdicts:
    """The verdict of each episode with a record, as the counts of its status have them."""
    found = unmarked(_counts(session, attempts).marks, (session.first, session.count))
    return dict.fromkeys(found) if seen.recorded == 0 else found


def _done_so_far(session: Session, attempts: Sequence[Attempt], counts: Counts | None) -> int | None:
    """The number of its records; while it runs, the count from its log, unless some rows don't count. None: unknown."""
    parts = _chain(session, attempts)
    if session.unit != "episode":
        return _steps_so_far(session, parts)
    if counts and (counts.facts or (attempts and attempts[-1].end)):
        done = counts.records
    elif counts:
        done = sum(one.done for one in parts)
    elif session.progress.pattern or any(one.counter.done is not None for one in parts):
        done = sum(one.counter.done or 0 for one in parts)
    else:
        return None
    return min(done, session.count) if session.count else done


def _steps_so_far(session: Session, parts: Sequence[Attempt]) -> int | None:
    """The steps of a training: by the pattern of its progress, else by its curves. Rows are no steps."""
    if session.progress.pattern or any(one.counter.done is not None for one in parts):
        done = max((one.counter.done or 0 for one in parts), default=0)
    else:
        trained = next((one.counts.trained for one in reversed(parts) if one.counts.trained), None)
        step = trained.number("step") if trained and trained.text("unit") == STEPS else None
        if step is None:
            return None
        done = int(step)
    return min(done, session.count) if session.count else done


def _by_all(case: Case, session: Session, counts: Counts) -> Case:
    """With the end of the latest attempt by the results of all attempts, as in the report."""
    end = case.latest.end
    if end is None or not session.results.counted:
        return case
    by_rows = session.unit == "episode" or session.results.source != LOG  # a training's lines are of many steps each
    each = session.evidence.records and by_rows
    others = bool(session.evidence.beside_records)
    asked = RequiredEvidence(session.count, each, others, verdicts=session.unit == "episode")
    best = over_all((one.end.completeness for one in case.attempts if one.end), counts, asked, end.code)
    outcome = session_outcome(best, end.completeness, end.cause)
    failure = None if best is Completeness.COMPLETE else end.failure
    end = end._replace(completeness=best, outcome=outcome, counts=counts, failure=failure)
    return case._replace(attempts=(*case.attempts[:-1], case.latest._replace(end=end)))


# What a state says beyond its name


def _next_attempt(case: Case) -> Iterator[Fact]:
    if task := case.next_task:
        yield Fact("attempt_waits", attempt=task.attempt, task=task.fact.as_data())


def _next_start(case: Case) -> Iterator[Fact]:
    yield next_start(case.waits[-1], case.plan, case.attempts, case.now, held=case.held)


def _lacks_room(case: Case) -> Iterator[Fact]:
    if case.waits and case.waits[-1].waits_for in ROOM:
        yield Fact("waits_for_room", waits_for=case.waits[-1].waits_for)


def _problems(case: Case) -> Iterator[Fact]:
    """Problems of a running attempt."""
    one = case.latest
    if not one.alive:
        return
    if one.verdict or one.ending:
        yield Fact("is_being_ended", ending=data_of(one.verdict), note=visible(one.ending))
    if one.wrong_gpu:
        yield Fact(Evidence.WRONG_GPU, said=visible(one.wrong_gpu))
    yield from one.problems
    if one.stalled is not None:
        yield Fact("no_progress_for", seconds=case.now - one.stalled)


def _lost(case: Case) -> Iterator[Fact]:
    begin = case.latest.begin
    by_slurm = begin is not None and begin.multiplexer == SLURM
    yield Fact("task_is_gone" if by_slurm else "nobody_saw_end" if begin else "supervisor_died_early")


def _ending(case: Case) -> Iterator[Fact]:
    """Details beyond the outcome; none for a clean success."""
    end, session = case.latest.end, case.session
    if end is None:
        return
    if end.completeness is Completeness.COMPLETE:
        if not end.clean:
            yield Fact("ended_after_results", **end.how.fields)
        announced = end.counts.trained.number("steps") if end.counts.trained else None
        if session and session.evidence.steps and announced and announced < session.count:
            yield Fact("announced_steps_reached", steps=announced, planned=session.count)
        yield from (one for one in end.facts if one.code == Evidence.WRONG_GPU)
        if end.remark:
            yield Fact(FORMER, text=end.remark)
        return
    lacks = next((one for one in end.facts if one.code == Evidence.LACKS), None)
    facts = tuple(one for one in end.facts if one is not lacks)
    details = {"ending": data_of(facts), **({"note": end.remark} if end.remark else {})}
    if not end.clean or end.failure not in (None, Failure.NO_RESULT):
        yield Fact("command_ended", **end.how.fields, **details)
        return
    lacking: dict[str, object] = {}
    if session:
        lacking = {"records": end.records, "planned": session.count, "unit": session.unit}
        rules = session.evidence
        if rules.beside_records and (not session.results.has_records or end.records >= session.count):
            former = {"line": rules.line, "files": list(rules.files)}  # in an end of the former version
            lacking |= lacks.fields if lacks else former
    yield Fact("results_are_missing", **lacking, **details)


# The rules


class Rule(NamedTuple):
    name: str
    holds: Callable[[Case], object]
    life: Life
    says: Callable[[Case], Iterable[Fact]] = lambda _: ()
    """facts beyond the name of the state"""
    outcome: Outcome | None = None
    """the outcome, if no end is on record"""


RULES = (
    Rule("was not started before a stop", lambda case: case.stopped and not case.attempts, Life.ENDED,
         outcome=Outcome.CANCELLED),
    Rule("its next task has begun", lambda case: case.next_task and case.next_task.begun, Life.STARTING),
    Rule("its next task is queued", lambda case: case.next_task and case.attempts, Life.QUEUED, _next_attempt),
    Rule("waits for its next attempt", lambda case: case.attempts and case.retried, Life.QUEUED, _next_start),
    Rule("waits for its first attempt", lambda case: not case.attempts, Life.QUEUED, _lacks_room),
    Rule("has its end on record", lambda case: case.latest.end, Life.ENDED, _ending),
    Rule("is gone without an end", lambda case: not case.living, Life.ENDED, _lost, session_outcome(None)),
    Rule("starts", lambda case: case.latest.life == Life.STARTING, Life.STARTING, _problems),
    Rule("runs without a supervisor", lambda case: case.latest.life == Life.ORPHANED, Life.ORPHANED, _problems),
    Rule("has ended, and is judged", lambda case: case.latest.closing, Life.ENDING),
    Rule("makes no progress", lambda case: case.latest.stalled is not None, Life.STALLED, _problems),
    Rule("runs", lambda _: True, Life.RUNNING, _problems),
)  # fmt: skip
"""The first rule that holds gives the state, the outcome, and what is said of it."""


def rule_of(case: Case) -> Rule:
    return next(rule for rule in RULES if rule.holds(case))
