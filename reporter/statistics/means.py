"""Intervals of means. Pure.

A t interval, and no bootstrap: with 5 to 10 values BCa covered .68 to .96 over seven distributions and t .67 to .96,
t more often where the values are normal or skewed; from 20 on they are alike.
"""

from __future__ import annotations

from math import sqrt
from sys import float_info
from typing import TYPE_CHECKING

from comborun.reporter.statistics.proportion import CONFIDENCE, Interval

if TYPE_CHECKING:
    from collections.abc import Sequence

FEWEST = 5
"""values; with fewer, an interval covers its level only for normal values"""


def mean_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval | None:
    """Student's t interval; None with fewer than FEWEST values, or without two different ones.

    "Student", Biometrika 6 (1908) 1-25.
    """
    import numpy as np

    if len(values) < FEWEST or min(values) == max(values):
        return None
    array = np.array(values)
    scale = float(np.abs(array).max())
    scaled = array / scale  # squares of the largest floats overflow
    mean, spread = float(scaled.mean()), float(scaled.std(ddof=1))
    half = t_quantile(len(values) - 1, confidence) * spread / sqrt(len(values))
    return max(-float_info.max, (mean - half) * scale), min(float_info.max, (mean + half) * scale)


def t_quantile(freedom: int, confidence: float = CONFIDENCE) -> float:
    """The half width of a two-sided interval in standard errors."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + confidence) / 2))


def t_probability(freedom: float, value: float) -> float:
    """Two-sided p of Student's t."""
    from scipy.special import stdtr

    return 2 * float(stdtr(freedom, -abs(value)))


def mean_of_rates(counts: Sequence[tuple[float, int]], confidence: float = CONFIDENCE) -> Interval:
    """The interval of the unweighted mean of success rates, each (successes, n) with n > 0, for fixed environments.

    A rate's variance is taken at (k + 1) / (n + 2), as Agresti and Coull do: at k / n a rate without failures would
    have none. A. Agresti and B. A. Coull, The American Statistician 52 (1998) 119-126.
    """
    mean = sum(k / n for k, n in counts) / len(counts)
    half = spread_of_mean([rate_variance(k, n) for k, n in counts], sum(n - 1 for _, n in counts), confidence)
    return max(0.0, mean - half), min(1.0, mean + half)


def rate_variance(k: float, n: int) -> float:
    rate = (k + 1) / (n + 2)
    return rate * (1 - rate) / n


def spread_of_mean(variances: Sequence[float], freedom: int, confidence: float = CONFIDENCE) -> float:
    """Half the width of the interval of a mean of independent estimates."""
    return t_quantile(max(1, freedom), confidence) * sqrt(sum(variances)) / len(variances)
