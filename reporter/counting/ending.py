"""How the sessions of a combo ended, and when each attempt ran. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from math import fsum
from typing import NamedTuple

from comborun.model.attempt import End
from comborun.model.plan import Session
from comborun.reporter.json_types import Memory, Moment, Seconds, TextOrNull
from comborun.reporter.records.collected import AttemptRecord, Collected, SessionHistory
from comborun.rules.endings.failures import Failure
from comborun.rules.vocabulary import Cause, Completeness, Outcome, session_outcome
from comborun.words.endings import CAUSES, behind, outcome_words

SIGNALS = {1: "HUP", 2: "INT", 3: "QUIT", 4: "ILL", 6: "ABRT", 7: "BUS", 8: "FPE", 9: "KILL", 11: "SEGV", 15: "TERM"}
"""Linux's numbers: those of the host, not of the machine that makes the report"""

_WORST_FIRST = (Outcome.LOST, Outcome.FAILED, Outcome.PARTIAL, Outcome.CANCELLED, Outcome.SUCCEEDED, Outcome.NOT_NEEDED)
_CAUSES = {
    **CAUSES,
    **{failure.cause: failure.row.report for failure in Failure if failure.cause},
    Cause.STOPPED: "stopped by the user",
    Cause.UNKNOWN: "cause unknown",
}


@dataclass(frozen=True)
class ComboEnding:
    """`outcome` is None without an end record, and without a session."""

    outcome: Outcome | None
    """how it ended; None before the end"""
    cause: TextOrNull
    """why it ended"""
    clean: bool
    attempts: int
    """number of starts"""
    seconds: Seconds | None
    """seconds of the attempts whose records count; None if one has no recorded start or end"""
    warnings: tuple[str, ...]
    """what else is important, a sentence each"""
    peak_memory: Memory | None = None
    """the most main memory of one attempt"""
    log: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        if self.outcome is not None:
            return outcome_words(self.outcome)
        return "not ended" if self.attempts else "never started"


Contributing = Collection[tuple[str, int]]
"""(session, attempt) of every record that counts"""


def ending(
    histories: Sequence[SessionHistory], counted: Completeness | None, contributing: Contributing, *, run_over: bool
) -> ComboEnding:
    """The ending of a combo; with several sessions, of the worst one. `counted`: by the records, or None if they show
    nothing. `run_over`: nothing of the run can be alive."""
    ends = [_ending(history, counted, contributing, run_over=run_over) for history in histories]
    outcomes = [end.outcome for end in ends if end.outcome is not None]
    return ComboEnding(
        outcome=min(outcomes, key=_WORST_FIRST.index, default=None) if len(outcomes) == len(ends) else None,
        cause="; ".join(dict.fromkeys(end.cause for end in ends if end.cause)),
        clean=bool(ends) and all(end.clean for end in ends),
        attempts=sum(end.attempts for end in ends),
        seconds=total([end.seconds for end in ends]),
        warnings=tuple(warning for end in ends for warning in end.warnings),
        peak_memory=_largest(end.peak_memory for end in ends),
        log=next((end.log for end in ends if end.log), ()),
    )


def cause_words(end: End) -> str:
    words = _CAUSES.get(end.cause, "exit code unknown" if end.code is None else f"exit code {end.code}")
    if end.cause is Cause.SIGNAL and end.code is None:
        words = f"signal {end.signal}"
    if end.signal is not None and end.cause in {Cause.EXITED, Cause.SIGNAL}:
        words += f" ({SIGNALS.get(end.signal, f'signal {end.signal}')})"
    if found := behind(end.cause, end.failure):
        words = f"{found}, {words}"
    return f"{words}: {end.note}" if end.note else words


