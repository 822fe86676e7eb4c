"""Why a session or a server is not running, what it is doing, or how it ended, and how to continue; pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from comborun.model.plan import Plan, Session
from comborun.model.resources import ServerInstance
from comborun.monitor.observe import History, RunView
from comborun.monitor.snapshot import Attempt, Order, ServerStatus
from comborun.monitor.states import Case, session_status
from comborun.monitor.status import RunStatus, SessionStatus
from comborun.monitor.waiting import Subject, blocked, budget, queued
from comborun.monitor.wording import indented
from comborun.rules.endings.failures import Failure
from comborun.rules.facts import Fact, data_of
from comborun.rules.names import AFTER
from comborun.rules.room.waits import WaitFor
from comborun.rules.vocabulary import Cause, Life, Outcome
from comborun.text import harmless
from comborun.words import say

if TYPE_CHECKING:
    from comborun.answers import runs
    from comborun.monitor.watch import Look
    from comborun.rules.events import Event

MOST_LINES = 10
"""lines of its log that are shown"""


@dataclass(frozen=True)
class Command:
    words: str
    does: str


@dataclass(frozen=True)
class Explanation:
    run: str
    session: str
    policy: str
    """empty for a model server and for `after`, and so is the environment"""
    environment: str
    state: str
    outcome: str | None
    attempt: int
    reasons: tuple[Fact, ...]
    """the most important first"""
    commands: tuple[Command, ...]
    last_lines: tuple[str, ...] = ()

    def with_log(self, log: bytes) -> Explanation:
        lines = [indented(line) for line in log.decode("utf-8", "replace").split("\n")]
        return replace(self, last_lines=tuple(line for line in lines if line)[-MOST_LINES:])

    @property
    def answer(self) -> runs.Explanation:
        from comborun.answers import runs  # slow to import, and only JSON needs it
        from comborun.monitor.document import answer_of

        return answer_of(
            runs.Explanation,
            self,
            reasons=tuple(harmless(say(one)) for one in self.reasons),
            commands=tuple(runs.NextCommand(f"combo {one.words}", one.does) for one in self.commands),
            facts=self.reasons,
        )


def explain(view: RunView, history: History, status: RunStatus, name: str, events: Sequence[Event] = ()) -> Explanation:
    """`name` is a session of the plan (perhaps amended away), or `after`. `events` say who stopped it."""
    if name == AFTER and status.after:
        seen, reasons = status.after, _after(status, status.after)
    else:
        session = next(one for one in view.plan.sessions if one.name == name)
        known = next((one for one in status.sessions if one.name == name), None)
        seen = known or session_status(Case(view.plan, session, history.of(name), status.now or 0.0))
        reasons = _reasons(Subject(view, history, status, session, seen), events)
    commands = tuple(_commands(view, status, seen))
    outcome = str(seen.outcome) if seen.outcome else None
    words = (seen.policy, seen.environment, str(seen.life), outcome)
    return Explanation(view.id, name, *words, seen.attempt, tuple(reasons), commands)


def explanation(look: Look, name: str, events: Sequence[Event] = ()) -> Explanation | None:
    """None before the first answer, and for a session that the plan does not have any more."""
    look = look.at(name)
    known = {one.name for one in look.view.plan.sessions} | ({AFTER} if look.status.after else set())
    if look.status.now is None or name not in known:
        return None
    return explain(look.view, look.history, look.status, name, events)


def was_stopped(attempts: Sequence[Attempt]) -> bool:
    """Whether the last attempt was ended by an order."""
    return bool(attempts and attempts[-1].end and attempts[-1].end.cause is Cause.STOPPED)


def _reasons(subject: Subject, events: Sequence[Event]) -> Iterator[Fact]:
    if subject.status.elsewhere:
        yield subject.status.elsewhere
    if subject.session.flag == "dropped":
        yield Fact("session_is_dropped")
    elif subject.session.flag == "elsewhere":
        yield Fact("session_is_elsewhere")
    elif subject.seen.life is Life.QUEUED:
        yield from (fact for fact in queued(subject) if fact != subject.status.elsewhere)
    if subject.seen.alive:
        yield from _alive(subject)
    elif subject.seen.life is Life.ENDED:
        yield from _ended(subject, events)
    for one in subject.attempts[:-1]:
        how = one.end and one.end.how.as_data()
        yield Fact("earlier_attempt", attempt=one.number, how=how, done=one.done, unit=subject.session.unit)


def _alive(subject: Subject) -> Iterator[Fact]:
    seen = subject.seen
    where = {"gpus": list(seen.gpus), "node": seen.node, "task": seen.task.job if seen.task else ""}
    if seen.life is Life.STARTING:
        yield Fact("attempt_starts", attempt=seen.attempt, **where, slurm=subject.status.scheduler is not None)
        return
    yield Fact("attempt_runs", attempt=seen.attempt, **where, seconds=seen.seconds or 0.0)
    if seen.life is Life.ORPHANED:
        yield Fact("supervisor_is_gone")
    yield from _work(seen)
    if seen.stalled is not None:
        yield Fact("no_progress_since", at=seen.stalled, seconds=subject.now - seen.stalled)
    else:
        yield from seen.facts
    if seen.idle is not None and seen.latest.log_changed:
        yield Fact("log_grew", ago_s=max(0.0, subject.now - seen.latest.log_changed))
    limits = subject.session.watch
    if limits.stall_s:
        yield Fact("stall_limit", seconds=limits.stall_s)
    elif seen.stalled is not None:
        yield Fact("no_stall_limit")
    if limits.max_s:
        yield Fact("time_limit", seconds=limits.max_s, in_s=limits.max_s - (seen.seconds or 0.0))
    if seen.expected:
        yield seen.expected.fact(subject.now)


def _work(seen: SessionStatus) -> Iterator[Fact]:
    if seen.done is not None:
        recorded = seen.recorded if seen.successes is not None else None
        counts = {"done": seen.done, "planned": seen.planned, "unit": seen.unit}
        yield Fact("work_done", **counts, successes=seen.successes, recorded=recorded)
    if seen.reasons:
        yield Fact("rows_not_counted", reasons=data_of(seen.reasons))


def _ended(subject: Subject, events: Sequence[Event]) -> Iterator[Fact]:
    seen, end = subject.seen, subject.attempts[-1].end if subject.attempts else None
    if not seen.attempt:
        yield Fact("queued_when_stopped")
        return
    code = "attempt_was_called_off" if _never_began(seen) else "attempt_ended"
    yield Fact(code, attempt=seen.attempt, at=end and end.ended, seconds=seen.seconds, how=data_of(seen.facts))
    if end and was_stopped(subject.attempts):
        order = Order.that_stopped(events, seen.name, subject.attempts[-1].started or 0.0, end.ended)
        yield from (order.fact,) if order else ()
    if _never_began(seen):
        return
    yield from _work(seen)
    if seen.outcome is not Outcome.SUCCEEDED:
        yield _evidence(subject.session)
    if end and end.peak_memory is not None:
        yield Fact("peak_memory", bytes=end.peak_memory)
    if seen.failure:
        yield _retries(subject)


def _never_began(seen: SessionStatus) -> bool:
    """Whether its last attempt was cancelled before its program started."""
    return seen.outcome in (Outcome.CANCELLED, Outcome.NOT_NEEDED) and seen.started is None


def _evidence(session: Session) -> Fact:
    """Which evidence shows that its work is done."""
    rules, results = session.evidence, session.results
    counted = results.counted and rules.records
    records = {"records": session.count, "record_files": list(results.files)} if counted else {}
    steps = {"steps": True} if rules.steps else {}
    return Fact("evidence_needed", **records, **steps, line=rules.line, files=list(rules.files))


def _retries(subject: Subject) -> Fact:
    failure, plan, status = subject.seen.failure, subject.view.plan, subject.status
    assert failure
    renewed, most = dict(status.again).get(subject.seen.name, 0), plan.limits.attempts
    if renewed >= subject.seen.attempt:
        return Fact("start_was_asked_for", failure=str(failure))
    spent = budget(plan, [one for one in subject.attempts if one.number > renewed], failure)
    used = {"failure": str(failure), "made": spent.made, "most": most, "renewed": spent.made != subject.seen.attempt}
    if spent.left:
        return Fact("starts_left", **used, left=spent.left, held=bool(status.finished or status.hold))
    times = {rule.failure: rule.times for rule in plan.retry}
    # a lost session is retried unless the grid says otherwise
    return Fact("no_start_left", **used, retries=int(times.get(failure, failure is Failure.LOST)))


def _after(status: RunStatus, seen: SessionStatus) -> Iterator[Fact]:
    if seen.life is Life.QUEUED:
        yield Fact("after_waits", sessions=sum(one.life is not Life.ENDED for one in status.sessions))
    elif seen.life is Life.ENDED:
        yield Fact("after_ended", seconds=seen.seconds, how=data_of(seen.facts))
    else:
        yield Fact("after_runs", seconds=seen.seconds or 0.0)


def _commands(view: RunView, status: RunStatus, seen: SessionStatus) -> Iterator[Command]:
    run, name = f"--run {shlex.quote(view.id)}", shlex.quote(seen.name)
    if status.elsewhere:  # all others are refused here
        if seen.attempt > _never_began(seen):
            yield Command(f"logs {'-f ' if seen.alive else ''}{name} {run}", "shows its log")
        return
    if (
        status.stopped
        or status.hold
        or status.quarantine
        or status.closed
        or (status.dispatcher is None and not status.finished)
    ):
        yield Command(f"resume {shlex.quote(view.id)}", "lets the run go on")
    when = " when the run goes on" if status.stopped or status.hold else ""
    busy, slots = len(status.busy), status.slots or view.plan.limits.parallel
    full = seen.task.reason == "JobArrayTaskLimit" if seen.task else status.dispatcher and busy >= slots
    if seen.life is Life.QUEUED and full and not (seen.waiting and seen.waiting.in_process):
        yield Command(f"slots {busy + 1} {run}", f"lets one more run at once{when}")
    if seen.attempt > _never_began(seen):  # an attempt that never began has no log
        yield Command(f"logs {'-f ' if seen.alive else ''}{name} {run}", "shows its log")
    waits = seen.waiting  # it is about to be retried: another retry would change nothing
    asked_for = dict(status.again).get(seen.name, 0) >= seen.attempt or (
        seen.life is Life.QUEUED and waits and waits.waits_for == WaitFor.RETRY and waits.until is None
    )
    if seen.alive:
        shows = "shows it within its allocation" if status.scheduler else "opens its window"
        yield Command(f"attach {name} {run}", shows)
        yield Command(f"stop {name} {run}", "ends it")
    elif seen.task and seen.life is Life.QUEUED:
        return  # Slurm has its next attempt already
    elif seen.attempt and seen.outcome is not Outcome.SUCCEEDED and seen.name != AFTER and not asked_for:
        yield Command(f"retry {name} {run}", f"starts it again{when or ' now'}")


# Model servers


def server_names(plan: Plan) -> tuple[str, ...]:
    return tuple(one.name for one in plan.server_instances)


def explain_server(view: RunView, status: RunStatus, name: str) -> Explanation:
    """`name` is one of `server_names`."""
    one = next(one for one in view.plan.server_instances if one.name == name)
    seen = next((seen for seen in status.servers if seen.name == name), ServerStatus(name, "queued"))
    commands = []
    if status.stopped or status.hold:
        commands.append(Command(f"resume {shlex.quote(view.id)}", "lets the run go on"))
    if seen.attempt:
        following = "" if seen.state == "ended" else "-f "
        words = f"logs {following}{shlex.quote(name)} --run {shlex.quote(view.id)}"
        commands.append(Command(words, "shows its log"))
    reasons = tuple(_of_server(view.plan, status, one, seen))
    return Explanation(view.id, name, "", "", seen.state or "queued", None, seen.attempt, reasons, tuple(commands))


def _of_server(plan: Plan, status: RunStatus, one: ServerInstance, seen: ServerStatus) -> Iterator[Fact]:
    if stopping := blocked(status):
        yield stopping
    yield Fact("server_is", server=seen.fact(status.now).as_data(), gpus=list(seen.gpus), port=seen.port)
    if waits := status.server_waits.get(one.name):
        yield Fact("server_waits", **waits.because)
    yield Fact("server_is_used", sessions=sum(one.server.name in dict(session.servers) for session in plan.current))
    if seen.attempt > 1:
        yield Fact("server_start", attempt=seen.attempt, restarts=one.server.restarts)
