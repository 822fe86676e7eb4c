"""The smallest difference that a number of episodes can show. Pure.

For independent policies with rates on either side of 1/2, where differences are hardest to see. Closer to 0 or 1, and
between paired episodes that tend to go alike, smaller ones show.
"""

from __future__ import annotations

from functools import lru_cache
from math import sqrt
from typing import TYPE_CHECKING

from comborun.reporter.statistics.barnard import binomial, largest, region_of, squared_z
from comborun.reporter.statistics.proportion import quantile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from comborun.reporter.statistics.barnard import Region

POWER = 0.8

MANY_PAIRS = 3000
MANY_EPISODES = 400
"""of both policies together: what is beyond is approximated, at most some hundredths of the gap too small"""


@lru_cache(maxsize=1024)
def unpaired_gap(sizes: tuple[int, int], alpha: float) -> float | None:
    """The true difference found with probability POWER by Barnard's two-sided test at `alpha`, by its exact power;
    None where not even 0 against 1 would be."""
    if sum(sizes) > MANY_EPISODES:
        return _approximately(sizes, alpha)
    region = _barnard_region(sizes, alpha)
    if region is None:
        return None
    return _smallest(lambda gap: _barnard_power(sizes, ((1 + gap) / 2, (1 - gap) / 2), region) >= POWER)


@lru_cache(maxsize=1024)
def paired_gap(n: int, alpha: float) -> float | None:
    """The same for the exact McNemar test of n pairs."""
    if 2 * 0.5**n > alpha:
        return None
    if n > MANY_PAIRS:
        return _approximately((n, n), alpha)
    needed = _wins_needed(n, alpha)
    return _smallest(lambda gap: _mcnemar_power(gap, needed) >= POWER)


def _barnard_region(sizes: tuple[int, int], alpha: float) -> Region | None:
    """The tables that the test at `alpha` calls different, with nothing set aside; None where it never does."""
    import numpy as np

    x, y = (np.arange(size + 1) for size in sizes)
    squares = np.unique(np.round(squared_z((x[:, None], sizes[0]), (y[None, :], sizes[1])), 9))
    low, high = 0, len(squares)
    while low < high:
        middle = (low + high) // 2
        found = squares[middle] > 0 and largest(sizes, region_of(sizes, squares[middle] - 1e-9), (0.0, 1.0)) <= alpha
        low, high = (low, middle) if found else (middle + 1, high)
    return region_of(sizes, squares[low] - 1e-9) if low < len(squares) else None


def _barnard_power(sizes: tuple[int, int], rates: tuple[float, float], region: Region) -> float:
    """The probability that a's rate is found to be the higher one."""
    import numpy as np
    from scipy.special import bdtr

    first = binomial(sizes[0], np.array([rates[0]]))[0]
    fewer = region[0]
    below = np.where(fewer >= 0, bdtr(np.maximum(fewer, 0), sizes[1], rates[1]), 0.0)
    return float(first @ below)


def _approximately(sizes: tuple[int, int], alpha: float) -> float:
    """By the usual normal approximation (z(1 - alpha/2) + z(power))^2 = d^2 / (p q / n + p' q' / n') with
    p = (1 + d)/2 and p' = (1 - d)/2, solved for d."""
    n, m = sizes
    square = (quantile(1 - alpha / 2) + quantile(POWER)) ** 2 * (1 / n + 1 / m) / 4
    return sqrt(square / (1 + square))


def _smallest(enough: Callable[[float], bool]) -> float:
    low, high = 0.0, 1.0
    while high - low > 1e-6:
        gap = (low + high) / 2
        low, high = (low, gap) if enough(gap) else (gap, high)
    return high


def _wins_needed(n: int, alpha: float) -> Sequence[int]:
    """For 0 .. n pairs that went differently, how many of them one policy must win; one more than there are where none
    suffice. Each pair more asks for as many wins, or for one more."""
    from scipy.special import bdtrc

    wins = [1]
    for different in range(1, n + 1):
        enough = 2 * bdtrc(wins[-1] - 1, different, 0.5) <= alpha
        wins.append(wins[-1] + (not enough))
    return wins


def _mcnemar_power(gap: float, wins: Sequence[int]) -> float:
    """The probability that the better policy is found better, its rate (1 + gap)/2 and the other's (1 - gap)/2."""
    import numpy as np
    from scipy.special import bdtr, bdtrc

    n = len(wins) - 1
    only_better, only_worse = ((1 + gap) / 2) ** 2, ((1 - gap) / 2) ** 2
    differing = only_better + only_worse
    different = np.arange(n + 1)
    until = bdtr(different, n, differing)
    weights = np.diff(until, prepend=0.0)
    needed = np.array(wins)
    possible = needed <= different
    found = bdtrc(needed[possible] - 1, different[possible], only_better / differing)
    return float(weights[possible] @ found)
