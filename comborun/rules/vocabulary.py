"""The life-cycle and the outcome of a session. They are separate, because exit codes can be wrong both ways."""

from __future__ import annotations

from enum import Enum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Mapping


class Word(str, Enum):
    """An enumeration whose members are their words, in text too: Python 3.8 has no StrEnum."""

    def __str__(self) -> str:
        return str(self.value)

    def __format__(self, spec: str) -> str:
        return format(str(self.value), spec)


class Life(Word):
    """Where an attempt, or its session, is between the grant and the end."""

    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    STALLED = "stalled"  # running, without progress for longer than allowed
    ENDING = "ending"  # its command has ended, which freed its slot, and it is judged
    ORPHANED = "orphaned"  # its supervisor is gone, its processes live
    LOST = "lost"  # none of its processes lives, and there is no end record
    ENDED = "ended"
    # Only on Slurm
    SENT = "sent"  # Slurm has a task for its next attempt
    GONE = "gone"  # it had one, which began nothing
    STRAY = "stray"  # it runs, but Slurm has no task for it


class Completeness(Word):
    """How much of the planned work the evidence shows."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    NONE = "none"


class Cause(Word):
    """What ended the command. Records of later versions may hold unknown causes."""

    EXITED = "exited"  # it ended by itself; see its exit code
    SIGNAL = "signal"
    STOPPED = "stopped"  # by a user
    NOT_NEEDED = "not_needed"  # all its comparisons were decided before it began
    STALLED = "stalled"  # ended by its supervisor: no progress for longer than allowed
    HUNG = "hung"  # ended by its supervisor: it hung after its work
    TIMED_OUT = "timed_out"  # ended by its supervisor: it ran longer than allowed
    GPU_MEMORY = "gpu_memory"
    HOST_MEMORY = "host_memory"
    GPU_FAULT = "gpu_fault"
    SHARED_MEMORY = "shared_memory"
    DISK_FULL = "disk_full"
    STORAGE_FAULT = "storage_fault"
    HOST_LIMIT = "host_limit"  # no more threads, processes or open files
    LAUNCH_FAILED = "launch_failed"  # the command never ran: setup failed, or there is no such program or folder
    SERVER_LOST = "server_lost"  # its model server went away
    NETWORK_FAULT = "network_fault"  # a service outside the run did not answer
    PREEMPTED = "preempted"  # Slurm gave its place to another job, or put it back into the queue
    LOST = "lost"  # no process is left, and there is no end record
    UNKNOWN = "unknown"


class Outcome(Word):
    SUCCEEDED = "succeeded"
    PARTIAL = "partial"
    FAILED = "failed"
    CANCELLED = "cancelled"
    LOST = "lost"
    NOT_NEEDED = "not_needed"  # its comparisons were decided without it


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


def session_outcome(
    counted: Completeness | None, last: Completeness = Completeness.NONE, cause: Cause = Cause.LOST
) -> Outcome:
    """The outcome of a session over all its attempts. How much the records of all of them show together decides, in
    `counted`; it is None where records can't show it, and then the evidence of the last attempt decides. `last` and
    `cause` are of that attempt; one without an end record is lost.
    """
    return outcome(counted or last, cause)


_COMPLETENESS, _CAUSES = {one.value: one for one in Completeness}, {one.value: one for one in Cause}
_OUTCOMES = {one.value: one for one in Outcome}


def completeness_of(end: Mapping[str, Any]) -> Completeness:
    return _COMPLETENESS.get(end.get("completeness", ""), Completeness.NONE)


def cause_of(end: Mapping[str, Any]) -> Cause:
    return _CAUSES.get(end.get("cause", ""), Cause.UNKNOWN)


def outcome_of(end: Mapping[str, Any]) -> Outcome:
    """The outcome that an end record holds; one of the former version holds only what it follows from."""
    found = _OUTCOMES.get(end.get("outcome", ""))
    return found or outcome(completeness_of(end), cause_of(end))


def word_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


def several(count: float, noun: str, many: str = "") -> str:
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
