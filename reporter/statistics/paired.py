"""Two success rates over the same episodes: only those that went differently tell them apart. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from sys import float_info

from comborun.reporter.statistics.proportion import CONFIDENCE, Interval, quantile


@dataclass(frozen=True)
class PairCounts:
    """Episodes that both policies completed, by how they went."""

    both: int
    only_a: int
    only_b: int
    neither: int

    @property
    def n(self) -> int:
        return self.both + self.only_a + self.only_b + self.neither

    @property
    def counts_a(self) -> tuple[int, int]:
        """Successes and episodes of a, over the pairs."""
        return self.both + self.only_a, self.n

    @property
    def counts_b(self) -> tuple[int, int]:
        return self.both + self.only_b, self.n


def mcnemar(only_a: int, only_b: int) -> float:
    """Two-sided p of the exact test: each episode that went differently is a fair coin. 1 where none did; never 0, but
    at least the smallest normal number, below which (some 1,000 episodes, all one way) nothing is told apart.

    Q. McNemar, Psychometrika 12 (1947) 153-157, with binomial probabilities.
    """
    if only_a == only_b:
        return 1.0
    from scipy.special import bdtr

    return min(1.0, max(float_info.min, 2 * float(bdtr(min(only_a, only_b), only_a + only_b, 0.5))))


def bonett_price(pairs: PairCounts, confidence: float = CONFIDENCE) -> Interval:
    """The adjusted Wald interval of a's rate minus b's, n > 0; it is not centred on the observed difference.

    D. G. Bonett and R. M. Price, Journal of Educational and Behavioral Statistics 37 (2012) 479-488.
    """
    z = quantile(1 - (1 - confidence) / 2)
    first, second = (pairs.only_a + 1) / (pairs.n + 2), (pairs.only_b + 1) / (pairs.n + 2)
    centre = first - second
    half = z * sqrt((first + second - centre * centre) / (pairs.n + 2))
    return max(-1.0, centre - half), min(1.0, centre + half)
