"""Life-cycle and outcome of a session: two things, because exit codes lie in both directions."""

from __future__ import annotations

from enum import StrEnum


class Life(StrEnum):
    """Where a session is in its life."""

    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    STALLED = "stalled"
    """running, without progress for longer than allowed"""
    ORPHANED = "orphaned"
    """its supervisor is gone, its processes live"""
    ENDED = "ended"


class Completeness(StrEnum):
    """How much of the planned work the evidence shows."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    NONE = "none"


class Cause(StrEnum):
    """What ended the command. `end` records of later versions may hold causes that are unknown here."""

    EXITED = "exited"
    """by itself; the code tells how"""
    SIGNAL = "signal"
    STOPPED = "stopped"
    """by the user"""
    LAUNCH_FAILED = "launch_failed"
    """the command never ran: setup failed, or there is no such program or folder"""
    LOST = "lost"
    """nothing lives and nobody recorded an end"""
    UNKNOWN = "unknown"


class Outcome(StrEnum):
    """How a session ended."""

    SUCCEEDED = "succeeded"
    PARTIAL = "partial"
    FAILED = "failed"
    CANCELLED = "cancelled"
    LOST = "lost"


def outcome(completeness: Completeness, cause: Cause) -> Outcome:
    """The outcome of a session; what `cause` adds to a complete one is a warning, not another outcome."""
    if completeness is Completeness.COMPLETE:
        return Outcome.SUCCEEDED
    if cause is Cause.STOPPED:
        return Outcome.CANCELLED
    if cause is Cause.LOST:
        return Outcome.LOST
    return Outcome.PARTIAL if completeness is Completeness.PARTIAL else Outcome.FAILED
