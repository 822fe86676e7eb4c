"""Reads the progress of a program from the end of its log; pure.

A grid's `progress: {pattern: ...}` is trusted. Without one, a number that rules/counting.py finds is used as long as it
never goes down: a bar that counts the steps of one episode starts again with each episode.

If a bar starts again every `each` episodes, as the grid says, its finished parts are counted. Two looks at the end of a
log may overlap. So a new part is certain only if the last number is lower than in the look before, or if a number goes
down within one look. Parts between two looks, or before the first look, are missed, so the count is a lower bound.
`missed` says that this is likely; then no pace is computed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from comborun.errors import UserError
from comborun.model.judging import ProgressRules, compile_pattern
from comborun.rules.counting import guess


@dataclass(frozen=True)
class Workload:
    first: int
    count: int
    """0: the program decides"""

    def most(self, done: int) -> int:
        return min(done, self.count) if self.count else done


class Observation(NamedTuple):
    age: float = 0.0
    """seconds since its attempt began"""
    late: bool = False
    """whether this is the first look and does not show the beginning of the log"""


ALL_SEEN = Observation()


class LogProgress(NamedTuple):
    """The progress of one attempt, from its log so far."""

    done: int | None = None
    """episodes (or steps) of this attempt; None if the log shows none"""
    doubted: bool = False
    """whether it looked like a count of episodes but was not"""
    passed: int = 0
    """least number of finished parts of a bar that starts again"""
    at: int | None = None
    """the last number of that bar"""
    age: float = 0.0
    """the attempt's age in seconds when that bar was last seen"""
    missed: bool = False
    """whether parts may have been missed, so that `done` is a lower bound"""


NOTHING = LogProgress()


def counted(
    before: LogProgress, pieces: Iterator[str], rules: ProgressRules, workload: Workload, look: Observation = ALL_SEEN
) -> LogProgress:
    """The counter, updated by these pieces of the log."""
    pattern = _compiled(rules.pattern) if rules.pattern else None
    if pattern and rules.each:
        drawn = [(min(done, total), total) for done, total in _found(pattern, pieces) if total]
        return _started_again(before, drawn, rules.each, workload, look)
    if pattern:
        found = [
            _done(done, total, rules.counts_from, workload) for done, total in _found(pattern, pieces) if total != 0
        ]
        return LogProgress(max((one for one in (before.done, *found) if one is not None), default=None))
    if rules.guess and not before.doubted:
        return _guessed(before, [one for piece in pieces if (one := guess(piece, workload.count)) is not None])
    return before


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    """The compiled pattern; None if this Python can't compile it, though the one that checked the grid could."""
    try:
        return compile_pattern(pattern)
    except UserError:
        return None


def _found(pattern: re.Pattern[str], pieces: Iterator[str]) -> Iterator[tuple[int, int | None]]:
    """Group `done` (else the first), and `total` (else the second) of each match."""
    for piece in pieces:
        for match in pattern.finditer(piece):
            done = _number(match, "done", 1)
            if done is not None:
                yield done, _number(match, "total", 2)


def _number(match: re.Match[str], name: str, place: int) -> int | None:
    names = match.re.groupindex
    if name not in names if names else match.re.groups < place:
        return None
    text = ((match[name] if names else match[place]) or "").strip()  # int() knows less white space than strip() does
    return int(text) if re.fullmatch(r"[0-9]{1,15}", text) else None


def _done(done: int, total: int | None, counts_from: int | None, workload: Workload) -> int:
    if counts_from is not None:
        done -= counts_from + workload.first
    if total and workload.count:
        done = done * workload.count // total
    return max(0, workload.most(done))


def _started_again(
    before: LogProgress, drawn: Sequence[tuple[int, int]], each: int, workload: Workload, look: Observation
) -> LogProgress:
    """The episodes of finished parts, plus the share of the current one."""
    missed = before.missed or look.late
    if not drawn:
        return before._replace(missed=missed)
    at, total = drawn[-1]
    back = sum(later < earlier for (earlier, _), (later, _) in pairwise(drawn))
    passed = max(back, before.passed + (before.at is not None and at < before.at))
    done = max(before.done or 0, workload.most(passed * each + at * each // total))
    unseen = 2 * done / each * (look.age - before.age) > look.age  # unseen for half the time of a part
    return LogProgress(done, passed=passed, at=at, age=look.age, missed=missed or unseen)


def _guessed(before: LogProgress, found: Sequence[int]) -> LogProgress:
    """The counter without a pattern. Tails overlap, so only the order within a tail and its last number show a step
    back.
    """
    if not found:
        return before
    if list(found) != sorted(found) or found[-1] < (before.done or 0):
        return LogProgress(doubted=True)
    return LogProgress(found[-1])
