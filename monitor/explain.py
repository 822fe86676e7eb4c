"""Why a session or a server is not running, what it is doing, or how it ended, and how to continue; pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from comborun.model.plan import Plan, Session
from comborun.model.servers import ServerInstance
from comborun.monitor.classify import ended_by, session_status
from comborun.monitor.observe import History, RunView
from comborun.monitor.snapshot import Server
from comborun.monitor.status import RunStatus, SessionStatus
from comborun.monitor.waiting import RETRY, Question, blocked, budget, queued
from comborun.monitor.wording import brief, clock, duration, indented, visible
from comborun.rules.endings.failures import Failure
from comborun.rules.names import AFTER
from comborun.rules.vocabulary import Life, Outcome, amount
from comborun.text import several

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
    reasons: tuple[str, ...]
    """sentences, the most important first"""
    commands: tuple[Command, ...]
    last_lines: tuple[str, ...] = ()

    def with_log(self, log: bytes) -> Explanation:
        lines = [indented(line) for line in log.decode("utf-8", "replace").split("\n")]
        return replace(self, last_lines=tuple(line for line in lines if line)[-MOST_LINES:])


def to_document(explanation: Explanation) -> dict[str, Any]:
    commands = [{"command": f"combo {one.words}", "does": one.does} for one in explanation.commands]
    return {**asdict(explanation), "commands": commands}


def explain(view: RunView, history: History, status: RunStatus, name: str) -> Explanation:
    """`name` is a session of the plan (perhaps amended away), or `after`."""
    if name == AFTER and status.after:
        seen, reasons = status.after, _after(status, status.after)
    else:
        session = next(one for one in view.plan.sessions if one.name == name)
        known = next((one for one in status.sessions if one.name == name), None)
        seen = known or session_status(session, history.of(name), status.now or 0.0)
        reasons = _reasons(Question(view, history, status, session, seen))
    commands = tuple(_commands(view, status, seen))
    outcome = str(seen.outcome) if seen.outcome else None
    words = (seen.policy, seen.environment, str(seen.life), outcome)
    return Explanation(view.id, name, *words, seen.attempt, tuple(reasons), commands)


def _reasons(question: Question) -> Iterator[str]:
    if question.session.flag == "dropped":
        yield "the grid has changed: this session is no longer a part of the run, and its records do not count"
    elif question.seen.life is Life.QUEUED:
        yield from queued(question)
    if question.seen.alive:
        yield from _alive(question)
    elif question.seen.life is Life.ENDED:
        yield from _ended(question)
    for one in question.attempts[:-1]:
        said = ended_by(one.end) if one.end else "nobody saw it end"
        yield f"attempt {one.number} before it: {said}, {several(one.done, question.session.unit)}"


def _alive(question: Question) -> Iterator[str]:
    seen = question.seen
    gpus = f"GPU {', '.join(map(str, seen.gpus))}" if seen.gpus else ""
    place = " of ".join(filter(None, (gpus, seen.node)))
    where = (f" on {place}" if place else "") + (f", as task {seen.task.job}" if seen.task else "")
    if seen.life is Life.STARTING:
        doing = "its script begins there" if question.status.scheduler else "its window is being opened"
        yield f"attempt {seen.attempt} is starting{where}: {doing}"
        return
    yield f"attempt {seen.attempt} has been running for {duration(seen.seconds or 0.0)}{where}"
    if seen.life is Life.ORPHANED:
        yield "its supervisor is gone, but the command goes on; the dispatcher judges it when it has ended"
    yield from _work(seen)
    if seen.stalled is not None:
        yield f"no progress since {clock(seen.stalled)} ({brief(question.now - seen.stalled)})"
    elif seen.note:
        yield seen.note
    if seen.idle is not None:
        yield f"its log last grew {brief(seen.idle)} ago"
    yield from _limits(question)
    if seen.expected:
        yield seen.expected.words(question.now)


def _limits(question: Question) -> Iterator[str]:
    """Says which limits would end it."""
    watch, seen = question.session.watch, question.seen
    if watch.stall_s:
        yield f"it is ended when it shows no progress for {duration(watch.stall_s)}"
    elif seen.stalled is not None:
        yield "this does not end it: the grid sets no `limits: {stall_after: ...}`"
    if watch.max_s:
        left = watch.max_s - (seen.seconds or 0.0)
        yield f"it is ended when it has run for {duration(watch.max_s)}" + (f", in {brief(left)}" if left > 0 else "")


def _work(seen: SessionStatus) -> Iterator[str]:
    if seen.done is not None:
        successful = f", {seen.successes} of {seen.recorded} successful"
        result = successful if seen.recorded and seen.successes is not None else ""
        yield f"{seen.done} of {seen.planned} {seen.unit}s done{result}"
    if seen.uncounted:
        yield seen.uncounted


def _ended(question: Question) -> Iterator[str]:
    seen, end = question.seen, question.attempts[-1].end if question.attempts else None
    when = f" at {clock(end.ended)}" if end else ""
    why = f": {seen.note}" if seen.note else ""
    if not seen.attempt:
        yield "it was queued when the run was stopped, and has not started"
        return
    if _never_began(seen):
        yield f"attempt {seen.attempt} was called off{when} and never began{why}"
        return
    yield f"attempt {seen.attempt} ended{when}{_lasted(seen)}{why}"
    yield from _work(seen)
    if seen.outcome is not Outcome.SUCCEEDED:
        yield f"to be complete, it needs {_evidence(question.session)}"
    if seen.peak_memory is not None:
        yield f"its processes held {amount(seen.peak_memory)} of memory at most, by samples"
    if seen.failure:
        yield _retries(question)


def _lasted(seen: SessionStatus) -> str:
    return "" if seen.seconds is None else f" after {duration(seen.seconds)}"


def _never_began(seen: SessionStatus) -> bool:
    """Whether its last attempt was cancelled before its program started."""
    return seen.outcome in (Outcome.CANCELLED, Outcome.NOT_NEEDED) and seen.started is None


def _evidence(session: Session) -> str:
    """Says which evidence shows that its work is done."""
    rules, results = session.evidence, session.results
    counted = results.counted and rules.records
    wanted = [f"{several(session.count, 'record')} in {', '.join(results.files) or 'its log'}"] if counted else []
    wanted += [f"a log line that matches {rules.line}"] if rules.line else []
    wanted += [f"a file {glob}" for glob in rules.files]
    return " and ".join(wanted) or "exit code 0"


def _retries(question: Question) -> str:
    failure, plan, status = question.seen.failure, question.view.plan, question.status
    assert failure
    renewed, most = dict(status.again).get(question.seen.name, 0), plan.limits.attempts
    if renewed >= question.seen.attempt:
        return f"its failure counts as `{failure}`: another start was asked for and follows when the run goes on"
    spent = budget(plan, [one for one in question.attempts if one.number > renewed], failure)
    since = "" if spent.made == question.seen.attempt else " since it was last stopped or asked for"
    used = f" ({spent.made} of {several(most, 'start')} used{since})" if spent.made <= most else ""
    if spent.left:
        when = " when the run goes on" if status.finished or status.hold else ""
        return f"its failure counts as `{failure}`: {several(spent.left, 'more start')} may follow{when}{used}"
    times = {rule.failure: rule.times for rule in plan.retry}
    allowed = times.get(failure, failure is Failure.LOST)  # a lost session is retried unless the grid says otherwise
    retries = several(int(allowed), "retry", "retries")
    why = f"and it has had its {retries} for that" if allowed and spent.made < most else "and no start is left"
    return f"its failure counts as `{failure}`, {why if allowed else 'which is not retried'}{used}"


def _after(status: RunStatus, seen: SessionStatus) -> Iterator[str]:
    if seen.life is Life.QUEUED:
        going = sum(one.life is not Life.ENDED for one in status.sessions)
        yield f"the grid's last command runs once all sessions have ended: {going} have not"
    elif seen.life is Life.ENDED:
        yield f"it ended{_lasted(seen)}{f': {seen.note}' if seen.note else ''}"
    else:
        yield f"it has been running for {duration(seen.seconds or 0.0)}"


def _commands(view: RunView, status: RunStatus, seen: SessionStatus) -> Iterator[Command]:
    run, name = f"--run {shlex.quote(view.id)}", shlex.quote(seen.name)
    if status.stopped or status.hold or status.quarantine or (status.dispatcher is None and not status.finished):
        yield Command(f"resume {shlex.quote(view.id)}", "lets the run go on")
    when = " when the run goes on" if status.stopped or status.hold else ""
    busy, slots = len(status.busy), status.slots or view.plan.limits.parallel
    full = seen.task.reason == "JobArrayTaskLimit" if seen.task else status.dispatcher and busy >= slots
    if seen.life is Life.QUEUED and full:
        yield Command(f"slots {busy + 1} {run}", f"lets one more run at once{when}")
    if seen.attempt > _never_began(seen):  # an attempt that never began has no log
        yield Command(f"logs {'-f ' if seen.alive else ''}{name} {run}", "shows its log")
    waits = seen.waiting  # it is about to be retried: another retry would change nothing
    asked_for = dict(status.again).get(seen.name, 0) >= seen.attempt or (
        seen.life is Life.QUEUED and waits and waits.reason == RETRY and waits.until is None
    )
    if seen.alive:
        shows = "shows it within its allocation" if status.scheduler else "opens its window"
        yield Command(f"attach {name} {run}", shows)
        yield Command(f"stop {name} {run}", "ends it")
    elif seen.attempt and seen.outcome is not Outcome.SUCCEEDED and seen.name != AFTER and not asked_for:
        yield Command(f"retry {name} {run}", f"starts it again{when or ' now'}")


# Model servers


def server_names(plan: Plan) -> tuple[str, ...]:
    return tuple(one.name for one in plan.server_instances)


def explain_server(view: RunView, status: RunStatus, name: str) -> Explanation:
    """`name` is one of `server_names`."""
    one = next(one for one in view.plan.server_instances if one.name == name)
    seen = next((seen for seen in status.servers if seen.name == name), Server(name, "queued"))
    commands = []
    if status.stopped or status.hold:
        commands.append(Command(f"resume {shlex.quote(view.id)}", "lets the run go on"))
    if seen.attempt:
        following = "" if seen.state == "ended" else "-f "
        words = f"logs {following}{shlex.quote(name)} --run {shlex.quote(view.id)}"
        commands.append(Command(words, "shows its log"))
    reasons = tuple(_of_server(view.plan, status, one, seen))
    return Explanation(view.id, name, "", "", seen.state or "queued", None, seen.attempt, reasons, tuple(commands))


def _of_server(plan: Plan, status: RunStatus, one: ServerInstance, seen: Server) -> Iterator[str]:
    if stopping := blocked(status):
        yield stopping
    where = f", on GPU {', '.join(map(str, seen.gpus))}" if seen.gpus else ""
    where += f", on port {seen.port}" if seen.port else ""
    yield f"it {seen.words(status.now)}{where}"
    if waits := status.server_waits.get(one.name):
        yield f"it waits: {visible(waits)}"
    asking = sum(one.server.name in dict(session.servers) for session in plan.current)
    yield f"{several(asking, 'session')} of the run {'uses' if asking == 1 else 'use'} it"
    if seen.attempt > 1:
        most = several(one.server.restarts, "time")
        yield f"this is its start {seen.attempt}; when it ends by itself it is started again, {most} in a row at most"
