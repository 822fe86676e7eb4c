"""Compares policies in pairs: over all environments together, and within each. Episodes are paired if that is verified,
and p is corrected for the number of comparisons. Pure.

A claim must hold twice: among the episodes with a verdict, and if every other planned episode counts against the policy
that is claimed to be better.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import chain, combinations
from math import comb
from typing import TYPE_CHECKING, cast

from comborun.reporter.comparing.pairing import Counted, meet
from comborun.reporter.statistics.barnard import barnard, detectable_gap
from comborun.reporter.statistics.difference import PairCounts, holm, letters, mcnemar, newcombe, paired_interval
from comborun.reporter.statistics.pooled import heterogeneity, pooled_difference, pooled_p
from comborun.reporter.statistics.proportion import Interval, Proportion, proportion
from comborun.reporter.statistics.sequential import STOPPED_CONFIDENCE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from comborun.reporter.comparing.graded import Graded
    from comborun.reporter.comparing.pairing import Meeting, Side
    from comborun.reporter.comparing.stopping import Stopping
    from comborun.reporter.statistics.pooled import Stratum

ALPHA = 0.05
"""two-sided, for the whole printed family of comparisons"""
MOST = 20_000
"""comparisons within environments; more would take minutes, and nobody reads them"""


@dataclass(frozen=True)
class Sequential:
    """The plan of a comparison that is tested after every pair."""

    n_max: int
    """most pairs"""
    stopped: bool
    """decided before the last pair: later episodes are kept, and not used here"""
    alpha: float
    """two-sided, for the whole family"""


@dataclass(frozen=True)
class Tested:
    """The common part of all comparisons; differences are a's success rate minus b's."""

    a: str
    b: str
    difference: float
    interval: Interval
    """95 %, of this difference alone"""
    p: float
    """two-sided, among the episodes with a verdict"""
    worst_p: float
    """the same if every other planned episode counts against the better policy; 1 if that changes the sign"""
    p_holm: float
    """corrected over all comparisons of the report"""
    worst_holm: float

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
    """Policy `a` against policy `b` in one environment. The interval is Zou-Donner when paired, else Newcombe; p is
    exact McNemar when paired, else Barnard; for one that was tested after every pair, alpha where it is decided."""

    environment: str
    rate_a: Proportion
    """of the episodes used: the common ones if paired"""
    rate_b: Proportion
    pairing: str
    """a clause about the starts of the common episodes"""
    pairs: PairCounts | None
    """None if pairing is not verified"""
    unknown: tuple[int, int] = (0, 0)
    """planned episodes of a and of b that are errored, missing, or contradictory"""
    sequential: Sequential | None = None
    """None if all episodes count in any case"""
    prevented: str = ""
    """why it could not be tested after every pair as planned; empty if it was, or was not planned"""
    so_far: bool = False
    """whether more episodes may come, since the run is not over"""

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
        """The test's name for a table."""
        return f"{self.test}, not CASM as planned" if self.prevented else self.test

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
    """number of environments with paired episodes"""
    range: Interval
    """the smallest and the largest difference of an environment"""
    heterogeneity: float
    """p of "the difference is the same in every environment" (Cochran's Q)"""
    unknown: tuple[int, int]
    """sums over the comparisons"""


@dataclass(frozen=True)
class Detectable:
    """The smallest true difference found with 80 % probability in every comparison of an environment, for two
    independent rates on either side of 50 %, where it is hardest.
    """

    n: int
    """episodes per policy: the fewest of any comparison of the environment"""
    alone: float | None
    """tested alone at 5 %; None if not even 0 against 100 % would be found"""
    in_family: float | None
    """at its share of 5 % over all comparisons of the report"""


@dataclass(frozen=True)
class EnvironmentComparisons:
    environment: str
    comparisons: tuple[Comparison, ...]
    """in the order of the policies"""
    letters: tuple[tuple[str, str], ...]
    """policy -> letters, best rate first: policies that share a letter are not distinguished. Empty if only some pairs
    are compared, or too many
    """
    detectable: Detectable

    @property
    def so_far(self) -> bool:
        return any(one.so_far for one in self.comparisons)


