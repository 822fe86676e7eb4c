"""What the attempts of one session say about it, pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from comborun.attempt import SLURM
from comborun.monitor.answer.cluster import Scheduler, Task
from comborun.monitor.answer.holds import Waiting
from comborun.monitor.answer.snapshot import ORPHANED, RUNNING, STARTING, Attempt
from comborun.monitor.lastline import last_line, visible
from comborun.monitor.reasons.causes import WRONG_GPU, note
from comborun.monitor.status import SessionStatus
from comborun.monitor.wording import brief
from comborun.plan import Session
from comborun.rules.evidence import Asked, completeness
from comborun.rules.names import AFTER
from comborun.rules.tally import Counts, joined
from comborun.rules.words import Completeness, Failure, Life, Outcome

_CLOCKS_S = 5
"""seconds by which the clocks of a node and of the login node may differ"""


def session_status(session: Session, attempts: Sequence[Attempt], now: float, part: str = "") -> SessionStatus:
    """A combo's session from its attempts, oldest first; `part` tells it from others of its combo."""
    recorded = session.results.lines
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
        extra=bool(session.flag),
    )
    if not attempts:
        return status
    counts = _counts(session, attempts)
    counted = recorded and counts.countable
    return replace(
        _of_attempt(status, _judged(session, attempts, counts), now, session),
        done=_done_so_far(session, attempts, counts if counted else None),
        recorded=counts.verdicts if counted else None,
        successes=counts.successes if counted else None,
        uncounted=visible(counts.why) if recorded else "",
    )


def _counts(session: Session, attempts: Sequence[Attempt]) -> Counts:
    """What the results of all attempts show, as the report merges them; while one runs, those that it goes on with."""
    whole = session.first, session.count
    parts = attempts if attempts[-1].end else _parts(session, attempts)
    return joined([(_span(session, one), one.counts) for one in parts], whole)


def _span(session: Session, one: Attempt) -> tuple[int, int]:
    """The episodes that an attempt has to make."""
    begin = one.begin
    return (begin.first, begin.count or session.count) if begin else (session.first, session.count)


def _done_so_far(session: Session, attempts: Sequence[Attempt], counts: Counts | None) -> int | None:
    """Its records, and while it runs what its log tells, unless there are rows that don't count; None: unknown."""
    if counts and (attempts[-1].end or counts.why):
        return min(counts.records, session.count) if session.count else counts.records
    parts = _parts(session, attempts)
    if not counts and not session.progress.pattern and all(one.counter.done is None for one in parts):
        return None
    done = sum(one.done if counts else one.counter.done or 0 for one in parts)
    return min(done, session.count) if session.count else done


def after_status(attempts: Sequence[Attempt], now: float) -> SessionStatus:
    """The grid's own last command, which has no episodes."""
    status = SessionStatus(AFTER, "", "", "step", planned=0)
    return _of_attempt(status, attempts[-1], now, None) if attempts else status


def _of_attempt(status: SessionStatus, one: Attempt, now: float, session: Session | None) -> SessionStatus:
    """`status` with what the latest attempt says."""
    life, outcome = _life(one)
    started = (one.begin.started if one.begin else one.end.started if one.end else None) or None
    ended = one.end.ended if one.end else None
    idle = one.log_changed or started
    return replace(
        status,
        life=life,
        outcome=outcome,
        attempt=one.number,
        gpus=_granted(one.begin.gpus) if one.begin else (),
        window=one.begin.address if one.begin else "",
        node=one.begin.host if one.begin and one.begin.multiplexer == SLURM else "",
        idle=max(0.0, now - idle) if one.alive and idle else None,
        progressed=one.marks[-1].time if one.marks else None,
        last_line=last_line(one.tail),
        started=started,
        seconds=length(started, ended, now) if ended or one.alive else None,
        note=note(one.end, session) if one.end else _lost(one) if outcome else _still(one, now),
        stalled=one.stalled if life is Life.STALLED else None,
        failure=one.end.failure if one.end else Failure.LOST if outcome else None,
        peak_memory=one.end.peak_memory if one.end else None,
    )


def queued_again(status: SessionStatus, waiting: Waiting, note: str) -> SessionStatus:
    """A session whose latest attempt failed, and that will be started again."""
    return replace(status, life=Life.QUEUED, outcome=None, gpus=(), window="", idle=None, waiting=waiting, note=note)


