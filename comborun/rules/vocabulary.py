"""The life-cycle and the outcome of a session. They are separate, because exit codes can be wrong both ways."""

from __future__ import annotations

from enum import Enum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable

LOG_SAYS = "its log says"


class Word(str, Enum):
    """An enumeration whose members are their words, in text too: Python 3.8 has no StrEnum."""

    def __str__(self) -> str:
        return str(self.value)

    def __format__(self, spec: str) -> str:
        return format(str(self.value), spec)


class Life(Word):
    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    STALLED = "stalled"
    """running, without progress for longer than allowed"""
    ORPHANED = "orphaned"
    """its supervisor is gone, its processes live"""
    ENDED = "ended"


class Completeness(Word):
    """How much of the planned work the evidence shows."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    NONE = "none"


class Cause(Word):
    """What ended the command. Records of later versions may hold unknown causes."""

    EXITED = "exited"
    """it ended by itself; see its exit code"""
    SIGNAL = "signal"
    STOPPED = "stopped"
    """by a user"""
    NOT_NEEDED = "not_needed"
    """all its comparisons were decided before it began"""
    STALLED = "stalled"
    """ended by its supervisor: no progress for longer than allowed"""
    HUNG = "hung"
    """ended by its supervisor: it hung after its work"""
    TIMED_OUT = "timed_out"
    """ended by its supervisor: it ran longer than allowed"""
    GPU_MEMORY = "gpu_memory"
    HOST_MEMORY = "host_memory"
    GPU_FAULT = "gpu_fault"
    DISK_FULL = "disk_full"
    LAUNCH_FAILED = "launch_failed"
    """the command never ran: setup failed, or there is no such program or folder"""
    SERVER_LOST = "server_lost"
    """its model server went away"""
    PREEMPTED = "preempted"
    """Slurm gave its place to another job, or put it back into the queue"""
    LOST = "lost"
    """no process is left, and there is no end record"""
    UNKNOWN = "unknown"


class Failure(Word):
    """The class of a failure; retry budgets, the breaker and the report use it."""

    GPU_MEMORY = "gpu_memory"
    GPU_FAULT = "gpu_fault"
    HOST_MEMORY = "host_memory"
    DISK_FULL = "disk_full"
    STALLED = "stalled"
    TIMED_OUT = "timed_out"
    KILLED = "killed"
    """by a signal that a program does not give itself"""
    CRASHED = "crashed"
    """by a signal that a program gives itself, such as a segfault"""
    LAUNCH_FAILED = "launch_failed"
    ERROR = "error"
    """the program exited with another code than 0"""
    NO_RESULT = "no_result"
    """the program exited with 0, but its work is not complete"""
    LOST = "lost"
    SERVER_LOST = "server_lost"
    PREEMPTED = "preempted"


_CRASHES = {4, 5, 6, 7, 8, 11, 31}
"""ILL, TRAP, ABRT, BUS, FPE, SEGV, SYS"""
_NAMESAKES = {failure.value: failure for failure in Failure}


class Outcome(Word):
    SUCCEEDED = "succeeded"
    PARTIAL = "partial"
    FAILED = "failed"
    CANCELLED = "cancelled"
    LOST = "lost"
    NOT_NEEDED = "not needed"
    """its comparisons were decided without it"""


def outcome(completeness: Completeness, cause: Cause) -> Outcome:
    """The outcome of a session; what `cause` adds to a complete one is a warning, not another outcome."""
    if completeness is Completeness.COMPLETE:
        return Outcome.SUCCEEDED
    if cause is Cause.STOPPED:
        return Outcome.CANCELLED
    if cause is Cause.NOT_NEEDED:
        return Outcome.NOT_NEEDED
    if cause is Cause.LOST:
        return Outcome.LOST
    return Outcome.PARTIAL if completeness is Completeness.PARTIAL else Outcome.FAILED


def failure_of(completeness: Completeness, cause: Cause, code: int | None, signal: int | None) -> Failure | None:
    """The class of a failure; None for what is complete, stopped or not needed. The host writes the same into `end`."""
    if completeness is Completeness.COMPLETE or cause in {Cause.STOPPED, Cause.NOT_NEEDED}:
        return None
    if cause is Cause.EXITED:
        return Failure.NO_RESULT if code == 0 else Failure.ERROR
    if cause is Cause.SIGNAL:
        return Failure.CRASHED if signal in _CRASHES else Failure.KILLED
    if cause is Cause.HUNG:  # its evidence was there, and has vanished
        return Failure.STALLED
    return _NAMESAKES.get(cause.value, Failure.ERROR)


def several(count: int, noun: str, many: str = "") -> str:
    """`1 session`, `3 sessions`; `many` is the plural of a noun that takes more than an s."""
    return f"{count} {noun if count == 1 else many or f'{noun}s'}"


def first_of(names: Iterable[str], most: int, noun: str = "", count: int = 0) -> str:
    """`a, b and 3 more`, or with a noun `a, b and 3 more sessions`; `count`: of all, if `names` has only the first."""
    known = list(names)
    more = (count or len(known)) - min(most, len(known))
    rest = several(more, f"more {noun}") if noun else f"{more} more"
    return ", ".join(known[:most]) + (f" and {rest}" if more > 0 else "")


_SIZES = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def amount(number: float) -> str:
    """Bytes: `1.50 GiB`, `812 B`."""
    if number < 1 << 10:
        return f"{number:.0f} B"
    unit, name = unit_of(number)
    return f"{three(number / unit)} {name}"


def unit_of(number: float) -> tuple[int, str]:
    return next((unit for unit in _SIZES if number >= unit[0]), _SIZES[-1])


def three(number: float) -> str:
    """Three digits, or the whole number where that has more."""
    return f"{number:.{0 if number >= 99.95 else 1 if number >= 9.995 else 2}f}"