@dataclass(frozen=True)
class Comparisons:
    """All printed comparisons: the family of Holm's correction."""

    environments: tuple[EnvironmentComparisons, ...]
    """environments with at least two policies with completed episodes"""
    size: int
    """number of comparisons within environments in the family"""
    left_out: tuple[tuple[str, tuple[str, ...]], ...]
    """environment -> policies without a completed episode, for environments with several counted policies"""
    overall: tuple[Overall, ...] = ()
    """over environments; empty with one of them, and where the data chose how many episodes there are. They share one
    half of the error, the comparisons within environments the other"""
    graded: tuple[Graded, ...] = ()
    """by the metrics that the grid names, in the same family: first those over environments"""
    too_many: int = 0
    """number of comparisons that were left out because they are more than MOST"""

    @property
    def all(self) -> tuple[Comparison, ...]:
        return tuple(one for group in self.environments for one in group.comparisons)

    def letters_of(self, policy: str, environment: str) -> str:
        """Empty without comparisons."""
        found = (dict(group.letters) for group in self.environments if group.environment == environment)
        return "".join(letters.get(policy, "") for letters in found)

    def rank(self, policy: str) -> tuple[int, int] | None:
        """The best and the worst rank by mean rate that the overall comparisons leave open, for all policies at once.

        M. Mogstad, J. Romano, A. Shaikh, D. Wilhelm, The Review of Economic Studies 91 (2024) 476-518.
        """
        own = [one for one in self.overall if policy in {one.a, one.b}]
        lost = sum(one.better not in {None, policy} for one in own)
        won = sum(one.better == policy for one in own)
        return (1 + lost, 1 + len(own) - won) if own else None


# -- one comparison ---------------------------------------------------------------------------------------------------


def comparison_of(met: Meeting) -> Comparison:
    """The comparison, with p not corrected yet."""
    a, b, seen = met.a, met.b, met.seen
    p = p_of(seen)
    worst = p
    if met.incomplete:
        sign = 1 if seen.difference > 0 else -1
        against = met.against(sign)
        worst = max(p, p_of(against)) if against.difference * sign > 0 else 1.0
    rate_a, rate_b = rates(a, b, seen.pairs)
    return Comparison(
        environment=met.environment,
        a=a.policy,
        b=b.policy,
        rate_a=rate_a,
        rate_b=rate_b,
        pairing=met.starts.why,
        pairs=seen.pairs,
        difference=seen.difference,
        interval=newcombe(seen.a, seen.b) if seen.pairs is None else paired_interval(seen.pairs),
        p=p,
        worst_p=worst,
        p_holm=p,
        worst_holm=worst,
        unknown=(len(a.unknown), len(b.unknown)),
    )


def rates(a: Side, b: Side, pairs: PairCounts | None) -> tuple[Proportion, Proportion]:
    """The rates of the compared episodes."""
    if pairs is None or isinstance(a, Counted) or isinstance(b, Counted):
        return proportion(*a.counts, a.by_start[1]), proportion(*b.counts, b.by_start[1])
    common = a.completed & b.completed
    first, second = (proportion(len(one.successes & common), len(common), pairs.n) for one in (a, b))
    return first, second


def p_of(one: Stratum) -> float:
    return barnard(one.a, one.b) if one.pairs is None else mcnemar(one.pairs.only_a, one.pairs.only_b)


# -- over all environments --------------------------------------------------------------------------------------------


def overall_of(meetings: Sequence[Meeting]) -> Overall:
    """Two policies in at least two environments."""
    seen = [one.seen for one in meetings]
    difference, interval = pooled_difference(seen)
    sign = 1 if difference > 0 else -1
    p = pooled_p(seen, sign) if difference else 1.0
    worst = p
    if any(one.incomplete for one in meetings):
        against = [one.against(sign) for one in meetings]
        worst = max(p, pooled_p(against, sign)) if pooled_difference(against)[0] * sign > 0 else 1.0
    return Overall(
        a=meetings[0].a.policy,
        b=meetings[0].b.policy,
        difference=difference,
        interval=interval,
        p=p,
        worst_p=worst,
        p_holm=p,
        worst_holm=worst,
        environments=len(meetings),
        mean_a=sum(one.a[0] / one.a[1] for one in seen) / len(seen),
        mean_b=sum(one.b[0] / one.b[1] for one in seen) / len(seen),
        paired=sum(one.starts.paired for one in meetings),
        range=(min(one.difference for one in seen), max(one.difference for one in seen)),
        heterogeneity=heterogeneity(seen),
        unknown=(sum(len(one.a.unknown) for one in meetings), sum(len(one.b.unknown) for one in meetings)),
    )


