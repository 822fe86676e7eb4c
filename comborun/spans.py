"""Sets of episode indices as ranges: short in memory, and short to name."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Spans = tuple[range, ...]
"""disjoint, ascending, none empty, none touching the next"""


def spans(indices: Iterable[int]) -> Spans:
    """The ranges that hold exactly `indices`, which may come in any order and more than once."""
    found: list[range] = []
    for index in sorted(set(indices)):
        if found and found[-1].stop == index:
            found[-1] = range(found[-1].start, index + 1)
        else:
            found.append(range(index, index + 1))
    return tuple(found)


def union(ranges: Iterable[range]) -> Spans:
    """The same indices as disjoint ranges."""
    found: list[range] = []
    for span in sorted((span for span in ranges if span), key=lambda span: span.start):
        if found and span.start <= found[-1].stop:
            found[-1] = range(found[-1].start, max(found[-1].stop, span.stop))
        else:
            found.append(span)
    return tuple(found)


def gaps(planned: Spans, seen: Sequence[int]) -> Spans:
    """What of `planned` is not in `seen`, an ascending sequence; linear in both."""
    missing: list[range] = []
    position = 0
    for span in planned:
        start = span.start
        while position < len(seen) and seen[position] < span.stop:
            if seen[position] > start:
                missing.append(range(start, seen[position]))
            start = max(start, seen[position] + 1)
            position += 1
        if start < span.stop:
            missing.append(range(start, span.stop))
    return tuple(missing)


def minus(among: Spans, others: Spans) -> Spans:
    """The indices of `among` that are not in `others`."""
    left: list[range] = []
    for span in among:
        start = span.start
        for other in others:
            if other.stop > start and other.start < span.stop:
                left.append(range(start, other.start))
                start = other.stop
        left.append(range(start, span.stop))
    return union(left)


def within(among: Spans, index: int) -> bool:
    place = bisect_right(among, index, key=lambda span: span.start)
    return place > 0 and index < among[place - 1].stop


def size(among: Spans) -> int:
    """How many indices; not len(range), which overflows beyond 63 bits."""
    return sum(span.stop - span.start for span in among)


def describe(among: Spans, limit: int = 12) -> str:
    """`3-7, 12`; of very many ranges the first, and how many more there are."""
    names = [str(span.start) if span.stop - span.start == 1 else f"{span.start}-{span.stop - 1}" for span in among]
    more = len(names) - limit
    return ", ".join(names[:limit]) + (f" and {more} more ranges" if more > 0 else "")
