"""Durations and times of day as people read them."""

from __future__ import annotations

import time

from comborun.rules.vocabulary import amount

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Mapping

_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def brief(seconds: float) -> str:
    """At most six characters: `45 s`, `12 min`, `3.2 h`, `4.1 d`."""
    whole = round(max(0.0, seconds))
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min"
    if whole < 2 * _DAY:
        return f"{whole / _HOUR:.1f} h"
    return f"{min(whole / _DAY, 999):.3g} d"


def duration(seconds: float) -> str:
    """Two units: `45 s`, `12 min 05 s`, `3 h 04 min`, `2 d 03 h`."""
    whole = round(max(0.0, seconds))
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE:02} s"
    if whole < 2 * _DAY:
        return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE:02} min"
    return f"{whole // _DAY} d {whole % _DAY // _HOUR:02} h"


def clock(moment: float, *, near: float | None = None) -> str:
    """A time of day: `14:32:05`; with `near` to the minute, and with the weekday when it is not that day."""
    try:
        shown, day = time.localtime(moment), time.localtime(moment if near is None else near)
    except (OverflowError, ValueError, OSError):  # a clock that is far wrong
        return "?"
    if near is None:
        return time.strftime("%H:%M:%S", shown)
    return time.strftime("%H:%M" if shown[:3] == day[:3] else "%a %H:%M", shown)


def clocks(first: float, last: float, near: float) -> str:
    """A range of times of day: `14:28–15:10`, `Sat 23:50–Sun 01:20`, `Sat 14:28–15:10`; one if both are the same."""
    low, high = clock(first, near=near), clock(last, near=near)
    if low == high:
        return low
    one_day = low != "?" != high and time.localtime(first)[:3] == time.localtime(last)[:3]
    return f"{low}–{high.rpartition(' ')[2] if one_day else high}"


def span(shortest: float, longest: float) -> str:
    """A range of durations: `8–12 min`, `45 s–2 min`, or one of them if both have the same text."""
    low, high = brief(shortest), brief(longest)
    if low == high:
        return high
    number, unit = low.split(" ")
    return f"{number if high.endswith(f' {unit}') else low}–{high}"


FORMS: Mapping[str, Callable[[float], str]] = {
    "brief": brief,
    "duration": duration,
    "clock": clock,
    "amount": amount,
    "are": lambda count: "is" if count == 1 else "are",
    "have": lambda count: "has" if count == 1 else "have",
    "s": lambda count: "" if 0 < count <= 1 else "s",
    "g": "{:g}".format,
}
