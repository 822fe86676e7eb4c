"""Intervals for success rates. Pure; scipy is imported on the first call, so that nothing else waits for it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Proportion:
    """k successes of n, with the interval that goes with them; n = 0 has neither rate nor interval."""

    successes: int
    n: int
    interval: tuple[float, float] | None

    @property
    def rate(self) -> float | None:
        return self.successes / self.n if self.n else None


def proportion(successes: int, n: int, confidence: float = CONFIDENCE) -> Proportion:
    """k of n with its Clopper-Pearson interval."""
    return Proportion(successes, n, clopper_pearson(successes, n, confidence))


@lru_cache(maxsize=4096)
def clopper_pearson(successes: int, n: int, confidence: float = CONFIDENCE) -> tuple[float, float] | None:
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
