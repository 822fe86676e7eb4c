"""One policy against another in one environment: paired where that is verified. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from comborun.reporter.comparing.pairing import Arm, Counted, Pairing, pairing
from comborun.reporter.statistics.barnard import barnard
from comborun.reporter.statistics.difference import newcombe
from comborun.reporter.statistics.paired import PairCounts, bonett_price, mcnemar
from comborun.reporter.statistics.proportion import Interval, Proportion, proportion

ALPHA = 0.05
"""two-sided, for the whole printed family of comparisons"""

Side = Arm | Counted


@dataclass(frozen=True)
class Sequential:
    """What a comparison that is tested after every pair was planned to be."""

    n_max: int
    """pairs, at most"""
    stopped: bool
    """decided before the last of them: what ran later is kept, and not used here"""
    alpha: float
    """two-sided, for the whole family"""


@dataclass(frozen=True)
class Comparison:
    """Policy `a` against policy `b` in one environment; differences are a's success rate minus b's."""

    environment: str
    a: str
    b: str
    rate_a: Proportion
    """of the episodes used here: the common ones when paired"""
    rate_b: Proportion
    pairing: Pairing
    pairs: PairCounts | None
    """None where the episodes are not verifiably paired"""
    difference: float
    interval: Interval
    """95 %, of this difference alone: Bonett-Price when paired, else Newcombe; MOVER where the data chose n"""
    p: float
    """two-sided: exact McNemar when paired, else Barnard; a sequential p where it was tested after every pair"""
    p_holm: float
    """adjusted over all comparisons of the report"""
    sequential: Sequential | None = None
    """None where all episodes count, however they went"""
    prevented: str = ""
    """why it could not be tested after every pair, as was planned; empty where it was, or was not to be"""

    @property
    def paired(self) -> bool:
        return self.pairs is not None

    @property
    def test(self) -> str:
        if self.sequential:
            return "CASM"
        return "exact McNemar" if self.paired else "Barnard"

    @property
    def test_words(self) -> str:
        """For a table."""
        return f"{self.test}, not CASM as planned" if self.prevented else self.test

    @property
    def interval_method(self) -> str:
        if self.sequential:
            return "MOVER of Clopper-Pearson at 97 %"
        return "Bonett-Price" if self.paired else "Newcombe"

    @property
    def bounded(self) -> bool:
        """Whether p is only a bound: a sequential p is the smallest of a few levels at which the test claims."""
        return self.sequential is not None

    @property
    def decided(self) -> bool:
        return self.p_holm <= (self.sequential.alpha if self.sequential else ALPHA)

    @property
    def better(self) -> str | None:
        """None where it is not decided."""
        if not self.decided:
            return None
        return self.a if self.difference > 0 else self.b


def comparison_of(environment: str, a: Side, b: Side) -> Comparison:
    """With `p_holm` still that of the comparison alone."""
    starts = pairing(a, b)
    pairs = count_pairs(a, b) if starts.paired and isinstance(a, Arm) and isinstance(b, Arm) else None
    (k_a, n_a), (k_b, n_b) = (a.counts, b.counts) if pairs is None else (pairs.counts_a, pairs.counts_b)
    p = barnard((k_a, n_a), (k_b, n_b)) if pairs is None else mcnemar(pairs.only_a, pairs.only_b)
    return Comparison(
        environment=environment,
        a=a.policy,
        b=b.policy,
        rate_a=proportion(k_a, n_a),
        rate_b=proportion(k_b, n_b),
        pairing=starts,
        pairs=pairs,
        difference=(k_a * n_b - k_b * n_a) / (n_a * n_b),
        interval=newcombe((k_a, n_a), (k_b, n_b)) if pairs is None else bonett_price(pairs),
        p=p,
        p_holm=p,
    )


def count_pairs(a: Arm, b: Arm) -> PairCounts:
    """Of the episodes that both completed."""
    both = len(a.successes & b.successes)
    only_a = len(a.successes & b.completed) - both
    only_b = len(b.successes & a.completed) - both
    return PairCounts(both, only_a, only_b, len(a.completed & b.completed) - both - only_a - only_b)
