"""Why a run or a session does not start, in words, and the command that resumes it; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from comborun.generate.slurm_jobs import kind_of
from comborun.model.plan import Plan, Session
from comborun.model.resources import NO_SLURM
from comborun.monitor.observe import History, RunView
from comborun.monitor.slurm import Scheduler, summary
from comborun.monitor.snapshot import DRAINING, Attempt, Hold, Quarantine, Server, Snapshot, Waiting
from comborun.monitor.status import RunStatus, SessionStatus
from comborun.monitor.wording import brief, clock, duration, listed, visible
from comborun.rules.endings.failures import Failure
from comborun.rules.endings.retry import Budgets, Spent, spent
from comborun.rules.vocabulary import Cause, Life, Outcome
from comborun.text import first_of, several

RETRY = "retry"
SMOKE_TEST, STAGGER, WARM_UP, SERVER = "smoke", "stagger", "warm_up", "server"
ROOM = {
    "gpu": "a GPU",
    "gpu_memory": "GPU memory",
    "cpus": "cores",
    "host_memory": "memory",
    "token": "an exclusive token",
    "cap": "a place under a per-GPU or per-host limit",
    "unknown": "a memory measurement",
    "processes": "room",
    "lease": "access to the lease folder",
}
"""waits for a resource of the host"""
_TIMED_OUT = (124, 137)
"""exit codes of timeout"""
_MOST_NAMED = 4


def budget(plan: Plan, attempts: Sequence[Attempt], failure: Failure) -> Spent:
    """Starts made and left after `failure`, the class of the latest attempt, counted from the last stop.

    A user's request for another start renews both, but no probe reports it: then more starts may be left.
    """
    times = {rule.failure.value: rule.times for rule in plan.retry}
    times.setdefault(Failure.LOST.value, plan.limits.attempts - 1)
    ends = [one.end for one in attempts if one.end]
    tried = [(end.cause.value, end.failure.value if end.failure else "") for end in ends]
    return spent(Budgets(plan.limits.attempts, times, {}), tried, failure.value)


def room_words(waiting: Waiting) -> str:
    """`waits for GPU memory`."""
    return f"waits for {ROOM[waiting.reason]}"


def retry_words(waiting: Waiting, plan: Plan, attempts: Sequence[Attempt], now: float) -> str:
    """`again in 40 s: out of GPU memory, attempt 2 of 3`."""
    end = attempts[-1].end if attempts else None
    if waiting.until is not None and waiting.until > now:
        said = f"again in {brief(waiting.until - now)}"
    elif waiting.reason in ROOM:
        said = f"again as soon as there is {ROOM[waiting.reason]}"
    else:
        said = "again as soon as a slot is free"
    if end is None or end.failure is None:
        return f"{said}: {visible(waiting.detail)}" if waiting.detail else said
    left, number = budget(plan, attempts, end.failure).left, attempts[-1].number
    return f"{said}: {end.failure.row.words}, attempt {number + 1}{f' of {number + left}' if left else ''}"


# The whole run


def hint(status: RunStatus) -> str:
    """A sentence with the command that resumes the run, if nothing new starts although work is left."""
    resume = f"run `combo resume {status.run}` to continue"
    if status.hold and not status.stopped:
        return _of_hold(status, status.hold, resume)
    if status.finished:
        cut = any(one.life is Life.QUEUED or one.outcome is Outcome.CANCELLED for one in status.proper)
        return f"stopped, {_lacking(status)}: {resume}" if status.stopped and cut else ""
    if _full_disk(status) and status.dispatcher is not None:
        return "the disk of the run is full: free some space, and the run continues by itself"
    if status.stopped:  # it is being stopped, or the stop was interrupted
        return f"stopped: nothing new starts; `combo stop {status.run}` ends what still runs"
    if status.dispatcher is None:
        return _gone(status, resume)
    if held_back := [task for task in status.tasks if task.held]:
        arrays = " ".join(sorted({task.array for task in held_back} - {""}))  # one release is enough for an array
        where = "" if status.host == "local" else f" on {status.host}"
        count = several(len(held_back), "task")
        return f"Slurm holds {count}: run `scontrol release {arrays or 'JOB'}`{where} to continue"
    return f"{quarantined(status.quarantine)}: {resume}" if status.quarantine else ""


def _gone(status: RunStatus, resume: str) -> str:
    if status.scheduler:
        return f"Slurm has none of its jobs any more, and nothing new starts: {resume}"
    if all(one.life is Life.ENDED for one in status.sessions):
        return f"the dispatcher is gone, so the run does not end: run `combo resume {status.run}` to end it"
    if any(one.attempt for one in status.sessions):
        return f"the dispatcher is gone, nothing new starts: {resume}"
    return "nothing has started yet; if the launch was interrupted, the same `combo launch` again does the rest"


def _of_hold(status: RunStatus, hold: Hold, resume: str) -> str:
    """The command comes first, because the reason may be long and cut off."""
    if all(one.done_with for one in status.proper):
        return ""
    going = "; running sessions continue to their end" if hold.kind == DRAINING and not status.finished else ""
    rest = f", {_lacking(status)}" if status.finished else ""
    why = f": {hold.why}" if hold.why else ""
    return f"{hold.kind or 'held'}: {resume}{going}; nothing new starts{rest}{why}"


def _lacking(status: RunStatus) -> str:
    """`2 of 6 sessions without success, 3 never started`: a session that has not run has not failed."""
    lacking, every = [one for one in status.proper if not one.done_with], several(len(status.proper), "session")
    never = sum(not one.attempt for one in lacking)
    tried = len(lacking) - never
    if not tried:
        return f"{never} of {every} never started"
    return f"{tried} of {every} without success{f', {never} never started' if never else ''}"


def _full_disk(status: RunStatus) -> bool:
    return status.use.disk is not None and not status.use.disk.free


def notify_problem(run: str, snapshot: Snapshot) -> str:
    """Says that notices fail, with the command that tries them; empty if they work."""
    if snapshot.notice_failed is None:
        return ""
    code, at = snapshot.notice_failed
    how = "took too long" if code in _TIMED_OUT else f"ended with code {code}"
    ago = f"{brief(snapshot.now - at)} ago"
    return f"the notify command {how} {ago}: notices are not delivered; `combo notify {run}` tests it"


def held(hold: Hold) -> str:
    """`halted: the same failure three times in a row`."""
    going = " (running sessions continue to their end)" if hold.kind == DRAINING else ""
    return f"{hold.kind or 'held'}{going}" + (f": {hold.why}" if hold.why else "")


def quarantined(quarantine: Sequence[Quarantine]) -> str:
    """`GPU 1 gets no more sessions (GPU fault again and again)`."""
    words = {str(failure): failure.row.words for failure in Failure}
    gpus = ", ".join(f"GPU {one.gpu}" for one in quarantine)
    why = ", ".join(dict.fromkeys(words.get(one.failure, one.failure) for one in quarantine))
    return f"{gpus} {'get' if len(quarantine) > 1 else 'gets'} no more sessions ({why} again and again)"


def blocked(status: RunStatus) -> str:
    """Why no session can start; empty if sessions can."""
    gone = status.dispatcher is None and not status.finished
    if not (status.stopped or status.hold or gone or _full_disk(status)):
        return ""
    return status.hint or "nothing new starts until the run is resumed"


# One queued session


class Question(NamedTuple):
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

    def time(self, moment: float) -> str:
        """`10:34 (in 4 min)`."""
        now = self.status.now or moment
        when = clock(moment, near=now)
        return f"{when} (in {brief(moment - now)})" if moment >= now else f"{when} ({brief(now - moment)} ago)"


def queued(question: Question) -> list[str]:
    """Why a session has not started: sentences, the most important first."""
    status, stopping = question.status, blocked(question.status)
    reasons = [stopping] if stopping else []
    if status.hold and not status.stopped:
        since = f" since {question.time(status.hold.since)}" if status.hold.since is not None else ""
        reasons = [held(status.hold), f"nothing new starts{since}, until `combo resume {status.run}`"]
    reasons += _waits(question)
    if status.scheduler:
        return [*reasons, *_slurm(question, status.scheduler)]
    return [*reasons, *_gpus(question), *_turn(question, nothing_starts=bool(stopping))]


def _waits(question: Question) -> Iterator[str]:
    waiting, status = question.seen.waiting, question.status
    if waiting is None:
        return
    if waiting.reason == RETRY:
        yield from _again(question, waiting)
        return
    if waiting.reason == SMOKE_TEST:
        yield f"the smoke test comes first: {listed(status.smoke())}"
    elif waiting.reason in (STAGGER, WARM_UP):
        yield visible(waiting.detail) or f"starts are {duration(question.view.plan.limits.stagger)} apart"
    elif waiting.reason == SERVER:
        yield from _server(status, waiting.detail)
    elif waiting.reason in ROOM:
        yield ": ".join(filter(None, [f"it {room_words(waiting)}", visible(waiting.detail)]))
    else:
        yield f"it waits for {visible(waiting.reason)}"
    if waiting.until is not None and waiting.until > question.now:
        yield f"it is tried at {question.time(waiting.until)}"


def _again(question: Question, waiting: Waiting) -> Iterator[str]:
    """How the last attempt ended, and when the next one starts."""
    seen, end = question.seen, question.attempts[-1].end if question.attempts else None
    ended = "was stopped" if end and end.cause is Cause.STOPPED else "failed"
    said = retry_words(waiting, question.view.plan, question.attempts, question.now)
    yield f"its attempt {seen.attempt} {ended}; {said}"
    detail = visible(waiting.detail)
    if detail not in said and waiting.detail != f"{seen.failure}, after attempt {seen.attempt}":
        yield detail


def _server(status: RunStatus, kind: str) -> Iterator[str]:
    of_kind = [one for one in status.servers if one.name == kind or one.name.startswith(f"{kind}-gpu")]
    for one in of_kind or [Server(kind, "queued")]:
        waits = status.server_waits.get(one.name, "")
        itself = f" and waits itself: {visible(waits)}" if waits else ""
        yield f"it waits for the server {visible(one.name)}, which {one.words(status.now)}{itself}"


def _slurm(question: Question, scheduler: Scheduler) -> Iterator[str]:
    """Slurm's information about its task, and its age."""
    task, status = question.seen.task, question.status
    if not scheduler.answered:
        yield summary(scheduler, (), question.now).removeprefix("! ")
    if task is None:
        if scheduler.at is not None and status.dispatcher is not None and not status.stopped:
            yield "Slurm has no task for it yet"
        return
    yield f"its task {task.job} is in Slurm's queue, {task.words}"
    if task.start is not None:
        yield f"Slurm expects to start it at {question.time(task.start)}"
    yield f"it asks for {kind_of(question.session, question.view.plan.slurm or NO_SLURM)}"


