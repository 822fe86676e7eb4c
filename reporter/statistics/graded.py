"""Two samples of a graded metric: how often one is above the other, and interquartile means. Pure.

The effect is a's chance to be above b minus its chance to be below, from -1 to 1. It needs no unit, no normal values
and no finite mean: an episode that was never finished can count as the worst of all.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING

from comborun.reporter.statistics.means import FEWEST, t_probability, t_quantile
from comborun.reporter.statistics.proportion import CONFIDENCE, Interval

if TYPE_CHECKING:
    from collections.abc import Sequence

FEWEST_UNPAIRED = 10
"""values of each policy; fewer don't show their spread"""

NEAR = 1e-9
"""distance from an observed chance of 0 or 1, where its own variance is 0"""


@dataclass(frozen=True)
class Dominance:
    """The comparison of unpaired values."""

    effect: float
    interval: Interval
    variance: float
    """of the effect"""
    freedom: float
    p: float
    """two-sided"""


def dominance(a: Sequence[float], b: Sequence[float], confidence: float = CONFIDENCE) -> Dominance:
    """p is the larger one of the Brunner-Munzel test, which holds whatever the two spreads are, and of the Mann-Whitney
    test, which holds for few values. scipy has both, without an interval: Newcombe's, wider where spreads differ.

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
    least = _spread((chance * min(n, m) + 0.5) / (min(n, m) + 1), (n, m))
    wider = max(1.0, spread / least)
    low, high = _newcombe(chance, (n, m), wider * t_quantile(max(1, round(freedom)), confidence) ** 2)
    return Dominance(2 * chance - 1, (2 * low - 1, 2 * high - 1), 4 * (spread or least), freedom, min(1.0, p))


def _spread(chance: float, sizes: tuple[int, int]) -> float:
    """The variance of the observed chance, by Hanley and McNeil with Newcombe's equal weights."""
    rest = (1 - chance) / (2 - chance) + chance / (1 + chance)
    return chance * (1 - chance) * (1 + (sum(sizes) / 2 - 1) * rest) / (sizes[0] * sizes[1])


def _newcombe(chance: float, sizes: tuple[int, int], square: float) -> Interval:
    """The true chances whose squared distance from the observed one is at most `square` of their variances.

    R. G. Newcombe, Statistics in Medicine 25 (2006) 559-573, method 5.
    """
    from scipy.optimize import brentq

    def beyond(true: float) -> float:
        return (true - chance) ** 2 - square * _spread(true, sizes)

    low = brentq(beyond, 0.0, chance - NEAR) if chance > 0 else 0.0
    high = brentq(beyond, chance + NEAR, 1.0) if chance < 1 else 1.0
    return float(low), float(high)


def interquartile_mean(values: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, Interval | None]:
    """The mean of the middle half, and its interval from the winsorized variance; None with too few values.

    J. W. Tukey and D. H. McLaughlin, Sankhya A 25 (1963) 331-352.
    """
    import numpy as np
    from scipy.stats import trim_mean

    middle, cut = float(trim_mean(values, 0.25)), len(values) // 4
    kept = len(values) - 2 * cut
    if len(values) < 2 * FEWEST:
        return middle, None
    ordered = np.sort(np.asarray(values, dtype=float))
    spread = float(ordered.clip(ordered[cut], ordered[-1 - cut]).std(ddof=1))
    half = t_quantile(kept - 1, confidence) * spread * sqrt((len(values) - 1) / (kept * (kept - 1)))
    return middle, (middle - half, middle + half) if spread else None
