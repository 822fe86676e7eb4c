"""All comparisons of a report: which are made, and their correction as one family. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from math import ceil, comb
from operator import attrgetter

from comborun.model.work import Combo, grouped
from comborun.reporter.comparing.comparison import (
    ALPHA,
    Comparison,
    Overall,
    Tested,
    comparison_of,
    corrected,
    overall_of,
    with_findable,
)
from comborun.reporter.comparing.graded import ByMetric, Graded, MeanDifference
from comborun.reporter.comparing.margins import NotWorse, not_worse
from comborun.reporter.comparing.pairing import meet
from comborun.reporter.comparing.sides import Meeting, Side
from comborun.reporter.comparing.stopping import EarlyStopping
from comborun.reporter.json_types import FourDecimals
from comborun.reporter.statistics.difference import letters
from comborun.reporter.statistics.findable import detectable_gap

MOST = 20_000
"""comparisons within environments; more would take minutes"""


@dataclass(frozen=True)
class EnvironmentComparisons:
    environment: str
    comparisons: tuple[Comparison, ...]
    letters: tuple[tuple[str, str], ...]
    """policy -> letters, the best rate first. Empty if only some pairs are compared, or too many"""
    n: int
    """episodes per policy: the fewest of any comparison here"""
    gap: FourDecimals | None
    """the smallest true difference that n episodes show with 80 % probability, tested alone; None if not even 0 against
    100 %"""
    gap_in_family: FourDecimals | None
    """the same at its share of 5 % over all comparisons of the report"""

    @property
    def so_far(self) -> bool:
        return any(comparison.so_far for comparison in self.comparisons)


@dataclass(frozen=True)
class Comparisons:
    """All printed comparisons. They are the family of Holm's correction."""

    environments: tuple[EnvironmentComparisons, ...]
    """what is found 4 times in 5, for environments with at least two policies with completed episodes"""
    size: int
    """number of comparisons within environments in the family"""
    left_out: tuple[tuple[str, tuple[str, ...]], ...]
    """environment -> policies without a completed episode, for environments with several counted policies"""
    overall: tuple[Overall, ...] = ()
    """over environments that both policies have; empty for only one, or if the data chose the number of episodes"""
    graded: tuple[Graded, ...] = ()
    """two policies by the metrics that the grid names; first those over environments"""
    mean_differences: tuple[MeanDifference, ...] = ()
    """the same by the means of these metrics"""
    not_worse: tuple[NotWorse, ...] = ()
    """with a margin in the grid, who is not worse than whom; over environments, or in the only one"""
    too_many: int = 0
    """number of comparisons, if they are more than MOST; then none is made"""

    @property
    def all(self) -> tuple[Comparison, ...]:
        """Two policies in one environment."""
        return tuple(comparison for group in self.environments for comparison in group.comparisons)

    def by_combo(self) -> dict[Combo, list[Comparison]]:
        found: dict[Combo, list[Comparison]] = {}
        for one in self.all:
            for policy in (one.a, one.b):
                found.setdefault((policy, one.environment), []).append(one)
        return found

    def by_metric(self, metric: str) -> list[ByMetric]:
        """Two policies by a metric, once: by their means if these are told apart, or else by who has more. Both ways
        share the error of one comparison, so that either decides it."""
        found: dict[tuple[str, str, tuple[str, ...]], ByMetric] = {}
        for one in (*self.graded, *self.mean_differences):
            key = (one.a, one.b, one.environments)
            if one.metric == metric and (one.decided or key not in found):
                found[key] = one
        return [*found.values()]

    def by_metric_within(self, metric: str) -> dict[str, list[ByMetric]]:
        """The same within each environment."""
        own = [one for one in self.by_metric(metric) if len(one.environments) == 1]
        return grouped(own, lambda one: one.environments[0])

    def letters_by_combo(self) -> dict[Combo, str]:
        return {(policy, group.environment): told for group in self.environments for policy, told in group.letters}

    def rank(self, policy: str) -> tuple[int, int] | None:
        """The best and the worst rank that the overall comparisons leave open, for all policies at once.

        M. Mogstad, J. Romano, A. Shaikh, D. Wilhelm, The Review of Economic Studies 91 (2024) 476-518.
        """
        own = [comparison for comparison in self.overall if policy in {comparison.a, comparison.b}]
        lost = sum(comparison.better not in {None, policy} for comparison in own)
        won = sum(comparison.better == policy for comparison in own)
        return (1 + lost, 1 + len(own) - won) if own else None


