"""Stopping early: the comparisons that are tested pair by pair, fixed before the first episode. Pure.

The family is every comparison that the run's report will print, whether or not it may stop early. Each gets the same
share of the error, so an early decision holds whatever the others show.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from comborun.model.work import combo_of, episodes_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from comborun.model.plan import Session


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

    @property
    def environments(self) -> frozenset[str]:
        return frozenset(planned.environment for planned in self.comparisons)

    def of(self, combo: tuple[str, str]) -> tuple[PlannedComparison, ...]:
        return tuple(planned for planned in self.comparisons if combo in planned.combos)

    def as_data(self) -> dict[str, Any]:
        return {**asdict(self), "method": "CASM", "looks": "every pair", "spending": "linear"}


Pairs = tuple[tuple[str, str], ...]
"""of policies"""


@dataclass(frozen=True)
class StopRequest:
    """A grid's settings for stopping early."""

    alpha: float
    comparisons: Pairs | None
    """None: all pairs of policies"""
    environments: tuple[str, ...] | None
    """None: all"""
    n_max: int | None
    """most pairs of a comparison; None: all planned episodes"""
    futility: float = 0.0
    width: float = 0.0


def stop_rule(request: StopRequest, sessions: Sequence[Session]) -> StopRule:
    """The rule for a plan's sessions, without policies that do not meet in an environment."""
    environments = tuple(dict.fromkeys(session.environment for session in sessions))
    stopping = environments if request.environments is None else request.environments
    comparisons = tuple(
        planned
        for environment in stopping
        for a, b in _pairs(request, environment, sessions)
        if (planned := _planned(request, environment, (a, b), sessions)) is not None
    )
    others = (len(_policies(environment, sessions)) for environment in environments if environment not in stopping)
    family = len(comparisons) + sum(n * (n - 1) // 2 for n in others)
    return StopRule(request.alpha, family, comparisons, request.futility, request.width)


def _pairs(request: StopRequest, environment: str, sessions: Sequence[Session]) -> Iterable[tuple[str, str]]:
    if request.comparisons is not None:
        return request.comparisons
    return combinations(_policies(environment, sessions), 2)


def _policies(environment: str, sessions: Iterable[Session]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(session.policy for session in sessions if session.environment == environment))


def _planned(
    request: StopRequest, environment: str, pair: tuple[str, str], sessions: Sequence[Session]
) -> PlannedComparison | None:
    """None if the two policies have no common episode."""
    spans = [episodes_of([one for one in sessions if combo_of(one) == (policy, environment)]) for policy in pair]
    if not all(spans):
        return None
    first = max(span[0].start for span in spans)
    common = min(span[0].stop for span in spans) - first
    n_max = common if request.n_max is None else min(common, request.n_max)
    return PlannedComparison(environment, *pair, first, n_max) if n_max > 0 else None
