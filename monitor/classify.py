"""From attempts to statuses, of a session and of its run: (RunView, History, now) -> RunStatus. Pure."""

from __future__ import annotations

import re
import signal
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace

from comborun.model.attempt import CAUSES, SLURM, End, behind
from comborun.model.plan import Plan, Session
from comborun.monitor.estimate import forecast
from comborun.monitor.observe import History, RunView
from comborun.monitor.slurm import Task, latest
from comborun.monitor.snapshot import Attempt, HostUse, RunFacts, Snapshot, Waiting
from comborun.monitor.status import SMOKE, SUPERSEDED, UP, HostEvent, Link, RunStatus, SessionStatus
from comborun.monitor.waiting import advice, next_start, notify_problem
from comborun.monitor.wording import last_line, visible
from comborun.rules.endings.evidence import Evidence
from comborun.rules.endings.failures import Failure
from comborun.rules.facts import Fact, data_of
from comborun.rules.names import AFTER
from comborun.rules.results.counts import WROTE_NOTHING, Counts, RequiredEvidence, completeness, joined, where_it_ran
from comborun.rules.room.waits import ROOM, Wait, WaitFor
from comborun.rules.vocabulary import Cause, Completeness, Life, Outcome, outcome
from comborun.words import say

_TOGETHER = 2
"""least number of sessions that must vanish together to count as an event of the host, without a restart"""


def classify(view: RunView, history: History, now: float | None = None, link: Link = UP) -> RunStatus:
    """The run at `now` on the host's clock; by default at the probe.

    States, counts and estimates are those of the probe. Only durations that grow between two probes go up to `now`.
    """
    snapshot, plan = history.snapshot, view.plan
    bare = RunStatus(run=view.id, grid=plan.grid, host=view.host, directory=view.directory, sessions=(), link=link)
    if snapshot is None:
        parts = _parts(plan)
        return replace(bare, sessions=tuple(session_status(one, (), 0.0, parts[one.name]) for one in plan.current))
    moment = snapshot.now if now is None else now
    sessions = _sessions(plan, history, snapshot, moment)
    expected = forecast(sessions, _slots(plan, snapshot), snapshot.now)
    # on Slurm nodes restart one by one, and each session has a note about it
    event = None if snapshot.scheduler else _host_event(snapshot, history, sessions)
    ended_by_host = event.sessions if event else ()
    finished = _finished(snapshot, history)
    started, ended = _span(history)
    waits = {one.session: one for one in _in_force(snapshot)}
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
            one._replace(expected=expected.ends[one.name])
            if one.name in expected.ends
            else one._replace(facts=(), end_note="")
            if one.name in ended_by_host
            else one
            for one in sessions
        ),
        host_event=event,
        after=_after(history.of(AFTER), moment) if plan.after else None,
        notify_problem=notify_problem(view.id, snapshot),
    )
    if snapshot.scheduler:  # the load of a login node does not matter
        status = replace(status, use=HostUse(disk=snapshot.use.disk))
    status = replace(status, advice=advice(status))
    return replace(status, sessions=tuple(map(_cancelled, status.sessions))) if finished and status.stopped else status


def _cancelled(session: SessionStatus) -> SessionStatus:
    if session.life is not Life.QUEUED:
        return session
    return session._replace(life=Life.ENDED, outcome=Outcome.CANCELLED, expected=None)


def _sessions(plan: Plan, history: History, snapshot: Snapshot, now: float) -> tuple[SessionStatus, ...]:
    """The sessions of a plan; dropped ones only while they run."""
    waits: defaultdict[str, list[Waiting]] = defaultdict(list)
    for name, number in () if snapshot.stopped else snapshot.again:
        if history.of(name) and history.of(name)[-1].number <= number:
            waits[name].append(Waiting(name, fact=Fact(Wait.RETRY_ASKED, attempt=number)))
    for waiting in _in_force(snapshot):
        waits[waiting.session].append(waiting)
    parts, tasks, statuses = _parts(plan), latest(snapshot.tasks), []
    names = {kind: {getattr(one, kind) for one in plan.sessions} for kind in ("policy", "environment")}
    for session in plan.sessions:
        attempts = history.of(session.name)
        status = session_status(session, attempts, now, parts[session.name])
        status = status._replace(reasons=where_it_ran(status.reasons, names))
        if session.name in waits:
            status = _waiting(status, waits[session.name], plan, attempts, now)
        if task := tasks.get(session.name):
            status = with_task(status, task)
        if session.flag != "dropped" or status.alive:
            statuses.append(status)
    return tuple(statuses)


