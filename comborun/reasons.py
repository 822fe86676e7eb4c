"""Causes and classes of failures in words for people, as the table and the report both use them."""

from __future__ import annotations

from comborun.attempt import End
from comborun.rules.words import Cause, Failure

FAILURES = {
    Failure.GPU_MEMORY: "out of GPU memory",
    Failure.GPU_FAULT: "GPU fault",
    Failure.HOST_MEMORY: "out of memory",
    Failure.DISK_FULL: "disk full",
    Failure.STALLED: "stalled",
    Failure.TIMED_OUT: "took too long",
    Failure.KILLED: "killed",
    Failure.CRASHED: "crashed",
    Failure.LAUNCH_FAILED: "the command never ran",
    Failure.ERROR: "program error",
    Failure.NO_RESULT: "no results",
    Failure.LOST: "nobody saw it end",
    Failure.SERVER_LOST: "its server was lost",
    Failure.PREEMPTED: "preempted by Slurm",
}
CAUSES = {
    Cause.STOPPED: "stopped",
    Cause.NOT_NEEDED: "not needed",
    Cause.HUNG: "hung",
    **{cause: FAILURES[failure] for cause in Cause for failure in Failure if cause.value == failure.value},
}
"""what exit codes and signals don't tell"""
_BEHIND = {Failure.GPU_MEMORY, Failure.GPU_FAULT, Failure.HOST_MEMORY, Failure.DISK_FULL, Failure.SERVER_LOST}


def told(end: End) -> str:
    """What ended it, where its cause tells more than an exit code or a signal; else empty."""
    return CAUSES.get(end.cause, "")


def behind(end: End) -> str:
    """What was found to be behind an exit code or a signal: `out of GPU memory`; empty where nothing was."""
    if end.failure and end.failure in _BEHIND and end.cause in {Cause.EXITED, Cause.SIGNAL}:
        return FAILURES[end.failure]
    return ""
