"""What the attempts of one session say about it, pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from comborun.layout import AFTER
from comborun.plan import Session
from comborun.state import Life, Outcome
from monitor.causes import note
from monitor.lastline import last_line
from monitor.snapshot import Attempt
from monitor.status import SessionStatus


def session_status(session: Session, attempts: Sequence[Attempt], now: float) -> SessionStatus:
    """A combo's session from its attempts, oldest first."""
    recorded = bool(session.results.files)
    told = recorded or session.progress.pattern is not None
    status = SessionStatus(
        name=session.name,
        policy=session.policy,
        environment=session.environment,
        unit=session.unit,
        planned=session.count,
        done=0 if told else None,
        recorded=0 if recorded else None,
        successes=0 if recorded else None,
        silent=session.progress.silent,
    )
    if not attempts:
        return status
    parts = _parts(session, attempts)
    told = told or any(one.counter.done is not None for one in parts)
    return replace(
        _of_attempt(status, attempts[-1], now, session),
        done=sum(one.done for one in parts) if told else None,
        recorded=sum(one.recorded[0] for one in parts) if recorded else None,
        successes=sum(one.recorded[1] for one in parts) if recorded else None,
    )


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
        idle=max(0.0, now - idle) if one.alive and idle else None,
        progressed=one.marks[-1].time if one.marks else None,
        last_line=last_line(one.tail),
        started=started,
        seconds=length(started, ended, now) if ended or one.alive else None,
        note=note(one.end, session) if one.end else _lost(one) if outcome else "",
    )


def _granted(gpus: str) -> tuple[int, ...]:
    """`0,1` as the dispatcher wrote it; anything else is none of ours."""
    return tuple(int(word) for word in gpus.split(",") if re.fullmatch(r"[0-9]{1,9}", word))


def _lost(one: Attempt) -> str:
    return "nobody saw it end" if one.begin else "its supervisor died before it began"


def _life(one: Attempt) -> tuple[Life, Outcome | None]:
    """The state table of docs/architecture.md."""
    if one.end:
        return Life.ENDED, one.end.outcome
    if one.begin is None and (one.alive or not one.claimed):
        return Life.STARTING, None
    if one.supervised:
        return Life.RUNNING, None  # or STALLED, once `limits: {stall_after}` says for how long `progressed` may be past
    return (Life.ORPHANED, None) if one.working else (Life.ENDED, Outcome.LOST)


def _parts(session: Session, attempts: Sequence[Attempt]) -> list[Attempt]:
    """The attempts whose records add up: the latest, and those before it whose range it goes on with."""
    parts: list[Attempt] = []
    for one in reversed(attempts):
        parts.append(one)
        if one.begin is None or one.begin.first <= session.first:
            break
    return parts


def length(started: float | None, ended: float | None, now: float) -> float:
    """Seconds that an attempt ran, or has been running."""
    return 0.0 if started is None else max(0.0, (ended or now) - started)