def _in_force(snapshot: Snapshot) -> tuple[Waiting, ...]:
    """The waits, while the dispatcher that reported them lives."""
    return snapshot.waiting if snapshot.dispatcher is not None else ()


def _waiting(
    status: SessionStatus, waits: Sequence[Waiting], plan: Plan, attempts: Sequence[Attempt], now: float
) -> SessionStatus:
    """Queue it again if it has ended and a wait is for its next attempt. Other waits may be outdated."""
    last = waits[-1]
    if status.life is Life.ENDED and not status.done_with and any(one.waits_for == WaitFor.RETRY for one in waits):
        status = queued_again(status, next_start(last, plan, attempts, now))
    if status.life is not Life.QUEUED:
        return status
    room = (Fact("waits_for_room", waits_for=last.waits_for),) if last.waits_for in ROOM else ()
    return status._replace(waiting=last, facts=status.facts or room)


def _parts(plan: Plan) -> dict[str, str]:
    """Session name -> its difference from other sessions of its combo."""
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
    """The start of the first attempt, and the last end."""
    seen = [one for attempts in history.attempts.values() for one in attempts]
    starts = [one.begin.started for one in seen if one.begin and one.begin.started]
    return min(starts, default=None), max((one.end.ended for one in seen if one.end), default=None)


def _host_event(snapshot: Snapshot, history: History, sessions: Sequence[SessionStatus]) -> HostEvent | None:
    """The event that ended sessions, until they start again.

    Sessions with another boot id were ended by a restart. Sessions with the present one vanished together if nothing of
    the run is alive any more, including the dispatcher: the user's processes were killed.
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
    """The last time when one of them wrote to its log, or began."""
    signs = [one.log_changed or (one.begin.started if one.begin else None) for one in gone]
    return max((sign for sign in signs if sign), default=None)


# One session


def session_status(session: Session, attempts: Sequence[Attempt], now: float, part: str = "") -> SessionStatus:
    """The status of a combo's session; `attempts` oldest first, `part` distinguishes it from others of its combo."""
    recorded = session.results.counted
    status = SessionStatus(
        name=session.name,
        policy=session.policy,
        environment=session.environment,
        unit=session.unit,
        planned=session.count,
        first=session.first,
        done=0 if recorded or session.progress.pattern else None,
        recorded=0 if recorded else None,
        successes=0 if recorded else None,
        silent=session.progress.silent,
        part=part,
    )
    if not attempts:
        return status
    counts = _counts(session, attempts)
    counted = recorded and counts.countable
    end = attempts[-1].end
    crashed = end is not None and not end.clean and any(fact.code == WROTE_NOTHING for fact in counts.facts)
    return _of_attempt(status, _judged(session, attempts, counts), now, session)._replace(
        done=_done_so_far(session, attempts, counts if counted else None),
        recorded=counts.verdicts if counted else None,
        successes=counts.successes if counted else None,
        reasons=counts.facts if recorded and not crashed else (),
        own=attempts[-1].done,
        whole=attempts[-1].whole,
    )


def _after(attempts: Sequence[Attempt], now: float) -> SessionStatus:
    status = SessionStatus(AFTER, "", "", "step", planned=0)
    return _of_attempt(status, attempts[-1], now, None) if attempts else status


