"""Durations, times and symbols as people read them."""

from __future__ import annotations

from datetime import datetime, tzinfo

from comborun.state import Life, Outcome
from monitor.status import SessionStatus

MINUTE, HOUR, DAY = 60, 3600, 86400

SYMBOLS: dict[str, str] = {
    Life.QUEUED: "·",
    Life.STARTING: "◌",
    Life.RUNNING: "●",
    Life.STALLED: "◍",
    Life.ORPHANED: "◇",
    Outcome.SUCCEEDED: "✓",
    Outcome.PARTIAL: "◐",
    Outcome.FAILED: "✗",
    Outcome.CANCELLED: "■",
    Outcome.LOST: "?",
}


def state(session: SessionStatus) -> str:
    """One word: the outcome of what has ended, else where it is in its life."""
    return str(session.outcome or session.life)


def brief(seconds: float) -> str:
    """At most six characters: `45 s`, `12 min`, `3.2 h`, `4.1 d`."""
    whole = round(max(0.0, seconds))
    if whole < MINUTE:
        return f"{whole} s"
    if whole < HOUR:
        return f"{whole // MINUTE} min"
    if whole < 2 * DAY:
        return f"{whole / HOUR:.1f} h"
    return f"{min(whole / DAY, 999):.3g} d"


def duration(seconds: float) -> str:
    """Two units: `45 s`, `12 min 05 s`, `3 h 04 min`, `2 d 03 h`."""
    whole = round(max(0.0, seconds))
    if whole < MINUTE:
        return f"{whole} s"
    if whole < HOUR:
        return f"{whole // MINUTE} min {whole % MINUTE:02} s"
    if whole < 2 * DAY:
        return f"{whole // HOUR} h {whole % HOUR // MINUTE:02} min"
    return f"{whole // DAY} d {whole % DAY // HOUR:02} h"


def clock(moment: float, zone: tzinfo | None, *, near: float | None = None) -> str:
    """A time of day: `14:32:05`; with `near` to the minute, and with the weekday when it is not that day."""
    try:
        shown = datetime.fromtimestamp(moment, zone)
        day = shown.date() if near is None else datetime.fromtimestamp(near, zone).date()
    except (OverflowError, ValueError, OSError):  # a clock that is far off
        return "?"
    if near is None:
        return f"{shown:%H:%M:%S}"
    return f"{shown:%H:%M}" if shown.date() == day else f"{shown:%a %H:%M}"


def expectation(end: float, now: float, zone: tzinfo | None) -> str:
    """When something will be over: `ends about 14:32 (in 12 min)`."""
    return f"ends about {clock(end, zone, near=now)} (in {brief(end - now)})"
