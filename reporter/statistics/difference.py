"""Compares two success rates or two samples of a metric, and corrects for many comparisons. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, sqrt
from string import ascii_letters
from sys import float_info

from comborun.reporter.statistics.proportion import (
    CONFIDENCE,
    Interval,
    clopper_pearson,
    t_probability,
    t_quantile,
    wilson,
)

MOST_LETTERS = 52


def newcombe(a: tuple[float, int], b: tuple[float, int], confidence: float = CONFIDENCE) -> Interval:
    """The interval of a's rate minus b's, independent, each (successes, n) with n > 0.

    R. G. Newcombe, Statistics in Medicine 17 (1998) 873-890, method 10.
    """
    return mover((a[0] / a[1], wilson(*a, confidence)), (b[0] / b[1], wilson(*b, confidence)))


def mover(a: tuple[float, Interval], b: tuple[float, Interval], correlation: float = 0.0) -> Interval:
    """The interval of a difference, from an estimate and its limits on each side.

    G. Y. Zou and A. Donner, Statistics in Medicine 27 (2008) 1693-1702.
    """
    (rate_a, (low_a, high_a)), (rate_b, (low_b, high_b)) = a, b
    difference = rate_a - rate_b
    low = difference - _combined(rate_a - low_a, high_b - rate_b, correlation)
    high = difference + _combined(high_a - rate_a, rate_b - low_b, correlation)
    return max(-1.0, low), min(1.0, high)


def _combined(first: float, second: float, correlation: float) -> float:
    return sqrt(max(0.0, first * first + second * second - 2 * correlation * first * second))


@dataclass(frozen=True)
class PairCounts:
    """The outcomes of starts that both policies completed; fractions for repeated starts."""

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

    @property
    def difference(self) -> float:
        return (self.only_a - self.only_b) / self.n

    @property
    def variance(self) -> float:
        """The variance of the difference, with one more pair of each kind that went differently.

        D. G. Bonett and R. M. Price, Journal of Educational and Behavioral Statistics 37 (2012) 479-488.
        """
        n = self.n
        first, second = (self.only_a + 1) / (n + 2), (self.only_b + 1) / (n + 2)
        return (first + second - (first - second) ** 2) / n


def whole(a: float, b: float) -> tuple[int, int]:
    """Two numbers of successes without fractions, rounded towards each other."""
    if a == b:
        return round(a), round(a)
    low, high = ceil(min(a, b) - 1e-6), floor(max(a, b) + 1e-6)
    low = min(low, high)
    return (high, low) if a > b else (low, high)


def mcnemar(only_a: float, only_b: float) -> float:
    """Two-sided p of the exact test: each start that went differently is a fair coin. At least the smallest normal
    number.

    Q. McNemar, Psychometrika 12 (1947) 153-157, with binomial probabilities.
    """
    won, lost = whole(only_a, only_b)
    if won == lost:
        return 1.0
    from scipy.special import bdtr

    return min(1.0, max(float_info.min, 2 * float(bdtr(min(won, lost), won + lost, 0.5))))


def paired_interval(pairs: PairCounts, confidence: float = CONFIDENCE) -> Interval:
    """Of a's rate minus b's, n > 0, from the Clopper-Pearson limits of the shares that only a and only b won, with the
    correlation of two shares of one sample. It covers `confidence` from 10 pairs on, and holds 0 exactly if McNemar's
    test does not decide."""
    n = pairs.n
    won, lost = min(1.0, pairs.only_a / n), min(1.0, pairs.only_b / n)
    limits = [clopper_pearson(min(float(n), one), n, confidence) or (0.0, 1.0) for one in (pairs.only_a, pairs.only_b)]
    correlation = -1.0 if won + lost >= 1 else -sqrt(won * lost / ((1 - won) * (1 - lost)))
    low, high = mover((won, limits[0]), (lost, limits[1]), correlation)
    if mcnemar(pairs.only_a, pairs.only_b) > 1 - confidence:
        low, high = min(low, 0.0), max(high, 0.0)  # wider, so it still covers
    return low, high


def holm(ps: Sequence[float], weights: Sequence[float] | None = None) -> tuple[float, ...]:
    """Adjusted p-values in the order of `ps`, whatever their dependence. The error is shared by weight.

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
    """Name -> letters, for names ranked best first and pairs of them that differ: two names share a letter exactly if
    they don't. Empty if more than MOST_LETTERS were needed.

    H.-P. Piepho, Journal of Computational and Graphical Statistics 13 (2004) 456-466: insert and absorb.
    """
    columns = [frozenset(ranked)]
    for a, b in different:
        split = [column - {name} for column in columns if {a, b} <= column for name in (a, b)]
        unique = list(dict.fromkeys([column for column in columns if not {a, b} <= column] + split))
        columns = [column for column in unique if not any(column < other for other in unique)]
        if len(columns) > MOST_LETTERS:
            return ()
    rank = {name: position for position, name in enumerate(ranked)}
    columns.sort(key=lambda column: sorted(rank[name] for name in column))
    marks = ascii_letters[: len(columns)]
    return tuple(
        (name, "".join(mark for mark, column in zip(marks, columns, strict=True) if name in column)) for name in ranked
    )


