"""Why a run or a session does not start, as facts, with the command that resumes it; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from comborun.generate.slurm_jobs import kind_of
from comborun.model.plan import Plan, Session
from comborun.model.resources import NO_SLURM
from comborun.monitor.observe import History, RunView
from comborun.monitor.slurm_seen import Scheduler
from comborun.monitor.snapshot import (
    Attempt,
    ClosedEnvironment,
    Hold,
    Quarantine,
    ServerStatus,
    Snapshot,
    Waiting,
)
from comborun.monitor.status import RunStatus, SessionStatus
from comborun.rules.endings.failures import Failure
from comborun.rules.endings.retry import Budgets, Spent, spent
from comborun.rules.facts import Fact
from comborun.rules.holds import DRAINING
from comborun.rules.room.waits import ROOM, WaitFor
from comborun.rules.vocabulary import Cause, Life, Outcome

_TIMED_OUT = (124, 137)
"""exit codes of timeout"""
_MOST_NAMED = 4
_CUT = (Outcome.CANCELLED, Outcome.LOST)


def budget(plan: Plan, attempts: Sequence[Attempt], failure: Failure) -> Spent:
    """Starts made and left after `failure`, the class of the latest attempt, counted from the last stop. A user's
    request for another start renews both; then more starts may be left.
    """
    times = {rule.failure.value: rule.times for rule in plan.retry}
    times.setdefault(Failure.LOST.value, plan.limits.attempts - 1)
    ends = [one.end for one in attempts if one.end]
    tried = [(end.cause.value, end.failure.value if end.failure else "") for end in ends]
    return spent(Budgets(plan.limits.attempts, times, {}), tried, failure.value)


def next_start(waiting: Waiting, plan: Plan, attempts: Sequence[Attempt], now: float, *, held: bool) -> Fact:
    """When a session starts again, and why its last attempt failed, or who asked for another one."""
    end = attempts[-1].end if attempts else None
    fields: dict[str, object] = {"waits_for": waiting.waits_for}
    if held:
        fields["held"] = True
    elif waiting.until is not None and waiting.until > now:
        fields["in_s"] = waiting.until - now
    if end is None or end.failure is None:
        return Fact("starts_again", **fields, **waiting.because)
    left, number = budget(plan, attempts, end.failure).left, attempts[-1].number
    fields |= {"failure": str(end.failure), "attempt": number + 1}
    return Fact("starts_again", **fields, of=number + left if left else None)


# The whole run


def advice(status: RunStatus) -> Fact | None:
    """Why nothing new starts although work is left, with the command that resumes the run."""
    run = {"run": status.run}
    if status.elsewhere:
        return status.elsewhere
    if status.hold and not status.stopped:
        return _of_hold(status, status.hold)
    if status.finished:
        cut = any(one.life is Life.QUEUED or one.outcome in _CUT for one in status.proper)
        return Fact("run_was_stopped", **run, **_lacking(status)) if status.stopped and cut else None
    if status.disk_full and status.dispatcher is not None:
        return Fact("run_disk_full", **run)
    if status.stopped:  # it is being stopped, or the stop was interrupted
        return Fact("run_is_being_stopped", **run)
    if status.dispatcher is None:
        return Fact(_gone(status), **run)
    if status.dispatcher_held:
        return Fact("dispatcher_is_held", **run, pid=status.dispatcher)
    if held_back := [task for task in status.tasks if task.held]:
        arrays = sorted({task.array for task in held_back} - {""})  # one release is enough for an array
        host = "" if status.host == "local" else status.host
        return Fact("slurm_holds_tasks", **run, tasks=len(held_back), arrays=arrays, host=host)
    if status.quarantine:
        return Fact("quarantine_advice", **run, quarantine=_quarantined(status.quarantine))
    return Fact("quarantine_advice", **run, quarantine=_closed(status.closed)) if status.closed else None


def _gone(status: RunStatus) -> str:
    """The code for a run whose dispatcher is gone."""
    if status.scheduler:
        return "slurm_has_no_job"
    if all(one.life is Life.ENDED for one in status.sessions):
        return "dispatcher_gone_at_end"
    return "dispatcher_gone" if any(one.attempt for one in status.sessions) else "nothing_has_started"


def _of_hold(status: RunStatus, hold: Hold) -> Fact | None:
    if all(one.done_with for one in status.proper):
        return None
    going = hold.kind == DRAINING and not status.finished
    lacking = _lacking(status) if status.finished else {}
    return Fact("run_held", run=status.run, hold=hold.kind, **hold.because, sessions_continue=going, **lacking)


def _lacking(status: RunStatus) -> dict[str, object]:
    lacking = [one for one in status.proper if not one.done_with]
    return {"lack": len(lacking), "never": sum(not one.attempt for one in lacking), "sessions": len(status.proper)}


def notify_problem(run: str, snapshot: Snapshot) -> Fact | None:
    """Says that notices fail; None if they work."""
    if snapshot.notice_failed is None:
        return None
    code, at = snapshot.notice_failed
    return Fact("notices_fail", run=run, exit_code=code, timed_out=code in _TIMED_OUT, ago_s=snapshot.now - at)


def held(hold: Hold) -> Fact:
    return Fact("held", hold=hold.kind, **hold.because, sessions_continue=hold.kind == DRAINING)


def _quarantined(quarantine: Sequence[Quarantine]) -> dict[str, object]:
    gpus, failures = [one.gpu for one in quarantine], [one.failure for one in quarantine]
    return Fact("gpus_in_quarantine", gpus=gpus, failures=failures).as_data()


def _closed(closed: Sequence[ClosedEnvironment]) -> dict[str, object]:
    environments, failures = [one.environment for one in closed], [one.failure for one in closed]
    return Fact("environments_closed", environments=environments, failures=failures).as_data()


def blocked(status: RunStatus) -> Fact | None:
    """Why no session can start; None if sessions can."""
    gone = status.dispatcher is None and not status.finished
    if not (status.stopped or status.hold or gone or status.disk_full):
        return None
    return status.advice or Fact("nothing_starts")


# One queued session


class Subject(NamedTuple):
    view: RunView
    history: History
    status: RunStatus
    session: Session
    seen: SessionStatus

    @property
    def now(self) -> float:
        return self.status.now or 0.0

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        return self.history.of(self.session.name)

    @property
    def slots(self) -> int:
        return self.view.plan.limits.parallel if self.status.slots is None else self.status.slots

    @property
    def full(self) -> bool:
        return len(self.status.busy) >= self.slots

    def at(self, moment: float) -> dict[str, object]:
        """The fields for a time of day and the seconds until then."""
        return {"at": moment, "in_s": moment - (self.status.now or moment)}


def queued(subject: Subject) -> list[Fact]:
    """Why a session has not started, the most important first."""
    status, stopping = subject.status, blocked(subject.status)
    facts = [stopping] if stopping else []
    if status.hold and not status.stopped:
        since = subject.at(status.hold.since) if status.hold.since is not None else {}
        facts = [held(status.hold), Fact("nothing_starts_until_resume", run=status.run, **since)]
    facts += _waits(subject)
    if status.scheduler:
        return [*facts, *_slurm(subject, status.scheduler)]
    if subject.seen.waiting and subject.seen.waiting.in_process:
        return facts
    return [*facts, *_gpus(subject), *_turn(subject, nothing_starts=stopping is not None)]


def _waits(subject: Subject) -> Iterator[Fact]:
    waiting, status = subject.seen.waiting, subject.status
    if waiting is None:
        return
    if waiting.waits_for == WaitFor.RETRY:
        yield from _again(subject, waiting)
        return
    if waiting.waits_for == WaitFor.SMOKE:
        yield Fact("waits_for_smoke_test", counts=status.smoke())
    elif waiting.waits_for == WaitFor.SERVER:
        kind = waiting.fact.text("server") if waiting.fact else waiting.detail
        yield from _server(status, kind)
    elif waiting.fact and waiting.in_process:
        yield waiting.fact
    else:
        yield Fact("waits", waits_for=waiting.waits_for, **waiting.because)
    if waiting.until is not None and waiting.until > subject.now:
        yield Fact("is_tried_at", **subject.at(waiting.until))


def _again(subject: Subject, waiting: Waiting) -> Iterator[Fact]:
    """How the last attempt ended, and when the next one starts."""
    seen, end = subject.seen, subject.attempts[-1].end if subject.attempts else None
    stopped = bool(end and end.cause is Cause.STOPPED)
    start = next_start(waiting, subject.view.plan, subject.attempts, subject.now, held=bool(subject.status.hold))
    yield Fact("waits_for_next_start", attempt=seen.attempt, stopped=stopped, start=start.as_data())
    if waiting.fact and waiting.fact.code == "retry_asked" and "failure" in start.fields:
        yield waiting.fact


def _server(status: RunStatus, kind: str) -> Iterator[Fact]:
    of_kind = [one for one in status.servers if one.name == kind or one.name.startswith(f"{kind}-gpu")]
    for one in of_kind or [ServerStatus(kind, "queued")]:
        why = status.server_waits[one.name].because if one.name in status.server_waits else {}
        yield Fact("waits_for_server", server=one.name, state=one.fact(status.now).as_data(), **why)


def _slurm(subject: Subject, scheduler: Scheduler) -> Iterator[Fact]:
    """Slurm's information about its task, and its age."""
    task, status = subject.seen.task, subject.status
    if not scheduler.answered:
        yield scheduler.silence(subject.now)
    if task is None:
        if scheduler.at is not None and status.dispatcher is not None and not status.stopped:
            yield Fact("slurm_has_no_task")
        return
    yield Fact("task_is_queued", job=task.job, task=task.fact.as_data())
    if task.start is not None:
        yield Fact("slurm_expects_start", **subject.at(task.start))
    yield Fact("task_asks_for", asks=str(kind_of(subject.session, subject.view.plan.slurm or NO_SLURM)))


