"""Programs that run copies of an environment side by side and stop at the first K episodes that end count too many
short ones. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from comborun.reporter.statistics.proportion import Proportion, proportion

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class Balanced:
    """The rate over the same number of episodes from each copy: which end soon makes no difference to what counts."""

    rate: Proportion
    copies: int
    each: int
    """episodes per copy: the first ones, as many as every copy has"""
    left_out: int


def balanced(copies: Mapping[object, Sequence[bool]]) -> Balanced:
    """From the episodes of each copy in the order in which it ran them, true for a success."""
    each = min(map(len, copies.values()), default=0)
    successes = sum(sum(episodes[:each]) for episodes in copies.values())
    total = sum(map(len, copies.values()))
    n = each * len(copies)
    return Balanced(proportion(successes, n), len(copies), each, total - n)
