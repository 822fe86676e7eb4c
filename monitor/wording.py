"""Sizes, symbols, states and lines of logs as people read them; times are in `comborun/words/times.py`."""

from __future__ import annotations

from collections.abc import Mapping

from comborun.rules.counting import shown
from comborun.rules.vocabulary import Life, Outcome, amount, three, unit_of
from comborun.text import harmless
from comborun.words.endings import outcome_words
from comborun.words.times import brief

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


def visible(line: str, most: int = LONGEST) -> str:
    """A line that is safe to show: no control characters, no escape sequences, limited length."""
    return indented(line, most).strip()


def indented(line: str, most: int = LONGEST) -> str:
    """The same, but with leading blanks, which tracebacks need. Of a progress bar only the last drawing stays."""
    text = shown(harmless(line, keep="\r\t").replace("\t", " ")).rstrip()
    return text if len(text) <= most else text[: most - 1] + "…"
