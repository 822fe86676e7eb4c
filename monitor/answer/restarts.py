"""A progress bar that starts again for each part of the work: how many parts have passed, as far as looks show. Pure.

A look sees the end of a log, and the next one sees some of that again: what went back inside it may be known already.
Only that the last number of a look lies below the last one of the look before is one part more for sure; and there were
at least as many parts as the bar went back inside one look. What passed wholly between two looks, or before the first
one, is not seen: the number of parts is a lower bound. `missed` says where that is likely: no pace follows then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise


@dataclass(frozen=True)
class Look:
    """When a log was looked at."""

    age: float
    """seconds since its attempt began"""
    late: bool = False
    """the first look of somebody who came later, at a log whose beginning it did not show"""


ALL_SEEN = Look(0.0)


@dataclass(frozen=True)
class Bar:
    """What the looks at one attempt's log have shown of it."""

    passed: int = 0
    """parts, at least"""
    at: int | None = None
    """its last number"""
    age: float = 0.0
    """of the attempt, when it was last seen"""
    missed: bool = False
    """more parts may have passed than were seen"""

    def seen(self, numbers: Sequence[int], look: Look) -> Bar:
        """With what one look showed: the numbers of the bar, oldest first."""
        bar = replace(self, missed=self.missed or look.late)
        if not numbers:
            return bar
        back = sum(later < earlier for earlier, later in pairwise(numbers))
        passed = self.passed + (self.at is not None and numbers[-1] < self.at)
        return replace(bar, passed=max(passed, back), at=numbers[-1], age=look.age)

    def timed(self, before: Bar, parts: float, look: Look) -> Bar:
        """`missed`, where the bar was out of sight for half the time that a part takes, by the `parts` done so far."""
        return replace(self, missed=self.missed or 2 * parts * (look.age - before.age) > look.age)


UNSEEN = Bar()
