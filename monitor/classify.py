"""From records to the status of a run: (RunView, History, now) -> RunStatus, pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import fields, replace

from comborun.monitor.estimate import forecast
from comborun.monitor.observe import History, RunView
from comborun.monitor.session import after_status, queued_again, session_status, with_task, without_task
from comborun.monitor.slurm import latest
from comborun.monitor.snapshot import Attempt, HostUse, RunFacts, Snapshot, Waiting
from comborun.monitor.status import SMOKE, SUPERSEDED, UP, HostEvent, Link, RunStatus, SessionStatus
from comborun.monitor.waiting import AGAIN, ROOM, again, hint, notify_problem, room
from comborun.plan import Plan
from comborun.rules.names import AFTER
from comborun.rules.words import Life, Outcome

_TOGETHER = 2
"""sessions that must vanish together to be an event of the host, without a restart"""


def classify(view: RunView, history: History, now: float | None = None, link: Link = UP) -> RunStatus:
    """The run at `now` (the host's clock; the probe's moment when left out).

    States, counts and estimates are the probe's; only what grows by itself between two probes follows `now`.
    """
    snapshot, plan = history.snapshot, view.plan
    bare = RunStatus(run=view.id, grid=plan.grid, host=view.host, directory=view.directory, sessions=(), link=link)
    if snapshot is None:
        parts = _parts(plan)
        planned = [one for one in plan.sessions if one.flag != "dropped"]
        return replace(bare, sessions=tuple(session_status(one, (), 0.0, parts[one.name]) for one in planned))
    moment = snapshot.now if now is None else now
    sessions = _sessions(plan, history, snapshot, moment)
    expected = forecast(sessions, _slots(plan, snapshot), snapshot.now)
    # on Slurm nodes restart one by one, and each session tells of its own
    event = None if snapshot.scheduler else _host_event(snapshot, history, sessions)
    ended_by_host = event.sessions if event else ()
    finished = _finished(snapshot, history)
    started, ended = _span(history)
    waits = {one.session: one.detail for one in _in_force(snapshot)}
    status = replace(
        bare,
        **{one.name: getattr(snapshot, one.name) for one in fields(RunFacts)},
        now=moment,
        started=started,
        seconds=None if started is None else max(0.0, (ended if finished and ended else moment) - started),
        expected=None if finished else expected.run,
        finished=finished,
        server_waits={one.name: waits[one.name] for one in snapshot.servers if one.name in waits},
        sessions=tuple(
            replace(one, expected=expected.ends.get(one.name), note="" if one.name in ended_by_host else one.note)
            for one in sessions
        ),
        host_event=event,
        after=after_status(history.of(AFTER), moment) if plan.after else None,
        notify_problem=notify_problem(view.id, snapshot),
    )
    if snapshot.scheduler:  # the load of a login node does not matter
        status = replace(status, use=HostUse(disk=snapshot.use.disk))
    status = replace(status, hint=hint(status))
    return replace(status, sessions=tuple(map(_cancelled, status.sessions))) if finished and status.stopped else status


def _cancelled(session: SessionStatus) -> SessionStatus:
    """A session that a stopped run did not start: cancelled, as if it had been stopped by its name."""
    if session.life is not Life.QUEUED:
        return session
    return replace(session, life=Life.ENDED, outcome=Outcome.CANCELLED, expected=None)


def _sessions(plan: Plan, history: History, snapshot: Snapshot, now: float) -> tuple[SessionStatus, ...]:
    """The sessions of a plan; of what was amended away only what lives."""
    waits: defaultdict[str, list[Waiting]] = defaultdict(list)
    for waiting in _in_force(snapshot):
        waits[waiting.session].append(waiting)
    parts, tasks, statuses = _parts(plan), latest(snapshot.tasks), []
    for session in plan.sessions:
        attempts = history.of(session.name)
        status = session_status(session, attempts, now, parts[session.name])
        if session.name in waits:
            status = _waiting(status, waits[session.name], plan, attempts, now)
        if task := tasks.get(session.name):
            status = with_task(status, task)
        elif snapshot.scheduler:
            status = without_task(status, snapshot.scheduler)
        if session.flag != "dropped" or status.alive:
            statuses.append(status)
    return tuple(statuses)


def _in_force(snapshot: Snapshot) -> tuple[Waiting, ...]:
    """The waits, while the dispatcher that reported them lives."""
    return snapshot.waiting if snapshot.dispatcher is not None else ()


def _waiting(
    status: SessionStatus, waits: Sequence[Waiting], plan: Plan, attempts: Sequence[Attempt], now: float
) -> SessionStatus:
    """Queue it again if it has ended and a wait is for its next attempt. Other waits may be outdated: it was quick."""
    last = waits[-1]
    if status.life is Life.ENDED and not status.done_with and any(one.reason in AGAIN for one in waits):
        status = queued_again(status, again(last, plan, attempts, now))
    if status.life is not Life.QUEUED:
        return status
    return replace(status, waiting=last, note=status.note or (room(last) if last.reason in ROOM else ""))


def _parts(plan: Plan) -> dict[str, str]:
    """Session name -> what tells it from others of its combo."""
    combos = Counter((one.policy, one.environment) for one in plan.sessions if not one.flag)
    words = {"smoke": SMOKE, "dropped": SUPERSEDED}
    return {
        one.name: words.get(one.flag)
        or (f"{one.first}–{one.first + one.count - 1}" if combos[one.policy, one.environment] > 1 else "")
        for one in plan.sessions
    }


def _slots(plan: Plan, snapshot: Snapshot) -> int | None:
    """How many sessions may run at once; None: nothing starts, or Slurm decides."""
    if snapshot.dispatcher is None or snapshot.stopped or snapshot.hold or snapshot.scheduler:
        return None
    return plan.limits.parallel if snapshot.slots is None else snapshot.slots


def _finished(snapshot: Snapshot, history: History) -> bool:
    alive = any(one.alive for seen in history.attempts.values() for one in seen)
    left = snapshot.hold is not None and snapshot.hold.ends and snapshot.dispatcher is None
    return not alive and (snapshot.done or snapshot.stopped or left)


def _span(history: History) -> tuple[float | None, float | None]:
    """When the first attempt began, and when the last one that has ended did."""
    seen = [one for attempts in history.attempts.values() for one in attempts]
    starts = [one.begin.started for one in seen if one.begin and one.begin.started]
    return min(starts, default=None), max((one.end.ended for one in seen if one.end), default=None)


def _host_event(snapshot: Snapshot, history: History, sessions: Sequence[SessionStatus]) -> HostEvent | None:
    """The event that ended sessions, until they are started again.

    Sessions that began under another boot id were ended by the restart. Those that vanished under the same one did so
    together when nothing of the run lives any more, the dispatcher included: the user's processes were killed.
    """
    lost = [history.of(one.name)[-1] for one in sessions if one.outcome is Outcome.LOST]
    if any(_of_another_boot(one, snapshot.boot) for one in lost):
        gone = [one for one in lost if one.begin is None or _of_another_boot(one, snapshot.boot)]
        return HostEvent("restarted", _last_sign(gone), tuple(one.session for one in gone))
    gone = [one for one in lost if one.end is None]
    alive = snapshot.dispatcher is not None or any(one.alive for one in sessions)
    if alive or len(gone) < _TOGETHER:
        return None
    return HostEvent("vanished", _last_sign(gone), tuple(one.session for one in gone))


def _of_another_boot(one: Attempt, boot: str) -> bool:
    return bool(boot and one.begin and one.begin.boot and one.begin.boot != boot)


def _last_sign(gone: Sequence[Attempt]) -> float | None:
    """When one of them last wrote to its log, or began."""
    signs = [one.log_changed or (one.begin.started if one.begin else None) for one in gone]
    return max((sign for sign in signs if sign), default=None)
