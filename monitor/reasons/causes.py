"""How a session ended, in one line for people."""

from __future__ import annotations

from comborun.attempt import End, behind, told
from comborun.monitor.lastline import visible
from comborun.plan import Session
from comborun.rules.words import Cause, Completeness, Failure

WRONG_GPU = "WRONG_GPU"
"""in a note: its memory lay on another GPU than it was granted (host/seat.py)"""
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
        how = "" if end.clean else f"{ended_by(end)} after complete results"
        return "; ".join(filter(None, (how, said if WRONG_GPU in said else "")))
    if end.cause in (Cause.STOPPED, Cause.NOT_NEEDED, Cause.LAUNCH_FAILED):
        return said or ended_by(end)
    missing = end.clean and end.failure in (None, Failure.NO_RESULT)
    parts = (_missing(end, session) if missing else ended_by(end), said)
    return ": ".join(part for part in parts if part)


def ended_by(end: End) -> str:
    """What ended the command: `exit code 3`, `stalled`, `out of GPU memory (killed)`."""
    if known := told(end):
        return known
    found, seen = behind(end), _seen(end)
    return f"{found} ({seen})" if found else seen


def _seen(end: End) -> str:
    if end.signal:
        return _SIGNALS.get(end.signal, f"signal {end.signal}")
    if end.cause is Cause.EXITED and end.code is not None:
        return f"exit code {end.code}"
    return "ended for an unknown reason"


def _missing(end: End, session: Session | None) -> str:
    """Why an exit with 0 is no success."""
    if session and session.evidence.beside_records and (not session.results.told or end.records >= session.count):
        return f"exit code 0, without {session.evidence.beside_records}"
    if session is None or not end.records:
        return "exit code 0, but no results"
    if end.records >= session.count:
        return "exit code 0, but no verdict in any of its records"
    return f"exit code 0 after {end.records} of {session.count} {session.unit}s"
