"""Durations, times, sizes, symbols, states and lines of logs as people read them."""

from __future__ import annotations

import time
from collections.abc import Mapping

from comborun.rules.counting import shown
from comborun.rules.vocabulary import Life, Outcome, amount, three, unit_of
from comborun.text import harmless
from comborun.words.endings import outcome_words

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_CLOCK_S = 60.0
"""seconds; a host's clock may differ by less without a note"""
LONGEST = 200
"""most characters of a line"""

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
    Outcome.NOT_NEEDED: "–",
}
STYLES: dict[str, str] = {
    Life.QUEUED: "dim",
    Life.STARTING: "cyan",
    Life.RUNNING: "cyan",
    Life.STALLED: "yellow",
    Life.ORPHANED: "magenta",
    Outcome.SUCCEEDED: "green",
    Outcome.PARTIAL: "yellow",
    Outcome.FAILED: "red",
    Outcome.CANCELLED: "yellow",
    Outcome.LOST: "magenta",
    Outcome.NOT_NEEDED: "dim",
}
SERVER_SYMBOLS = {"ready": "●", "loading": "○", "starting": "○", "silent": "!", "ended": "!"}


def listed(counts: Mapping[str, int]) -> str:
    """`2 failed, 6 succeeded`."""
    return ", ".join(f"{count} {outcome_words(word)}" for word, count in counts.items())


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


def span(shortest: float, longest: float) -> str:
    """A range of durations: `8–12 min`, `45 s–2 min`, or one of them if both have the same text."""
    low, high = brief(shortest), brief(longest)
    if low == high:
        return high
    number, unit = low.split(" ")
    return f"{number if high.endswith(f' {unit}') else low}–{high}"


def clock_words(ahead: float, host: str) -> str:
    """A note if the clocks of a host and of this machine differ; else empty."""
    if abs(ahead) < _CLOCK_S:
        return ""
    way = "ahead" if ahead > 0 else "behind"
    return f"the clock of {visible(host)} is {brief(abs(ahead))} {way}: times of day are by that clock"


def sizes(part: int, whole: int) -> str:
    """Two sizes: `41.2/79.6 GiB`, or `31.0 GiB/3.49 TiB` if the part is small in the unit of the whole."""
    unit, name = unit_of(whole)
    if part and 10 * part < unit:
        return f"{amount(part)}/{three(whole / unit)} {name}"
    return f"{three(part / unit) if part else 0}/{three(whole / unit)} {name}"


def last_line(log: bytes) -> str:
    lines = reversed(log.decode("utf-8", "replace").split("\n"))
    return next((text for line in lines if (text := visible(line))), "")


def visible(line: str) -> str:
    """A line that is safe to show: no control characters, no escape sequences, limited length."""
    return indented(line).strip()


def indented(line: str) -> str:
    """The same, but with leading blanks, which tracebacks need. Of a progress bar only the last drawing stays."""
    text = shown(harmless(line, keep="\r\t").replace("\t", " ")).rstrip()
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
