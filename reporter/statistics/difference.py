"""The interval of the difference of two independent success rates. Pure."""

from __future__ import annotations

from math import sqrt

from comborun.reporter.statistics.proportion import CONFIDENCE, Interval, wilson


def newcombe(a: tuple[int, int], b: tuple[int, int], confidence: float = CONFIDENCE) -> Interval:
    """Of a's rate minus b's, each (successes, n) with n > 0: Wilson limits joined by the square-and-add method.

    R. G. Newcombe, Statistics in Medicine 17 (1998) 873-890, method 10.
    """
    return mover((a[0] / a[1], wilson(*a, confidence)), (b[0] / b[1], wilson(*b, confidence)))


def mover(a: tuple[float, Interval], b: tuple[float, Interval]) -> Interval:
    """The interval of a difference from an estimate and its limits on each side (square and add)."""
    (rate_a, (low_a, high_a)), (rate_b, (low_b, high_b)) = a, b
    difference = rate_a - rate_b
    low = difference - sqrt((rate_a - low_a) ** 2 + (high_b - rate_b) ** 2)
    high = difference + sqrt((high_a - rate_a) ** 2 + (rate_b - low_b) ** 2)
    return max(-1.0, low), min(1.0, high)
