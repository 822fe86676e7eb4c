"""How a session ended, in one line for people."""

from __future__ import annotations

from comborun.attempt import End
from comborun.plan import Session
from comborun.state import Cause, Completeness
from monitor.lastline import visible

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


def note(end: End, session: Session | None) -> str:
    """What the outcome alone does not say; empty for a clean success. `session` is None for `after`."""
    said = visible(end.note)
    if end.completeness is Completeness.COMPLETE:
        return "" if end.clean else f"{_cause(end)} after complete results"
    if end.cause in (Cause.STOPPED, Cause.LAUNCH_FAILED):
        return said or _cause(end)
    parts = (_missing(end, session) if end.clean else _cause(end), said)
    return ": ".join(part for part in parts if part)


def _cause(end: End) -> str:
    if end.signal:
        return _SIGNALS.get(end.signal, f"signal {end.signal}")
    if end.cause is Cause.EXITED and end.code is not None:
        return f"exit code {end.code}"
    return {
        Cause.STOPPED: "stopped",
        Cause.LAUNCH_FAILED: "the command never ran",
        Cause.LOST: "nobody saw it end",
    }.get(end.cause, "ended for an unknown reason")


def _missing(end: End, session: Session | None) -> str:
    """Why an exit with 0 is no success."""
    if session is None or not end.records:
        return "exit code 0, but no results"
    return f"exit code 0 after {end.records} of {session.count} {session.unit}s"