def _ending(
    history: SessionHistory, counted: Completeness | None, contributing: Contributing, *, run_over: bool
) -> ComboEnding:
    if not history.attempts:
        return ComboEnding(None, "", clean=False, attempts=0, seconds=None, warnings=())
    *earlier, last = history.attempts
    earlier = [attempt for attempt in earlier if not attempt.called_off]
    end = last.end
    # By the records that count here, where they show something; None while the session may be running.
    found = session_outcome(counted) if run_over else None
    found = session_outcome(counted, end.completeness, end.cause) if end else found
    cause = _cause(end, history.session) if end else "lost, without an end record" if run_over else "running, or lost"
    warnings = [
        f"attempt {attempt.number}: {cause_words(attempt.end) if attempt.end else 'no end record'}; another followed"
        for attempt in earlier
    ]
    if found is Outcome.SUCCEEDED and not (end and end.clean):
        warnings.append(f"complete, but {cause}")
    elif end and end.completeness is Completeness.COMPLETE and counted not in {None, Completeness.COMPLETE}:
        warnings.append(f"its end record says complete ({end.records} records), but not all of them count here")
    counting = [attempt for attempt in history.attempts if (history.session.name, attempt.number) in contributing]
    return ComboEnding(
        outcome=found,
        cause=cause,
        clean=end is not None and end.clean,
        attempts=len(earlier) + (not last.called_off),
        seconds=total([attempt.seconds for attempt in counting or [last]]),
        warnings=tuple(warnings),
        peak_memory=_largest(attempt.peak_memory for attempt in history.attempts),
        log=() if found is Outcome.SUCCEEDED else last.log,
    )


def _cause(end: End, session: Session) -> str:
    """With the evidence that is missing if there can be no records, as of a training that ended too early."""
    evidence = session.evidence.beside_records
    short = end.clean and end.completeness is not Completeness.COMPLETE
    without = f", without {evidence}" if short and evidence and not session.results.has_records else ""
    return cause_words(end) + without


def _largest(sizes: Iterable[int | None]) -> int | None:
    return max((size for size in sizes if size is not None), default=None)


def total(durations: Sequence[float | None]) -> float | None:
    """Their sum; None if there are none, or if one is not known."""
    known = [duration for duration in durations if duration is not None]
    return fsum(known) if known and len(known) == len(durations) else None


class TimedAttempt(NamedTuple):
    started: Moment
    session: Session
    attempt: AttemptRecord


@dataclass(frozen=True)
class RunTiming:
    """Times in seconds since 1970 on the host's clock, and seconds. None means that the records don't show it."""

    spans: tuple[TimedAttempt, ...]
    """all attempts with a recorded start, by start"""
    slots: int | None
    """number of slots in the plan; None without a plan, or if Slurm decides"""
    finished: Moment | None = None
    """the last end"""
    sequential: Seconds | None = None
    """the sum of the sessions' times"""
    over: bool = True
    """whether nothing runs any more: the dispatcher says so, or every session has its end record"""

    @property
    def started(self) -> Moment | None:
        """The first start."""
        return self.spans[0].started if self.spans else None

    @property
    def makespan(self) -> Seconds | None:
        """From the first start to the last end."""
        if self.started is None or self.finished is None or self.finished < self.started:
            return None
        return self.finished - self.started

    @property
    def seen(self) -> float:
        """Seconds from the first start to the latest time in any record."""
        latest = max((span.attempt.ended or span.started for span in self.spans), default=0.0)
        return latest - (self.started or latest)

    @property
    def work(self) -> float | None:
        """Seconds of all attempts, including failed ones; None if one has no end."""
        return total([attempt.seconds for _, _, attempt in self.spans])

    @property
    def bound(self) -> Seconds | None:
        """The shortest time that these attempts can take in these slots; None if an attempt has no end."""
        if self.work is None or not self.slots:
            return None
        return max(self.work / self.slots, *(attempt.seconds or 0.0 for _, _, attempt in self.spans))

    def lanes(self) -> list[list[TimedAttempt]]:
        """The attempts in as few rows as hold them without two at the same time."""
        lanes: list[list[TimedAttempt]] = []
        for span in self.spans:
            free = (lane for lane in lanes if (end := lane[-1].attempt.ended) is not None and end <= span.started)
            if (lane := next(free, None)) is None:
                lanes.append(lane := [])
            lane.append(span)
        return lanes


def timing(collected: Collected, endings: Iterable[ComboEnding]) -> RunTiming:
    """The times of all sessions; the grid's `after` command is not one of them."""
    attempts = [(history.session, attempt) for history in collected.sessions for attempt in history.attempts]
    spans = [TimedAttempt(one.started, session, one) for session, one in attempts if one.started is not None]
    over = all(history.end for history in collected.sessions) or bool(collected.done)
    return RunTiming(
        spans=tuple(sorted(spans, key=lambda span: (span.started, span.session.name, span.attempt.number))),
        slots=collected.plan.limits.parallel if collected.plan and not collected.plan.slurm else None,
        finished=max((one.end.ended for _, one in attempts if one.end), default=None) if over else None,
        sequential=total([one.seconds for one in endings if one.attempts]),
        over=over,
    )