def _chain(session: Session, attempts: Sequence[Attempt]) -> list[Attempt]:
    """The attempts whose records are added up: the latest one and those that it continues. After the end, the chain of
    attempts with the most records.
    """
    chains: list[list[Attempt]] = []
    for one in attempts:
        if not chains or one.begin is None or one.begin.first <= session.first:
            chains.append([])
        chains[-1].append(one)
    if attempts[-1].end is None:
        return chains[-1]
    return max(reversed(chains), key=lambda chain: sum(one.done for one in chain))


def _counts(session: Session, attempts: Sequence[Attempt]) -> Counts:
    """The counts, merged as in the report: over all attempts, or, while one runs, over those that it continues."""
    parts = attempts if attempts[-1].end else _chain(session, attempts)
    begins = [(one.begin.first, one.begin.count or session.count) if one.begin else None for one in parts]
    whole = session.first, session.count
    return joined([(span or whole, one.counts) for span, one in zip(begins, parts, strict=True)], whole)


def _done_so_far(session: Session, attempts: Sequence[Attempt], counts: Counts | None) -> int | None:
    """The number of its records; while it runs, the count from its log, unless some rows don't count. None: unknown."""
    parts = _chain(session, attempts)
    if counts and (attempts[-1].end or counts.facts):
        done = counts.records
    elif counts:
        done = sum(one.done for one in parts)
    elif session.progress.pattern or any(one.counter.done is not None for one in parts):
        done = sum(one.counter.done or 0 for one in parts)
    else:
        return None
    return min(done, session.count) if session.count else done


def _judged(session: Session, attempts: Sequence[Attempt], counts: Counts) -> Attempt:
    """The latest attempt, judged by the results of all attempts, as in the report."""
    latest = attempts[-1]
    if latest.end is None or not session.results.counted:
        return latest
    found = {one.end.completeness for one in attempts if one.end}
    if counts.records:
        found.add(Completeness.PARTIAL)
    if session.evidence.records and not session.evidence.beside_records and session.count:
        asked = RequiredEvidence(session.count, records=True, verdicts=session.unit == "episode")
        found.add(completeness(asked, counts, 0, 1, latest.end.code))
    best = next(one for one in Completeness if one in found)  # from complete to none
    failure = None if best is Completeness.COMPLETE else latest.end.failure
    if (best, counts, failure) == (latest.end.completeness, latest.end.counts, latest.end.failure):
        return latest
    judged = outcome(best, latest.end.cause)
    end = latest.end._replace(completeness=best, outcome=judged, counts=counts, failure=failure)
    return latest._replace(end=end)


def _of_attempt(status: SessionStatus, one: Attempt, now: float, session: Session | None) -> SessionStatus:
    life, ended = _life(one)
    begin, end, started = one.begin, one.end, one.started
    idle = one.log_changed or started
    until = (end.ended or None) if end else now if one.alive else None
    return status._replace(
        life=life,
        outcome=ended,
        attempt=one.number,
        gpus=tuple(int(one) for one in begin.gpus.split(",") if one.isdecimal()) if begin else (),
        window=begin.address if begin else "",
        node=begin.host if begin and begin.multiplexer == SLURM else "",
        idle=max(0.0, now - idle) if one.alive and idle else None,
        last_line=last_line(one.tail),
        started=started,
        seconds=None if until is None else max(0.0, until - started) if started else 0.0,
        progressed=one.progressed,
        end_note=note(end, session) if end else "",
        facts=() if end else (_lost(one),) if ended else tuple(_problems(one, now)),
        stalled=one.stalled if life is Life.STALLED else None,
        failure=end.failure if end else Failure.LOST if ended else None,
        peak_memory=end.peak_memory if end else None,
        ending=end.facts if end else (),
    )


def _life(one: Attempt) -> tuple[Life, Outcome | None]:
    """The state, from the word that the host reports (docs/architecture.md has a table)."""
    if one.end:
        return Life.ENDED, one.end.outcome
    if one.life == Life.RUNNING and one.stalled is not None:
        return Life.STALLED, None
    living = one.life in (Life.STARTING, Life.RUNNING, Life.ORPHANED)
    return (Life(one.life), None) if living else (Life.ENDED, Outcome.LOST)


