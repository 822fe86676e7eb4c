"""Policies compared by a graded metric: which one has more of it, and how often. Pure.

An episode that both policies started the same is won by the one with more of the metric. So pairs are compared as
successes are: by the same test, the same interval, and with every episode without a value lost for whoever is ahead.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import combinations
from math import inf, sqrt
from statistics import fmean
from typing import TYPE_CHECKING

from comborun.attempt import Verdict
from comborun.reporter.comparing.comparisons import Tested
from comborun.reporter.comparing.pairing import Arm, count_pairs, pairing
from comborun.reporter.counting.starts import starts_of
from comborun.reporter.statistics.difference import adjusted, mcnemar, paired_interval
from comborun.reporter.statistics.graded import FEWEST_UNPAIRED, dominance, interquartile_mean
from comborun.reporter.statistics.means import t_probability, t_quantile
from comborun.reporter.statistics.pooled import Stratum, pooled_p

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from comborun.reporter.merge import MergedCombo
    from comborun.reporter.statistics.difference import PairCounts
    from comborun.reporter.statistics.proportion import Interval


@dataclass(frozen=True)
class Scores:
    """The values of one metric of one policy in one environment, by episode; of `arm` the completed episodes are those
    that have one."""

    arm: Arm
    values: Mapping[int, float]

    @property
    def by_start(self) -> list[float]:
        """Where starts come again each counts once, at its mean."""
        groups = self.arm.starts.groups(self.arm.completed)
        return (
            [*self.values.values()] if groups is None else [fmean(map(self.values.__getitem__, one)) for one in groups]
        )


Meeting = tuple[str, Scores, Scores]
"""the environment, and the two policies in it"""


@dataclass(frozen=True)
class Graded(Tested):
    """`difference` is the chance that `a` has more of the metric than `b`, minus the chance that it has less."""

    metric: str
    environments: tuple[str, ...]
    """several: compared over all of them, each with the same weight"""
    n: tuple[int, int]
    """values of a and of b; of pairs as many of both"""
    middle: tuple[float, float]
    """interquartile means of a and of b; over environments their means"""
    paired: bool
    unknown: tuple[int, int]
    """planned episodes of a and of b without a value"""

    @property
    def test(self) -> str:
        if len(self.environments) > 1:
            return "stratified sign test" if self.paired else "t test"
        return "sign test" if self.paired else "Brunner-Munzel"

    @property
    def chance(self) -> float:
        """That `a` has more, where equal values count half."""
        return (1 + self.difference) / 2

    @property
    def chance_interval(self) -> Interval:
        return (1 + self.interval[0]) / 2, (1 + self.interval[1]) / 2


def scores(combo: MergedCombo, metric: str, caution: str = "") -> Scores:
    completed = [record for record in combo.accepted if record.verdict is not Verdict.ERRORED]
    found = [(record, value) for record in completed if (value := record.metric(metric)) is not None]
    values = {record.episode: value for record, value in found}
    return Scores(
        Arm(
            policy=combo.policy,
            completed=frozenset(values),
            successes=frozenset(),
            starts=starts_of([record for record, _ in found], caution),
            errored=frozenset(record.episode for record in combo.accepted) - values.keys(),
            missing=frozenset(episode for part in combo.missing for episode in part),
            contested=frozenset(episode for part in combo.contested for episode in part),
        ),
        values,
    )


def compare_graded(metric: str, environments: Mapping[str, Sequence[Scores]]) -> tuple[Graded, ...]:
    """Every pair of policies: first over all environments that both have, then in each."""
    meetings: defaultdict[tuple[str, str], list[Meeting]] = defaultdict(list)
    for environment, sides in environments.items():
        for a, b in combinations(sides, 2):
            if _comparable(a, b):
                meetings[a.arm.policy, b.arm.policy].append((environment, a, b))
    pooled = [_graded(metric, found) for found in meetings.values() if len(found) > 1]
    within = [
        _graded(metric, [one])
        for name in environments
        for found in meetings.values()
        for one in found
        if one[0] == name
    ]
    return (*pooled, *within)


def _comparable(a: Scores, b: Scores) -> bool:
    return pairing(a.arm, b.arm).paired or min(len(a.by_start), len(b.by_start)) >= FEWEST_UNPAIRED


def _graded(metric: str, meetings: Sequence[Meeting]) -> Graded:
    cells = [_cell(a, b) for _, a, b in meetings]
    difference, interval, p = _together(cells)
    sign = 1 if difference > 0 else -1
    unknown = [(len(a.arm.unknown), len(b.arm.unknown)) for _, a, b in meetings]
    worst = p
    if any(map(any, unknown)):
        against, _, worst = _together([_cell(a, b, lost_by=sign) for _, a, b in meetings])
        worst = max(p, worst) if against * sign > 0 else 1.0
    sides = [(a, b) for _, a, b in meetings]
    return Graded(
        a=sides[0][0].arm.policy,
        b=sides[0][1].arm.policy,
        difference=difference,
        interval=interval,
        p=p,
        worst_p=worst,
        p_holm=p,
        worst_holm=worst,
        metric=metric,
        environments=tuple(name for name, _, _ in meetings),
        n=(sum(one.sizes[0] for one in cells), sum(one.sizes[1] for one in cells)),
        middle=(_middle(a for a, _ in sides), _middle(b for _, b in sides)),
        paired=all(one.pairs for one in cells),
        unknown=(sum(one for one, _ in unknown), sum(one for _, one in unknown)),
    )


def _middle(sides: Iterable[Scores]) -> float:
    return fmean(interquartile_mean(one.by_start)[0] for one in sides)


@dataclass(frozen=True)
class _Cell:
    """Two policies in one environment; the difference is that of the two chances."""

    difference: float
    interval: Interval
    p: float
    variance: float
    freedom: float
    sizes: tuple[int, int]
    pairs: PairCounts | None = None


def _cell(a: Scores, b: Scores, lost_by: int = 0) -> _Cell:
    """`lost_by`: 1 or -1 where the episodes without a value are lost by a or by b."""
    if pairing(a.arm, b.arm).paired:
        pairs = _wins(a, b, lost_by)
        difference = (pairs.only_a - pairs.only_b) / pairs.n
        variance, p = adjusted(pairs)[1] / pairs.n, mcnemar(pairs.only_a, pairs.only_b)
        return _Cell(difference, paired_interval(pairs), p, variance, pairs.n - 1, (pairs.n, pairs.n), pairs)
    worst, best = [-inf] * len(a.arm.unknown), [inf] * len(b.arm.unknown)
    if lost_by < 0:
        worst, best = [inf] * len(worst), [-inf] * len(best)
    first, second = a.by_start + worst * abs(lost_by), b.by_start + best * abs(lost_by)
    found = dominance(first, second)
    sizes = (len(first), len(second))
    return _Cell(found.effect, found.interval, found.p, found.variance, found.freedom, sizes)


def _wins(a: Scores, b: Scores, lost_by: int) -> PairCounts:
    """How the pairs went: a success is to have more than the other."""
    common = a.values.keys() & b.values.keys()
    unknown = (a.arm.unknown | b.arm.unknown) if lost_by else frozenset()
    first = {one for one in common if a.values[one] > b.values[one]} - unknown | (unknown if lost_by < 0 else set())
    second = {one for one in common if a.values[one] < b.values[one]} - unknown | (unknown if lost_by > 0 else set())
    used = frozenset(common) | unknown
    won_by_a = replace(a.arm, completed=used, successes=frozenset(first))
    return count_pairs(won_by_a, replace(b.arm, completed=used, successes=frozenset(second)))


def _together(cells: Sequence[_Cell]) -> tuple[float, Interval, float]:
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
        strata = [Stratum(one.counts_a, one.counts_b, one) for one in pairs]
        return difference, interval, pooled_p(strata, 1 if difference > 0 else -1)
    return difference, interval, t_probability(freedom, difference / error)
