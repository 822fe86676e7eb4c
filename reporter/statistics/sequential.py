"""CASM, the conditional alpha-spending McNemar test: A against B pair by pair, stopped as soon as it is decided. Pure.

If neither policy is better, each pair that went differently is a fair coin. So the boundaries may follow the history of
such pairs: by pair t, alpha t / n_max per side is spent on the exact distribution of the walks that have not stopped.
It assumes that pairs are independent of each other and come in the order of their index, and that the rule was fixed
before the first episode. Spending: K. K. G. Lan and D. L. DeMets, Biometrika 70 (1983) 659-663.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from math import sqrt
from statistics import NormalDist

from comborun.reporter.statistics.difference import PairCounts, paired_interval
from comborun.reporter.statistics.proportion import CONFIDENCE, Interval, quantile

TOLERANCE = 1e-15
"""probabilities that differ by less are equal: rounding may add up to it"""

STOPPED_CONFIDENCE = 0.97
"""of the interval after a stop that the data chose, so that it covers 95 % (by simulation, benchmarks/claims.py)"""


FEWEST_PAIRS = 20
"""fewest pairs before a test may be given up"""
UNLIKELY = 0.1


@dataclass(frozen=True)
class Decision:
    pairs: int
    """pairs used, at most n_max; later pairs are not"""
    winner: int
    """+1: A is better; -1: B is; 0: not decided"""
    final: bool
    """whether it is decided, or at n_max; else more pairs will come"""


def decide(outcomes: Iterable[int], n_max: int, alpha: float) -> Decision:
    """The decision on pairs in index order: +1 if only A succeeded, -1 if only B did, else 0. `alpha` is per side."""
    mass = [1.0]
    """by the pairs that A won: the probability of the walks that have not stopped, without `stopped` places at either
    end"""
    spent, stopped, different, wins, pairs = 0.0, 0, 0, 0, 0
    for outcome in islice(outcomes, n_max):
        pairs += 1
        if outcome:
            different, wins = different + 1, wins + (outcome > 0)
            halves = [one / 2 for one in mass]
            mass = [up + down for up, down in zip([*halves, 0.0], [0.0, *halves], strict=True)]
        end, tail = _boundary(mass, alpha * pairs / n_max - spent)
        boundary = stopped + end
        if boundary <= different:
            spent += tail
            if max(wins, different - wins) >= boundary:
                return Decision(pairs, 1 if wins >= boundary else -1, final=True)
            stopped, mass = different + 1 - boundary, mass[len(mass) - end : end]
    return Decision(pairs, 0, final=pairs == n_max)


def _boundary(mass: Sequence[float], budget: float) -> tuple[int, float]:
    """The first count that may stop the test now, and the probability of this count and all larger ones."""
    boundary, tail = len(mass), 0.0
    while 2 * (boundary - 1) > len(mass) - 1 and tail + mass[boundary - 1] <= budget + TOLERANCE:
        boundary -= 1
        tail += mass[boundary]
    return boundary, tail


def decide_both(for_a: Sequence[int], for_b: Sequence[int], n_max: int, alpha: float) -> Decision:
    """The decision if some outcomes are not known: A is better if that holds with `for_a`, in which they count against
    A, and B likewise. The earlier decision counts."""
    if for_a == for_b:
        return decide(for_a, n_max, alpha)
    found = [one for side, seen in ((1, for_a), (-1, for_b)) if (one := decide(seen, n_max, alpha)).winner == side]
    pairs = min(len(for_a), n_max)
    return min(found, key=lambda one: one.pairs, default=Decision(pairs, 0, final=pairs == n_max))


def pointless_after(outcomes: Sequence[int], decision: tuple[int, float], futility: float, width: float) -> int | None:
    """After how many pairs a test (`decision`: n_max, alpha) may end undecided; None means not yet. Either neither
    policy is likely to win with a gap of `futility`, or the interval is no wider than `width`. This makes no false
    claims.

    Conditional power by the normal approximation: K. K. G. Lan, R. Simon, M. Halperin, Sequential Analysis 1 (1982).
    """
    wins = losses = 0
    for pairs, outcome in enumerate(outcomes if futility or width else (), 1):
        wins, losses = wins + (outcome > 0), losses + (outcome < 0)
        if pairs < FEWEST_PAIRS:
            continue
        low, high = interval_after_stopping(PairCounts(pairs - wins - losses, wins, losses, 0))
        if high - low <= width:
            return pairs
        if futility and _conditional_power((abs(wins - losses), wins + losses, pairs), decision, futility) < UNLIKELY:
            return pairs
    return None


def _conditional_power(seen: tuple[int, int, int], decision: tuple[int, float], gap: float) -> float:
    """Of the policy that is ahead. `seen`: its lead, the pairs with different outcomes, and all pairs."""
    (lead, different, pairs), (n_max, alpha) = seen, decision
    left = n_max - pairs
    rate = max((different + 1) / (pairs + 2), gap)
    needed = -quantile(alpha) * sqrt(different + left * rate) - lead - left * gap
    spread = sqrt(left * (rate - gap * gap))
    return 1 - NormalDist().cdf(needed / spread) if spread else float(needed <= 0)


def interval_after_stopping(pairs: PairCounts) -> Interval:
    """The interval of a's rate minus b's if the data chose n > 0. The estimate is too far from 0."""
    return paired_interval(pairs, STOPPED_CONFIDENCE)


# -- by betting: values from 0 to 1, pair by pair ---------------------------------------------------------------------

BETS = tuple((bet + 0.5) / 20 for bet in range(20))
"""shares of the capital"""
PRECISE = 1e-4


def decide_mean(for_a: Sequence[float], for_b: Sequence[float], n_max: int, alpha: float) -> Decision:
    """The decision on the differences of pairs in the order of their index: the value of A minus that of B. `alpha` is
    per side. In `for_a` unknown values count against A, in `for_b` against B.

    A gambler bets, on each pair, a fixed share of the capital that A's value minus B's is above 0. If its mean is not,
    the capital grows only by luck: it ever reaches 1 / alpha with a probability of at most alpha (Ville), whatever the
    values are and however often they are looked at. Twenty gamblers with other shares start with a twentieth each; a
    twin of each bets on B. I. Waudby-Smith and A. Ramdas, Journal of the Royal Statistical Society B 86 (2024) 1-27:
    diversified Kelly betting.
    """
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
