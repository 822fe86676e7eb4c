"""Counts without episodes: programs that tell how many episodes succeeded, and not which. Pure.

Per session the lowest attempt that is complete is taken as a whole, else the one with the most episodes, whatever came
of them; sessions of one combo are added up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from comborun.attempt import Aggregate
    from comborun.work import Combo


@dataclass(frozen=True)
class Tally:
    successes: int
    episodes: int
    metrics: Mapping[str, float]
    """means over the episodes of the sessions that tell them"""
    attempts: frozenset[tuple[str, int]]
    """(session, attempt) of what was taken"""


def tallies(aggregates: Iterable[Aggregate], planned: Mapping[str, int]) -> dict[Combo, Tally]:
    """One per combo; `planned` is session -> episodes, as far as a plan says it."""
    sessions: dict[tuple[Combo, str], list[Aggregate]] = {}
    for aggregate in aggregates:
        combo = aggregate.combo
        sessions.setdefault((combo, aggregate.session), []).append(aggregate)
    taken: dict[Combo, list[Aggregate]] = {}
    for (combo, session), found in sessions.items():
        taken.setdefault(combo, []).append(_accepted(found, planned.get(session)))
    return {combo: _sum(found) for combo, found in taken.items()}


def _accepted(found: Sequence[Aggregate], planned: int | None) -> Aggregate:
    ordered = sorted(found, key=lambda aggregate: aggregate.attempt)
    if planned:
        whole = (aggregate for aggregate in ordered if aggregate.episodes >= planned)
        if complete := next(whole, None):
            return complete
    return max(ordered, key=lambda aggregate: aggregate.episodes)


def _sum(found: Sequence[Aggregate]) -> Tally:
    names = dict.fromkeys(name for aggregate in found for name in aggregate.metrics)
    return Tally(
        successes=sum(aggregate.successes for aggregate in found),
        episodes=sum(aggregate.episodes for aggregate in found),
        metrics={name: _mean(name, found) for name in names},
        attempts=frozenset((aggregate.session, aggregate.attempt) for aggregate in found),
    )


def _mean(name: str, found: Sequence[Aggregate]) -> float:
    """Weighed by episodes; 0 episodes weigh as one, so that there is a mean at all."""
    telling = [aggregate for aggregate in found if name in aggregate.metrics]
    weights = [max(1, aggregate.episodes) for aggregate in telling]
    total = sum(weights)
    return sum(aggregate.metrics[name] * (weight / total) for aggregate, weight in zip(telling, weights, strict=True))
