"""All policies compared two by two within each environment, and corrected for how many comparisons there are. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

from comborun.reporter.comparing.comparison import ALPHA, Comparison, Side, comparison_of
from comborun.reporter.counting.quality import Finding
from comborun.reporter.statistics.detectable import paired_gap, unpaired_gap
from comborun.reporter.statistics.multiplicity import holm, letters
from comborun.text import several

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from comborun.reporter.comparing.early import Early


@dataclass(frozen=True)
class Detectable:
    """The smallest true difference that would be found with 80 % probability, by the least able of the environment's
    comparisons: two independent rates on either side of 50 %, the hardest place. Closer to 0 or 100 %, and between
    paired episodes that go alike, smaller ones show."""

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

    def letters_of(self, policy: str) -> str:
        return dict(self.letters).get(policy, "")


@dataclass(frozen=True)
class Comparisons:
    """All that are printed: the family that Holm's correction is made over."""

    environments: tuple[EnvironmentComparisons, ...]
    """those with at least two policies that have completed episodes"""
    size: int
    """how many comparisons the family has"""
    left_out: tuple[tuple[str, tuple[str, ...]], ...]
    """environment -> policies without a completed episode; only environments in which several policies are counted"""
    baseline: str | None
    """the policy that all others are compared with; None: every policy with every other"""


def compare(
    environments: Mapping[str, Sequence[Side]], baseline: str | None = None, early: Early | None = None
) -> Comparisons:
    """Every pair of policies of each environment, or every policy with `baseline`; where comparisons may have stopped
    early those that were planned, and no others: how many episodes there are depends on how they went."""
    found = {
        environment: early.pairs(environment, arms)
        if early and environment in early.environments
        else _pairs(environment, arms, baseline)
        for environment, arms in environments.items()
    }
    family = [comparison for comparisons in found.values() for comparison in comparisons]
    size = max(len(family), early.family if early else 0)
    adjusted = iter(holm([*(comparison.p for comparison in family), *[1.0] * (size - len(family))]))
    corrected = {
        environment: tuple(replace(comparison, p_holm=next(adjusted)) for comparison in comparisons)
        for environment, comparisons in found.items()
    }
    return Comparisons(
        environments=tuple(
            _environment(environment, comparisons, environments[environment], family=size, all_pairs=baseline is None)
            for environment, comparisons in corrected.items()
            if comparisons
        ),
        size=size,
        left_out=tuple(
            (environment, tuple(arm.policy for arm in arms if not arm.counts[1]))
            for environment, arms in environments.items()
            if len(arms) > 1 and not all(arm.counts[1] for arm in arms)
        ),
        baseline=baseline,
    )


def _pairs(environment: str, arms: Iterable[Side], baseline: str | None) -> tuple[Comparison, ...]:
    usable = [arm for arm in arms if arm.counts[1]]
    if baseline is None:
        return tuple(comparison_of(environment, a, b) for a, b in combinations(usable, 2))
    base = [arm for arm in usable if arm.policy == baseline]
    return tuple(comparison_of(environment, a, b) for b in base for a in usable if a is not b)


def _environment(
    environment: str, comparisons: tuple[Comparison, ...], arms: Sequence[Side], *, family: int, all_pairs: bool
) -> EnvironmentComparisons:
    ranked = sorted((arm for arm in arms if arm.counts[1]), key=lambda arm: -arm.counts[0] / arm.counts[1])
    all_pairs = all_pairs and 2 * len(comparisons) == len(ranked) * (len(ranked) - 1)
    different = [(comparison.a, comparison.b) for comparison in comparisons if comparison.decided]
    return EnvironmentComparisons(
        environment=environment,
        comparisons=comparisons,
        letters=letters([arm.policy for arm in ranked], different) if all_pairs else (),
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


def prevented(comparisons: Comparisons) -> Iterator[Finding]:
    """Where a test after every pair was planned and could not be made: a finding per environment and reason."""
    found = Counter((one.environment, one.prevented) for group in comparisons.environments for one in group.comparisons)
    for (environment, why), count in found.items():
        if why:
            these = f"{several(count, 'comparison')} of `stop_early`"
            yield Finding(
                environment,
                f"{these} could not be tested after every pair of episodes, so that nothing could stop early: {why};"
                f" {'it was' if count == 1 else 'each was'} made once, of all episodes",
            )
