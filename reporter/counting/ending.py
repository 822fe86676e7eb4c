"""How the sessions of a combo ended, and how long they took. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from comborun.attempt import CAUSES, behind
from comborun.rules.words import Cause, Completeness, Outcome, outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comborun.attempt import End
    from comborun.plan import Session
    from comborun.reporter.collected import Attempt, SessionHistory

SIGNALS = {1: "HUP", 2: "INT", 3: "QUIT", 4: "ILL", 6: "ABRT", 7: "BUS", 8: "FPE", 9: "KILL", 11: "SEGV", 15: "TERM"}
"""Linux's numbers: those of the host, not of the machine that makes the report"""

_WORST_FIRST = (Outcome.LOST, Outcome.FAILED, Outcome.PARTIAL, Outcome.CANCELLED, Outcome.SUCCEEDED, Outcome.NOT_NEEDED)
_CAUSES = {
    **CAUSES,
    Cause.STOPPED: "stopped by the user",
    Cause.LAUNCH_FAILED: "launch failed",
    Cause.LOST: "lost",
    Cause.UNKNOWN: "cause unknown",
}


@dataclass(frozen=True)
class Ending:
    """`outcome` is None without an end record, and without a session."""

    outcome: Outcome | None
    cause: str
    clean: bool
    """whether every session ended by itself with code 0"""
    attempts: int
    seconds: float | None
    """seconds of the attempts whose records count; None if one has no recorded start or end"""
    warnings: tuple[str, ...]
    peak_memory: int | None = None
    """bytes: the most main memory of one attempt in the samples"""
    log: tuple[str, ...] = ()
    """the last lines of a session that failed"""

    @property
    def words(self) -> str:
        if self.outcome is not None:
            return str(self.outcome)
        return "not ended" if self.attempts else "never started"


Contributing = Collection[tuple[str, int]]
"""(session, attempt) of every record that counts"""


def ending(
    histories: Sequence[SessionHistory], counted: Completeness | None, contributing: Contributing, *, run_over: bool
) -> Ending:
    """The ending of a combo; with several sessions, of the worst one.

    `counted`: the records' counts, or None if they show nothing; `run_over`: nothing of the run can be alive.
    """
    lost = (Cause.LOST, "lost, without an end record") if run_over else (None, "running, or lost")
    ends = [_ending(history, counted, contributing, lost) for history in histories]
    outcomes = [end.outcome for end in ends if end.outcome is not None]
    durations = [end.seconds for end in ends if end.seconds is not None]
    return Ending(
        outcome=min(outcomes, key=_WORST_FIRST.index, default=None) if len(outcomes) == len(ends) else None,
        cause="; ".join(dict.fromkeys(end.cause for end in ends if end.cause)),
        clean=bool(ends) and all(end.clean for end in ends),
        attempts=sum(end.attempts for end in ends),
        seconds=sum(durations) if ends and len(durations) == len(ends) else None,
        warnings=tuple(warning for end in ends for warning in end.warnings),
        peak_memory=max((end.peak_memory for end in ends if end.peak_memory is not None), default=None),
        log=next((end.log for end in ends if end.log), ()),
    )


def cause_words(end: End) -> str:
    """Why an attempt ended, in words: `exit code 139 (SEGV)`."""
    words = _CAUSES.get(end.cause, "exit code unknown" if end.code is None else f"exit code {end.code}")
    if end.cause is Cause.SIGNAL and end.code is None:
        words = f"signal {end.signal}"
    if end.signal is not None and end.cause in {Cause.EXITED, Cause.SIGNAL}:
        words += f" ({SIGNALS.get(end.signal, f'signal {end.signal}')})"
    if found := behind(end):
        words = f"{found}, {words}"
    return f"{words}: {end.note}" if end.note else words


def _with_evidence(cause: str, end: End, session: Session) -> str:
    """The cause, with the missing evidence if there could be no records: a training that ended well but too early."""
    evidence = session.evidence.beside_records
    short = end.clean and end.completeness is not Completeness.COMPLETE
    return f"{cause}, without {evidence}" if short and evidence and not session.results.has_records else cause


def _ending(
    history: SessionHistory, counted: Completeness | None, contributing: Contributing, lost: tuple[Cause | None, str]
) -> Ending:
    """`lost`: the words for an attempt without an end record."""
    attempts = history.attempts
    if not attempts:
        return Ending(None, "", clean=False, attempts=0, seconds=None, warnings=())
    end = attempts[-1].end
    peaks = [one.end.peak_memory for one in attempts if one.end and one.end.peak_memory is not None]
    cause, words = (end.cause, _with_evidence(cause_words(end), end, history.session)) if end else lost
    judged = counted or (end.completeness if end else Completeness.NONE)
    found = outcome(judged, cause) if cause else None
    return Ending(
        outcome=found,
        cause=words,
        clean=end is not None and end.clean,
        attempts=len(attempts),
        seconds=_accepted_seconds(history, contributing),
        warnings=(*map(_earlier, attempts[:-1]), *_contradictions(found, words, end, counted)),
        peak_memory=max(peaks, default=None),
        log=() if found is Outcome.SUCCEEDED else attempts[-1].log,
    )


def _earlier(attempt: Attempt) -> str:
    words = cause_words(attempt.end) if attempt.end else "no end record"
    return f"attempt {attempt.number}: {words}; another followed"


def _contradictions(
    found: Outcome | None, cause: str, end: End | None, counted: Completeness | None
) -> tuple[str, ...]:
    if found is Outcome.SUCCEEDED and not (end and end.clean):
        return (f"complete, but {cause}",)
    if end and end.completeness is Completeness.COMPLETE and counted not in {None, Completeness.COMPLETE}:
        return (f"its end record says complete ({end.records} records), but not all of them count here",)
    return ()


def _accepted_seconds(history: SessionHistory, contributing: Contributing) -> float | None:
    """Seconds of the attempts whose records count; without any, of the last attempt."""
    name = history.session.name
    accepted = [attempt for attempt in history.attempts if (name, attempt.number) in contributing]
    durations = [attempt.seconds for attempt in accepted or history.attempts[-1:]]
    known = [duration for duration in durations if duration is not None]
    return sum(known) if len(known) == len(durations) else None
