"""The status of a session from its attempts, and the end of an attempt in one line; pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from comborun.attempt import SLURM, End, behind, cause_text
from comborun.monitor.slurm import Scheduler, Task
from comborun.monitor.snapshot import Attempt, indexes
from comborun.monitor.status import SessionStatus
from comborun.monitor.wording import brief, last_line, visible
from comborun.plan import Session
from comborun.rules.names import AFTER
from comborun.rules.records import clean
from comborun.rules.tally import Counts, RequiredEvidence, completeness, joined
from comborun.rules.words import Cause, Completeness, Failure, Life, Outcome
from comborun.text import harmless

WRONG_GPU = "WRONG_GPU"
"""in a note: its memory lay on another GPU than it was granted (host/seat.py)"""
_CLOCKS_S = 5
"""seconds by which the clocks of a node and of the login node may differ"""
_SIGNALS = {
    1: "hung up",
    2: "interrupted",
    3: "quit",
    4: "illegal instruction",
    6: "aborted",
    7: "bus error",
    8: "arithmetic error",
    9: "killed",
    11: "segmentation fault",
    13: "broken pipe",
    15: "terminated",
}
"""Linux numbers, whatever the watcher's system is: it is the host that counts"""


def session_status(session: Session, attempts: Sequence[Attempt], now: float, part: str = "") -> SessionStatus:
    """The status of a combo's session; `attempts` oldest first, `part` tells it from others of its combo."""
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
        uncounted=clean(harmless(counts.why)) if recorded else "",
        own=attempts[-1].done,
        whole=attempts[-1].whole,
    )


def after_status(attempts: Sequence[Attempt], now: float) -> SessionStatus:
    """The grid's own last command, which has no episodes."""
    status = SessionStatus(AFTER, "", "", "step", planned=0)
    return _of_attempt(status, attempts[-1], now, None) if attempts else status


