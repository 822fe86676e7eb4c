"""One comparison over several environments: a randomization test stratified by environment. Pure.

If two policies are the same, the outcomes of a pair could be swapped, and so could two unpaired episodes of an
environment. p is the share of such swaps with a mean difference as large as the observed one: exact, whatever the rates
are. R. A. Fisher, The Design of Experiments (1935), chapter III; N. Mantel and W. Haenszel, JNCI 22 (1959).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from math import ceil, floor, fsum, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Self

from comborun.reporter.statistics.difference import PairCounts, mcnemar, mover, paired_interval
from comborun.reporter.statistics.proportion import (
    Interval,
    clopper_pearson,
    rate_variance,
    spread_of_mean,
    t_probability,
    ways,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Counts = NDArray[np.int64]

SMALLEST = 1e-12
"""smallest p: the sum of many probabilities is not more exact"""
FINE = 8
"""steps of the smallest weight, if weights differ"""
LONGEST = 2**16
"""most different sums; beyond, the normal distribution is used"""


SEEN_OFTEN = 0.2
"""above this p of chi-square nothing is said of different differences"""
SIMULATED = 4000


@dataclass(frozen=True)
class Stratum:
    """Two policies in one environment: successes and n of each, or the outcomes of their pairs."""

    a: tuple[float, int]
    b: tuple[float, int]
    pairs: PairCounts | None = None

    @classmethod
    def of_pairs(cls, pairs: PairCounts) -> Self:
        n = pairs.n
        return cls((pairs.both + pairs.only_a, n), (pairs.both + pairs.only_b, n), pairs)

    @property
    def swapped(self) -> Stratum:
        turned = self.pairs and PairCounts(self.pairs.both, self.pairs.only_b, self.pairs.only_a, self.pairs.neither)
        return Stratum(self.b, self.a, turned)

    @property
    def difference(self) -> float:
        return self.a[0] / self.a[1] - self.b[0] / self.b[1]

    @property
    def variance(self) -> float:
        return self.pairs.variance if self.pairs else rate_variance(*self.a) + rate_variance(*self.b)

    @property
    def freedom(self) -> int:
        return self.a[1] - 1 + (0 if self.pairs else self.b[1] - 1)


def pooled_difference(strata: Sequence[Stratum]) -> tuple[float, Interval]:
    """The mean of the differences, each environment with the same weight, and its 95 % interval."""
    mean = sum(stratum.difference for stratum in strata) / len(strata)
    differences = [stratum.difference for stratum in strata]
    freedom = sum(stratum.freedom for stratum in strata)
    half = spread_of_mean(differences, [stratum.variance for stratum in strata], freedom)
    return mean, (max(-1.0, mean - half), min(1.0, mean + half))


def heterogeneity(strata: Sequence[Stratum]) -> float:
    """p of "the difference is the same in every environment".

    W. G. Cochran, Biometrics 10 (1954) 101-129.
    """
    from scipy.special import chdtrc

    weights = [1 / stratum.variance for stratum in strata]
    mean = sum(weight * stratum.difference for weight, stratum in zip(weights, strata, strict=True)) / sum(weights)
    spread = sum(weight * (stratum.difference - mean) ** 2 for weight, stratum in zip(weights, strata, strict=True))
    p = float(chdtrc(len(strata) - 1, spread))
    unpaired = not any(stratum.pairs for stratum in strata)
    return max(p, _simulated(strata, mean, spread)) if unpaired and p < SEEN_OFTEN else p


def _simulated(strata: Sequence[Stratum], mean: float, spread: float) -> float:
    """How often the spread is as large if the difference is `mean` in every environment: of few episodes per cell,
    chi-square says too small a p. The larger one of two ways: episodes of an environment swap their policies, or are
    drawn from its rate and the common difference."""
    import numpy as np

    rng = np.random.default_rng(len(strata))
    n, m = np.array([one.a[1] for one in strata]), np.array([one.b[1] for one in strata])
    total = np.array([round(one.a[0] + one.b[0]) for one in strata])
    size, rates = (SIMULATED, len(strata)), (total + 1) / (n + m + 2)
    swapped = rng.hypergeometric(total, n + m - total, n, size=size)
    a = rng.binomial(n, np.clip(rates + mean * m / (n + m), 0, 1), size=size)
    b = rng.binomial(m, np.clip(rates - mean * n / (n + m), 0, 1), size=size)
    return max(_share_above(spread, (swapped, n), (total - swapped, m)), _share_above(spread, (a, n), (b, m)))


def _share_above(spread: float, a: tuple[Counts, Counts], b: tuple[Counts, Counts]) -> float:
    """The share of simulated runs, a row each, whose spread is as large. `a`, `b`: successes and episodes."""
    rates = [((k + 1) / (n + 2), n) for k, n in (a, b)]
    (first, n), (second, m) = rates
    weights = 1 / (first * (1 - first) / n + second * (1 - second) / m)
    differences = a[0] / a[1] - b[0] / b[1]
    means = (weights * differences).sum(axis=1) / weights.sum(axis=1)
    spreads = (weights * (differences - means[:, None]) ** 2).sum(axis=1)
    return float((1 + (spreads >= spread - 1e-9).sum()) / (1 + len(spreads)))


def pooled_p(strata: Sequence[Stratum], sign: int) -> float:
    """Two-sided p of a mean difference with this sign."""
    towards_a = [one if sign > 0 else one.swapped for one in strata]
    pairs = [one.pairs for one in towards_a if one.pairs]
    if len(pairs) == len(strata) and len({one.n for one in pairs}) == 1:  # then one swap is like another
        won, lost = fsum(one.only_a for one in pairs), fsum(one.only_b for one in pairs)
        return max(SMALLEST, mcnemar(won, lost)) if won > lost else 1.0
    swaps = [_swaps(one) for one in towards_a]
    weighted = [*zip(_weights(swaps), swaps, strict=True)]
    seen = sum(weight * one.wins for weight, one in weighted)
    most = sum(weight * one.most for weight, one in weighted)
    tail = _exact_tail(weighted, seen, most) if most < LONGEST else _normal_tail(weighted, seen)
    return min(1.0, max(SMALLEST, 2 * tail))


def _weights(swaps: Sequence[_Swaps]) -> list[int]:
    """Integers nearly in proportion to what a win adds. Any fixed weights keep the test exact."""
    least = min(swap.unit for swap in swaps)
    fine = 1 if all(swap.unit < least * 1.0001 for swap in swaps) else FINE
    return [round(fine * swap.unit / least) for swap in swaps]


def _exact_tail(weighted: Sequence[tuple[int, _Swaps]], seen: int, most: int) -> float:
    """The probability of a weighted sum of wins of `seen` to `most`, by multiplying the transforms of the
    environments' probabilities."""
    import numpy as np

    size = 1 << most.bit_length()
    spectrum = np.ones(size // 2 + 1, dtype=complex)
    for weight, swap in weighted:
        spaced = np.zeros(size)
        spaced[: weight * (swap.most + 1) : weight] = swap.chances()
        spectrum *= np.fft.rfft(spaced)
    return float(np.fft.irfft(spectrum, size)[seen : most + 1].sum())


def _normal_tail(weighted: Sequence[tuple[int, _Swaps]], seen: int) -> float:
    mean = sum(weight * swap.mean for weight, swap in weighted)
    variance = sum(weight**2 * swap.variance for weight, swap in weighted)
    half = sum(weight for weight, _ in weighted) / len(weighted) / 2  # continuity
    return NormalDist().cdf((mean - seen + half) / sqrt(variance or 1.0))


@dataclass(frozen=True)
class _Swaps:
    wins: int
    """observed wins, rounded down"""
    unit: float
    """what a win adds to the difference"""
    most: int
    mean: float
    variance: float
    chances: Callable[[], Floats]
    """probabilities of 0 .. `most` wins"""


def _swaps(stratum: Stratum) -> _Swaps:
    import numpy as np

    if stratum.pairs is not None:
        won = floor(stratum.pairs.only_a + 1e-6)
        different = won + ceil(stratum.pairs.only_b - 1e-6)

        def coins() -> Floats:
            return np.asarray(np.exp(ways(different, np.arange(different + 1)) - different * np.log(2)))

        return _Swaps(won, 2 / stratum.pairs.n, different, different / 2, different / 4, coins)
    (n, m), won = (stratum.a[1], stratum.b[1]), floor(stratum.a[0] + 1e-6)
    total = won + ceil(stratum.b[0] - 1e-6)
    share = n / (n + m)
    variance = total * share * (1 - share) * (n + m - total) / max(1, n + m - 1)
    return _Swaps(won, 1 / n + 1 / m, min(total, n), total * share, variance, partial(_drawn, n, m, total))


@lru_cache(maxsize=256)  # many environments are alike
def _drawn(n: int, m: int, total: int) -> Floats:
    """Probabilities of 0, 1 ... wins of a among `total`, with n episodes of a and m of b."""
    import numpy as np

    wins = np.arange(min(total, n) + 1)
    possible = wins >= total - m
    chances = np.zeros(len(wins))
    some = wins[possible]
    chances[possible] = np.exp(ways(n, some) + ways(m, total - some) - ways(n + m, np.array([total])))
    return chances


# -- not worse by a margin --------------------------------------------------------------------------------------------

LEAST = 1e-9


def not_worse_p(strata: Sequence[Stratum], margin: float) -> float:
    """p of the test that the first policy is worse than the second by the margin: that a's rate minus b's is at most
    minus the margin. It is twice the one-sided one, so "not worse" at .05 errs at most 2.5 % of the time.

    Within one environment it is the error at which the lower limit of the interval reaches minus the margin
    (Clopper-Pearson limits, Zou and Donner), so the error is at most p. Over several environments it is a t test.
    """
    difference = sum(one.difference for one in strata) / len(strata)
    if difference <= -margin:
        return 1.0
    if len(strata) > 1:
        error = sqrt(sum(one.variance for one in strata)) / len(strata)
        freedom = max(1, sum(one.freedom for one in strata))
        return max(LEAST, t_probability(freedom, (difference + margin) / error))
    low, high = 0.0, 1.0
    if _lower(strata[0], 1 - LEAST) > -margin:
        return LEAST
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if _lower(strata[0], 1 - middle) > -margin else (middle, high)
    return high


def _lower(stratum: Stratum, confidence: float) -> float:
    if stratum.pairs:
        return paired_interval(stratum.pairs, confidence)[0]
    sides = ((k / n, clopper_pearson(k, n, confidence) or (0.0, 1.0)) for k, n in (stratum.a, stratum.b))
    a, b = sides
    return mover(a, b)[0]
