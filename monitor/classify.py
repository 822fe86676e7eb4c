"""What the records say: (RunView, History, now) -> RunStatus, pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace

from comborun.layout import AFTER
from comborun.state import Life, Outcome
from monitor.estimate import Forecast, Progress, forecast
from monitor.history import History
from monitor.host_event import host_event
from monitor.observe import RunView
from monitor.session import after_status, length, session_status
from monitor.snapshot import Snapshot
from monitor.status import Link, RunStatus, SessionStatus

_UP = Link()


def classify(view: RunView, history: History, now: float | None = None, link: Link = _UP) -> RunStatus:
    """The run at `now` (the host's clock; the probe's moment when left out).

    States, counts and estimates are the probe's; only what grows by itself between two probes follows `now`.
    """
    snapshot = history.snapshot
    if snapshot is None:
        return _unseen(view, link)
    moment = snapshot.now if now is None else now
    sessions = tuple(session_status(one, history.of(one.name), moment) for one in view.plan.sessions)
    expected = _forecast(view, history, sessions)
    event = host_event(snapshot, history, sessions)
    told = event.sessions if event else ()
    sessions = tuple(
        replace(one, expected=expected.ends.get(one.name), note="" if one.name in told else one.note)
        for one in sessions
    )
    after = after_status(history.of(AFTER), moment) if view.plan.after else None
    finished = _finished(snapshot, history)
    started, ended = _span(history, finished=finished)
    end = ended if ended is not None else moment
    return RunStatus(
        run=view.id,
        grid=view.plan.grid,
        host=view.host,
        directory=view.directory,
        now=moment,
        started=started,
        seconds=None if started is None else max(0.0, end - started),
        expected=None if finished else expected.run,
        finished=finished,
        stopped=snapshot.stopped,
        dispatcher=snapshot.dispatcher,
        slots=snapshot.slots,
        use=snapshot.use,
        multiplexer=snapshot.multiplexer,
        sessions=sessions,
        host_event=event,
        after=after,
        hint=_hint(view, snapshot, sessions, finished=finished),
        link=link,
    )


def _unseen(view: RunView, link: Link) -> RunStatus:
    """A run of which nothing but the plan is known."""
    sessions = tuple(session_status(one, (), 0.0) for one in view.plan.sessions)
    return RunStatus(view.id, view.plan.grid, view.host, view.directory, sessions, link=link)


def _forecast(view: RunView, history: History, sessions: Sequence[SessionStatus]) -> Forecast:
    snapshot = history.snapshot
    assert snapshot
    progress = []
    for status in sessions:
        latest = next(reversed(history.of(status.name)), None)
        done, marks = (latest.done, latest.marks) if latest else (0, ())
        ended = latest.end.ended if latest and latest.end else None
        progress.append(Progress(status, done, length(status.started, ended, snapshot.now), marks))
    starts = snapshot.dispatcher is not None and not snapshot.stopped
    slots = view.plan.limits.parallel if snapshot.slots is None else snapshot.slots
    return forecast(progress, slots if starts else None, snapshot.now)


def _finished(snapshot: Snapshot, history: History) -> bool:
    alive = any(one.alive for seen in history.attempts.values() for one in seen)
    return not alive and (snapshot.done is not None or snapshot.stopped)


def _span(history: History, *, finished: bool) -> tuple[float | None, float | None]:
    """When the first attempt began, and when all was over."""
    seen = [one for attempts in history.attempts.values() for one in attempts]
    starts = [one.begin.started for one in seen if one.begin and one.begin.started]
    ends = [one.end.ended for one in seen if one.end]
    return min(starts, default=None), max(ends, default=None) if finished else None


def _hint(view: RunView, snapshot: Snapshot, sessions: Sequence[SessionStatus], *, finished: bool) -> str:
    """How to go on when nothing new will start although there is something to start."""
    left = sum(one.life is Life.QUEUED or one.outcome is Outcome.CANCELLED for one in sessions)
    if finished and snapshot.stopped and left:
        return f"stopped with {left} of {len(sessions)} sessions left: {_resume(view)}"
    if not finished and snapshot.use.disk and not snapshot.use.disk.free:
        return "the disk of the run is full: free some room, and the run goes on by itself"
    if finished or snapshot.stopped or snapshot.dispatcher is not None:
        return ""
    return f"the dispatcher is gone, nothing new starts: {_resume(view)}"


def _resume(view: RunView) -> str:
    front = f"{view.directory}/run_parallel.sh"
    home = "~/" if front.startswith("~/") else ""
    where = "" if view.host == "local" else f" on {view.host}"
    return f"`bash {home}{shlex.quote(front[len(home) :])}`{where} resumes"