def _chain(session: Session, attempts: Sequence[Attempt]) -> list[Attempt]:
    """The attempts whose records add up: the latest one and those whose range it continues.

    Once it has ended, the chain with the most records counts.
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
    """Merged as the report does it: over all attempts, or while one runs over those that it continues."""
    parts = attempts if attempts[-1].end else _chain(session, attempts)
    begins = [(one.begin.first, one.begin.count or session.count) if one.begin else None for one in parts]
    whole = session.first, session.count
    return joined([(span or whole, one.counts) for span, one in zip(begins, parts, strict=True)], whole)


def _done_so_far(session: Session, attempts: Sequence[Attempt], counts: Counts | None) -> int | None:
    """Its records, or while it runs what its log tells (not if some rows don't count); None: unknown."""
    parts = _chain(session, attempts)
    if counts and (attempts[-1].end or counts.why):
        done = counts.records
    elif counts:
        done = sum(one.done for one in parts)
    elif session.progress.pattern or any(one.counter.done is not None for one in parts):
        done = sum(one.counter.done or 0 for one in parts)
    else:
        return None
    return min(done, session.count) if session.count else done


def _judged(session: Session, attempts: Sequence[Attempt], counts: Counts) -> Attempt:
    """The latest attempt, but judged by the results of all attempts, as the report judges it."""
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
    return replace(latest, end=replace(latest.end, completeness=best, counts=counts, failure=failure))


def _of_attempt(status: SessionStatus, one: Attempt, now: float, session: Session | None) -> SessionStatus:
    """`status` with what the latest attempt says."""
    life, outcome = _life(one)
    begin, end, started = one.begin, one.end, one.started
    idle = one.log_changed or started
    until = (end.ended or None) if end else now if one.alive else None
    return replace(
        status,
        life=life,
        outcome=outcome,
        attempt=one.number,
        gpus=indexes(begin.gpus) if begin else (),
        window=begin.address if begin else "",
        node=begin.host if begin and begin.multiplexer == SLURM else "",
        idle=max(0.0, now - idle) if one.alive and idle else None,
        last_line=last_line(one.tail),
        started=started,
        seconds=None if until is None else max(0.0, until - started) if started else 0.0,
        marks=one.marks,
        note=note(end, session) if end else _lost(one) if outcome else _still(one, now),
        stalled=one.stalled if life is Life.STALLED else None,
        failure=end.failure if end else Failure.LOST if outcome else None,
        peak_memory=end.peak_memory if end else None,
    )


def _life(one: Attempt) -> tuple[Life, Outcome | None]:
    """The state table of docs/architecture.md, by the host's word for where it is."""
    if one.end:
        return Life.ENDED, one.end.outcome
    if one.life == Life.RUNNING and one.stalled is not None:
        return Life.STALLED, None
    living = one.life in (Life.STARTING, Life.RUNNING, Life.ORPHANED)
    return (Life(one.life), None) if living else (Life.ENDED, Outcome.LOST)


def _still(one: Attempt, now: float) -> str:
    """What is wrong with one that runs."""
    stalled = f"no progress for {brief(now - one.stalled)}" if one.alive and one.stalled is not None else ""
    return "; ".join(filter(None, (_misplaced(one) if one.alive else "", stalled)))


def _misplaced(one: Attempt) -> str:
    """Which GPUs hold its memory; empty unless one of them was not granted."""
    granted = one.begin.gpus if one.begin else ""
    pairs = [pair.split(":") for pair in one.wrong_gpu.split(",") if re.fullmatch(r"[0-9]{1,4}:[0-9]{1,9}", pair)]
    held = ", ".join(f"{mib} MiB on GPU {gpu}" for gpu, mib in sorted(pairs, key=lambda pair: int(pair[0])))
    return f"{WRONG_GPU}: {held}, granted {granted or 'none'}" if held else ""


def _lost(one: Attempt) -> str:
    if one.begin and one.begin.multiplexer == SLURM:
        return "its task is gone; what ended it is not judged yet"
    return "nobody saw it end" if one.begin else "its supervisor died before it began"


def queued_again(status: SessionStatus, note: str) -> SessionStatus:
    """A session that failed and will be started again."""
    return replace(status, life=Life.QUEUED, outcome=None, gpus=(), window="", idle=None, note=note)


def with_task(status: SessionStatus, task: Task) -> SessionStatus:
    """A session with its Slurm task. The records win: they say what was done."""
    if status.alive:
        return replace(status, task=task, node=status.node or task.node)
    again = status.life is Life.ENDED
    if again and (status.done_with or task.attempt <= status.attempt):  # that task is about to end, or was left over
        return status
    if task.begun:
        fresh = replace(status, life=Life.STARTING, outcome=None, attempt=task.attempt, note="", last_line="")
        return replace(fresh, started=None, node=task.node, task=task)
    if again:
        status = queued_again(status, f"attempt {task.attempt} waits, {task.words}")
        return replace(status, node="", task=task)
    return replace(status, task=task, last_line=task.words)


def without_task(status: SessionStatus, scheduler: Scheduler) -> SessionStatus:
    """A session that looks alive but has no Slurm task gets a note, if Slurm answered after its start."""
    if not status.alive or not scheduler.answered or scheduler.at is None or status.started is None:
        return status
    if scheduler.at < status.started + _CLOCKS_S:
        return status
    gone = "Slurm has no task of it any more: it has ended, or Slurm forgot it"
    return replace(status, note="; ".join(filter(None, (status.note, gone))))


def note(end: End, session: Session | None) -> str:
    """What the outcome alone does not say; empty for a clean success. `session` is None for `after`."""
    said = visible(end.note)
    if end.completeness is Completeness.COMPLETE:
        how = "" if end.clean else f"{ended_by(end)} after complete results"
        return "; ".join(filter(None, (how, said if WRONG_GPU in said else "")))
    if end.cause in (Cause.STOPPED, Cause.NOT_NEEDED, Cause.LAUNCH_FAILED):
        return said or ended_by(end)
    missing = end.clean and end.failure in (None, Failure.NO_RESULT)
    return ": ".join(filter(None, (_missing(end, session) if missing else ended_by(end), said)))


def ended_by(end: End) -> str:
    """What ended the command: `exit code 3`, `stalled`, `out of GPU memory (killed)`."""
    if known := cause_text(end):
        return known
    seen = "ended for an unknown reason"
    if end.signal:
        seen = _SIGNALS.get(end.signal, f"signal {end.signal}")
    elif end.cause is Cause.EXITED and end.code is not None:
        seen = f"exit code {end.code}"
    found = behind(end)
    return f"{found} ({seen})" if found else seen


def _missing(end: End, session: Session | None) -> str:
    """Why an exit with 0 is no success."""
    if (
        session
        and session.evidence.beside_records
        and (not session.results.has_records or end.records >= session.count)
    ):
        return f"exit code 0, without {session.evidence.beside_records}"
    if session is None or not end.records:
        return "exit code 0, but no results"
    if end.records >= session.count:
        return "exit code 0, but no verdict in any of its records"
    return f"exit code 0 after {end.records} of {session.count} {session.unit}s"
