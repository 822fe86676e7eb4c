"""Compares policies in pairs: within each environment, and over all of them. Pure.

A claim must hold twice: among the episodes with a verdict, and if every other planned episode counts against the better
policy.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import chain, combinations
from math import comb
from typing import TYPE_CHECKING, TypeVar

from comborun.model.work import grouped
from comborun.reporter.comparing.pairing import Counted, meet
from comborun.reporter.statistics.barnard import barnard, detectable_gap
from comborun.reporter.statistics.difference import PairCounts, holm, letters, mcnemar, newcombe, paired_interval
from comborun.reporter.statistics.pooled import heterogeneity, pooled_difference, pooled_p
from comborun.reporter.statistics.proportion import Interval, Proportion, proportion
from comborun.reporter.statistics.sequential import STOPPED_CONFIDENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from comborun.reporter.comparing.graded import Graded
    from comborun.reporter.comparing.pairing import Meeting, Side
    from comborun.reporter.comparing.stopping import Stopping
    from comborun.reporter.statistics.pooled import Stratum

One = TypeVar("One", bound="Tested")

ALPHA = 0.05
"""two-sided, for the whole printed family of comparisons"""
MOST = 20_000
"""comparisons within environments; more would take minutes"""


@dataclass(frozen=True)
class Sequential:
    """How a comparison is tested after every pair."""

    n_max: int
    stopped: bool
    """decided before the last pair; later episodes are not used here"""
    alpha: float


@dataclass(frozen=True)
class Tested:
    """The common part of all comparisons; differences are a's success rate minus b's."""

    a: str
    b: str
    difference: float
    interval: Interval
    p: float
    """two-sided, among the episodes with a verdict"""
    worst_p: float
    """the same if every other planned episode counts against the better policy; 1 if that changes the sign"""
    p_holm: float = field(default=1.0, kw_only=True)
    """corrected over all comparisons of the report"""
    worst_holm: float = field(default=1.0, kw_only=True)

    @property
    def level(self) -> float:
        return ALPHA

    @property
    def bounded(self) -> bool:
        """Whether p is only a bound: a test after every pair only says whether it decides at its level."""
        return False

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
    def better(self) -> str | None:
        """The better policy; None if undecided."""
        return self.ahead if self.decided else None


@dataclass(frozen=True)
class Comparison(Tested):
    """Policy `a` against policy `b` in one environment."""

    environment: str
    rate_a: Proportion
    """of the episodes used: the common ones if paired"""
    rate_b: Proportion
    pairing: str
    """what the starts of the common episodes are"""
    pairs: PairCounts | None
    unknown: tuple[int, int] = (0, 0)
    """planned episodes of a and of b that are errored, missing, or contradictory"""
    sequential: Sequential | None = None
    prevented: str = ""
    """why it could not be tested after every pair as planned, or empty"""
    so_far: bool = False
    """whether more episodes may come"""

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
    def interval_method(self) -> str:
        if self.sequential:
            return f"Zou-Donner at {100 * STOPPED_CONFIDENCE:g} %"
        return "Zou-Donner" if self.paired else "Newcombe"

    @property
    def bounded(self) -> bool:
        return self.sequential is not None

    @property
    def level(self) -> float:
        return self.sequential.alpha if self.sequential else ALPHA


@dataclass(frozen=True)
class Overall(Tested):
    """Policy `a` against policy `b` over all environments that both have, each with the same weight."""

    environments: int
    mean_a: float
    mean_b: float
    paired: int
    range: Interval
    heterogeneity: float
    """p of "the difference is the same in every environment" (Cochran's Q)"""
    unknown: tuple[int, int]


@dataclass(frozen=True)
class EnvironmentComparisons:
    environment: str
    comparisons: tuple[Comparison, ...]
    letters: tuple[tuple[str, str], ...]
    """policy -> letters, the best rate first. Empty if only some pairs are compared, or too many"""
    n: int
    """episodes per policy: the fewest of any comparison here"""
    gap: float | None
    """the smallest true difference that n episodes show with 80 % probability, tested alone; None if not even 0 against
    100 %"""
    gap_in_family: float | None
    """the same at its share of 5 % over all comparisons of the report"""

    @property
    def so_far(self) -> bool:
        return any(one.so_far for one in self.comparisons)


@dataclass(frozen=True)
class Comparisons:
    """All printed comparisons. They are the family of Holm's correction."""

    environments: tuple[EnvironmentComparisons, ...]
    """environments with at least two policies with completed episodes"""
    size: int
    """number of comparisons within environments in the family"""
    left_out: tuple[tuple[str, tuple[str, ...]], ...]
    """environment -> policies without a completed episode, for environments with several counted policies"""
    overall: tuple[Overall, ...] = ()
    """over environments; empty if there is only one, or if the data chose the number of episodes"""
    graded: tuple[Graded, ...] = ()
    """by the metrics that the grid names; first those over environments"""
    too_many: int = 0
    """number of comparisons, if they are more than MOST; then none is made"""

    @property
    def all(self) -> tuple[Comparison, ...]:
        return tuple(one for group in self.environments for one in group.comparisons)

    def letters_of(self, policy: str, environment: str) -> str:
        found = (dict(group.letters) for group in self.environments if group.environment == environment)
        return "".join(letters.get(policy, "") for letters in found)

    def rank(self, policy: str) -> tuple[int, int] | None:
        """The best and the worst rank that the overall comparisons leave open, for all policies at once.

        M. Mogstad, J. Romano, A. Shaikh, D. Wilhelm, The Review of Economic Studies 91 (2024) 476-518.
        """
        own = [one for one in self.overall if policy in {one.a, one.b}]
        lost = sum(one.better not in {None, policy} for one in own)
        won = sum(one.better == policy for one in own)
        return (1 + lost, 1 + len(own) - won) if own else None


# -- one comparison ---------------------------------------------------------------------------------------------------


def comparison_of(met: Meeting) -> Comparison:
    a, b, seen = met.a, met.b, met.seen
    p = p_of(seen)
    rate_a, rate_b = rates(a, b, seen.pairs)
    return Comparison(
        environment=met.environment,
        a=a.policy,
        b=b.policy,
        rate_a=rate_a,
        rate_b=rate_b,
        pairing=met.why,
        pairs=seen.pairs,
        difference=seen.difference,
        interval=newcombe(seen.a, seen.b) if seen.pairs is None else paired_interval(seen.pairs),
        p=p,
        worst_p=_worst([met], seen.difference, p, lambda strata: p_of(strata[0])),
        unknown=(len(a.unknown), len(b.unknown)),
    )


def _worst(meetings: Sequence[Meeting], difference: float, p: float, test: Callable[[list[Stratum]], float]) -> float:
    """p if every episode without a verdict counts against the better policy; 1 if it is better no more."""
    if not any(one.a.unknown or one.b.unknown for one in meetings):
        return p
    sign = 1 if difference > 0 else -1
    against = [one.against(sign) for one in meetings]
    return max(p, test(against)) if sum(one.difference for one in against) * sign > 0 else 1.0


def rates(a: Side, b: Side, pairs: PairCounts | None) -> tuple[Proportion, Proportion]:
    if pairs is None or isinstance(a, Counted) or isinstance(b, Counted):
        return proportion(*a.counts, a.by_start[1]), proportion(*b.counts, b.by_start[1])
    common = a.completed & b.completed
    first, second = (proportion(len(one.successes & common), len(common), pairs.n) for one in (a, b))
    return first, second


def p_of(one: Stratum) -> float:
    return barnard(one.a, one.b) if one.pairs is None else mcnemar(one.pairs.only_a, one.pairs.only_b)


# -- over all environments --------------------------------------------------------------------------------------------


def overall_of(meetings: Sequence[Meeting]) -> Overall:
    seen = [one.seen for one in meetings]
    difference, interval = pooled_difference(seen)
    sign = 1 if difference > 0 else -1
    p = pooled_p(seen, sign) if difference else 1.0
    return Overall(
        a=meetings[0].a.policy,
        b=meetings[0].b.policy,
        difference=difference,
        interval=interval,
        p=p,
        worst_p=_worst(meetings, difference, p, lambda strata: pooled_p(strata, sign)),
        environments=len(meetings),
        mean_a=sum(one.a[0] / one.a[1] for one in seen) / len(seen),
        mean_b=sum(one.b[0] / one.b[1] for one in seen) / len(seen),
        paired=sum(one.paired for one in meetings),
        range=(min(one.difference for one in seen), max(one.difference for one in seen)),
        heterogeneity=heterogeneity(seen),
        unknown=(sum(len(one.a.unknown) for one in meetings), sum(len(one.b.unknown) for one in meetings)),
    )


# -- all comparisons --------------------------------------------------------------------------------------------------


def compare(
    environments: Mapping[str, Sequence[Side]], stopping: Stopping | None = None, graded: Sequence[Graded] = ()
) -> Comparisons:
    """Every pair of policies, overall and in each environment. If comparisons may stop early, only the planned ones:
    the number of episodes then depends on the results."""
    if not stopping and (count := how_many(environments)) > MOST:
        return Comparisons((), 0, (), too_many=count)
    met = {name: [meet(name, a, b) for a, b in combinations(_usable(sides), 2)] for name, sides in environments.items()}
    by_pair = grouped(() if stopping else chain(*met.values()), lambda one: (one.a.policy, one.b.policy))
    overall = [overall_of(meetings) for meetings in by_pair.values() if len(meetings) > 1]
    pooled = [one for one in graded if len(one.environments) > 1]
    within = list(_within(environments, met, stopping))
    alone = [one for one in graded if len(one.environments) == 1]
    size = max(len(within) + len(alone), stopping.rule.family if stopping else 0)
    shares = [*(1 / len(overall + pooled) for _ in overall + pooled), *(1 / size for _ in range(size))]
    family: list[Tested] = [*overall, *pooled, *within, *alone]
    absent = [1.0] * (len(shares) - len(family))  # planned comparisons that can't be made count, too
    plain = iter(holm([*(one.p for one in family), *absent], shares))
    worst = iter(holm([*(one.worst_p for one in family), *absent], shares))

    def corrected(found: Iterable[One]) -> tuple[One, ...]:
        """The next ones of the family."""
        return tuple(replace(one, p_holm=next(plain), worst_holm=next(worst)) for one in found)

    all_overall, all_pooled = corrected(overall), corrected(pooled)
    all_within, all_alone = corrected(within), corrected(alone)
    share = ALPHA / (size or 1) / (2 if overall or pooled else 1)
    return Comparisons(
        environments=tuple(
            _environment(name, found, sides, share)
            for name, sides in environments.items()
            if (found := tuple(one for one in all_within if one.environment == name))
        ),
        size=size,
        left_out=tuple(
            (environment, tuple(side.policy for side in sides if not side.counts[1]))
            for environment, sides in environments.items()
            if len(sides) > 1 and not all(side.counts[1] for side in sides)
        ),
        overall=all_overall,
        graded=(*all_pooled, *all_alone),
    )


def _within(
    environments: Mapping[str, Sequence[Side]], met: Mapping[str, Sequence[Meeting]], stopping: Stopping | None
) -> Iterator[Comparison]:
    """The comparisons in each environment; the planned ones where comparisons may stop early."""
    for name, meetings in met.items():
        if stopping and name in stopping.rule.environments:
            yield from stopping.comparisons(name, environments[name])
        else:
            yield from map(comparison_of, meetings)


def how_many(environments: Mapping[str, Sequence[Side]]) -> int:
    return sum(comb(len(_usable(sides)), 2) for sides in environments.values())


def _usable(sides: Iterable[Side]) -> list[Side]:
    return [side for side in sides if side.counts[1]]


def _environment(
    environment: str, comparisons: tuple[Comparison, ...], sides: Sequence[Side], level: float
) -> EnvironmentComparisons:
    ranked = sorted(_usable(sides), key=lambda side: -side.counts[0] / side.counts[1])
    all_pairs = 2 * len(comparisons) == len(ranked) * (len(ranked) - 1)
    different = [(comparison.a, comparison.b) for comparison in comparisons if comparison.decided]
    n = min(min(one.rate_a.starts or one.rate_a.n, one.rate_b.starts or one.rate_b.n) for one in comparisons)
    return EnvironmentComparisons(
        environment=environment,
        comparisons=comparisons,
        letters=letters([side.policy for side in ranked], different) if all_pairs else (),
        n=n,
        gap=detectable_gap(n, ALPHA),
        gap_in_family=detectable_gap(n, level),
    )
