"""Why a queued session has not started: what holds the run, what the session waits for, whose turn it is; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import tzinfo

from comborun.jobs import kind_of
from comborun.monitor.answer.cluster import Scheduler
from comborun.monitor.answer.holds import Waiting
from comborun.monitor.answer.servers import ServerStatus, of_kind
from comborun.monitor.answer.snapshot import Attempt
from comborun.monitor.history import History
from comborun.monitor.lastline import visible
from comborun.monitor.observe import RunView
from comborun.monitor.reasons.hints import held, quarantined
from comborun.monitor.reasons.waits import AGAIN, MEMORY, ROOM, SERVER, SMOKE, STAGGER, WARM_UP, again, room
from comborun.monitor.showing.clusterline import summary
from comborun.monitor.showing.serverline import happening
from comborun.monitor.status import RunStatus, SessionStatus
from comborun.monitor.wording import brief, clock, duration, listed, sizes
from comborun.plan import Session
from comborun.resources import NO_SLURM
from comborun.rules.words import Cause, Life
from comborun.text import several

_MOST_NAMED = 4


@dataclass(frozen=True)
class Question:
    """One session of a run at one moment."""

    view: RunView
    history: History
    status: RunStatus
    session: Session
    seen: SessionStatus
    zone: tzinfo | None = None

    def time(self, moment: float) -> str:
        """`10:34 (in 4 min)`."""
        now = self.status.now or moment
        when = clock(moment, self.zone, near=now)
        return f"{when} (in {brief(moment - now)})" if moment >= now else f"{when} ({brief(now - moment)} ago)"


def label(session: SessionStatus) -> str:
    return visible(f"{session.policy} in {session.combo}") if session.policy else session.name


def queued(asked: Question) -> list[str]:
    """Sentences, what weighs most first."""
    stopping = list(_run(asked))
    if asked.status.scheduler:
        return [*stopping, *_waits(asked), *_slurm(asked, asked.status.scheduler)]
    return [*stopping, *_waits(asked), *_gpus(asked), *_turn(asked, nothing_starts=bool(stopping))]


def _run(asked: Question) -> Iterator[str]:
    """What keeps every session from starting."""
    status = asked.status
    if status.stopped:
        yield "the run was stopped: nothing starts until it is resumed"
    if status.hold:
        since = "" if status.hold.since is None else f" since {asked.time(status.hold.since)}"
        yield f"the run is {held(status.hold)}"
        yield f"nothing new starts{since}, until it is resumed"
    gone = status.dispatcher is None and not status.stopped and not (status.hold and status.hold.ends)
    if gone and status.hold and not status.scheduler:  # it had left a run that was halted, or was killed: no matter now
        yield "no dispatcher, which starts sessions, is there either: resuming the run starts one"
    elif gone and status.scheduler:
        yield "Slurm has none of the run's jobs any more: nobody will start the rest"
    elif gone and not any(one.attempt for one in status.sessions):
        yield "no dispatcher, which starts sessions, is there, nor has one started any: the launch did not get so far"
    elif gone:
        yield "the dispatcher, which starts sessions, is gone: it was killed, or the host was started again"
    if status.use.disk and not status.use.disk.free:
        yield "the disk of the run is full: free some room, and the run goes on by itself"


def _waits(asked: Question) -> Iterator[str]:
    waiting, status = asked.seen.waiting, asked.status
    if waiting is None:
        return
    if waiting.reason in AGAIN:
        yield from _again(asked, waiting)
    elif waiting.reason == SMOKE:
        yield f"the smoke test comes first: {listed(status.smoke())}"
    elif waiting.reason in (STAGGER, WARM_UP):
        yield visible(waiting.detail) or f"starts are {duration(asked.view.plan.limits.stagger)} apart"
    elif waiting.reason == SERVER:
        yield from _server(status, waiting.detail)
    elif waiting.reason in ROOM:
        yield ": ".join(filter(None, [f"it {room(waiting)}", visible(waiting.detail)]))
    else:
        yield f"it waits for {visible(waiting.reason)}"
    if waiting.until is not None and waiting.until > (status.now or 0.0) and waiting.reason not in AGAIN:
        yield f"it is tried at {asked.time(waiting.until)}"


def _again(asked: Question, waiting: Waiting) -> Iterator[str]:
    """Of one that has ended and starts again: how it ended, when it starts, and what for."""
    seen, status = asked.seen, asked.status
    attempts = asked.history.of(asked.session.name)
    said = again(waiting, asked.view.plan, attempts, status.now or 0.0)
    yield f"its attempt {seen.attempt} {_ended(attempts)}; {said}"
    if waiting.reason == MEMORY and status.use.gpus:
        yield "GPU memory in use now: " + ", ".join(
            f"GPU {gpu.index} {sizes(gpu.used, gpu.total)}" if gpu.used is not None and gpu.total else "unknown"
            for gpu in status.use.gpus
        )
    detail = visible(waiting.detail)
    if detail not in said and waiting.detail != f"{seen.failure}, after attempt {seen.attempt}":
        yield detail


def _ended(attempts: Sequence[Attempt]) -> str:
    end = attempts[-1].end if attempts else None
    return "was stopped" if end and end.cause is Cause.STOPPED else "failed"


def _server(status: RunStatus, kind: str) -> Iterator[str]:
    """What the model server that it asks is doing: one of them, if there is one on each GPU."""
    for one in of_kind(status.servers, kind) or (ServerStatus(kind, "queued"),):
        waits = status.server_waits.get(one.name, "")
        yield f"it waits for the server {visible(one.name)}, which {happening(one, status.now)}" + (
            f" and waits itself: {visible(waits)}" if waits else ""
        )


def _slurm(asked: Question, scheduler: Scheduler) -> Iterator[str]:
    """What Slurm says about its task, and how old that is."""
    task = asked.seen.task
    if not scheduler.answered:
        yield summary(scheduler, (), asked.status.now or 0.0)
    if task is None:
        if scheduler.at is not None and asked.status.dispatcher is not None and not asked.status.stopped:
            yield "Slurm has no task for it yet"
        return
    yield f"its task {task.job} is in Slurm's queue, {task.words}"
    if task.start is not None:
        yield f"Slurm expects to start it at {asked.time(task.start)}"
    asks = kind_of(asked.session, asked.view.plan.slurm or NO_SLURM)
    yield f"it asks for {asks}"


def _gpus(asked: Question) -> Iterator[str]:
    """What it wants, and who has it where that can be why it waits: with no slot free, that is why."""
    wants, plan, status = asked.session.gpus, asked.view.plan, asked.status
    if not wants:
        return
    allowed = ", ".join(map(str, plan.gpus)) or "none"
    yield f"it wants {several(wants, 'GPU')} of {allowed}, {_shared(asked)}"
    if status.quarantine:
        yield quarantined(status.quarantine)
    lacks_room = asked.seen.waiting is not None and asked.seen.waiting.reason in ROOM
    for gpu in plan.gpus if lacks_room or not _full(asked) else ():
        holders = [f"the server {visible(one.name)}" for one in status.servers if one.alive and gpu in one.indexes]
        holders += [label(one) for one in status.sessions if one.alive and gpu in one.gpus]
        if holders:
            yield f"GPU {gpu} is held by {_named(holders)}"


def _shared(asked: Question) -> str:
    """How many may be on a GPU with it."""
    memory, most = asked.session.request.gpu_memory, asked.view.plan.limits.per_gpu
    parts = [f"{memory} MiB on each"] if memory else [] if most else ["alone, since its gpu_memory isn't said"]
    return ", ".join([*parts, f"at most {several(most, 'session')} on each"] if most else parts)


def _turn(asked: Question, *, nothing_starts: bool) -> Iterator[str]:
    status, before = asked.status, _before(asked)
    if before:
        yield f"{several(len(before), 'session')} before it in the queue: {_named(map(label, before))}"
    busy, slots = _busy(status), _slots(asked)
    yield f"{len(busy)} of {several(slots, 'slot')} busy"
    if nothing_starts:
        return
    if _full(asked):
        yield _next_end(asked, busy)
    elif not before and asked.seen.waiting is None:
        yield "it is its turn: it starts in a moment"
    if asked.seen.expected:
        yield f"it is expected to end at {asked.time(asked.seen.expected.likeliest)}"


def _busy(status: RunStatus) -> list[SessionStatus]:
    return [one for one in status.sessions if one.alive]


def _slots(asked: Question) -> int:
    return asked.view.plan.limits.parallel if asked.status.slots is None else asked.status.slots


def _full(asked: Question) -> bool:
    """Whether as many run as may run at once."""
    return len(_busy(asked.status)) >= _slots(asked)


def _before(asked: Question) -> list[SessionStatus]:
    """The queued sessions that the plan puts before it."""
    names = [one.name for one in asked.status.sessions]
    place = names.index(asked.session.name)
    return [one for one in asked.status.sessions[:place] if one.life is Life.QUEUED]


def _next_end(asked: Question, busy: Sequence[SessionStatus]) -> str:
    ends = [(one.expected.likeliest, label(one)) for one in busy if one.expected]
    if not ends:
        return "nobody can tell yet when the next one ends"
    moment, who = min(ends)
    return f"the next to end is {who}, about {asked.time(moment)}"


def _named(names: Iterable[str]) -> str:
    told = list(names)
    more = len(told) - _MOST_NAMED
    return ", ".join(told[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
