"""Intervals for success rates. Pure; scipy is imported on the first call, so that nothing else waits for it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

CONFIDENCE = 0.95

Interval = tuple[float, float]


@dataclass(frozen=True)
class Proportion:
    """k successes of n, with the interval that goes with them; n = 0 has neither rate nor interval."""

    successes: int
    n: int
    interval: Interval | None

    @property
    def rate(self) -> float | None:
        return self.successes / self.n if self.n else None


def proportion(successes: int, n: int, confidence: float = CONFIDENCE) -> Proportion:
    """k of n with its Clopper-Pearson interval."""
    return Proportion(successes, n, clopper_pearson(successes, n, confidence))


@lru_cache(maxsize=4096)
def clopper_pearson(successes: int, n: int, confidence: float = CONFIDENCE) -> Interval | None:
    """The exact interval of a binomial proportion; None without data.

    With a = 1 - confidence, the limits are the quantiles Beta^-1(a/2; k, n-k+1) and Beta^-1(1-a/2; k+1, n-k); the
    lower one is 0 at k = 0 and the upper one 1 at k = n. Its coverage is never below `confidence`.
    C. J. Clopper and E. S. Pearson, Biometrika 26 (1934) 404-413.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n}")
    if n == 0:
        return None
    from scipy.special import betaincinv

    tail = (1 - confidence) / 2
    low = 0.0 if successes == 0 else float(betaincinv(successes, n - successes + 1, tail))
    high = 1.0 if successes == n else float(betaincinv(successes + 1, n - successes, 1 - tail))
    return low, high


def clopper_pearson_each(successes: Sequence[int], n: int, confidence: float = CONFIDENCE) -> tuple[Interval, ...]:
    """The same intervals for many counts of one n > 0, at the price of one."""
    import numpy as np
    from scipy.special import betaincinv

    k = np.asarray(successes, dtype=float)
    tail = (1 - confidence) / 2
    low = np.where(k == 0, 0.0, betaincinv(np.maximum(k, 1), n - k + 1, tail))
    high = np.where(k == n, 1.0, betaincinv(k + 1, np.maximum(n - k, 1), 1 - tail))
    return tuple(zip(low.tolist(), high.tolist(), strict=True))


def wilson(successes: int, n: int, confidence: float = CONFIDENCE) -> Interval:
    """The score interval of a binomial proportion, n > 0. Narrower than Clopper-Pearson and below its level at times:
    not printed for a rate, but the limits that Newcombe's interval for a difference is made from.

    E. B. Wilson, Journal of the American Statistical Association 22 (1927) 209-212.
    """
    z = quantile(1 - (1 - confidence) / 2)
    rate = successes / n
    centre = (successes + z * z / 2) / (n + z * z)
    half = z * sqrt(n) / (n + z * z) * sqrt(rate * (1 - rate) + z * z / (4 * n))
    low = 0.0 if successes == 0 else centre - half
    high = 1.0 if successes == n else centre + half
    return low, high


def quantile(probability: float) -> float:
    """Of the standard normal distribution."""
    return NormalDist().inv_cdf(probability)