def _problems(one: Attempt, now: float) -> Iterator[Fact]:
    """Problems of a running attempt."""
    if not one.alive:
        return
    if one.verdict or one.ending:
        yield Fact("is_being_ended", ending=data_of(one.verdict), note=visible(one.ending))
    pairs = [pair.split(":") for pair in one.wrong_gpu.split(",") if re.fullmatch(r"[0-9]{1,4}:[0-9]{1,9}", pair)]
    if pairs:  # its memory lies on another GPU than it was granted (host/admission/leasebook.py)
        held = {str(gpu): int(mib) for gpu, mib in sorted(pairs, key=lambda pair: int(pair[0]))}
        yield Fact("memory_on_wrong_gpu", held_mib=held, granted=one.begin.gpus if one.begin else "")
    if one.stalled is not None:
        yield Fact("no_progress_for", seconds=now - one.stalled)


def _lost(one: Attempt) -> Fact:
    if one.begin and one.begin.multiplexer == SLURM:
        return Fact("task_is_gone")
    return Fact("nobody_saw_end" if one.begin else "supervisor_died_early")


def queued_again(status: SessionStatus, why: Fact) -> SessionStatus:
    fresh = status._replace(life=Life.QUEUED, outcome=None, gpus=(), window="", idle=None)
    return fresh._replace(facts=(why,), end_note="")


def with_task(status: SessionStatus, task: Task) -> SessionStatus:
    """A session with its Slurm task. Where they differ, the records count."""
    if status.alive:
        return status._replace(task=task, node=status.node or task.node)
    if status.done_with or task.attempt <= status.attempt:  # that task will end, or is a leftover
        return status
    if task.begun:
        fresh = status._replace(life=Life.STARTING, outcome=None, facts=(), end_note="", last_line="")
        return fresh._replace(attempt=task.attempt, started=None, node=task.node, task=task)
    if status.attempt:
        status = queued_again(status, Fact("attempt_waits", attempt=task.attempt, task=task.fact.as_data()))
        return status._replace(node="", task=task)
    return status._replace(task=task, last_line=say(task.fact))


def note(end: End, session: Session | None) -> str:
    """Details beyond the outcome; empty for a clean success. `session` is None for `after`."""
    said = visible(end.note)
    if end.completeness is Completeness.COMPLETE:
        how = "" if end.clean else f"{ended_by(end)} after complete results"
        wrong = "; ".join(say(one) for one in end.facts if one.code == Evidence.WRONG_GPU)
        return "; ".join(filter(None, (how, visible(wrong), visible(end.remark))))
    if end.cause in (Cause.STOPPED, Cause.NOT_NEEDED, Cause.LAUNCH_FAILED):
        return said or ended_by(end)
    missing = end.clean and end.failure in (None, Failure.NO_RESULT)
    return ": ".join(filter(None, (_missing(end, session) if missing else ended_by(end), said)))


def ended_by(end: End) -> str:
    """What ended the command: `exit code 3`, `stalled`, `out of GPU memory (killed)`."""
    if known := CAUSES.get(end.cause):
        return known
    seen = "ended for an unknown reason"
    if end.signal:
        word = signal.strsignal(end.signal) if 0 < end.signal < signal.NSIG else ""
        seen = (word or f"signal {end.signal}").lower()
    elif end.cause is Cause.EXITED and end.code is not None:
        seen = f"exit code {end.code}"
    found = behind(end)
    return f"{found} ({seen})" if found else seen


def _missing(end: End, session: Session | None) -> str:
    """Says why exit code 0 is not a success."""
    other = session.evidence.beside_records if session else ""
    if session and other and (not session.results.has_records or end.records >= session.count):
        return f"exit code 0, without {other}"
    if session is None or not end.records:
        return "exit code 0, but no results"
    if end.records >= session.count:
        return "exit code 0, but no verdict in any of its records"
    return f"exit code 0 after {end.records} of {session.count} {session.unit}s"
