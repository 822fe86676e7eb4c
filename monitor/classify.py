"""From attempts to statuses, of a session and of its run: (RunView, History) -> RunStatus. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import fields, replace

from comborun.model.plan import Plan
from comborun.monitor.estimate import forecast
from comborun.monitor.observe import History, RunView
from comborun.monitor.snapshot import Attempt, HostUse, RunFacts, Snapshot, Waiting
from comborun.monitor.states import Case, after_status, beside_numbers, session_status
from comborun.monitor.status import ELSEWHERE, SMOKE, SUPERSEDED, UP, Link, Outage, RunStatus, SessionStatus
from comborun.monitor.waiting import advice, notify_problem
from comborun.rules.durations import time_run
from comborun.rules.facts import Fact
from comborun.rules.names import AFTER
from comborun.rules.results.counts import where_it_ran
from comborun.rules.room.waits import Wait
from comborun.rules.vocabulary import Outcome

_TOGETHER = 2
"""least number of sessions that must vanish together to count as an event of the host, without a restart"""


def classify(view: RunView, history: History, link: Link = UP) -> RunStatus:
    """The run at the probe."""
    snapshot, plan = history.snapshot, view.plan
    bare = RunStatus(run=view.id, grid=plan.grid, host=view.host, directory=view.directory, sessions=(), link=link)
    if snapshot is None:
        parts = _parts(plan)
        return replace(bare, sessions=tuple(session_status(Case(plan, one), parts[one.name]) for one in plan.current))
    sessions = _sessions(plan, history, snapshot)
    expected = forecast(sessions, _slots(plan, snapshot), snapshot.now)
    # on Slurm nodes restart one by one, and each session has a note about it
    outage = None if snapshot.scheduler or snapshot.elsewhere else _outage(snapshot, history, sessions)
    ended_by_host = outage.sessions if outage else ()
    finished = _finished(snapshot, history)
    spans = _spans(history, snapshot.now)
    waits = {one.session: one for one in _in_force(snapshot)}
    status = replace(
        bare,
        **{one.name: getattr(snapshot, one.name) for one in fields(RunFacts)},
        now=snapshot.now,
        started=min((start for start, _ in spans), default=None),
        seconds=time_run(spans),
        expected=None if finished else expected.run,
        finished=finished,
        server_waits={one.name: waits[one.name] for one in snapshot.servers if one.name in waits},
        sessions=tuple(
            one._replace(expected=expected.ends[one.name])
            if one.name in expected.ends
            else one._replace(facts=())
            if one.name in ended_by_host
            else one
            for one in sessions
        ),
        outage=outage,
        after=after_status(Case(plan, None, history.of(AFTER), snapshot.now)) if plan.after else None,
        notify_problem=notify_problem(view.id, snapshot),
    )
    if part := snapshot.part:
        planned = sum(not one.flag for one in plan.whole.sessions)
        how = {"run": view.id, "verb": "status", "sessions": len(status.proper), "all": planned}
        status = replace(status, part=Fact(part.code, **{**part.fields, **how}))
    if snapshot.scheduler:  # the load of a login node does not matter
        status = replace(status, use=HostUse(disk=snapshot.use.disk))
    return replace(status, advice=advice(status))


def _sessions(plan: Plan, history: History, snapshot: Snapshot) -> tuple[SessionStatus, ...]:
    """The sessions of a plan; dropped ones only while they run."""
    waits: defaultdict[str, list[Waiting]] = defaultdict(list)
    for name, number in () if snapshot.stopped else snapshot.again:
        if history.of(name) and history.of(name)[-1].number <= number:
            waits[name].append(Waiting(name, fact=Fact(Wait.RETRY_ASKED, attempt=number)))
    for waiting in _in_force(snapshot):
        waits[waiting.session].append(waiting)
    tasks = {task.session: task for task in sorted(snapshot.tasks, key=lambda task: task.attempt)}
    parts, stopped = _parts(plan), snapshot.stopped and _finished(snapshot, history)
    names = {kind: {getattr(one, kind) for one in plan.sessions} for kind in ("policy", "environment")}
    statuses = []
    for session in plan.sessions:
        name = session.name
        known = history.of(name), snapshot.now, tuple(waits[name]), tasks.get(name)
        case = Case(plan, session, *known, stopped, held=bool(snapshot.hold))
        status = session_status(case, parts[name])
        if session.here or status.alive:
            statuses.append(status._replace(reasons=where_it_ran(status.reasons, names)))
    return beside_numbers(statuses)


def _in_force(snapshot: Snapshot) -> tuple[Waiting, ...]:
    """The waits, while the dispatcher that reported them lives."""
    return snapshot.waiting if snapshot.dispatcher is not None else ()


def _parts(plan: Plan) -> dict[str, str]:
    """Session name -> its difference from other sessions of its combo."""
    combos = Counter((one.policy, one.environment) for one in plan.sessions if not one.flag)
    words = {"smoke": SMOKE, "dropped": SUPERSEDED, "elsewhere": ELSEWHERE}
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


def _spans(history: History, now: float) -> list[tuple[float, float]]:
    """From when to when each attempt ran: one that is alive until now, one that nobody saw end until its last sign."""
    seen = [one for attempts in history.attempts.values() for one in attempts]
    return [(one.started, _until(one, now)) for one in seen if one.started]


def _until(one: Attempt, now: float) -> float:
    if one.end:
        return one.end.ended
    return now if one.alive else one.last_sign or now


def _outage(snapshot: Snapshot, history: History, sessions: Sequence[SessionStatus]) -> Outage | None:
    """The event that ended sessions, until they start again.

    Sessions with another boot id were ended by a restart. Sessions with the present one vanished together if nothing of
    the run is alive any more, including the dispatcher: the user's processes were killed.
    """
    lost = [history.of(one.name)[-1] for one in sessions if one.outcome is Outcome.LOST]
    if any(_of_another_boot(one, snapshot.boot) for one in lost):
        gone = [one for one in lost if one.begin is None or _of_another_boot(one, snapshot.boot)]
        return Outage("restarted", _last_sign(gone), tuple(one.session for one in gone))
    gone = [one for one in lost if one.end is None]
    alive = snapshot.dispatcher is not None or any(one.alive for one in sessions)
    if alive or len(gone) < _TOGETHER:
        return None
    return Outage("vanished", _last_sign(gone), tuple(one.session for one in gone))


def _of_another_boot(one: Attempt, boot: str) -> bool:
    return bool(boot and one.begin and one.begin.boot and one.begin.boot != boot)


def _last_sign(gone: Sequence[Attempt]) -> float | None:
    """The last time when one of them wrote to its log, or began."""
    signs = [one.log_changed or (one.begin.started if one.begin else None) for one in gone]
    return max((sign for sign in signs if sign), default=None)
