"""Compares policies by a graded metric. Pure.

A pair of episodes with the same start is won by the policy with more of the metric. So pairs are compared as successes
are. An episode without a value is lost by the policy that is ahead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import inf, isinf, sqrt
from statistics import fmean
from typing import Any

from comborun.model.attempt import Verdict
from comborun.model.work import grouped
from comborun.reporter.comparing.comparison import (
    Found,
    Tested,
    of_meetings,
    unpaired,
)
from comborun.reporter.comparing.pairing import meet
from comborun.reporter.comparing.sides import Arm, Meeting, arm, count_pairs
from comborun.reporter.comparing.units import OfRuns, of_both
from comborun.reporter.counting.measures import NO_FIELDS
from comborun.reporter.evidence.fields import Fields
from comborun.reporter.evidence.starts import Settled, starts_of
from comborun.reporter.json_types import Range, Rounded, TenDecimals
from comborun.reporter.merge import MergedCombo
from comborun.reporter.statistics.difference import (
    FEWEST_UNPAIRED,
    Effect,
    PairCounts,
    dominance,
    interquartile_mean,
    mcnemar,
    paired_interval,
)
from comborun.reporter.statistics.means import Sample, mean_difference
from comborun.reporter.statistics.pooled import Stratum, pooled_p
from comborun.reporter.statistics.proportion import Interval, t_probability, t_quantile


@dataclass(frozen=True)
class ByMetric(Tested):
    """Two policies by a metric."""

    metric: str
    environments: tuple[str, ...]
    """several mean: over all of them, each with the same weight"""
    n: tuple[int, int]
    """number of values of a and of b"""
    paired: bool
    unknown: tuple[int, int]
    unpaired: tuple[str, ...] = field(default=(), kw_only=True)
    """why environments are not paired, the most frequent reason first"""

    @property
    def where(self) -> str:
        return f"over {len(self.environments)} environments" if self.environments[1:] else f"in {self.environments[0]}"


@dataclass(frozen=True)
class Graded(ByMetric):
    """`difference` is the chance that `a` has more of the metric than `b`, minus the chance that it has less."""

    middle: Range
    """interquartile means of a and of b; over environments their means"""
    only_successes: bool = False
    """whether only successful episodes of a or of b have a value"""

    @property
    def test(self) -> str:
        if len(self.environments) > 1:
            return "stratified sign test" if self.paired else "t test"
        return "sign test" if self.paired else "Brunner-Munzel"

    @property
    def chance(self) -> Rounded:
        """That `a` has more, where equal values count half."""
        return (1 + self.difference) / 2

    @property
    def chance_interval(self) -> Interval:
        """95 % interval of the chance."""
        return (1 + self.interval[0]) / 2, (1 + self.interval[1]) / 2


@dataclass(frozen=True)
class MeanDifference(ByMetric):
    """`gap`: a's mean of the metric minus b's."""

    means: Range
    """of a and of b"""

    @property
    def test(self) -> str:
        if self.sequential:
            return "betting"
        return "paired permutation" if self.paired else "studentized permutation"

    @property
    def gap(self) -> TenDecimals:
        """a's mean minus b's"""
        return self.difference

    @property
    def limits(self) -> Range:
        """its 95 % interval (t, or by betting)"""
        return self.interval


def scores(combo: MergedCombo, metric: str, settled: Settled | None = None, fields: Fields = NO_FIELDS) -> Arm:
    """The episodes with a value of the metric."""
    ran = [record for record in combo.accepted if record.verdict is not Verdict.ERRORED]
    found = [(record, value) for record in ran if (value := fields.value(record, metric)) is not None]
    values = {record.episode: value for record, value in found}
    whole = arm(combo, settled)
    of_runs = {run: [values[one] for one in some if one in values] for run, some in whole.runs.items()}
    return replace(
        whole,
        completed=frozenset(values),
        successes=frozenset(),
        starts=starts_of([record for record, _ in found], settled),
        errored=frozenset(record.episode for record in combo.accepted) - values.keys(),
        metric=metric,
        run_means={run: fmean(own) for run, own in of_runs.items() if own},
        values=values,
        only_successes=len(found) < len(ran) and all(record.verdict is Verdict.SUCCESS for record, _ in found),
    )


def _arms(met: Meeting) -> tuple[Arm, Arm]:
    assert isinstance(met.a, Arm)
    assert isinstance(met.b, Arm)
    return met.a, met.b


def _sample(met: Meeting, lost_by: int) -> Sample:
    """`lost_by`: 1 or -1 where the episodes without a value count as the worst or the best one that there is."""
    a, b = _arms(met)
    values = [*a.values.values(), *b.values.values()]
    worst = (min(values), max(values)) if lost_by > 0 else (max(values), min(values))
    if not met.paired:
        first, second = a.values_by_start, b.values_by_start
        if lost_by:
            first = first + [worst[0]] * len(a.unknown)
            second = second + [worst[1]] * len(b.unknown)
        return Sample(a=first, b=second)
    used = a.values.keys() & b.values.keys()
    if lost_by:
        used |= a.unknown | b.unknown
    found = {one: a.values.get(one, worst[0]) - b.values.get(one, worst[1]) for one in sorted(used)}
    groups = a.starts.groups(frozenset(used)) or [frozenset({one}) for one in found]
    return Sample([fmean(found[one] for one in group) for group in groups])


def _effect(met: Meeting, lost_by: int) -> Effect:
    """`lost_by`: 1 or -1 where the episodes without a value are lost by a or by b."""
    a, b = _arms(met)
    if met.paired:
        pairs = _pairs(a, b, lost_by)
        n, p = pairs.n, mcnemar(pairs.only_a, pairs.only_b)
        return Effect(pairs.difference, paired_interval(pairs), p, pairs.variance, n - 1, (n, n), pairs)
    if not lost_by:
        return dominance(a.values_by_start, b.values_by_start)
    lost = -lost_by * inf
    return dominance(a.values_by_start + [lost] * len(a.unknown), b.values_by_start + [-lost] * len(b.unknown))


def _pairs(a: Arm, b: Arm, lost_by: int) -> PairCounts:
    """The outcomes of the pairs: a success is to have more than the other."""
    common = a.values.keys() & b.values.keys()
    unknown = (a.unknown | b.unknown) if lost_by else frozenset()
    first = {one for one in common if a.values[one] > b.values[one]} - unknown | (unknown if lost_by < 0 else set())
    second = {one for one in common if a.values[one] < b.values[one]} - unknown | (unknown if lost_by > 0 else set())
    used = frozenset(common) | unknown
    won_by_a = replace(a, completed=used, successes=frozenset(first))
    return count_pairs(won_by_a, replace(b, completed=used, successes=frozenset(second)))


def compare_graded(metric: str, environments: Mapping[str, Sequence[Arm]]) -> tuple[Graded | MeanDifference, ...]:
    """Every pair of policies, by who has more and by the means: first over all environments that both have, then in
    each."""
    met = (meet(name, a, b) for name, sides in environments.items() for a, b in combinations(sides, 2))
    within = [*filter(enough, met)]
    of_policies = grouped(within, lambda one: (one.a.policy, one.b.policy))
    found = [*(some for some in of_policies.values() if len(some) > 1), *([one] for one in within)]
    means = (mean_difference_of(metric, some) for some in found)
    return (*(_graded(metric, some) for some in found), *filter(None, means))


def enough(met: Meeting) -> bool:
    """Whether two policies have values enough to be compared."""
    return met.paired or min(len(one.values_by_start) for one in _arms(met)) >= FEWEST_UNPAIRED


def mean_difference_of(metric: str, meetings: Sequence[Meeting]) -> MeanDifference | None:
    """None if a mean has no interval: it is of a single value, or its runs say nothing of the spread between them."""
    parts = [part for one in meetings for part in one.parts]
    seen = [_sample(one, 0) for one in parts]
    if min(len(values) for one in seen for values in one.samples) < 2:
        return None

    def test(lost_by: int) -> Found:
        return mean_difference([_sample(one, lost_by) for one in parts] if lost_by else seen)

    first, second = zip(*map(_arms, meetings), strict=True)
    of_runs = of_both(meetings)
    if of_runs and isinf(of_runs[1]):
        return None
    return MeanDifference(
        **_by_metric(metric, meetings, test, lambda _: of_runs, (-inf, inf)),
        n=(sum(len(one.samples[0]) for one in seen), sum(len(one.samples[-1]) for one in seen)),
        means=(fmean(fmean(one.values_by_start) for one in first), fmean(fmean(one.values_by_start) for one in second)),
        paired=all(one.differences for one in seen),
    )


def _graded(metric: str, meetings: Sequence[Meeting]) -> Graded:
    parts = [part for one in meetings for part in one.parts]
    seen = [_effect(one, 0) for one in parts]
    first, second = zip(*map(_arms, meetings), strict=True)
    by_means = of_both(meetings)

    def test(lost_by: int) -> Found:
        return _pooled([_effect(one, lost_by) for one in parts] if lost_by else seen)

    def of_runs(difference: float) -> OfRuns:
        """In proportion, as far as the means' interval reaches: runs whose values are all above the others' show no
        spread of their chances."""
        gap, half, p = by_means or (0.0, 0.0, 0.0)
        half = half * abs(difference / gap) if difference and gap else inf
        return by_means and (difference, half, p)

    return Graded(
        **_by_metric(metric, meetings, test, of_runs),
        n=(sum(one.n[0] for one in seen), sum(one.n[1] for one in seen)),
        middle=(_mean_of_middles(first), _mean_of_middles(second)),
        paired=all(one.pairs for one in seen),
        only_successes=any(one.only_successes for one in (*first, *second)),
    )


def _by_metric(
    metric: str,
    meetings: Sequence[Meeting],
    test: Callable[[int], Found],
    of_runs: Callable[[float], OfRuns],
    limits: tuple[float, float] = (-1.0, 1.0),
) -> dict[str, Any]:
    """The fields that both ways of comparing have in common."""
    places = {
        "metric": metric,
        "environments": tuple(one.environment for one in meetings),
        "unpaired": unpaired(meetings),
    }
    return {**of_meetings(meetings, test, of_runs, limits), **places}


def _mean_of_middles(arms: Iterable[Arm]) -> float:
    return fmean(interquartile_mean(one.values_by_start) for one in arms)


def _pooled(cells: Sequence[Effect]) -> tuple[float, Interval, float]:
    """The mean difference, each environment with the same weight, with its interval and p."""
    if len(cells) == 1:
        return cells[0].difference, cells[0].interval, cells[0].p
    difference = fmean(one.difference for one in cells)
    freedom = max(1, round(sum(one.freedom for one in cells)))
    error = sqrt(sum(one.variance for one in cells)) / len(cells)
    half = t_quantile(freedom) * error
    interval = max(-1.0, difference - half), min(1.0, difference + half)
    pairs = [one.pairs for one in cells if one.pairs]
    if len(pairs) == len(cells):
        return difference, interval, pooled_p([Stratum.of_pairs(one) for one in pairs], 1 if difference > 0 else -1)
    return difference, interval, t_probability(freedom, difference / error)
