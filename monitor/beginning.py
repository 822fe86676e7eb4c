"""After a start: whether a session has begun, what the first one waits for, or why none will begin."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING

from comborun.errors import UserError
from comborun.monitor.classify import classify
from comborun.monitor.observe import History, load_run
from comborun.monitor.status import SMOKE
from comborun.monitor.waiting import Subject, held, queued
from comborun.monitor.watch import Clock, Settings, Source, once, until_answered
from comborun.planner.calibrating import LENGTH_S
from comborun.remote.run_orders import Beginning, await_first, dispatcher_output
from comborun.rules.facts import Fact
from comborun.rules.holds import HALTED
from comborun.rules.room.waits import WaitFor
from comborun.rules.vocabulary import Life, Outcome
from comborun.text import harmless, several
from comborun.words import say

if TYPE_CHECKING:
    from collections.abc import Callable

    from comborun.monitor.observe import RunView
    from comborun.monitor.status import RunStatus, SessionStatus
    from comborun.remote.transport import Transport


@dataclass(frozen=True)
class Timing:
    """Seconds. Tests shorten them by COMBORUN_FIRST_S and COMBORUN_CALIBRATE_S."""

    first_s: float = 20.0
    """within which a session begins if it waits for nothing"""
    calibrate_s: float = LENGTH_S
    """the shortest useful run time of a session that is measured"""


@cache
def timing() -> Timing:
    names = {field.name: f"COMBORUN_{field.name.upper()}" for field in fields(Timing)}
    return Timing(**{field: float(os.environ[name]) for field, name in names.items() if os.environ.get(name)})


_SMOKE_INTERVAL_S = 2.0
_WAITS = ("waits", "waits_for_server")
_AT_ONCE_S = 0.5
"""seconds; a session that fails so early probably has a mistake in its command"""


def await_beginning(transport: Transport, directory: str, options: str = "") -> Fact | None:
    """Wait a while for the first session. Returns why it waits; None if it began.

    Raises UserError if the run was halted before a session began, or if none begins and no reason is known.
    `options` are those that the hinted commands need to find the host.
    """
    seconds = timing().first_s
    beginning = await_first(transport, directory, seconds)
    if beginning is Beginning.BEGUN:
        return None
    view = load_run(transport, directory)
    history = Source(transport, view).fold(History())
    status = classify(view, history)
    if any(one.started is not None for one in status.sessions):
        return None
    refuse_halted(status, options)
    refuse_ended(status)
    if waits := first_wait(view, history, status):
        return waits
    if beginning is Beginning.WAITS:  # the wait is over: it starts now
        return await_beginning(transport, directory, options)
    raise UserError(
        f"no session of {directory} has begun within {seconds:g} seconds",
        dispatcher_output(transport, directory),
    )


def failed_at_once(source: Source) -> tuple[SessionStatus, ...]:
    seen = once(source)
    if seen.started is not None and seen.now is not None and seen.now < seen.started + _AT_ONCE_S:
        Clock().sleep(seen.started + _AT_ONCE_S - seen.now)
        seen = once(source)
    return tuple(one for one in seen.proper if one.failure)


def refuse_ended(status: RunStatus) -> None:
    """Raise UserError, with a cause, if all sessions have ended and none had begun."""
    ended = [one for one in status.sessions if one.life is Life.ENDED and one.outcome is not Outcome.NOT_NEEDED]
    if ended and len(ended) == len(status.sessions):
        why = next((one.note for one in ended if one.note), "no cause is on record")
        raise UserError(
            f"no session of the run {status.run} could be started: {harmless(why)}",
            f"`combo explain {ended[0].name} --run {status.run}` says more",
        )


def refuse_halted(status: RunStatus, options: str = "") -> None:
    if status.hold is None or status.hold.kind != HALTED:
        return
    ended = [one for one in status.servers if one.state == "ended"]
    named = status.hold.reason.text("server") if status.hold.reason else ""
    reasons = [f"\n  the server {one.name} {say(one.fact(status.now))}" for one in ended if one.name != named]
    log = f"`combo logs {ended[0].name} --run {status.run}{options}` shows its log; " if ended else ""
    again = f"`combo resume {status.run}{options}` continues once that is fixed"
    raise UserError(f"the run {status.run} is {harmless(say(held(status.hold)) + ''.join(reasons))}", log + again)


def first_wait(view: RunView, history: History, status: RunStatus) -> Fact | None:
    """What the first queued session with a known wait waits for; None without one. A session that waits for the smoke
    test counts only if there is no other.
    """
    if status.dispatcher is None and status.hold is None:
        return None
    there = [one for one in status.sessions if one.life is Life.QUEUED]
    waiting = [one for one in there if one.waiting] or (there if status.hold or status.disk_full else [])
    smoke = [one for one in waiting if one.waiting and one.waiting.waits_for == WaitFor.SMOKE]
    first = next((one for one in waiting if one not in smoke), next(iter(smoke), None))
    if first is None:
        return None
    session = next(one for one in view.plan.sessions if one.name == first.name)
    reason = queued(Subject(view, history, status, session, first))[0]
    return reason if reason.code in _WAITS else Fact("has_not_begun", reason=reason.as_data())


def lacking(seen: RunStatus) -> str:
    """A sentence about missing episodes; empty if other sessions have done them all."""
    missing = seen.planned - seen.done
    short = [one for one in seen.proper if not one.done_with]
    if not missing and all(one.done is not None for one in short):
        return ""
    noun = "episodes and steps" if seen.unit == "done" else seen.unit
    missed = f", and {missing} of {seen.planned} {noun} are missing" if missing else ""
    return f"{len(short)} of {several(len(seen.proper), 'session')} did not succeed{missed}"


def await_smoke(source: Source, progress: Callable[[int, int], None]) -> tuple[SessionStatus, ...]:
    """The sessions of a smoke test when it is over, or when nothing will continue it.

    At each change `progress` gets the number of combos with a record, and of all combos.
    """
    clock, shown = Clock(), -1
    settings = Settings(min(source.view.plan.poll, _SMOKE_INTERVAL_S))
    while True:
        seen = until_answered(lambda: once(source), clock, settings, lambda _: None)
        tried = tuple(session for session in seen.sessions if session.part == SMOKE)
        count = sum(map(recorded, tried))
        if count != shown:
            shown = count
            progress(count, len(tried))
        stuck = seen.stopped or seen.hold is not None or seen.dispatcher is None
        if all(one.life is Life.ENDED for one in tried) or (stuck and not any(one.alive for one in tried)):
            return tried
        clock.sleep(settings.interval)


def recorded(session: SessionStatus) -> bool:
    """Whether a session of a smoke test has shown that its combo can be recorded."""
    return bool(session.recorded) or session.outcome is Outcome.SUCCEEDED
