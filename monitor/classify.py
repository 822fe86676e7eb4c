"""What the records say: (RunView, History, now) -> RunStatus, pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace

from comborun.monitor.answer.cluster import latest
from comborun.monitor.answer.holds import Waiting
from comborun.monitor.answer.host import HostUse
from comborun.monitor.answer.snapshot import Snapshot
from comborun.monitor.estimate import Forecast, Progress, forecast
from comborun.monitor.history import History
from comborun.monitor.host_event import host_event
from comborun.monitor.observe import RunView
from comborun.monitor.reasons.hints import hint, unheard
from comborun.monitor.reasons.waits import AGAIN, ROOM, again, room
from comborun.monitor.session import after_status, length, queued_again, session_status, with_task, without_task
from comborun.monitor.status import SMOKE, SUPERSEDED, Link, RunStatus, SessionStatus
from comborun.plan import Plan
from comborun.rules.names import AFTER
from comborun.rules.words import Life

_UP = Link()


def classify(view: RunView, history: History, now: float | None = None, link: Link = _UP) -> RunStatus:
    """The run at `now` (the host's clock; the probe's moment when left out).

    States, counts and estimates are the probe's; only what grows by itself between two probes follows `now`.
    """
    snapshot = history.snapshot
    if snapshot is None:
        return _unseen(view, link)
    moment = snapshot.now if now is None else now
    sessions = _sessions(view.plan, history, snapshot, moment)
    expected = _forecast(view, history, sessions)
    # nodes are started again, and sessions vanish with them, one by one: each is its own to tell of
    event = None if snapshot.scheduler else host_event(snapshot, history, sessions)
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
        hold=snapshot.hold,
        quarantine=snapshot.quarantine,
        dispatcher=snapshot.dispatcher,
        slots=snapshot.slots,
        use=HostUse(disk=snapshot.use.disk) if snapshot.scheduler else snapshot.use,
        scheduler=snapshot.scheduler,
        servers=snapshot.servers,
        server_waits=_server_waits(snapshot),
        multiplexer=snapshot.multiplexer,
        sessions=sessions,
        host_event=event,
        after=after,
        hint=hint(view, snapshot, sessions, finished=finished),
        unheard=unheard(view, snapshot),
        link=link,
    )


def _server_waits(snapshot: Snapshot) -> dict[str, str]:
    names = {one.name for one in snapshot.servers} if snapshot.dispatcher is not None else set()
    return {one.session: one.detail for one in snapshot.waiting if one.session in names}


def _sessions(plan: Plan, history: History, snapshot: Snapshot, now: float) -> tuple[SessionStatus, ...]:
    """The sessions of a plan; of what was amended away only what lives."""
    waits = _waits(snapshot)
    parts, tasks = _parts(plan), latest(snapshot.tasks)
    told = []
    for session in plan.sessions:
        attempts = history.of(session.name)
        status = session_status(session, attempts, now, parts[session.name])
        if told_of := waits.get(session.name):
            waiting = told_of[-1]
            if _starts_again(status, told_of):
                status = queued_again(status, waiting, again(waiting, plan, attempts, now))
            status = replace(status, waiting=waiting if status.life is Life.QUEUED else None)
            if status.waiting and waiting.reason in ROOM and not status.note:
                status = replace(status, note=room(waiting))
        if task := tasks.get(session.name):
            status = with_task(status, task)
        elif snapshot.scheduler:
            status = without_task(status, snapshot.scheduler)
        if session.flag != "dropped" or status.alive:
            told.append(status)
    return tuple(told)


def _waits(snapshot: Snapshot) -> dict[str, list[Waiting]]:
    """Session -> what the dispatcher says that it waits for; empty where none says it any more."""
    waits: defaultdict[str, list[Waiting]] = defaultdict(list)
    for one in snapshot.waiting if snapshot.dispatcher is not None else ():
        waits[one.session].append(one)
    return waits


def _starts_again(status: SessionStatus, waits: Sequence[Waiting]) -> bool:
    """Whether a session that has ended waits for another attempt; else it waited before this one, and was quick."""
    return status.life is Life.ENDED and not status.done_with and any(one.reason in AGAIN for one in waits)


def _parts(plan: Plan) -> dict[str, str]:
    """Session name -> what tells it from others of its combo."""
    combos = Counter((one.policy, one.environment) for one in plan.sessions if not one.flag)
    words = {"smoke": SMOKE, "dropped": SUPERSEDED}
    return {
        one.name: words.get(one.flag)
        or (f"{one.first}–{one.first + one.count - 1}" if combos[one.policy, one.environment] > 1 else "")
        for one in plan.sessions
    }


def _unseen(view: RunView, link: Link) -> RunStatus:
    """A run of which nothing but the plan is known."""
    parts = _parts(view.plan)
    sessions = tuple(
        session_status(one, (), 0.0, parts[one.name]) for one in view.plan.sessions if one.flag != "dropped"
    )
    return RunStatus(view.id, view.plan.grid, view.host, view.directory, sessions, link=link)


def _forecast(view: RunView, history: History, sessions: Sequence[SessionStatus]) -> Forecast:
    snapshot = history.snapshot
    assert snapshot
    progress = []
    for status in sessions:
        last = next(reversed(history.of(status.name)), None)
        done, marks, whole = (last.done, last.marks, last.whole) if last else (0, (), True)
        ended = last.end.ended if last and last.end else None
        progress.append(Progress(status, done, length(status.started, ended, snapshot.now), marks, whole))
    starts = snapshot.dispatcher is not None and not snapshot.stopped and snapshot.hold is None
    starts = starts and not snapshot.scheduler  # when Slurm starts what it has is nobody's to tell
    slots = view.plan.limits.parallel if snapshot.slots is None else snapshot.slots
    return forecast(progress, slots if starts else None, snapshot.now)


def _finished(snapshot: Snapshot, history: History) -> bool:
    alive = any(one.alive for seen in history.attempts.values() for one in seen)
    left = snapshot.hold is not None and snapshot.hold.ends and snapshot.dispatcher is None
    return not alive and (snapshot.done is not None or snapshot.stopped or left)


def _span(history: History, *, finished: bool) -> tuple[float | None, float | None]:
    """When the first attempt began, and when all was over."""
    seen = [one for attempts in history.attempts.values() for one in attempts]
    starts = [one.begin.started for one in seen if one.begin and one.begin.started]
    ends = [one.end.ended for one in seen if one.end]
    return min(starts, default=None), max(ends, default=None) if finished else None
