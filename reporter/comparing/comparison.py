"""Compares two policies: in one environment, and over all environments that both have. Pure.

A claim must hold twice: among the episodes with a verdict, and if every other planned episode counts against the better
policy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from comborun.reporter.comparing.sides import Arm, CountsAlone, Meeting, Side
from comborun.reporter.comparing.units import OfRuns, of_both, of_several
from comborun.reporter.evidence.context import once
from comborun.reporter.evidence.runs import RunFact
from comborun.reporter.evidence.settings import SettingFact
from comborun.reporter.json_types import Facts, FourDecimals, Rounded
from comborun.reporter.statistics.barnard import barnard
from comborun.reporter.statistics.difference import PairCounts, holm, mcnemar, newcombe, paired_interval
from comborun.reporter.statistics.findable import findable_paired, findable_unpaired
from comborun.reporter.statistics.pooled import Stratum, heterogeneity, pooled_difference, pooled_p
from comborun.reporter.statistics.proportion import Interval, Proportion, proportion
from comborun.reporter.statistics.sequential import STOPPED_CONFIDENCE
from comborun.rules.facts import Fact

One = TypeVar("One", bound="Tested")

ALPHA = 0.05
"""two-sided, for the whole printed family of comparisons"""


@dataclass(frozen=True)
class Sequential:
    """How a comparison is tested after every pair."""

    n_max: int
    """most pairs"""
    stopped_early: bool
    """decided before the last pair; later episodes are not used here"""
    alpha: float
    """the family's level"""


@dataclass(frozen=True)
class Tested:
    """The common part of all comparisons; differences are a's success rate minus b's."""

    a: str
    """one policy"""
    b: str
    """the other policy"""
    difference: Rounded
    """a's rate minus b's"""
    interval: Interval
    """95 % interval of the difference"""
    p: Rounded
    """two-sided, among the episodes with a verdict"""
    worst_p: Rounded
    """p if every other planned episode counts against the better policy; 1 if that changes the sign"""
    p_holm: Rounded = field(default=1.0, kw_only=True)
    """corrected over the family: all comparisons of the report"""
    worst_holm: Rounded = field(default=1.0, kw_only=True)
    """worst_p, corrected over the family"""
    facts: Facts = field(default=(), kw_only=True)
    """what limits the evidence"""
    worst_difference: Rounded | None = field(default=None, kw_only=True)
    """a's rate minus b's if every other planned episode counts against the better policy; None without such"""

    sequential: Sequential | None = field(default=None, kw_only=True)
    """if it is tested after every pair"""
    prevented: str = field(default="", kw_only=True)
    """why it could not be tested after every pair as planned, or empty"""
    so_far: bool = field(default=False, kw_only=True)
    """whether more episodes may come"""

    @property
    def by_runs(self) -> bool:
        """Whether p is the larger one of episodes and of runs."""
        return bool({RunFact.RANDOM, RunFact.ONE_SIDE}.intersection(fact.code for fact in self.facts))

    @property
    def computed(self) -> bool:
        """Whether there is a p: not with one day each, say."""
        return not any(fact.code == SettingFact.ALONE for fact in self.facts)

    @property
    def leans(self) -> bool:
        """Whether the difference is too far from 0, since the test stopped early."""
        return bool(self.sequential and self.sequential.stopped_early and not self.so_far)

    @property
    def level(self) -> float:
        return self.sequential.alpha if self.sequential else ALPHA

    @property
    def bounded(self) -> bool:
        """Whether p is only a bound: a test after every pair only says whether it decides at its level."""
        return self.sequential is not None

    @property
    def decided(self) -> bool:
        return max(self.p_holm, self.worst_holm) <= self.level

    @property
    def only_completed(self) -> bool:
        """Whether it is decided among the completed episodes, but not if the others count."""
        return self.p_holm <= self.level < self.worst_holm

    @property
    def ahead(self) -> str:
        return self.a if self.difference > 0 else self.b

    @property
    def behind(self) -> str:
        return self.b if self.difference > 0 else self.a

    @property
    def better(self) -> str | None:
        """The better policy, or the one with more; None if p_holm or worst_holm is above .05."""
        return self.ahead if self.decided else None


