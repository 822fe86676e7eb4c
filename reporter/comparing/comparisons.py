"""Policies compared two by two within each environment, paired where that is verified, and corrected for how many
comparisons there are. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

from comborun.reporter.comparing.pairing import Arm, Side, count_pairs, pairing
from comborun.reporter.statistics.barnard import barnard, paired_gap, unpaired_gap
from comborun.reporter.statistics.difference import PairCounts, bonett_price, holm, letters, mcnemar, newcombe
from comborun.reporter.statistics.proportion import Interval, Proportion, proportion

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from comborun.reporter.comparing.stopping import Stopping

ALPHA = 0.05
"""two-sided, for the whole printed family of comparisons"""


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
    pairing: str
    """what the records say of the starts of the episodes that both have: one clause"""
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
    def paired_word(self) -> str:
        return "paired" if self.paired else "unpaired"

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


@dataclass(frozen=True)
class Detectable:
    """The smallest true difference that would be found with 80 % probability, by the least able of the environment's
    comparisons: two independent rates on either side of 50 %, the hardest place."""

    n: int
    """episodes per policy: the fewest of any comparison of the environment"""
    alone: float | None
    """tested alone at 5 %; None where not even 0 against 100 % would be found"""
    in_family: float | None
    """at 5 % over all comparisons of the report (Bonferroni)"""


@dataclass(frozen=True)
class EnvironmentComparisons:
    environment: str
    comparisons: tuple[Comparison, ...]
    """in the order of the policies"""
    letters: tuple[tuple[str, str], ...]
    """policy -> letters, best rate first: policies that share a letter are not told apart. Empty where only some
    of the pairs are compared"""
    detectable: Detectable


@dataclass(frozen=True)
class Comparisons:
    """All that are printed: the family that Holm's correction is made over."""

    environments: tuple[EnvironmentComparisons, ...]
    """those with at least two policies that have completed episodes"""
    size: int
    """how many comparisons the family has"""
    left_out: tuple[tuple[str, tuple[str, ...]], ...]
    """environment -> policies without a completed episode; only environments in which several policies are counted"""

    @property
    def all(self) -> tuple[Comparison, ...]:
        return tuple(one for group in self.environments for one in group.comparisons)

    def letters_of(self, policy: str, environment: str) -> str:
        """Empty without comparisons."""
        found = (dict(group.letters) for group in self.environments if group.environment == environment)
        return "".join(letters.get(policy, "") for letters in found)


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
        pairing=starts.why,
        pairs=pairs,
        difference=(k_a * n_b - k_b * n_a) / (n_a * n_b),
        interval=newcombe((k_a, n_a), (k_b, n_b)) if pairs is None else bonett_price(pairs),
        p=p,
        p_holm=p,
    )


def compare(environments: Mapping[str, Sequence[Side]], stopping: Stopping | None = None) -> Comparisons:
    """Every pair of policies of each environment; where comparisons may have stopped early those that were planned, and
    no others: how many episodes there are depends on how they went."""
    found = {
        environment: stopping.comparisons(environment, sides)
        if stopping and environment in stopping.rule.environments
        else _pairs(environment, sides)
        for environment, sides in environments.items()
    }
    ps = [comparison.p for comparisons in found.values() for comparison in comparisons]
    size = max(len(ps), stopping.rule.family if stopping else 0)
    adjusted = iter(holm([*ps, *[1.0] * (size - len(ps))]))
    corrected = {
        environment: tuple(replace(comparison, p_holm=next(adjusted)) for comparison in comparisons)
        for environment, comparisons in found.items()
    }
    return Comparisons(
        environments=tuple(
            _environment(environment, comparisons, environments[environment], size)
            for environment, comparisons in corrected.items()
            if comparisons
        ),
        size=size,
        left_out=tuple(
            (environment, tuple(side.policy for side in sides if not side.counts[1]))
            for environment, sides in environments.items()
            if len(sides) > 1 and not all(side.counts[1] for side in sides)
        ),
    )


def _pairs(environment: str, sides: Iterable[Side]) -> tuple[Comparison, ...]:
    usable = [side for side in sides if side.counts[1]]
    return tuple(comparison_of(environment, a, b) for a, b in combinations(usable, 2))


def _environment(
    environment: str, comparisons: tuple[Comparison, ...], sides: Sequence[Side], family: int
) -> EnvironmentComparisons:
    ranked = sorted((side for side in sides if side.counts[1]), key=lambda side: -side.counts[0] / side.counts[1])
    all_pairs = 2 * len(comparisons) == len(ranked) * (len(ranked) - 1)
    different = [(comparison.a, comparison.b) for comparison in comparisons if comparison.decided]
    return EnvironmentComparisons(
        environment=environment,
        comparisons=comparisons,
        letters=letters([side.policy for side in ranked], different) if all_pairs else (),
        detectable=Detectable(
            n=min(min(comparison.rate_a.n, comparison.rate_b.n) for comparison in comparisons),
            alone=_gap(comparisons, ALPHA),
            in_family=_gap(comparisons, ALPHA / family),
        ),
    )


def _gap(comparisons: Sequence[Comparison], alpha: float) -> float | None:
    """Of the least able comparison; None where it could find nothing."""
    paired = {comparison.pairs.n for comparison in comparisons if comparison.pairs}
    sizes = {(comparison.rate_a.n, comparison.rate_b.n) for comparison in comparisons if not comparison.pairs}
    gaps = [paired_gap(min(paired), alpha)] if paired else []
    gaps += [unpaired_gap(max(sizes, key=lambda pair: (1 / pair[0] + 1 / pair[1], pair)), alpha)] if sizes else []
    found = [gap for gap in gaps if gap is not None]
    return max(found) if len(found) == len(gaps) else None
