"""Combos cut into shards: disjoint ranges that cover exactly the planned episodes, and how many of them pay. Pure."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

from comborun.planner.ranges import range_session

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from comborun.plan import Session

_TURNS = (1, 2, 3, 4, 6, 8)
"""sessions of a slot, one after another, that are tried"""
_WORTH = 0.98
"""of the time without them: more sessions than that is worth are not made"""


@dataclass(frozen=True)
class Uncut:
    """A combo as far as cutting it goes."""

    episodes: int
    seconds: float | None
    """for an episode; None: not known"""
    start_up: float
    """seconds of every session before its first episode"""

    def length(self, count: int) -> float:
        return self.start_up + count * (self.seconds or 0.0)


def shards(session: Session, number: int) -> tuple[Session, ...]:
    """`session` as `number` sessions that differ by one episode at most; of few episodes, one for each."""
    if min(number, session.count) <= 1:
        return (session,)
    return tuple(range_session(session, at.start, len(at)) for at in ranges(session.first, session.count, number))


def ranges(first: int, count: int, number: int) -> Iterator[range]:
    """`number` (or `count`, if that is less) contiguous ranges of first .. first + count - 1, the longer ones first."""
    number = min(number, count)
    for place in range(number):
        size = count // number + (place < count % number)
        yield range(first, first + size)
        first += size


def worthwhile(combos: Sequence[Uncut], others: Sequence[float | None], slots: int) -> tuple[int, ...]:
    """How many shards of each of `combos` make the whole end soonest, `others` (seconds each) running beside them.

    Every shard pays the start-up again, so more of them help only as long as slots would stand empty. Where the time of
    any session isn't known, no more are made than fill the slots; whoever has the most episodes is cut first.
    """
    if not combos:
        return ()
    if any(one.seconds is None for one in combos) or None in others:
        return _filling(combos, slots - len(others))
    known = [length for length in others if length is not None]
    best = tuple(1 for _ in combos)
    soonest = _makespan(_lengths(combos, best), known, slots)
    for numbers in _candidates(combos, known, slots):
        ends = _makespan(_lengths(combos, numbers), known, slots)
        if ends < soonest * _WORTH:
            best, soonest = numbers, ends
    return best


def _filling(combos: Sequence[Uncut], slots: int) -> tuple[int, ...]:
    """One session more at a time, for the combo whose sessions have the most episodes, while slots stand empty."""
    numbers = [1] * len(combos)
    longest = [(-float(one.episodes), place) for place, one in enumerate(combos)]
    heapq.heapify(longest)
    for _ in range(slots - len(combos)):
        place = longest[0][1]
        if numbers[place] >= combos[place].episodes:
            break
        numbers[place] += 1
        heapq.heapreplace(longest, (-combos[place].episodes / numbers[place], place))
    return tuple(numbers)


def _candidates(combos: Sequence[Uncut], others: Sequence[float], slots: int) -> Iterator[tuple[int, ...]]:
    """Into sessions of about one length: a slot's share of all the work, or a part of it; fewest sessions first."""
    whole = sum(one.length(one.episodes) for one in combos) + sum(others)
    for turns in _TURNS:
        share = max(whole / (slots * turns), 1e-9)
        yield tuple(min(one.episodes, max(1, round(one.length(one.episodes) / share))) for one in combos)


def _lengths(combos: Sequence[Uncut], numbers: Sequence[int]) -> Iterator[float]:
    for one, number in zip(combos, numbers, strict=True):
        yield from (one.length(len(at)) for at in ranges(0, one.episodes, number))


def _makespan(lengths: Iterable[float], others: Sequence[float], slots: int) -> float:
    """Longest first, each on the slot that is free first."""
    free = [0.0] * max(1, slots)
    for length in sorted((*lengths, *others), reverse=True):
        heapq.heapreplace(free, free[0] + length)
    return max(free)
