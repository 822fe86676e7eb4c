"""Stopping early: the comparisons that are tested pair by pair, fixed before the first episode. Pure.

The family is every comparison that the run's report will print, whether or not it may stop early. Each gets the same
share of the error, so an early decision holds whatever the others show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any


@dataclass(frozen=True)
class PlannedComparison:
    """Policy `a` against policy `b`, over the episodes first .. first + n_max - 1 of one environment."""

    environment: str
    a: str
    b: str
    first: int
    n_max: int

    @property
    def combos(self) -> tuple[tuple[str, str], tuple[str, str]]:
        return (self.a, self.environment), (self.b, self.environment)

    @property
    def episodes(self) -> range:
        return range(self.first, self.first + self.n_max)


@dataclass(frozen=True)
class StopRule:
    """The rule in the run's manifest. Every new pair is tested."""

    alpha: float
    """two-sided, for the whole family"""
    family: int
    """number of comparisons in the report, also in environments without the rule"""
    comparisons: tuple[PlannedComparison, ...]
    futility: float = 0.0
    """a gap: a comparison ends undecided if it is unlikely to find even this one; 0: never"""
    width: float = 0.0
    """a comparison ends undecided if the interval of its difference is no wider; 0: never"""
    metric: str = ""
    """compared by its mean, from 0 to 1, instead of the success rate"""

    @property
    def environments(self) -> frozenset[str]:
        return frozenset(planned.environment for planned in self.comparisons)

    def of(self, combo: tuple[str, str]) -> tuple[PlannedComparison, ...]:
        return tuple(planned for planned in self.comparisons if combo in planned.combos)

    def as_data(self) -> dict[str, Any]:
        if self.metric:
            return {**asdict(self), "method": "betting", "looks": "every pair"}
        own = {key: value for key, value in asdict(self).items() if key != "metric"}
        return {**own, "method": "CASM", "looks": "every pair", "spending": "linear"}


Pair = tuple[str, str]
"""of policies"""
Episodes = Mapping[tuple[str, str], Sequence[range]]
"""(policy, environment) -> the episodes of that combo, in ascending ranges"""


@dataclass(frozen=True)
class StopRequest:
    """A grid's settings for stopping early."""

    alpha: float
    comparisons: tuple[Pair, ...] | None
    """None: all pairs of policies"""
    environments: tuple[str, ...] | None
    """None: all"""
    n_max: int | None
    """most pairs of a comparison; None: all planned episodes"""
    futility: float = 0.0
    width: float = 0.0
    metric: str = ""


def stop_rule(request: StopRequest, episodes: Episodes) -> StopRule:
    """The rule for the planned episodes. It compares two policies only in environments that both have."""
    policies: dict[str, list[str]] = {}
    for policy, environment in episodes:
        policies.setdefault(environment, []).append(policy)
    stopping = tuple(policies) if request.environments is None else request.environments
    comparisons = tuple(
        planned
        for environment in stopping
        for a, b in request.comparisons or combinations(policies.get(environment, ()), 2)
        if (planned := _planned(request.n_max, environment, (a, b), episodes)) is not None
    )
    others = (len(names) for environment, names in policies.items() if environment not in stopping)
    family = len(comparisons) + sum(n * (n - 1) // 2 for n in others)
    return StopRule(request.alpha, family, comparisons, request.futility, request.width, request.metric)


def _planned(most: int | None, environment: str, pair: Pair, episodes: Episodes) -> PlannedComparison | None:
    """None if the two policies have no common episode."""
    ranges = [episodes.get((policy, environment), ()) for policy in pair]
    if not all(ranges):
        return None
    first = max(own[0].start for own in ranges)
    common = min(own[0].stop for own in ranges) - first
    n_max = common if most is None else min(common, most)
    return PlannedComparison(environment, *pair, first, n_max) if n_max > 0 else None