@dataclass(frozen=True)
class Comparison(Tested):
    """Policy `a` against policy `b` in one environment."""

    environment: str
    """where the policies are compared"""
    rate_a: Proportion
    """of the episodes used: the common ones if paired"""
    rate_b: Proportion
    pairing: str
    """what the starts of the common episodes are"""
    pairs: PairCounts | None
    unknown: tuple[int, int] = (0, 0)
    """planned episodes of a and of b that are errored, missing, or contradictory"""
    findable: FourDecimals | None = None
    """of an undecided one: the true difference that it would find four times in five, at its share of the error, with
    its episodes and with as many pairs that differ, or rates as high, as here"""
    finds_nothing: bool = False
    """whether it has too few episodes to find any difference"""

    @property
    def paired(self) -> bool:
        """Whether the same episodes were compared."""
        return self.pairs is not None

    @property
    def paired_word(self) -> str:
        return "paired" if self.paired else "unpaired"

    @property
    def test(self) -> str:
        """Which test gives p."""
        if self.sequential:
            return "CASM"
        return "exact McNemar" if self.paired else "Barnard"

    @property
    def basis(self) -> str:
        """How it was tested, and why not by pairs: `unpaired (seeds differ; Barnard)`."""
        why = "" if self.paired or self.sequential else f"{self.pairing}; "
        return f"{self.paired_word} ({why}{self.test})"

    @property
    def interval_method(self) -> str:
        """How the interval is made."""
        if self.sequential:
            return f"Zou-Donner at {100 * STOPPED_CONFIDENCE:g} %"
        return "Zou-Donner" if self.paired else "Newcombe"


@dataclass(frozen=True)
class Overall(Tested):
    """Policy `a` against policy `b` over all environments that both have, each with the same weight."""

    environments: int
    mean_a: Rounded
    mean_b: Rounded
    paired: int
    range: Interval
    """the smallest and the largest difference of an environment"""
    heterogeneity: Rounded
    """p of "the difference is the same in every environment" (Cochran's Q)"""
    unknown: tuple[int, int]
    unpaired: tuple[str, ...] = ()
    """why environments are not paired, the most frequent reason first"""


# -- from meetings ----------------------------------------------------------------------------------------------------


def comparison_of(met: Meeting) -> Comparison:
    rate_a, rate_b = rates(met.a, met.b, met.seen.pairs)
    return Comparison(
        **_of_rates([met], _within),
        environment=met.environment,
        rate_a=rate_a,
        rate_b=rate_b,
        pairing=met.why,
        pairs=met.seen.pairs,
    )


def overall_of(meetings: Sequence[Meeting]) -> Overall:
    seen = [one.seen for one in meetings]
    return Overall(
        **_of_rates(meetings, _across),
        environments=len(meetings),
        mean_a=sum(one.a[0] / one.a[1] for one in seen) / len(seen),
        mean_b=sum(one.b[0] / one.b[1] for one in seen) / len(seen),
        paired=sum(one.paired for one in meetings),
        range=(min(one.difference for one in seen), max(one.difference for one in seen)),
        heterogeneity=heterogeneity(seen),
        unpaired=unpaired(meetings),
    )


def compared(meetings: Sequence[Meeting]) -> Comparison | Overall:
    """Of the same two policies, in one environment or over several."""
    return overall_of(meetings) if len(meetings) > 1 else comparison_of(meetings[0])


Found = tuple[float, Interval, float]
"""a difference, its 95 % interval, and p"""


def outcome_of(
    test: Callable[[int], Found],
    of_runs: Callable[[float], OfRuns],
    *,
    unknown: bool,
    limits: tuple[float, float] = (-1.0, 1.0),
) -> dict[str, Any]:
    """The fields of a comparison: the wider interval and the larger p of episodes and of runs, and the same p if every
    episode without a verdict counts against the better policy.

    `test`: with these episodes counted against a (1), against b (-1), or left out (0). `of_runs`: by the difference.
    `unknown`: whether there are such episodes. `limits`: those of a difference.
    """
    difference, interval, p = test(0)
    interval, p = _wider(interval, p, of_runs(difference), limits)
    if not unknown:
        return {"difference": difference, "interval": interval, "p": p, "worst_p": p}
    sign = 1 if difference > 0 else -1
    against, _, worst = test(sign)
    worst = max(p, worst) if against * sign > 0 else 1.0
    return {"difference": difference, "interval": interval, "p": p, "worst_p": worst, "worst_difference": against}


def _wider(interval: Interval, p: float, of_runs: OfRuns, limits: tuple[float, float]) -> tuple[Interval, float]:
    if of_runs is None:
        return interval, p
    difference, half, p_of_both = of_runs
    low, high = max(limits[0], difference - half), min(limits[1], difference + half)
    return (min(interval[0], low), max(interval[1], high)), max(p, p_of_both)


def _of_rates(meetings: Sequence[Meeting], test: Callable[[Sequence[Stratum]], Found]) -> dict[str, Any]:
    """The fields that comparisons of success rates have in common."""
    of_runs = of_both(meetings)
    return of_meetings(
        meetings,
        lambda lost_by: test([one.against(lost_by) if lost_by else one.seen for one in meetings]),
        lambda _: of_runs,
    )