FEWEST_UNPAIRED = 10

NEAR = 1e-9
"""distance from an observed chance of 0 or 1, where its own variance is 0"""


@dataclass(frozen=True)
class Effect:
    """How much one policy is above another in one environment: the chance that a is above b, minus that it is below."""

    difference: float
    interval: Interval
    p: float
    variance: float
    freedom: float
    n: tuple[int, int]
    pairs: PairCounts | None = None


def dominance(a: Sequence[float], b: Sequence[float], confidence: float = CONFIDENCE) -> Effect:
    """Compares unpaired values. p is the larger one of Brunner-Munzel, which holds whatever the spreads are, and
    Mann-Whitney, which holds for few values. The interval is Newcombe's, wider if the spreads differ.

    E. Brunner and U. Munzel, Biometrical Journal 42 (2000) 17-25.
    """
    import numpy as np
    from scipy.special import ndtr
    from scipy.stats import rankdata

    n, m = len(a), len(b)
    together = [*a, *b]
    ranks = rankdata(together)
    below_a, below_b = (ranks[:n] - rankdata(a)) / m, (ranks[n:] - rankdata(b)) / n  # shares of the other's values
    chance = float(below_a.mean())
    parts = float(below_a.var(ddof=1)) / n, float(below_b.var(ddof=1)) / m
    ties = np.unique(together, return_counts=True)[1].astype(float)
    equal = (n + m + 1 - float((ties**3 - ties).sum()) / (n + m) / (n + m - 1)) / (12 * n * m)
    spread, freedom = sum(parts), n + m - 2.0
    p = 2 * float(ndtr(-abs(chance - 0.5) / sqrt(equal))) if equal else 1.0
    if spread:
        freedom = spread**2 / (parts[0] ** 2 / (n - 1) + parts[1] ** 2 / (m - 1))
        p = max(p, t_probability(freedom, (chance - 0.5) / sqrt(spread)))
    least = _variance_of_chance((chance * min(n, m) + 0.5) / (min(n, m) + 1), (n, m))
    wider = max(1.0, spread / least)
    low, high = _chance_interval(chance, (n, m), wider * t_quantile(max(1, round(freedom)), confidence) ** 2)
    return Effect(2 * chance - 1, (2 * low - 1, 2 * high - 1), min(1.0, p), 4 * (spread or least), freedom, (n, m))


def _variance_of_chance(chance: float, sizes: tuple[int, int]) -> float:
    """The variance of the observed chance, by Hanley and McNeil with Newcombe's equal weights."""
    rest = (1 - chance) / (2 - chance) + chance / (1 + chance)
    return chance * (1 - chance) * (1 + (sum(sizes) / 2 - 1) * rest) / (sizes[0] * sizes[1])


def _chance_interval(chance: float, sizes: tuple[int, int], square: float) -> Interval:
    """The true chances whose squared distance from the observed one is at most `square` variances.

    R. G. Newcombe, Statistics in Medicine 25 (2006) 559-573, method 5.
    """
    from scipy.optimize import brentq

    def beyond(true: float) -> float:
        return (true - chance) ** 2 - square * _variance_of_chance(true, sizes)

    low = brentq(beyond, 0.0, chance - NEAR) if chance > 0 else 0.0
    high = brentq(beyond, chance + NEAR, 1.0) if chance < 1 else 1.0
    return float(low), float(high)


def interquartile_mean(values: Sequence[float]) -> float:
    from scipy.stats import trim_mean

    return float(trim_mean(values, 0.25))
