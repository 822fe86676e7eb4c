"""The exact 95 % interval of k successes of n, as in the report, without scipy: importing it takes most of a second."""

from __future__ import annotations

import math
from functools import lru_cache

_TAIL = 0.025
_HALVINGS = 30


@lru_cache(maxsize=65536)
def exact_interval(successes: int, n: int) -> tuple[float, float] | None:
    """The interval of Clopper and Pearson, as shares of 1; None without data."""
    if not 0 <= successes <= n or not n:
        return None
    low = _quantile(successes, n - successes + 1, _TAIL) if successes else 0.0
    high = _quantile(successes + 1, n - successes, 1 - _TAIL) if successes < n else 1.0
    return low, high


def _quantile(a: int, b: int, share: float) -> float:
    """Where the beta distribution reaches `share`, by halving."""
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _beta(a, b, middle) < share else (low, middle)
    return (low + high) / 2


def _beta(a: int, b: int, x: float) -> float:
    """The regularized incomplete beta function, by its continued fraction (Press et al., Numerical Recipes, 6.4)."""
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta(b, a, 1 - x)
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, 300):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d, c = 1 / (1 + term * d), 1 + term / c
            fraction *= c * d
        if abs(c * d - 1) < 1e-9:
            break
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(front) * fraction / a
