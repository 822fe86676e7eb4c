"""How much a program has done, read off the end of its log: pure.

A grid's `progress: {pattern: ...}` is believed. Without one, only a counter that can hardly be anything else is
(rules/counting.py), as long as it never goes back: a bar that counts the steps of one episode starts again at the next.
A bar of which the grid says that it starts `each` so many episodes again (restarts.py) goes on where it stood.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from comborun.errors import UserError
from comborun.judging import ProgressRules, compile_pattern
from comborun.monitor.answer.restarts import ALL_SEEN, UNSEEN, Bar, Look
from comborun.rules.counting import guess


@dataclass(frozen=True)
class Counter:
    """What a log has told so far."""

    done: int | None = None
    """episodes (or steps) of this attempt; None when it tells nothing"""
    doubted: bool = False
    """it looked like a count of episodes and was none"""
    bar: Bar = UNSEEN
    """where `done` is read off a bar that starts again"""

    @property
    def whole(self) -> bool:
        """Whether `done` is all that was done, as far as a log can tell; else it may be any more."""
        return not self.bar.missed


NOTHING = Counter()


@dataclass(frozen=True)
class Share:
    """What one attempt is to do."""

    first: int
    count: int
    """0: the program decides"""


def counted(
    before: Counter, pieces: Iterator[str], rules: ProgressRules, share: Share, look: Look = ALL_SEEN
) -> Counter:
    """The highest count so far, now that these pieces of the log were seen."""
    pattern = _compiled(rules.pattern) if rules.pattern else None
    if pattern and rules.each:
        return _started_again(before, _bars(pattern, pieces), rules.each, share, look)
    if pattern:
        found = [one for piece in pieces for one in _named(pattern, piece, rules.counts_from, share)]
        return Counter(max((one for one in (before.done, *found) if one is not None), default=None))
    if rules.guess and not before.doubted:
        return _guessed(before, [one for piece in pieces if (one := guess(piece, share.count)) is not None])
    return before


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    """None for what this Python can't read, though the one that checked the grid could."""
    try:
        return compile_pattern(pattern)
    except UserError:
        return None


def _named(pattern: re.Pattern[str], piece: str, counts_from: int | None, share: Share) -> Iterator[int]:
    """What the pattern of a grid finds: group `done` (else the first), and `total` (else the second)."""
    for match in pattern.finditer(piece):
        done, total = _number(match, "done", 1), _number(match, "total", 2)
        if done is None or total == 0:
            continue
        if counts_from is not None:
            done -= counts_from + share.first
        if total and share.count:
            done = done * share.count // total
        yield max(0, min(done, share.count) if share.count else done)


def _bars(pattern: re.Pattern[str], pieces: Iterator[str]) -> list[tuple[int, int]]:
    """Each drawing of the bar: what is done, and its total."""
    matches = (match for piece in pieces for match in pattern.finditer(piece))
    drawn = ((_number(match, "done", 1), _number(match, "total", 2)) for match in matches)
    return [(min(done, total), total) for done, total in drawn if done is not None and total]


def _started_again(before: Counter, drawn: list[tuple[int, int]], each: int, share: Share, look: Look) -> Counter:
    """Parts that have passed, and the share of the one that is under way."""
    bar = before.bar.seen([at for at, _ in drawn], look)
    if not drawn:
        return replace(before, bar=bar)
    at, total = drawn[-1]
    done = bar.passed * each + at * each // total
    done = max(before.done or 0, min(done, share.count) if share.count else done)
    return Counter(done, bar=bar.timed(before.bar, done / each, look))


def _number(match: re.Match[str], name: str, place: int) -> int | None:
    """The digits of a group, which may be missing or hold something else."""
    names = match.re.groupindex
    if names and name not in names:
        return None
    if not names and match.re.groups < place:
        return None
    text = ((match[name] if names else match[place]) or "").strip()  # int() knows less white space than strip() does
    return int(text) if re.fullmatch(r"[0-9]{1,15}", text) else None


def _guessed(before: Counter, found: list[int]) -> Counter:
    """A tail repeats what the one before it held, so only its own order and its end can show that a count went back."""
    if not found:
        return before
    if found != sorted(found) or found[-1] < (before.done or 0):
        return Counter(doubted=True)
    return Counter(found[-1])
