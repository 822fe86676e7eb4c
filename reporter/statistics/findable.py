"""The smallest true difference that a number of pairs, or one comparison as its own episodes are, finds four times in
five. Pure."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import count
from math import ceil, floor, sqrt
from statistics import NormalDist

from comborun.reporter.statistics.barnard import barnard
from comborun.reporter.statistics.difference import PairCounts
from comborun.reporter.statistics.proportion import quantile

POWER = 0.8

MANY_PAIRS = 3000
"""for more pairs the gap is approximated"""
PRECISE = 2e-3
SMALL = 30
CERTAIN = 1e-9
SECANTS = 8
SPREADS = 6
"""standard deviations of the number of pairs that differ; beyond is nothing"""


@lru_cache(maxsize=1024)
def detectable_gap(n: int, alpha: float) -> float | None:
    """The true difference that the exact McNemar test of n independent pairs finds with probability POWER, for rates
    around 1/2, where it is hardest. None if not even 0 against 1 is found."""
    if 2 * 0.5**n > alpha:
        return None
    if n > MANY_PAIRS:
        # (z(1 - alpha/2) + z(power))^2 = d^2 / (2 p q / n) with p = (1 + d)/2 and q = (1 - d)/2, solved for d.
        square = (quantile(1 - alpha / 2) + quantile(POWER)) ** 2 / n / 2
        return sqrt(square / (1 + square))
    needed = wins_needed(n, alpha)
    low, high = 0.0, 1.0
    while high - low > 1e-6:
        gap = (low + high) / 2
        low, high = (low, gap) if _power(n, (1 + gap**2) / 2, gap, needed) >= POWER else (gap, high)
    return high


@lru_cache(maxsize=256)
def wins_needed(n: int, alpha: float) -> tuple[int, ...]:
    """For 0 .. n pairs with different outcomes, how many one policy must win; one more than all if none suffice."""
    from scipy.special import bdtrc

    wins = [1]
    for different in range(1, n + 1):
        enough = 2 * bdtrc(wins[-1] - 1, different, 0.5) <= alpha
        wins.append(wins[-1] + (not enough))
    return (*wins,)


# -- by the episodes of a comparison ----------------------------------------------------------------------------------


def findable_paired(pairs: PairCounts, alpha: float) -> float | None:
    """By the exact McNemar test, if as large a share of pairs differs as here. None if no difference is found."""
    return _paired(pairs.n, round(pairs.only_a + pairs.only_b), alpha)


@lru_cache(maxsize=4096)
def _paired(n: int, differing: int, alpha: float) -> float | None:
    if 2 * 0.5**n > alpha:
        return None
    share = (differing + 1) / (n + 2)
    if n > MANY_PAIRS:
        # For a difference d the number won less the number lost has the mean n d and the variance n (share - d^2).
        z = quantile(1 - alpha / 2)
        return _smallest(lambda gap: _normal_power(n, max(share, gap), gap, z))
    needed = wins_needed(n, alpha)
    guess = (quantile(1 - alpha / 2) + quantile(POWER)) * sqrt(share / n)
    return _smallest(lambda gap: _power(n, max(share, gap), gap, needed), guess)


def _normal_power(n: int, share: float, gap: float, z: float) -> float:
    spread = sqrt(max(1e-12, share - gap * gap))
    return NormalDist().cdf((gap * sqrt(n) - z * sqrt(share)) / spread)


def _power(n: int, share: float, gap: float, needed: tuple[int, ...]) -> float:
    """The probability that the better policy is found better."""
    import numpy as np
    from scipy.special import bdtr, bdtrc

    spread = SPREADS * sqrt(n * share * (1 - share)) + 1
    low, high = max(0, floor(n * share - spread)), min(n, ceil(n * share + spread))
    different = np.arange(low, high + 1)
    weights = np.diff(bdtr(different, n, min(1.0, share)), prepend=bdtr(low - 1, n, share) if low else 0.0)
    enough = np.array(needed[low : high + 1])
    possible = enough <= different
    won = bdtrc(enough[possible] - 1, different[possible], min(1.0, (1 + gap / share) / 2))
    return float(weights[possible] @ won)


def findable_unpaired(a: tuple[float, int], b: tuple[float, int], alpha: float) -> float | None:
    """By Barnard's test, for rates around those of all episodes (normal approximation). None if not even 0 against 1
    is found."""
    return _unpaired(round(a[0]), a[1], round(b[0]), b[1], alpha)


@lru_cache(maxsize=4096)
def _unpaired(k: int, n: int, other: int, m: int, alpha: float) -> float | None:
    if barnard((n, n), (0, m)) > alpha:
        return None
    rate = (k + other + 1) / (n + m + 2)
    z = quantile(1 - alpha / 2)

    def power(gap: float) -> float:
        high = min(1.0, rate + gap * m / (n + m))
        low = max(0.0, high - gap)
        high = min(1.0, low + gap)
        pooled = (high * n + low * m) / (n + m)
        null = sqrt(pooled * (1 - pooled) * (1 / n + 1 / m))
        spread = sqrt(high * (1 - high) / n + low * (1 - low) / m)
        seen = gap - (1 / n + 1 / m) / 2 if min(n, m) < SMALL else gap  # continuity
        return NormalDist().cdf((seen - z * null) / max(1e-9, spread))

    return _smallest(power)


def _smallest(power: Callable[[float], float], guess: float = 0.5) -> float | None:
    """The smallest one that is found four times in five. As a quantile, its probability is almost a line: a secant
    through the last two gaps, a little to one side of it, then to the other, meets it in a few steps."""
    if power(1.0) < POWER:
        return None
    low, high = 0.0, 1.0
    gap, last = min(guess, 0.9), (0.0, quantile(0.05))
    for step in count():
        if high - low <= PRECISE * high:
            break
        found = power(gap)
        low, high = (low, gap) if found >= POWER else (gap, high)
        now = gap, quantile(min(1 - CERTAIN, max(CERTAIN, found)))
        slope = (now[1] - last[1]) / (now[0] - last[0])
        near = gap + (quantile(POWER) - now[1]) / slope if slope > 0 else 0.0
        last = now
        near += PRECISE / 3 * high * (-1 if near - low > high - near else 1)  # so that the farther end comes near
        gap = near if low < near < high and step < SECANTS else (low + high) / 2
    return high