def compare(
    environments: Mapping[str, Sequence[Side]],
    stopping: EarlyStopping | None = None,
    graded: Sequence[Graded | MeanDifference] = (),
    margin: float = 0.0,
) -> Comparisons:
    """Every pair of policies, overall and in each environment. If comparisons may stop early, only the planned ones:
    the number of episodes then depends on the results.

    One half of the error belongs to comparisons over all environments, the other to those within environments.
    """
    if not stopping and (count := how_many(environments)) > MOST:
        return Comparisons((), 0, (), too_many=count)
    met = {name: [meet(name, a, b) for a, b in combinations(_usable(sides), 2)] for name, sides in environments.items()}
    of_pairs = grouped(chain(*met.values()), lambda one: (one.a.policy, one.b.policy)).values()
    across: list[Tested] = [] if stopping else [overall_of(some) for some in of_pairs if len(some) > 1]
    across += [one for one in graded if len(one.environments) > 1]
    within: list[Tested] = [*_within(environments, met, stopping)]
    within += [one for one in graded if len(one.environments) == 1]
    margins = [one for some in of_pairs for one in not_worse(some, margin)] if margin and not stopping else []
    across += [one for one in margins if len(one.environments) > 1]
    within += [one for one in margins if len(one.environments) == 1]
    size = max(ceil(sum(map(_weight, within))), stopping.rule.family if stopping else 0)
    total = sum(map(_weight, across))
    weights = [*(_weight(one) / total for one in across), *(_weight(one) / size for one in within)]
    weights += [1 / size for _ in range(size - ceil(sum(map(_weight, within))))]
    family = corrected([*across, *within], weights)
    found = grouped((one for one in family if isinstance(one, Comparison)), attrgetter("environment"))
    level = ALPHA / (size or 1) / (2 if across else 1)
    return Comparisons(
        environments=tuple(
            _environment(found[name], sides, level) for name, sides in environments.items() if name in found
        ),
        size=size,
        left_out=tuple(
            (name, tuple(side.policy for side in sides if not side.counts[1]))
            for name, sides in environments.items()
            if 1 < len(sides) > len(_usable(sides))
        ),
        overall=tuple(one for one in family if isinstance(one, Overall)),
        graded=tuple(one for one in family if isinstance(one, Graded)),
        mean_differences=tuple(one for one in family if isinstance(one, MeanDifference)),
        not_worse=tuple(one for one in family if isinstance(one, NotWorse)),
    )


def _weight(one: Tested) -> float:
    """By a metric, who has more and the difference of means share the error of one comparison. With `stop_early` only
    the means are compared."""
    alone = one.sequential or one.prevented
    return 0.5 if isinstance(one, Graded | MeanDifference) and not alone else 1.0


def _within(
    environments: Mapping[str, Sequence[Side]], met: Mapping[str, Sequence[Meeting]], stopping: EarlyStopping | None
) -> Iterator[Comparison | MeanDifference]:
    """The comparisons in each environment; the planned ones where comparisons may stop early."""
    for name, meetings in met.items():
        if stopping and name in stopping.rule.environments:
            by_metric = bool(stopping.rule.metric)
            yield from stopping.by_metric(name) if by_metric else stopping.comparisons(name, environments[name])
        else:
            yield from map(comparison_of, meetings)


def how_many(environments: Mapping[str, Sequence[Side]]) -> int:
    return sum(comb(len(_usable(sides)), 2) for sides in environments.values())


def _usable(sides: Iterable[Side]) -> list[Side]:
    return [side for side in sides if side.counts[1]]


def _environment(comparisons: Sequence[Comparison], sides: Sequence[Side], level: float) -> EnvironmentComparisons:
    ranked = sorted(_usable(sides), key=lambda side: -side.counts[0] / side.counts[1])
    all_pairs = 2 * len(comparisons) == len(ranked) * (len(ranked) - 1)
    different = [(comparison.a, comparison.b) for comparison in comparisons if comparison.decided]
    n = min(rate.starts or rate.n for one in comparisons for rate in (one.rate_a, one.rate_b))
    return EnvironmentComparisons(
        environment=comparisons[0].environment,
        comparisons=tuple(with_findable(one, level) for one in comparisons),
        letters=letters([side.policy for side in ranked], different) if all_pairs else (),
        n=n,
        gap=detectable_gap(n, ALPHA),
        gap_in_family=detectable_gap(n, level),
    )
