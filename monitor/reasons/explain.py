"""Why a session is not running, or what it is doing, or how it ended, and what would go on; pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import Any

from comborun.monitor.answer.snapshot import Attempt
from comborun.monitor.history import History
from comborun.monitor.lastline import indented
from comborun.monitor.observe import RunView
from comborun.monitor.reasons.causes import ended_by
from comborun.monitor.reasons.turn import Question, label, queued
from comborun.monitor.reasons.waits import RETRY, budget
from comborun.monitor.session import session_status
from comborun.monitor.status import RunStatus, SessionStatus
from comborun.monitor.wording import amount, brief, clock, duration, expectation, state
from comborun.plan import Plan, Session
from comborun.rules.names import AFTER
from comborun.rules.words import Life, Outcome
from comborun.text import several

MOST_LINES = 10
"""of its log that are shown"""


@dataclass(frozen=True)
class Command:
    """What may be done next: words for the program, and what they do."""

    words: str
    does: str


@dataclass(frozen=True)
class Explanation:
    run: str
    session: str
    combo: str
    state: str
    attempt: int
    """0 before the first"""
    reasons: tuple[str, ...]
    """sentences, what weighs most first"""
    commands: tuple[Command, ...]
    last_lines: tuple[str, ...] = ()

    def with_log(self, log: bytes) -> Explanation:
        """With the last lines of its log that show anything."""
        lines = [indented(line) for line in log.decode("utf-8", "replace").split("\n")]
        return replace(self, last_lines=tuple(line for line in lines if line)[-MOST_LINES:])


def explain(view: RunView, history: History, status: RunStatus, name: str, zone: tzinfo | None = None) -> Explanation:
    """`name` is a session of the plan, or `after`."""
    session, seen = _found(view.plan, history, status, name)
    if session is None:
        reasons, commands = list(_after(status, seen)), list(_commands(view, status, seen))
    else:
        asked = Question(view, history, status, session, seen, zone)
        reasons, commands = list(_reasons(asked)), list(_commands(view, status, seen))
    return Explanation(view.id, name, label(seen), state(seen), seen.attempt, tuple(reasons), tuple(commands))


def to_document(told: Explanation) -> dict[str, Any]:
    return {
        "run": told.run,
        "session": told.session,
        "combo": told.combo,
        "state": told.state,
        "attempt": told.attempt,
        "reasons": list(told.reasons),
        "last_lines": list(told.last_lines),
        "commands": [{"command": f"combo {one.words}", "does": one.does} for one in told.commands],
    }


def _found(plan: Plan, history: History, status: RunStatus, name: str) -> tuple[Session | None, SessionStatus]:
    """The session and how it stands; one that was amended away stands in no table."""
    if name == AFTER and status.after:
        return None, status.after
    session = next(one for one in plan.sessions if one.name == name)
    seen = next((one for one in status.sessions if one.name == name), None)
    return session, seen or session_status(session, history.of(name), status.now or 0.0)


def _reasons(asked: Question) -> Iterator[str]:
    if asked.session.flag == "dropped":
        yield "the grid was changed since: this session is not part of the run any more, and its records do not count"
    elif asked.seen.life is Life.QUEUED:
        yield from queued(asked)
    if asked.seen.alive:
        yield from _alive(asked)
    elif asked.seen.life is Life.ENDED:
        yield from _ended(asked)
    yield from _earlier(asked)


def _alive(asked: Question) -> Iterator[str]:
    seen, now = asked.seen, asked.status.now or 0.0
    where = f" on GPU {', '.join(map(str, seen.gpus))}" if seen.gpus else ""
    where += f" of {seen.node}" if seen.gpus and seen.node else f" on {seen.node}" if seen.node else ""
    where += f", as task {seen.task.job}" if seen.task else ""
    if seen.life is Life.STARTING:
        doing = "its script begins there" if asked.status.scheduler else "its window is being opened"
        yield f"attempt {seen.attempt} is starting{where}: {doing}"
        return
    yield f"attempt {seen.attempt} has been running for {duration(seen.seconds or 0.0)}{where}"
    if seen.life is Life.ORPHANED:
        yield "its supervisor is gone, but the command goes on; the dispatcher judges it when it has ended"
    yield from _work(asked)
    if seen.stalled is not None:
        yield f"no progress since {clock(seen.stalled, asked.zone)} ({brief(now - seen.stalled)})"
    if seen.idle is not None:
        yield f"its log last grew {brief(seen.idle)} ago"
    yield from _limits(asked)
    if seen.expected:
        yield expectation(seen.expected, now, asked.zone)


def _limits(asked: Question) -> Iterator[str]:
    """What would end it by itself."""
    watch, seen = asked.session.watch, asked.seen
    if watch.stall_s:
        yield f"it is ended when it shows no progress for {duration(watch.stall_s)}"
    elif seen.stalled is not None:
        yield "nothing ends it for that: the grid sets no `limits: {stall_after: ...}`"
    if watch.max_s:
        left = watch.max_s - (seen.seconds or 0.0)
        yield f"it is ended when it has run for {duration(watch.max_s)}, in {brief(left)}"


def _work(asked: Question) -> Iterator[str]:
    seen = asked.seen
    if seen.done is not None:
        told = [f"{seen.done} of {seen.planned} {seen.unit}s done"]
        if seen.recorded and seen.successes is not None:
            told.append(f"{seen.successes} of {seen.recorded} successful")
        yield ", ".join(told)
    if seen.uncounted:
        yield seen.uncounted


def _ended(asked: Question) -> Iterator[str]:
    seen, attempts = asked.seen, asked.history.of(asked.session.name)
    end = attempts[-1].end if attempts else None
    when = f" at {clock(end.ended, asked.zone)}" if end else ""
    if _never_began(seen):
        yield f"attempt {seen.attempt} was called off{when} and never began" + (f": {seen.note}" if seen.note else "")
        return
    yield f"attempt {seen.attempt} ended{when} after {duration(seen.seconds or 0.0)}" + (
        f": {seen.note}" if seen.note else ""
    )
    yield from _work(asked)
    if seen.outcome is not Outcome.SUCCEEDED:
        yield f"it counts as complete with {_evidence(asked.session)}"
    if seen.peak_memory is not None:
        yield f"its processes held {amount(seen.peak_memory)} of memory at most, as far as was seen"
    if seen.failure:
        yield _retries(asked, attempts)


def _never_began(seen: SessionStatus) -> bool:
    """Whether its last attempt was called off before its program was started."""
    return seen.outcome in (Outcome.CANCELLED, Outcome.NOT_NEEDED) and seen.started is None


def _evidence(session: Session) -> str:
    """What shows that its work is done."""
    rules = session.evidence
    wanted = [f"{several(session.count, 'record')} in {', '.join(session.results.files)}"] if _records(session) else []
    wanted += [f"a log line that matches {rules.line}"] if rules.line else []
    wanted += [f"a file {glob}" for glob in rules.files]
    return " and ".join(wanted) or "exit code 0"


def _records(session: Session) -> bool:
    return session.results.lines and session.evidence.records


def _retries(asked: Question, attempts: tuple[Attempt, ...]) -> str:
    failure, plan = asked.seen.failure, asked.view.plan
    assert failure
    spent = budget(plan, attempts, failure)
    most = plan.limits.attempts
    used = f" ({spent.used} of {several(most, 'start')} used)" if spent.used <= most else ""
    if spent.left:
        held = " when the run goes on" if asked.status.finished or asked.status.hold else ""
        return f"its failure counts as `{failure}`: {several(spent.left, 'more start')} may follow{held}{used}"
    why = "those are used up" if any(rule.failure is failure and rule.times for rule in plan.retry) else "it has none"
    return f"its failure counts as `{failure}`, and no retry of that is left: {why}{used}"


def _earlier(asked: Question) -> Iterator[str]:
    attempts = asked.history.of(asked.session.name)
    for one in attempts[:-1]:
        said = ended_by(one.end) if one.end else "nobody saw it end"
        yield f"attempt {one.number} before it: {said}, {several(one.done, asked.session.unit)}"


def _after(status: RunStatus, seen: SessionStatus) -> Iterator[str]:
    if seen.life is Life.QUEUED:
        going = sum(one.life is not Life.ENDED for one in status.sessions)
        yield f"the grid's last command runs once all sessions have ended: {going} have not"
    elif seen.life is Life.ENDED:
        yield f"it ended after {duration(seen.seconds or 0.0)}" + (f": {seen.note}" if seen.note else "")
    else:
        yield f"it has been running for {duration(seen.seconds or 0.0)}"


def _asked_for(seen: SessionStatus) -> bool:
    """Whether it starts again without any more waiting: a retry, of which another would change nothing."""
    return (
        seen.life is Life.QUEUED
        and seen.waiting is not None
        and seen.waiting.reason == RETRY
        and seen.waiting.until is None
    )


def _commands(view: RunView, status: RunStatus, seen: SessionStatus) -> Iterator[Command]:
    """What a person may type, after `combo`."""
    run, name = f"--run {shlex.quote(view.id)}", shlex.quote(seen.name)
    if status.stopped or status.hold or status.quarantine or (status.dispatcher is None and not status.finished):
        yield Command(f"resume {shlex.quote(view.id)}", "lets the run go on")
    when = " when the run goes on" if status.stopped or status.hold else ""
    slots = status.slots or view.plan.limits.parallel
    busy = sum(one.alive for one in status.sessions)
    full = seen.task.reason == "JobArrayTaskLimit" if seen.task else status.dispatcher and busy >= slots
    if seen.life is Life.QUEUED and full:
        yield Command(f"slots {busy + 1} {run}", f"lets one more run at once{when or ''}")
    if seen.attempt > _never_began(seen):  # an attempt that never began has no log
        yield Command(f"logs {'-f ' if seen.alive else ''}{name} {run}", "shows its log")
    if seen.alive:
        shown = "shows it within its allocation" if status.scheduler else "opens its window"
        yield Command(f"attach {name} {run}", shown)
        yield Command(f"stop {name} {run}", "ends it")
    elif seen.attempt and seen.outcome is not Outcome.SUCCEEDED and seen.name != AFTER and not _asked_for(seen):
        yield Command(f"retry {name} {run}", f"starts it again{when or ' now'}")
