"""Compares two samples of a metric by the difference of their means. Pure.

If two policies are the same, the sign of a pair's difference could be either, and unpaired values could be exchanged.
So p is the share of such changes with as large a difference, divided by its standard error where values are unpaired:
exact for few values, drawn with a fixed seed for more, Student's t for many. E. Chung and J. P. Romano, Annals of
Statistics 41 (2013) 484-507.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import inf, sqrt
from statistics import fmean, variance

from comborun.reporter.statistics.proportion import Interval, t_probability, t_quantile

EXACT = 12
"""pairs of which all signs are tried"""
DRAWN = 9_999
MANY = 300
"""values from which on p is Student's"""
SEEN = 20
"""fewest draws as extreme; with fewer p is Student's, since the draws end there"""


@dataclass(frozen=True)
class Sample:
    """Two policies in one environment: the differences of pairs, or the values of each."""

    differences: Sequence[float] = ()
    a: Sequence[float] = ()
    b: Sequence[float] = ()

    @property
    def samples(self) -> list[Sequence[float]]:
        """What the difference is made of: one, or two."""
        return [self.differences] if self.differences else [self.a, self.b]

    @property
    def mean(self) -> float:
        return fmean(self.differences) if self.differences else fmean(self.a) - fmean(self.b)

    @property
    def variances(self) -> list[tuple[float, int]]:
        """Of each mean that the difference is made of, with its degrees of freedom."""
        return [(variance(one) / len(one) if len(one) > 1 else inf, max(1, len(one) - 1)) for one in self.samples]


def mean_difference(cells: Sequence[Sample]) -> tuple[float, Interval, float]:
    """The mean of the differences, each environment with the same weight, its 95 % interval (t, Welch) and p."""
    mean = fmean(one.mean for one in cells)
    parts = [part for one in cells for part in one.variances]
    error = sqrt(sum(one for one, _ in parts)) / len(cells)
    if error == 0 or error == inf:
        equal = float(max(1e-12, 2 * 0.5 ** sum(min(map(len, one.samples)) for one in cells)))  # of having one sign
        return mean, ((-inf, inf) if error else (mean, mean)), 1.0 if error or not mean else equal
    freedom = sum(one for one, _ in parts) ** 2 / sum(one**2 / free for one, free in parts)
    half = t_quantile_of(freedom) * error
    return mean, (mean - half, mean + half), _p(cells, mean, t_probability(freedom, mean / error))


def mean_of_means(cells: Sequence[tuple[Interval, int]]) -> Interval:
    """The 95 % interval (t, Welch) of the mean of means, each with its own t interval and its number of values."""
    middle = fmean((low + high) / 2 for (low, high), _ in cells)
    parts = [(((high - low) / 2 / t_quantile(n - 1)) ** 2, n - 1) for (low, high), n in cells]
    total = sum(one for one, _ in parts)
    if not 0 < total < inf:
        return middle, middle
    half = t_quantile_of(total**2 / sum(one**2 / free for one, free in parts)) * sqrt(total) / len(cells)
    return middle - half, middle + half


def t_quantile_of(freedom: float) -> float:
    return t_quantile(max(1, int(freedom)))


def _p(cells: Sequence[Sample], mean: float, student: float) -> float:
    count = sum(len(values) for one in cells for values in one.samples)
    if all(one.differences for one in cells) and count <= MANY:
        return _flipped(cells, mean, student)
    if len(cells) == 1 and count <= MANY:
        return _exchanged(cells[0], student)
    return student


def _flipped(cells: Sequence[Sample], mean: float, student: float) -> float:
    import numpy as np

    weighted = np.array([value / len(one.differences) / len(cells) for one in cells for value in one.differences])
    if len(weighted) <= EXACT:
        signs = np.array([*product((1, -1), repeat=len(weighted))])
        return float((np.abs(signs @ weighted) >= abs(mean) * (1 - 1e-9)).mean())
    rng = np.random.default_rng(len(weighted))
    signs = rng.integers(0, 2, size=(DRAWN, len(weighted)), dtype=np.int8) * 2 - 1
    return _share(int((np.abs(signs @ weighted) >= abs(mean) * (1 - 1e-9)).sum()), student)


def _exchanged(sample: Sample, student: float) -> float:
    import numpy as np

    n, values = len(sample.a), np.array([*sample.a, *sample.b])
    rng = np.random.default_rng(len(values))
    drawn = rng.permuted(np.tile(values, (DRAWN, 1)), axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        seen, found = (
            np.abs(some[:, :n].mean(axis=1) - some[:, n:].mean(axis=1))
            / np.sqrt(some[:, :n].var(axis=1, ddof=1) / n + some[:, n:].var(axis=1, ddof=1) / (len(values) - n))
            for some in (values[None, :], drawn)
        )
    return _share(int((found >= seen * (1 - 1e-9)).sum()), student)


def _share(count: int, student: float) -> float:
    return (1 + count) / (1 + DRAWN) if count >= SEEN else min(student, (1 + SEEN) / (1 + DRAWN))
