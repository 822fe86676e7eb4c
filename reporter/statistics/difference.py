"""Compares two success rates, independent or over the same episodes, and corrects for many comparisons. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, sqrt
from string import ascii_letters
from sys import float_info
from typing import TYPE_CHECKING

from comborun.reporter.statistics.proportion import CONFIDENCE, Interval, clopper_pearson, wilson

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MOST_LETTERS = 52


def newcombe(a: tuple[float, int], b: tuple[float, int], confidence: float = CONFIDENCE) -> Interval:
    """The interval of a's rate minus b's, independent and each (successes, n) with n > 0: Wilson limits, square and
    add.

    R. G. Newcombe, Statistics in Medicine 17 (1998) 873-890, method 10.
    """
    return mover((a[0] / a[1], wilson(*a, confidence)), (b[0] / b[1], wilson(*b, confidence)))


def mover(a: tuple[float, Interval], b: tuple[float, Interval], correlation: float = 0.0) -> Interval:
    """The interval of a difference from an estimate and its limits on each side (square and add).

    G. Y. Zou and A. Donner, Statistics in Medicine 27 (2008) 1693-1702.
    """
    (rate_a, (low_a, high_a)), (rate_b, (low_b, high_b)) = a, b
    difference = rate_a - rate_b
    low = difference - _together(rate_a - low_a, high_b - rate_b, correlation)
    high = difference + _together(high_a - rate_a, rate_b - low_b, correlation)
    return max(-1.0, low), min(1.0, high)


def _together(first: float, second: float, correlation: float) -> float:
    return sqrt(max(0.0, first * first + second * second - 2 * correlation * first * second))


@dataclass(frozen=True)
class PairCounts:
    """The outcomes of starts of which both policies completed episodes; fractions for repeated starts."""

    both: float
    only_a: float
    only_b: float
    neither: float

    @property
    def n(self) -> int:
        return round(self.both + self.only_a + self.only_b + self.neither)

    @property
    def counts_a(self) -> tuple[float, int]:
        """Successes of a, and starts."""
        return self.both + self.only_a, self.n

    @property
    def counts_b(self) -> tuple[float, int]:
        return self.both + self.only_b, self.n


def whole(a: float, b: float) -> tuple[int, int]:
    """Two numbers of successes without fractions, rounded towards each other, so that no test gains by rounding."""
    if a == b:
        return round(a), round(a)
    low, high = ceil(min(a, b) - 1e-6), floor(max(a, b) + 1e-6)
    low = min(low, high)
    return (high, low) if a > b else (low, high)


def mcnemar(only_a: float, only_b: float) -> float:
    """Two-sided p of the exact test: each start that went differently is a fair coin. 1 where none did; at least the
    smallest normal number (reached by some 1,000 episodes, all one way), so never 0.

    Q. McNemar, Psychometrika 12 (1947) 153-157, with binomial probabilities.
    """
    won, lost = whole(only_a, only_b)
    if won == lost:
        return 1.0
    from scipy.special import bdtr

    return min(1.0, max(float_info.min, 2 * float(bdtr(min(won, lost), won + lost, 0.5))))


def paired_interval(pairs: PairCounts, confidence: float = CONFIDENCE) -> Interval:
    """Of a's rate minus b's, n > 0: from the Clopper-Pearson limits of the shares that only a and only b won, with the
    correlation that two shares of one sample have. By exact sums it covers at least `confidence` from 10 pairs on
    (.94 of .95 with 5). It holds 0 where McNemar's test of the same pairs does not decide, and only there.
    """
    n = pairs.n
    won, lost = min(1.0, pairs.only_a / n), min(1.0, pairs.only_b / n)
    limits = [clopper_pearson(min(float(n), one), n, confidence) or (0.0, 1.0) for one in (pairs.only_a, pairs.only_b)]
    correlation = -1.0 if won + lost >= 1 else -sqrt(won * lost / ((1 - won) * (1 - lost)))
    low, high = mover((won, limits[0]), (lost, limits[1]), correlation)
    if mcnemar(pairs.only_a, pairs.only_b) > 1 - confidence:
        low, high = min(low, 0.0), max(high, 0.0)  # wider, so it still covers
    return low, high


def adjusted(pairs: PairCounts) -> tuple[float, float]:
    """The mean and the variance of the difference of a pair, with one more pair of each kind that went differently.

    D. G. Bonett and R. M. Price, Journal of Educational and Behavioral Statistics 37 (2012) 479-488.
    """
    first, second = (pairs.only_a + 1) / (pairs.n + 2), (pairs.only_b + 1) / (pairs.n + 2)
    return first - second, first + second - (first - second) ** 2


def holm(ps: Sequence[float], weights: Sequence[float] | None = None) -> tuple[float, ...]:
    """Adjusted p-values in the order of `ps`; the chance of one false claim or more among all is at most the level,
    whatever the dependence. Each may have a share of the error of its own, by weight. scipy has only false discovery
    rates.

    S. Holm, Scandinavian Journal of Statistics 6 (1979) 65-70.
    """
    shares = weights or [1.0] * len(ps)
    found = [0.0] * len(ps)
    largest, left = 0.0, sum(shares)
    for index in sorted(range(len(ps)), key=lambda index: ps[index] / shares[index]):
        largest = max(largest, min(1.0, left * ps[index] / shares[index]))
        found[index] = largest
        left -= shares[index]
    return tuple(found)


def letters(ranked: Sequence[str], different: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Name -> letters, for names ranked best first and the pairs of them that are told apart: two names share a letter
    exactly when they are not. Nothing where more than MOST_LETTERS would be needed: their number can explode.

    H.-P. Piepho, Journal of Computational and Graphical Statistics 13 (2004) 456-466: insert and absorb.
    """
    columns = [frozenset(ranked)]
    for a, b in different:
        split = [column - {name} for column in columns if {a, b} <= column for name in (a, b)]
        unique = list(dict.fromkeys([column for column in columns if not {a, b} <= column] + split))
        columns = [column for column in unique if not any(column < other for other in unique)]
        if len(columns) > MOST_LETTERS:
            return ()
    rank = {name: place for place, name in enumerate(ranked)}
    columns.sort(key=lambda column: sorted(rank[name] for name in column))
    marks = ascii_letters[: len(columns)]
    return tuple(
        (name, "".join(mark for mark, column in zip(marks, columns, strict=True) if name in column)) for name in ranked
    )