def _gpus(subject: Subject) -> Iterator[Fact]:
    """The GPUs that it needs. Their holders are named only if a slot is free, so that they may be the reason."""
    wants, plan, status = subject.session.gpus, subject.view.plan, subject.status
    if not wants:
        return
    memory, most = subject.session.request.gpu_memory, plan.limits.per_gpu
    yield Fact("needs_gpus", gpus=wants, of=list(plan.gpus), memory_mib=memory, per_gpu=most)
    if status.quarantine:
        yield Fact.of(_quarantined(status.quarantine)) or Fact("gpus_in_quarantine")
    lacks_room = subject.seen.waiting is not None and subject.seen.waiting.waits_for in ROOM
    for gpu in plan.gpus if lacks_room or not subject.full else ():
        servers = [one.name for one in status.servers if one.alive and gpu in one.gpus]
        sessions = [one.name for one in status.busy if gpu in one.gpus]
        if servers or sessions:
            count = len(servers) + len(sessions)
            yield Fact("gpu_is_held", gpu=gpu, servers=servers, sessions=sessions[:_MOST_NAMED], count=count)


def _turn(subject: Subject, *, nothing_starts: bool) -> Iterator[Fact]:
    status, seen = subject.status, subject.seen
    place = [one.name for one in status.sessions].index(seen.name)
    before = [one.name for one in status.sessions[:place] if one.life is Life.QUEUED]
    if before:
        yield Fact("sessions_before_it", count=len(before), sessions=before[:_MOST_NAMED])
    yield Fact("slots_busy", busy=len(status.busy), slots=subject.slots)
    if nothing_starts:
        return
    ends = [(one.expected.likeliest, one.name) for one in status.busy if one.expected]
    if subject.full and ends:
        moment, who = min(ends)
        yield Fact("next_to_end", session=who, **subject.at(moment))
    elif subject.full:
        yield Fact("next_end_unknown")
    elif not before and seen.waiting is None:
        yield Fact("its_turn")
    if seen.expected:
        yield Fact("expected_to_end", **subject.at(seen.expected.likeliest))
