"""The records of one attempt, as session.sh writes them: `key=value` lines, complete or absent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from comborun.amounts import KIB
from comborun.rules.records import integer, parse, seconds
from comborun.rules.tally import Counts
from comborun.rules.words import Cause, Completeness, Failure, Outcome, failure_of, outcome

SLURM = "slurm"
"""the multiplexer of a session that a task of an array runs: it has no window"""


def own_end(claim: str, end: str) -> bool:
    """Whether the text of an `end` is that of the start which the `claim` is of.

    Where a task is requeued the process of its earlier start can still be alive, on another node, and write.
    """
    nonce = parse(claim).get("nonce")
    return nonce is None or parse(end).get("nonce") == nonce


@dataclass(frozen=True)
class Begin:
    """`attempt-N/begin`: written once the command runs. Times are seconds since 1970 on the host's clock."""

    attempt: int
    started: float
    supervisor: int
    pid: int
    boot: str
    host: str
    multiplexer: str
    """tmux, screen, SLURM, or none when the script was started by hand"""
    address: str
    """what attaches to it: the exact tmux session name, or screen's PID.name"""
    screendir: str
    """where screen keeps its windows, when that is not the user's own place"""
    gpus: str
    first: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Self:
        return cls.of(parse(text))

    @classmethod
    def of(cls, record: Mapping[str, str]) -> Self:
        return cls(
            attempt=integer(record, "attempt") or 0,
            started=seconds(record, "started") or 0.0,
            supervisor=integer(record, "supervisor") or 0,
            pid=integer(record, "pid") or 0,
            boot=record.get("boot", ""),
            host=record.get("host", ""),
            multiplexer=record.get("multiplexer", "none"),
            address=record.get("address", ""),
            screendir=record.get("screendir", ""),
            gpus=record.get("gpus", ""),
            first=integer(record, "first") or 0,
            count=integer(record, "count") or 0,
        )


@dataclass(frozen=True)
class End:
    """`attempt-N/end`: how it ended. `code` is None when nobody saw the command's exit."""

    attempt: int
    started: float | None
    ended: float
    code: int | None
    signal: int | None
    cause: Cause
    completeness: Completeness
    counts: Counts
    note: str
    """one line for people: why a launch failed, who stopped it, why it was ended"""
    failure: Failure | None = None
    """None when the work was done, or the user stopped it"""
    peak_memory: int | None = None
    """bytes of main memory that the session's processes held together at most, as far as was seen"""

    @property
    def records(self) -> int:
        return self.counts.records

    @property
    def outcome(self) -> Outcome:
        return outcome(self.completeness, self.cause)

    @property
    def clean(self) -> bool:
        """Whether the command ended by itself with code 0."""
        return self.cause is Cause.EXITED and self.code == 0

    @classmethod
    def parse(cls, text: str) -> Self:
        return cls.of(parse(text))

    @classmethod
    def of(cls, record: Mapping[str, str]) -> Self:
        cause = _cause(record.get("cause", ""))
        completeness = _completeness(record.get("completeness", ""))
        code, signal = integer(record, "code"), integer(record, "signal")
        peak = integer(record, "peak_memory_kib")
        return cls(
            attempt=integer(record, "attempt") or 0,
            started=seconds(record, "started"),
            ended=seconds(record, "ended") or 0.0,
            code=code,
            signal=signal,
            cause=cause,
            completeness=completeness,
            counts=Counts.of(record),
            note=record.get("note", ""),
            failure=_failure(record.get("class")) or failure_of(completeness, cause, code, signal),
            peak_memory=None if peak is None else peak * KIB,
        )


def _cause(word: str) -> Cause:
    return Cause(word) if word in set(Cause) else Cause.UNKNOWN


def _completeness(word: str) -> Completeness:
    return Completeness(word) if word in set(Completeness) else Completeness.NONE


def _failure(word: str | None) -> Failure | None:
    return Failure(word) if word in set(Failure) else None