def with_task(status: SessionStatus, task: Task) -> SessionStatus:
    """A session as its records tell, and as Slurm has it: files first, for they say what was done."""
    if status.alive:
        return replace(status, task=task, node=status.node or task.node)
    again = status.life is Life.ENDED
    if again and (status.done_with or task.attempt <= status.attempt):  # it is on its way out, or is left over
        return status
    if task.begun:
        fresh = replace(status, life=Life.STARTING, outcome=None, attempt=task.attempt, note="", last_line="")
        return replace(fresh, node=task.node, task=task)
    if again:
        status = replace(status, life=Life.QUEUED, outcome=None, gpus=(), window="", idle=None, node="")
        return replace(status, task=task, note=f"attempt {task.attempt} waits, {task.words}")
    return replace(status, task=task, last_line=task.words)


def without_task(status: SessionStatus, scheduler: Scheduler) -> SessionStatus:
    """A session that lives as its records tell, of which Slurm has no task: said, where its answer is of later."""
    if not status.alive or not scheduler.answered or scheduler.at is None or status.started is None:
        return status
    if scheduler.at < status.started + _CLOCKS_S:
        return status
    gone = "Slurm has no task of it any more: it has ended, or Slurm forgot it"
    return replace(status, note="; ".join(filter(None, (status.note, gone))))


def _granted(gpus: str) -> tuple[int, ...]:
    """`0,1` as the dispatcher wrote it; anything else is none of ours."""
    return tuple(int(word) for word in gpus.split(",") if re.fullmatch(r"[0-9]{1,9}", word))


def _still(one: Attempt, now: float) -> str:
    if not one.alive:
        return ""
    stalled = f"no progress for {brief(now - one.stalled)}" if one.stalled is not None else ""
    return "; ".join(filter(None, (_misplaced(one), stalled)))


def _misplaced(one: Attempt) -> str:
    """Where its memory lies, where that is another GPU than it was granted."""
    granted = one.begin.gpus if one.begin else ""
    pairs = [pair.split(":") for pair in one.wrong_gpu.split(",") if re.fullmatch(r"[0-9]{1,4}:[0-9]{1,9}", pair)]
    held = ", ".join(f"{mib} MiB on GPU {gpu}" for gpu, mib in sorted(pairs, key=lambda pair: int(pair[0])))
    return f"{WRONG_GPU}: {held}, granted {granted or 'none'}" if held else ""


def _lost(one: Attempt) -> str:
    if one.begin and one.begin.multiplexer == SLURM:
        return "its task is gone; what ended it is not judged yet"
    return "nobody saw it end" if one.begin else "its supervisor died before it began"


def _life(one: Attempt) -> tuple[Life, Outcome | None]:
    """The state table of docs/architecture.md, by the host's word for where it is."""
    if one.end:
        return Life.ENDED, one.end.outcome
    if one.life == RUNNING and one.stalled is not None:
        return Life.STALLED, None
    return (Life(one.life), None) if one.life in {STARTING, RUNNING, ORPHANED} else (Life.ENDED, Outcome.LOST)


def _judged(session: Session, attempts: Sequence[Attempt], counts: Counts) -> Attempt:
    """The latest attempt, its end by what all attempts have left: records of earlier ones count in the report, too."""
    latest = attempts[-1]
    if latest.end is None or not session.results.lines:
        return latest
    found = {one.end.completeness for one in attempts if one.end}
    if counts.records:
        found.add(Completeness.PARTIAL)
    if session.evidence.records and not session.evidence.beside_records and session.count:
        found.add(completeness(_asked(session), counts, 0, 1, latest.end.code))
    best = next(one for one in Completeness if one in found)  # from complete to none
    failure = None if best is Completeness.COMPLETE else latest.end.failure
    return replace(latest, end=replace(latest.end, completeness=best, counts=counts, failure=failure))


def _asked(session: Session) -> Asked:
    return Asked(session.count, records=True, verdicts=session.unit == "episode")


def _parts(session: Session, attempts: Sequence[Attempt]) -> list[Attempt]:
    """The attempts whose records add up: the latest, and those before it whose range it goes on with.

    When it has ended, another chain of attempts may have left more: its records still count.
    """
    chains: list[list[Attempt]] = []
    for one in attempts:
        if not chains or one.begin is None or one.begin.first <= session.first:
            chains.append([])
        chains[-1].append(one)
    return chains[-1] if attempts[-1].end is None else max(reversed(chains), key=_done)


def _done(chain: Sequence[Attempt]) -> int:
    return sum(one.done for one in chain)


def length(started: float | None, ended: float | None, now: float) -> float:
    """Seconds that an attempt ran, or has been running."""
    return 0.0 if started is None else max(0.0, (ended or now) - started)
