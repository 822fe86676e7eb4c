"""Tests of "not worse by a margin": a's rate minus b's is above minus the margin. Pure.

p is two-sided as all p-values here: twice the one-sided one. So "not worse" at .05 errs at most 2.5 % of the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from comborun.reporter.statistics.difference import mover, paired_interval
from comborun.reporter.statistics.pooled import Stratum
from comborun.reporter.statistics.proportion import clopper_pearson, t_probability

LEAST = 1e-9


def not_worse_p(strata: Sequence[Stratum], margin: float) -> float:
    """p of the test that the first policy is worse than the second by the margin.

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