def _all_overall(met: Iterable[Meeting]) -> tuple[Overall, ...]:
    pairs: defaultdict[tuple[str, str], list[Meeting]] = defaultdict(list)
    for one in met:
        pairs[one.a.policy, one.b.policy].append(one)
    return tuple(overall_of(meetings) for meetings in pairs.values() if len(meetings) > 1)


# -- all comparisons --------------------------------------------------------------------------------------------------


def compare(
    environments: Mapping[str, Sequence[Side]], stopping: Stopping | None = None, graded: Sequence[Graded] = ()
) -> Comparisons:
    """Every pair of policies, overall and in each environment; where comparisons may have stopped early those that were
    planned, and no others: how many episodes there are depends on how they went. None where they are too many."""
    if not stopping and (count := how_many(environments)) > MOST:
        return Comparisons((), 0, (), too_many=count)
    met = {name: [meet(name, a, b) for a, b in combinations(_usable(sides), 2)] for name, sides in environments.items()}
    overall = () if stopping else _all_overall(chain(*met.values()))
    found = {
        name: stopping.comparisons(name, environments[name])
        if stopping and name in stopping.rule.environments
        else tuple(map(comparison_of, meetings))
        for name, meetings in met.items()
    }
    pooled = [one for one in graded if len(one.environments) > 1]
    alone = [one for one in graded if len(one.environments) == 1]
    within = [one for comparisons in found.values() for one in comparisons]
    size = max(len(within) + len(alone), stopping.rule.family if stopping else 0)
    adjusted = _corrected([*overall, *pooled], [*within, *alone], size)
    first, last = len(overall) + len(pooled), len(adjusted) - len(alone)
    corrected = cast("tuple[Comparison, ...]", adjusted[first:last])
    groups = {name: tuple(one for one in corrected if one.environment == name) for name in environments}
    share = ALPHA / (size or 1) / (2 if first else 1)
    return Comparisons(
        environments=tuple(
            _environment(name, comparisons, environments[name], share)
            for name, comparisons in groups.items()
            if comparisons
        ),
        size=size,
        left_out=tuple(
            (environment, tuple(side.policy for side in sides if not side.counts[1]))
            for environment, sides in environments.items()
            if len(sides) > 1 and not all(side.counts[1] for side in sides)
        ),
        overall=cast("tuple[Overall, ...]", adjusted[: len(overall)]),
        graded=cast("tuple[Graded, ...]", (*adjusted[len(overall) : first], *adjusted[last:])),
    )


def how_many(environments: Mapping[str, Sequence[Side]]) -> int:
    """Pairs of policies within environments."""
    return sum(comb(len(_usable(sides)), 2) for sides in environments.values())


def _corrected(overall: Sequence[Tested], within: Sequence[Tested], size: int) -> tuple[Tested, ...]:
    """Corrects by Holm over both kinds, each with half of the error, including planned comparisons that are missing."""
    shares = [*(1 / len(overall) for _ in overall), *(1 / size for _ in range(size))]
    absent = [1.0] * (size - len(within))
    plain = holm([*(one.p for one in overall), *(one.p for one in within), *absent], shares)
    worst = holm([*(one.worst_p for one in overall), *(one.worst_p for one in within), *absent], shares)
    adjusted = zip((*overall, *within), plain, worst, strict=False)
    return tuple(replace(one, p_holm=p, worst_holm=q) for one, p, q in adjusted)


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
        detectable=Detectable(n=n, alone=detectable_gap(n, ALPHA), in_family=detectable_gap(n, level)),
    )
