"""One success rate or one mean: its interval, over time, and over equally many episodes of each copy. Pure.

scipy is imported on the first call. Its `binomtest` gives the same intervals a hundred times slower. Means have a t
interval: with 5 to 10 values a bootstrap (BCa) covers less often, and from 20 on they are alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from math import sqrt
from statistics import NormalDist
from sys import float_info
from typing import TYPE_CHECKING

from comborun.reporter.json_types import Share

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CONFIDENCE = 0.95

STEPS = 200
"""most steps of a curve; a longer one is thinned"""

Interval = tuple[float, float]


@dataclass(frozen=True)
class Proportion:
    """k successes of n, with their interval; n = 0 has neither rate nor interval."""

    successes: int
    """of the episodes used"""
    n: int
    """episodes used"""
    interval: Interval | None
    """exact, at 95 %"""
    starts: int | None = None
    """number of different starts if some repeat: the interval counts each once"""
    runs: int | None = None
    """number of runs if several are joined: the interval is without the spread between them"""
    mean_over_starts: Share | None = None
    """the mean over starts, each counted once, if some repeat"""

    @property
    def rate(self) -> Share | None:
        """successes / n"""
        return self.successes / self.n if self.n else None

    @cached_property
    def at_least(self) -> Share | None:
        """the rate that is exceeded with 95 % confidence, one-sided and exact"""
        if self.rate is None:
            return None
        least, n = min(self.rate, self.rate if self.mean_over_starts is None else self.mean_over_starts), self.starts
        return at_least(least * n, n) if n else at_least(self.successes, self.n)


def proportion(successes: int, n: int, starts: tuple[float, int] | None = None, runs: int | None = None) -> Proportion:
    """k of n with its Clopper-Pearson interval; of different starts, each at its mean, if these repeat.

    `starts`: the sum of their means, and how many they are. If they have not as many episodes each, the mean over
    starts is another rate than k of n, and the interval holds both.
    """
    if starts is None or starts[1] >= n:
        return Proportion(successes, n, clopper_pearson(successes, n), runs=runs)
    summed, count = starts
    both = [clopper_pearson(one, count) or (0.0, 1.0) for one in (successes / n * count, summed)]
    interval = min(low for low, _ in both), max(high for _, high in both)
    return Proportion(successes, n, interval, count, runs, summed / count)


@lru_cache(maxsize=4096)
def clopper_pearson(successes: float, n: int, confidence: float = CONFIDENCE) -> Interval | None:
    """The exact interval of a binomial proportion; None without data. Its coverage is never below `confidence`."""
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n}")
    return clopper_pearson_each([successes], n, confidence)[0] if n else None


def clopper_pearson_each(successes: Sequence[float], n: int, confidence: float = CONFIDENCE) -> tuple[Interval, ...]:
    """The exact intervals for many counts of one n > 0.

    C. J. Clopper and E. S. Pearson, Biometrika 26 (1934) 404-413.
    """
    import numpy as np
    from scipy.special import betaincinv

    k = np.asarray(successes, dtype=float)
    tail = (1 - confidence) / 2
    low = np.where(k <= 0, 0.0, betaincinv(np.where(k <= 0, 1, k), n - k + 1, tail))
    high = np.where(k >= n, 1.0, betaincinv(k + 1, np.where(k >= n, 1, n - k), 1 - tail))
    return tuple(zip(low.tolist(), high.tolist(), strict=True))


def at_least(successes: float, n: int, confidence: float = CONFIDENCE) -> float:
    """The rate that is exceeded with this confidence, one-sided, by Clopper and Pearson. 0 without episodes."""
    if not n or successes <= 0:
        return 0.0
    from scipy.special import betaincinv

    return float(betaincinv(successes, n - successes + 1, 1 - confidence))


def at_least_p(counts: Sequence[tuple[float, int]], share: float) -> float:
    """Two-sided p (twice the one-sided one) of "the mean rate is at most `share`": exact binomial for one environment,
    a t test for several. 1 if the mean is not above it."""
    mean = sum(k / n for k, n in counts) / len(counts)
    if mean <= share:
        return 1.0
    if len(counts) == 1:
        from scipy.special import betainc

        (k, n), *_ = counts
        return min(1.0, 2 * float(betainc(k, n - k + 1, share)))
    error = sqrt(sum(rate_variance(k, n) for k, n in counts)) / len(counts)
    return t_probability(max(1, sum(n - 1 for _, n in counts)), (mean - share) / error)


def wilson(successes: float, n: int, confidence: float = CONFIDENCE) -> Interval:
    """The score interval of a binomial proportion, n > 0, for Newcombe's interval of a difference.

    E. B. Wilson, Journal of the American Statistical Association 22 (1927) 209-212.
    """
    z = quantile(1 - (1 - confidence) / 2)
    rate = successes / n
    centre = (successes + z * z / 2) / (n + z * z)
    half = z * sqrt(n) / (n + z * z) * sqrt(rate * (1 - rate) + z * z / (4 * n))
    return 0.0 if successes <= 0 else centre - half, 1.0 if successes >= n else centre + half


def ways(n: int, k: NDArray[np.intp]) -> NDArray[np.float64]:
    """The logarithm of the number of ways to choose k of n."""
    import numpy as np
    from scipy.special import gammaln

    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


def quantile(probability: float) -> float:
    return NormalDist().inv_cdf(probability)


@dataclass(frozen=True)
class Incidence:
    """Time to success as cumulative incidence: from `times[i]` on, `successes[i]` of `n` episodes have succeeded.

    Nothing is censored before the horizon. Falls are a competing event: Kaplan-Meier would count them as episodes that
    might still have succeeded.
    """

    n: int
    times: tuple[float, ...]
    successes: tuple[int, ...]
    band: tuple[Interval, ...]
    """Clopper-Pearson at 95 %, for each time alone"""
    median: float | None
    """the time at which half of all episodes have succeeded; None if fewer ever do"""


def incidence(times: Iterable[float], n: int) -> Incidence:
    """From the times of the successful episodes among n > 0. Successes without a time count in n only."""
    ordered = sorted(times)
    counts = Counter(ordered)
    steps = list(zip(counts, accumulate(counts.values()), strict=True))
    if len(steps) > STEPS:
        steps = [steps[(step + 1) * len(steps) // STEPS - 1] for step in range(STEPS)]
    successes = tuple(total for _, total in steps)
    half = (n + 1) // 2
    shared = n <= SHARED
    return Incidence(
        n=n,
        times=tuple(time for time, _ in steps),
        successes=successes,
        band=tuple(map(_of_every_count(n).__getitem__, successes)) if shared else clopper_pearson_each(successes, n),
        median=ordered[half - 1] if len(ordered) >= half else None,
    )


SHARED = 2000
"""episodes of a curve; with more, curves have too few counts in common"""


@lru_cache(maxsize=16)
def _of_every_count(n: int) -> tuple[Interval, ...]:
    """The intervals for 0 .. n successes, once for all curves of n episodes."""
    return clopper_pearson_each(range(n + 1), n)


FEWEST = 5
"""values; with fewer, an interval covers its level only for normal values"""


def mean_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval | None:
    """Student's t interval; None with fewer than FEWEST values, or only equal ones. "Student", Biometrika 6 (1908)
    1-25."""
    import numpy as np

    if (n := len(values)) < FEWEST or (least := min(values)) == (most := max(values)):
        return None
    scale = max(most, -least)
    scaled = np.array(values) / scale  # squares of the largest floats overflow
    mean = float(scaled.sum()) / n
    deviations = scaled - mean
    spread = sqrt(float(deviations @ deviations) / (n - 1))
    half = t_quantile(n - 1, confidence) * spread / sqrt(n)
    return max(-float_info.max, (mean - half) * scale), min(float_info.max, (mean + half) * scale)


def t_quantile(freedom: float, confidence: float = CONFIDENCE) -> float:
    """The half width of a two-sided interval in standard errors."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + confidence) / 2))


