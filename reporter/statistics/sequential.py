"""CASM, the conditional alpha-spending McNemar test: A against B pair by pair, stopped as soon as it is decided. Pure.

If neither policy is better, each pair that went differently is a fair coin, whenever it came. So the boundaries may
follow the history of such pairs: by pair t, alpha t / n_max per side is spent on the exact distribution of the walks
that have not stopped. This holds whatever the dependence inside a pair, needs no tuning and no random numbers. It
assumes pairs that are independent of each other and taken in the order of their index, policies and a simulator that
do not change, and a rule fixed before the first episode.
Spending: K. K. G. Lan and D. L. DeMets, Biometrika 70 (1983) 659-663.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from comborun.reporter.statistics.difference import mover
from comborun.reporter.statistics.proportion import Interval, Proportion, clopper_pearson

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

TOLERANCE = 1e-15
"""probabilities that differ by less are equal: rounding may add up to it"""

STOPPED_CONFIDENCE = 0.97
"""of each policy's own limits; the interval of their difference then has 95 %, although the data chose when to stop"""


LEVELS = 16


@dataclass(frozen=True)
class Decision:
    pairs: int
    """used, at most n_max; the pairs after a decision are not"""
    winner: int
    """+1: A is better; -1: B is; 0: not decided"""
    final: bool
    """decided, or at n_max; else more pairs are to come"""


def decide(outcomes: Iterable[int], n_max: int, alpha: float) -> Decision:
    """The decision on pairs in index order: +1 where only A succeeded, -1 where only B did, else 0. It is the same
    however often it was asked for on the way. `alpha` is per side: two-sided 5 % over m comparisons is 0.05 / 2 / m."""
    mass = [1.0]
    """by the pairs that A won: the probability of the walks that have not stopped"""
    spent, different, wins, pairs = 0.0, 0, 0, 0
    for outcome in islice(outcomes, n_max):
        pairs += 1
        if outcome:
            different, wins = different + 1, wins + (outcome > 0)
            halves = [one / 2 for one in mass]
            mass = [up + down for up, down in zip([*halves, 0.0], [0.0, *halves], strict=True)]
        boundary, tail = _boundary(mass, alpha * pairs / n_max - spent)
        if boundary <= different:
            spent += tail
            if max(wins, different - wins) >= boundary:
                return Decision(pairs, 1 if wins >= boundary else -1, final=True)
            stopped = different + 1 - boundary
            mass[boundary:] = mass[:stopped] = [0.0] * stopped
    return Decision(pairs, 0, final=pairs == n_max)


def _boundary(mass: Sequence[float], budget: float) -> tuple[int, float]:
    """The fewest wins that may stop the test now, and the probability of as many or more, per side."""
    different = len(mass) - 1
    boundary, tail = different + 1, 0.0
    while 2 * (boundary - 1) > different and tail + mass[boundary - 1] <= budget + TOLERANCE:
        boundary -= 1
        tail += mass[boundary]
    return boundary, tail


def levels(alpha: float, comparisons: int) -> tuple[float, ...]:
    """One-sided levels for `sequential_p`, the largest first: those that Holm's correction over as many comparisons
    asks for, two-sided at `alpha`, and some larger ones. Of many only LEVELS are kept, the smallest among them, which
    can only make p larger. Each lies a hair below, so that rounding never lifts p times a count above `alpha`."""
    asked = set(range(1, comparisons + 1))
    if comparisons > LEVELS:
        asked = {round(comparisons ** (power / (LEVELS - 1))) for power in range(LEVELS)}
    holm = {alpha / 2 / divisor * (1 - 1e-12) for divisor in asked}
    return tuple(sorted(holm | {0.25, 0.1, 0.05}, reverse=True))


def sequential_p(outcomes: Sequence[int], n_max: int, alphas: Sequence[float]) -> float:
    """Two-sided p that holds at any time: twice the smallest level, of the descending `alphas`, at which the test and
    those at all larger levels claim the same winner; 1 where none does. It never rises as pairs come in.

    "All larger" because the boundaries of two levels are not perfectly nested.
    """
    best = 1.0
    for side in (1, -1):
        for alpha in alphas:
            if decide(outcomes, n_max, alpha).winner != side:
                break
            best = min(best, 2 * alpha)
    return best


def interval_after_stopping(a: Proportion, b: Proportion) -> Interval:
    """Of a's rate minus b's when the data chose n > 0: Clopper-Pearson limits at a higher level, joined by square and
    add. The estimate itself leans away from 0, and more so the earlier the stop.

    The level was found by simulation with up to 100 pairs (coverage .949 to .99), so it is no guarantee.
    """
    if a.rate is None or b.rate is None:
        raise ValueError("no pairs")
    limits_a, limits_b = (clopper_pearson(side.successes, side.n, STOPPED_CONFIDENCE) or (0.0, 1.0) for side in (a, b))
    return mover((a.rate, limits_a), (b.rate, limits_b))
