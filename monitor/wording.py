"""Durations, times, sizes, symbols, states and lines of logs as people read them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING

from comborun.rules.words import Life, Outcome
from comborun.text import GIB, MIB, harmless, several

if TYPE_CHECKING:
    from comborun.monitor.snapshot import Server
    from comborun.monitor.status import Expected, HostEvent, SessionStatus

_SIZES = ((1 << 40, "TiB"), (GIB, "GiB"), (MIB, "MiB"))
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_CLOCK_S = 60.0
"""that a host's clock may be off without a word"""
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
_SERVER_WORDS = {
    "queued": "has not started",
    "starting": "is starting",
    "loading": "is loading",
    "ready": "is ready",
    "silent": "does not answer",
    "ended": "has ended",
}


def state(session: SessionStatus) -> str:
    """One word: the outcome of an ended session, else its state."""
    return str(session.outcome or session.life)


def listed(counts: Mapping[str, int]) -> str:
    """`2 failed, 6 succeeded`."""
    return ", ".join(f"{count} {word}" for word, count in counts.items())


def remark(session: SessionStatus) -> str:
    """Why rows of a session don't count, and its note."""
    return "; ".join(part for part in (session.uncounted, session.note) if part)


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


def clock(moment: float, zone: tzinfo | None, *, near: float | None = None) -> str:
    """A time of day: `14:32:05`; with `near` to the minute, and with the weekday when it is not that day."""
    try:
        shown = datetime.fromtimestamp(moment, zone)
        day = shown.date() if near is None else datetime.fromtimestamp(near, zone).date()
    except (OverflowError, ValueError, OSError):  # a clock that is far wrong
        return "?"
    if near is None:
        return f"{shown:%H:%M:%S}"
    return f"{shown:%H:%M}" if shown.date() == day else f"{shown:%a %H:%M}"


def span(shortest: float, longest: float) -> str:
    """A range of durations: `8–12 min`, `45 s–2 min`, or one of them if both have the same text."""
    low, high = brief(shortest), brief(longest)
    if low == high:
        return high
    number, unit = low.split(" ")
    return f"{number if high.endswith(f' {unit}') else low}–{high}"


def expectation(end: Expected, now: float, zone: tzinfo | None) -> str:
    """The expected end: `ends 14:28–14:36 (in 8–16 min)`."""
    first, last = (clock(moment, zone, near=now) for moment in (end.earliest, end.latest))
    times = f"about {last}" if first == last else f"{first}–{last}"
    return f"ends {times} (in {span(end.earliest - now, end.latest - now)})"


def clock_words(ahead: float, host: str) -> str:
    """What is to be known of times of day where the clocks of a host and of this machine differ; else empty."""
    if abs(ahead) < _CLOCK_S:
        return ""
    way = "ahead" if ahead > 0 else "behind"
    return f"the clock of {visible(host)} is {brief(abs(ahead))} {way}: times of day are its own"


def event_words(event: HostEvent, host: str, zone: tzinfo | None) -> str:
    """`gpu-box rebooted after 14:32:05: 8 sessions that ran before are lost`."""
    count, host = len(event.sessions), visible(host)
    when = "" if event.last_sign is None else f" after {clock(event.last_sign, zone)}"
    if event.kind == "restarted":
        are = "is" if count == 1 else "are"
        return f"{host} rebooted{when}: {several(count, 'session')} that ran before {are} lost"
    return f"all {count} sessions that ran vanished together{when}: were the user's processes on {host} killed?"


def server_words(server: Server, now: float | None) -> str:
    """`is loading for 3 min`, `has ended 20 s ago (signal)`."""
    word = _SERVER_WORDS.get(server.state, visible(server.state))
    if server.since is not None and now is not None:
        lasting = brief(now - server.since)
        word += f" {lasting} ago" if server.state == "ended" else f" for {lasting}"
    if server.state == "ended":
        word += f" ({visible(server.cause)}{': ' if server.why else ''}{visible(server.why)})"
    return word


def sizes(part: int, whole: int) -> str:
    """Two sizes: `41.2/79.6 GiB`, or `31.0 GiB/3.49 TiB` if the part is small in the unit of the whole."""
    unit, name = _unit(whole)
    if part and 10 * part < unit:
        return f"{amount(part)}/{_three(whole / unit)} {name}"
    return f"{_three(part / unit) if part else 0}/{_three(whole / unit)} {name}"


def amount(number: int) -> str:
    """Bytes: `1.5 GiB`."""
    unit, name = _unit(number)
    return f"{_three(number / unit)} {name}"


def _unit(number: int) -> tuple[int, str]:
    return next((unit for unit in _SIZES if number >= unit[0]), _SIZES[-1])


def _three(number: float) -> str:
    """Three digits, or all digits of a larger whole number."""
    return f"{number:.{0 if number >= 99.95 else 1 if number >= 9.995 else 2}f}"


def last_line(log: bytes) -> str:
    """The last non-empty line."""
    lines = reversed(log.decode("utf-8", "replace").split("\n"))
    return next((shown for line in lines if (shown := visible(line))), "")


def visible(line: str) -> str:
    """A line that is safe to show: no control characters, no escape sequences, limited length."""
    return indented(line).strip()


def indented(line: str) -> str:
    """The same with its leading blanks, which structure a traceback. Of a progress bar it shows the text after the last
    `\\r`.
    """
    drawn = harmless(line, keep="\r\t").replace("\t", " ").split("\r")
    shown = next((one.rstrip() for one in reversed(drawn) if one.strip()), "")
    return shown if len(shown) <= LONGEST else shown[: LONGEST - 1] + "…"
