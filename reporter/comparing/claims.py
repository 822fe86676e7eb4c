"""What the comparisons decide, and what they leave open, in words: plain text with the names as they came. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from comborun.reporter.counting.quality import Finding
from comborun.reporter.text import fraction, p_value, points, points_interval
from comborun.text import several

if TYPE_CHECKING:
    from collections.abc import Iterator

    from comborun.reporter.comparing.comparisons import Comparison, Comparisons, EnvironmentComparisons

NOTHING_DECIDED = "No comparison is decided."
PAIRS_TOLD = 6
"""undecided pairs of an environment that are named with their numbers; of more only the names are"""


@dataclass(frozen=True)
class Claims:
    """Sentences. Names in them must be escaped."""

    decided: tuple[str, ...]
    """by environment, then the largest difference first"""
    undecided: tuple[str, ...]
    """one for each environment where a comparison decides nothing"""
    left_out: tuple[str, ...]
    """one for each environment with policies that can't be compared"""

    @property
    def left_open(self) -> tuple[str, ...]:
        return (*self.undecided, *self.left_out)

    @property
    def told(self) -> tuple[str, ...]:
        """As a reader meets them, what is decided first; nothing where nothing was compared."""
        if not self.decided and not self.undecided:
            return ()
        return (*(self.decided or [NOTHING_DECIDED]), *self.left_open)


def claims(comparisons: Comparisons) -> Claims:
    return Claims(
        decided=tuple(
            _claim(comparison)
            for group in comparisons.environments
            for comparison in sorted(group.comparisons, key=lambda comparison: -abs(comparison.difference))
            if comparison.decided
        ),
        undecided=tuple(
            _undecided(group, comparisons.size)
            for group in comparisons.environments
            if not all(comparison.decided for comparison in group.comparisons)
        ),
        left_out=tuple(
            f"Not compared in {environment}: {', '.join(policies)} (no completed episode)."
            for environment, policies in comparisons.left_out
        ),
    )


def _claim(comparison: Comparison) -> str:
    swapped = comparison.difference < 0
    better, worse = (comparison.b, comparison.a) if swapped else (comparison.a, comparison.b)
    low, high = comparison.interval
    limits = (-high, -low) if swapped else (low, high)
    stopped = comparison.sequential and comparison.sequential.stopped
    leaning = " Stopped early, so the difference is exaggerated; the interval accounts for it." if stopped else ""
    return (
        f"{better} beats {worse} in {comparison.environment}: {points(abs(comparison.difference))} points"
        f" {points_interval(limits)}, {_basis(comparison)},"
        f" Holm p {p_value(comparison.p_holm, bound=comparison.bounded)}.{leaning}"
    )


def _basis(comparison: Comparison) -> str:
    n_a, n_b = comparison.rate_a.n, comparison.rate_b.n
    if planned := comparison.sequential:
        return f"paired ({comparison.test}), {'stopped at ' if planned.stopped else ''}{n_a} of {planned.n_max} pairs"
    episodes = f"{several(n_a, 'episode')} each" if n_a == n_b else f"{n_a} and {n_b} episodes"
    return f"{comparison.paired_word} ({comparison.test}), {episodes}"


def _undecided(group: EnvironmentComparisons, family: int) -> str:
    found = tuple(comparison for comparison in group.comparisons if not comparison.decided)
    pairs = "; ".join(_pair(comparison, numbers=len(found) <= PAIRS_TOLD) for comparison in found)
    return f"Not decided in {group.environment}: {pairs}. {_limit(group, family)}"


def _pair(comparison: Comparison, *, numbers: bool) -> str:
    if not numbers:
        return f"{comparison.a} and {comparison.b}"
    difference = f"{points(comparison.difference)} points {points_interval(comparison.interval)}"
    p = p_value(comparison.p_holm, bound=comparison.bounded)
    return f"{comparison.a} minus {comparison.b} is {difference}, Holm p {p}"


def _limit(group: EnvironmentComparisons, family: int) -> str:
    """What these many episodes could have shown, so that nobody takes `not decided` for `equal`."""
    if planned := [one.sequential.n_max for one in group.comparisons if one.sequential]:
        return f"Tested after every pair, up to {max(planned)} of them; not decided does not mean equal."
    among = "the one comparison made" if family == 1 else f"{family} comparisons"
    gap, n = group.detectable.in_family, group.detectable.n
    if gap is None:
        return f"With {several(n, 'episode')} and {among}, no difference at all could have been found."
    size = f"{100 * gap:.0f}" if gap > 0.01 else fraction(gap)
    return f"With {several(n, 'episode')} and {among}, a true gap of {size} points would be found 4 times in 5."


def prevented(comparisons: Comparisons) -> Iterator[Finding]:
    """Where a test after every pair was planned and could not be made: a finding per environment and reason."""
    found = Counter((one.environment, one.prevented) for one in comparisons.all if one.prevented)
    for (environment, why), count in found.items():
        yield Finding(
            environment,
            f"{several(count, 'comparison')} of `stop_early` could not be tested after every pair of episodes, so that"
            f" nothing could stop early: {why}; {'it was' if count == 1 else 'each was'} made once, of all episodes",
        )