def _gpus(question: Question) -> Iterator[str]:
    """The GPUs that it needs. Their holders are named only if a slot is free, so that they may be the reason."""
    wants, plan, status = question.session.gpus, question.view.plan, question.status
    if not wants:
        return
    allowed = ", ".join(map(str, plan.gpus)) or "none"
    yield f"it needs {several(wants, 'GPU')} of {allowed}, {_shared(question)}"
    if status.quarantine:
        yield quarantined(status.quarantine)
    lacks_room = question.seen.waiting is not None and question.seen.waiting.reason in ROOM
    for gpu in plan.gpus if lacks_room or not question.full else ():
        holders = [f"the server {visible(one.name)}" for one in status.servers if one.alive and gpu in one.gpus]
        holders += [one.name for one in status.busy if gpu in one.gpus]
        if holders:
            yield f"GPU {gpu} is held by {first_of(holders, _MOST_NAMED)}"


def _shared(question: Question) -> str:
    """How many sessions may share a GPU with it."""
    memory, most = question.session.request.gpu_memory, question.view.plan.limits.per_gpu
    if not memory and not most:
        return "with no other session on it, because the grid gives no gpu_memory"
    parts = [f"{memory} MiB on each" if memory else "", f"at most {several(most, 'session')} on each" if most else ""]
    return ", ".join(filter(None, parts))


def _turn(question: Question, *, nothing_starts: bool) -> Iterator[str]:
    status, seen = question.status, question.seen
    place = [one.name for one in status.sessions].index(seen.name)
    before = [one.name for one in status.sessions[:place] if one.life is Life.QUEUED]
    if before:
        yield f"{several(len(before), 'session')} before it in the queue: {first_of(before, _MOST_NAMED)}"
    yield f"{len(status.busy)} of {several(question.slots, 'slot')} busy"
    if nothing_starts:
        return
    ends = [(one.expected.likeliest, one.name) for one in status.busy if one.expected]
    if question.full and ends:
        moment, who = min(ends)
        yield f"the next to end is {who}, about {question.time(moment)}"
    elif question.full:
        yield "it is not known yet when the next one ends"
    elif not before and seen.waiting is None:
        yield "it is its turn: it starts in a moment"
    if seen.expected:
        yield f"it is expected to end at {question.time(seen.expected.likeliest)}"