def of_meetings(
    meetings: Sequence[Meeting],
    test: Callable[[int], Found],
    of_runs: Callable[[float], OfRuns],
    limits: tuple[float, float] = (-1.0, 1.0),
) -> dict[str, Any]:
    """The fields that all comparisons of two policies have in common, as of `outcome_of`."""
    unknown = sum(len(one.a.unknown) for one in meetings), sum(len(one.b.unknown) for one in meetings)
    found = outcome_of(test, of_runs, unknown=any(unknown), limits=limits)
    return {
        **found,
        "a": meetings[0].a.policy,
        "b": meetings[0].b.policy,
        "unknown": unknown,
        "facts": told_of(meetings),
    }


def _within(strata: Sequence[Stratum]) -> Found:
    (seen,) = strata
    interval = newcombe(seen.a, seen.b) if seen.pairs is None else paired_interval(seen.pairs)
    return seen.difference, interval, p_of(seen)


def _across(strata: Sequence[Stratum]) -> Found:
    difference, interval = pooled_difference(strata)
    return difference, interval, pooled_p(strata, 1 if difference > 0 else -1) if difference else 1.0


def with_findable(found: Comparison, level: float) -> Comparison:
    """If it is undecided: what it could have found. With several runs nothing is said, since runs may differ."""
    nested = any(fact.code in {SettingFact.NESTED, SettingFact.ALONE} for fact in found.facts)
    if found.decided or found.sequential or found.by_runs or nested:
        return found
    if found.pairs:
        gap = findable_paired(found.pairs, level)
    else:
        gap = findable_unpaired(_independent(found.rate_a), _independent(found.rate_b), level)
    return replace(found, findable=gap, finds_nothing=gap is None)


def _independent(rate: Proportion) -> tuple[float, int]:
    """Successes and episodes; of starts, if these repeat."""
    n = rate.starts or rate.n
    return (rate.rate or 0.0) * n, n


def rates(a: Side, b: Side, pairs: PairCounts | None) -> tuple[Proportion, Proportion]:
    if pairs is None or isinstance(a, CountsAlone) or isinstance(b, CountsAlone):
        plain = [replace(one, shares=()) if isinstance(one, Arm) and one.shares else one for one in (a, b)]
        return proportion(*a.counts, plain[0].by_start), proportion(*b.counts, plain[1].by_start)
    common = a.completed & b.completed
    counts = zip((a, b), (pairs.counts_a, pairs.counts_b), strict=True)
    first, second = (proportion(len(one.successes & common), len(common), starts) for one, starts in counts)
    return first, second


def p_of(stratum: Stratum) -> float:
    pairs = stratum.pairs
    return barnard(stratum.a, stratum.b) if pairs is None else mcnemar(pairs.only_a, pairs.only_b)


REASONS = 3
"""reasons why comparisons are not paired that are told"""


def not_paired(found: Iterable[Comparison]) -> str:
    """`Not paired: seeds differ; no seeds in the records.`; empty if all are paired."""
    reasons = Counter(one.pairing for one in found if not one.paired and not one.sequential)
    return f"Not paired: {first_reasons([why for why, _ in reasons.most_common()])}." if reasons else ""


FACTS_TOLD = 4
"""facts told of several comparisons together; final_benchmark_report.json has all"""


def limited(found: Iterable[Tested]) -> list[Fact]:
    """What limits these comparisons, each fact once; the first few."""
    facts: list[Fact] = []
    for one in found:
        facts += [fact for fact in one.facts if fact not in facts]
    return [*once(facts)][:FACTS_TOLD]


def unpaired(meetings: Iterable[Meeting]) -> tuple[str, ...]:
    """Why some are not paired, the most frequent reason first."""
    return tuple(why for why, _ in Counter(one.why for one in meetings if not one.paired).most_common())


def first_reasons(reasons: Sequence[str]) -> str:
    return "; ".join(reasons[:REASONS]) + " and others" * (len(reasons) > REASONS)


def told_of(meetings: Sequence[Meeting]) -> tuple[Fact, ...]:
    """What limits a comparison; of several environments each fact once, with those that it limits."""
    if len(meetings) == 1:
        return meetings[0].facts
    found: list[tuple[Fact, list[str]]] = []
    for met in meetings:
        for fact in met.facts:
            if known := next((places for one, places in found if one == fact), None):
                known.append(met.environment)
            else:
                found.append((fact, [met.environment]))
    found = of_several(found, meetings)
    return tuple(Fact(fact.code, **fact.fields, environments=places) for fact, places in found)


# -- a family of comparisons ------------------------------------------------------------------------------------------


def corrected(found: Sequence[One], weights: Sequence[float] | None = None) -> list[One]:
    """With p adjusted by Holm, all of them in one family. `weights` may be longer: comparisons that were planned but
    can't be made belong to the family, too."""
    absent = [1.0] * (len(weights) - len(found) if weights else 0)
    plain = holm([*(comparison.p for comparison in found), *absent], weights)
    worst = holm([*(comparison.worst_p for comparison in found), *absent], weights)
    adjusted = zip(found, plain, worst, strict=False)
    return [replace(comparison, p_holm=p, worst_holm=worst_p) for comparison, p, worst_p in adjusted]
