"""One success rate: its interval, as it grows over time, and over equally many episodes of each copy. Pure.

scipy is imported on the first call. `binomtest` gives the same intervals by a search that is some hundred times slower.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from math import sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

CONFIDENCE = 0.95

STEPS = 200
"""most steps of a curve; a longer one is thinned"""

Interval = tuple[float, float]


@dataclass(frozen=True)
class Proportion:
    """k successes of n, with their interval; n = 0 has neither rate nor interval."""

    successes: int
    n: int
    interval: Interval | None
    starts: int | None = None
    """number of different starts if some repeat: the interval counts each once"""

    @property
    def rate(self) -> float | None:
        return self.successes / self.n if self.n else None


def proportion(successes: int, n: int, starts: int | None = None) -> Proportion:
    """k of n with its Clopper-Pearson interval, of as many different starts."""
    if starts is None or starts >= n:
        return Proportion(successes, n, clopper_pearson(successes, n))
    return Proportion(successes, n, clopper_pearson(successes / n * starts, starts), starts)


@lru_cache(maxsize=4096)
def clopper_pearson(successes: float, n: int, confidence: float = CONFIDENCE) -> Interval | None:
    """The exact interval of a binomial proportion; None without data. Its coverage is never below `confidence`."""
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n}")
    return clopper_pearson_each([successes], n, confidence)[0] if n else None


def clopper_pearson_each(successes: Sequence[float], n: int, confidence: float = CONFIDENCE) -> tuple[Interval, ...]:
    """The exact intervals for many counts of one n > 0, at the price of one.

    With a = 1 - confidence, the limits are the quantiles Beta^-1(a/2; k, n-k+1) and Beta^-1(1-a/2; k+1, n-k); the
    lower one is 0 at k = 0 and the upper one 1 at k = n.
    C. J. Clopper and E. S. Pearson, Biometrika 26 (1934) 404-413.
    """
    import numpy as np
    from scipy.special import betaincinv

    k = np.asarray(successes, dtype=float)
    tail = (1 - confidence) / 2
    low = np.where(k <= 0, 0.0, betaincinv(np.where(k <= 0, 1, k), n - k + 1, tail))
    high = np.where(k >= n, 1.0, betaincinv(k + 1, np.where(k >= n, 1, n - k), 1 - tail))
    return tuple(zip(low.tolist(), high.tolist(), strict=True))


def wilson(successes: float, n: int, confidence: float = CONFIDENCE) -> Interval:
    """The score interval of a binomial proportion, n > 0. Below its level at times, so it is not printed for a rate;
    Newcombe's interval for a difference is made from it.

    E. B. Wilson, Journal of the American Statistical Association 22 (1927) 209-212.
    """
    z = quantile(1 - (1 - confidence) / 2)
    rate = successes / n
    centre = (successes + z * z / 2) / (n + z * z)
    half = z * sqrt(n) / (n + z * z) * sqrt(rate * (1 - rate) + z * z / (4 * n))
    return 0.0 if successes <= 0 else centre - half, 1.0 if successes >= n else centre + half


def quantile(probability: float) -> float:
    """The quantile of the standard normal distribution."""
    return NormalDist().inv_cdf(probability)


@dataclass(frozen=True)
class Incidence:
    """Time to success as cumulative incidence, a step function: from `times[i]` on, `successes[i]` of `n` episodes have
    succeeded; before the first, none.

    Every episode runs until it succeeds or can succeed no more, so nothing is censored before the horizon. Falls are a
    competing event: Kaplan-Meier would count them as episodes that might still have succeeded.
    """

    n: int
    times: tuple[float, ...]
    successes: tuple[int, ...]
    band: tuple[Interval, ...]
    """Clopper-Pearson at 95 %, for each time alone"""
    median: float | None
    """the time at which half of all episodes have succeeded; None if fewer ever do"""


def incidence(times: Iterable[float], n: int) -> Incidence:
    """From the times of the successful episodes among n > 0, of which there may be fewer than successes."""
    ordered = sorted(times)
    counts = Counter(ordered)
    steps = list(zip(counts, accumulate(counts.values()), strict=True))
    if len(steps) > STEPS:
        steps = [steps[(place + 1) * len(steps) // STEPS - 1] for place in range(STEPS)]
    successes = tuple(total for _, total in steps)
    half = (n + 1) // 2
    return Incidence(
        n=n,
        times=tuple(time for time, _ in steps),
        successes=successes,
        band=clopper_pearson_each(successes, n),
        median=ordered[half - 1] if len(ordered) >= half else None,
    )


@dataclass(frozen=True)
class Balanced:
    """The rate over the same number of episodes from each copy of an environment. A program that stops at the first K
    episodes that end counts too many short ones; here which end soon makes no difference."""

    rate: Proportion
    copies: int
    each: int
    """number of first episodes of each copy, as many as every copy has"""


def balanced(copies: Mapping[object, Sequence[bool]]) -> Balanced:
    """From the episodes of each copy in the order in which it ran them, true for a success."""
    each = min(map(len, copies.values()), default=0)
    successes = sum(sum(episodes[:each]) for episodes in copies.values())
    return Balanced(proportion(successes, each * len(copies)), len(copies), each)
