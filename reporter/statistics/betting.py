"""A sequential test of a mean difference of values from 0 to 1, pair by pair. Pure.

A gambler bets, on each pair, a fixed share of the capital that A's value minus B's is above 0. If its mean is not, the
capital grows only by luck: it ever reaches 1 / alpha with a probability of at most alpha (Ville), whatever the values
are and however often they are looked at. Twenty gamblers with other shares start with a twentieth each; a twin of each
bets on B. I. Waudby-Smith and A. Ramdas, Journal of the Royal Statistical Society B 86 (2024) 1-27: diversified Kelly
betting.
"""

from __future__ import annotations

from collections.abc import Sequence

from comborun.reporter.statistics.proportion import CONFIDENCE, Interval
from comborun.reporter.statistics.sequential import Decision

BETS = tuple((bet + 0.5) / 20 for bet in range(20))
"""shares of the capital"""
PRECISE = 1e-4


def decide_mean(for_a: Sequence[float], for_b: Sequence[float], n_max: int, alpha: float) -> Decision:
    """The decision on the differences of pairs in the order of their index: the value of A minus that of B. `alpha` is
    per side. In `for_a` unknown values count against A, in `for_b` against B."""
    won, lost = (_reached(some[:n_max], alpha) for some in (for_a, [-one for one in for_b]))
    pairs = min(len(for_a), n_max)
    if won is None and lost is None:
        return Decision(pairs, 0, final=pairs == n_max)
    if lost is None or (won is not None and won < lost):
        return Decision(won or 0, 1, final=True)
    return Decision(lost, -1, final=True)


def _reached(differences: Sequence[float], alpha: float, mean: float = 0.0) -> int | None:
    """After how many pairs the capital that was bet on "more than `mean`" is 1 / alpha; None: never."""
    import numpy as np

    gains = (np.asarray(differences, dtype=float) - mean) / (1 + mean)  # at least -1
    capital = np.exp(np.log1p(np.outer(BETS, gains)).cumsum(axis=1)).mean(axis=0)
    rich = np.flatnonzero(capital >= 1 / alpha)
    return int(rich[0]) + 1 if len(rich) else None


def interval_by_betting(differences: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """The mean differences that no gambler refutes: it covers whenever the pairs end."""
    low = _refuted_to(differences, (1 - confidence) / 2)
    return low, -_refuted_to([-one for one in differences], (1 - confidence) / 2)


def _refuted_to(differences: Sequence[float], alpha: float) -> float:
    """The largest mean that is refuted; a larger one lets the capital grow less."""
    low, high = -1.0, 1.0
    while high - low > PRECISE:
        middle = (low + high) / 2
        low, high = (low, middle) if _reached(differences, alpha, middle) is None else (middle, high)
    return low
