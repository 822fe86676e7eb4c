"""The records of one attempt, as session.sh writes them: `key=value` lines, complete or absent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from comborun.amounts import KIB
from comborun.state import Cause, Completeness, Failure, Outcome, failure_of, outcome

SLURM = "slurm"
"""the multiplexer of a session that a task of an array runs: it has no window"""


def parse_record(text: str) -> dict[str, str]:
    """The fields of a `key=value` record; lines without `=` are passed over."""
    return dict(line.split("=", 1) for line in text.split("\n") if "=" in line)


def integer(record: Mapping[str, str], key: str) -> int | None:
    """A field as bash writes numbers, or None: anything else than up to 18 digits is none of ours."""
    value = record.get(key, "")
    return int(value) if re.fullmatch(r"-?[0-9]{1,18}", value) else None


def seconds(record: Mapping[str, str], key: str) -> float | None:
    """A time or a duration, finite, or None."""
    value = record.get(key, "")
    return float(value) if re.fullmatch(r"[0-9]{1,18}(\.[0-9]*)?", value) else None


def own_end(claim: str, end: str) -> bool:
    """Whether the text of an `end` is that of the start which the `claim` is of.

    Where a task is requeued the process of its earlier start can still be alive, on another node, and write.
    """
    nonce = parse_record(claim).get("nonce")
    return nonce is None or parse_record(end).get("nonce") == nonce


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
        record = parse_record(text)
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
    records: int
    successes: int
    note: str
    """one line for people: why a launch failed, who stopped it, why it was ended"""
    failure: Failure | None = None
    """None when the work was done, or the user stopped it"""
    peak_memory: int | None = None
    """bytes of main memory that the session's processes held together at most, as far as was seen"""
    gave_way: bool = False
    """it was told to make room for others on its GPU"""

    @property
    def outcome(self) -> Outcome:
        return outcome(self.completeness, self.cause)

    @property
    def clean(self) -> bool:
        """Whether the command ended by itself with code 0."""
        return self.cause is Cause.EXITED and self.code == 0

    @property
    def made_room(self) -> bool:
        """Whether it failed for no other reason than that the others on its GPU needed the memory."""
        return self.gave_way and self.cause is Cause.GPU_MEMORY and self.failure is not None

    @classmethod
    def parse(cls, text: str) -> Self:
        record = parse_record(text)
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
            records=integer(record, "records") or 0,
            successes=integer(record, "successes") or 0,
            note=record.get("note", ""),
            failure=_failure(record.get("class")) or failure_of(completeness, cause, code, signal),
            peak_memory=None if peak is None else peak * KIB,
            gave_way=record.get("gave_way") == "1",
        )


def _cause(word: str) -> Cause:
    return Cause(word) if word in set(Cause) else Cause.UNKNOWN


def _completeness(word: str) -> Completeness:
    return Completeness(word) if word in set(Completeness) else Completeness.NONE


def _failure(word: str | None) -> Failure | None:
    return Failure(word) if word in set(Failure) else None