def t_probability(freedom: float, value: float) -> float:
    from scipy.special import stdtr

    return 2 * float(stdtr(freedom, -abs(value)))


def mean_of_rates(counts: Sequence[tuple[float, int]], confidence: float = CONFIDENCE) -> Interval:
    """The interval of the unweighted mean of success rates, each (successes, n) with n > 0, for fixed environments.

    A. Agresti and B. A. Coull, The American Statistician 52 (1998) 119-126: variances at (k + 1) / (n + 2).
    """
    mean = sum(k / n for k, n in counts) / len(counts)
    variances, rates = [rate_variance(k, n) for k, n in counts], [k / n for k, n in counts]
    half = spread_of_mean(rates, variances, sum(n - 1 for _, n in counts), confidence)
    return max(0.0, mean - half), min(1.0, mean + half)


def rate_variance(k: float, n: int) -> float:
    rate = (k + 1) / (n + 2)
    return rate * (1 - rate) / n


def spread_of_mean(
    values: Sequence[float], variances: Sequence[float], freedom: int, confidence: float = CONFIDENCE
) -> float:
    """If each environment has a single episode, these show no variance: then by how far environments lie apart, which
    is at least as much."""
    own = sum(variances)
    if not freedom and (freedom := len(values) - 1):
        mean = sum(values) / len(values)
        own = max(own, sum((one - mean) ** 2 for one in values) * len(values) / freedom)
    return t_quantile(max(1, freedom), confidence) * sqrt(own) / len(variances)
