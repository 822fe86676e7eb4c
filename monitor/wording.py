"""Sizes, symbols, states and lines of logs as people read them; times are in `comborun/words/times.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeVar

from comborun.rules.counting import shown
from comborun.rules.vocabulary import Life, Outcome, amount, three, unit_of
from comborun.text import harmless
from comborun.words.endings import outcome_words
from comborun.words.times import brief

T = TypeVar("T")
_CLOCK_S = 60.0
"""seconds; a host's clock may differ by less without a note"""
LONGEST = 200
"""most characters of a line"""


class Mark(NamedTuple):
    """How a state is shown."""

    symbol: str
    style: str
    group: int = 0
    """one of FAILED to DONE, in the order of their urgency"""


FAILED, STALLED, RUNNING, QUEUED, DONE = range(5)
MARKS: Mapping[str, Mark] = {
    Outcome.FAILED: Mark("✗", "red", FAILED),
    Outcome.LOST: Mark("?", "magenta", FAILED),
    Outcome.PARTIAL: Mark("◐", "yellow", FAILED),
    Outcome.CANCELLED: Mark("■", "yellow", FAILED),
    Life.STALLED: Mark("!", "yellow", STALLED),
    Life.ORPHANED: Mark("◇", "magenta", STALLED),
    Life.RUNNING: Mark("●", "cyan", RUNNING),
    Life.ENDING: Mark("○", "cyan", RUNNING),
    Life.STARTING: Mark("◌", "cyan", RUNNING),
    Life.QUEUED: Mark("·", "dim", QUEUED),
    Outcome.SUCCEEDED: Mark("✓", "green", DONE),
    Outcome.NOT_NEEDED: Mark("–", "dim", DONE),
}
"""the most urgent state first"""
_URGENCY = {str(word): place for place, word in enumerate(MARKS)}
SERVER_MARKS: Mapping[str, Mark] = {
    "queued": Mark("·", "dim"),
    "starting": Mark("○", "cyan"),
    "loading": Mark("○", "cyan"),
    "ready": Mark("●", "green"),
    "silent": Mark("!", "yellow"),
    "ended": Mark("!", "yellow"),
}
UNMARKED = Mark("·", "dim", RUNNING)
"""for a state that this version does not know"""


def urgency(word: str) -> int:
    """Sort key of states: the most urgent first; an unknown one needs somebody who looks at it."""
    return _URGENCY.get(word, 0)


def by_urgency(found: Mapping[str, T]) -> list[tuple[str, T]]:
    """What is known of each state, the most urgent first."""
    return sorted(found.items(), key=lambda item: urgency(item[0]))


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
