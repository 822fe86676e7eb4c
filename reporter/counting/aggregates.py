"""Numbers over several files or environments: counts without episodes, and one mean per policy. Pure."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from comborun.reporter.statistics.means import mean_of_rates

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from comborun.attempt import Aggregate
    from comborun.reporter.counting.combo import ComboSummary
    from comborun.reporter.statistics.proportion import Interval
    from comborun.work import Combo


@dataclass(frozen=True)
class AggregateCounts:
    """The counts of a program that reports only how many episodes succeeded."""

    successes: int
    episodes: int
    metrics: Mapping[str, float]
    """means over the episodes of the sessions that report them"""
    attempts: frozenset[tuple[str, int]]
    """(session, attempt) of the counts used"""


def tallies(aggregates: Iterable[Aggregate], planned: Mapping[str, int]) -> dict[Combo, AggregateCounts]:
    """One per combo, with its sessions added; `planned` is session -> episodes, if a plan gives it.

    Of each session the lowest complete attempt counts as a whole, else the one with the most episodes, whatever its
    results.
    """
    sessions: defaultdict[tuple[Combo, str], list[Aggregate]] = defaultdict(list)
    for aggregate in aggregates:
        sessions[aggregate.combo, aggregate.session].append(aggregate)
    taken: defaultdict[Combo, list[Aggregate]] = defaultdict(list)
    for (combo, session), found in sessions.items():
        taken[combo].append(_accepted(found, planned.get(session)))
    return {combo: _sum(found) for combo, found in taken.items()}


def _accepted(found: Sequence[Aggregate], planned: int | None) -> Aggregate:
    ordered = sorted(found, key=lambda aggregate: aggregate.attempt)
    return max(ordered, key=lambda aggregate: min(aggregate.episodes, planned or aggregate.episodes))


def _sum(found: Sequence[Aggregate]) -> AggregateCounts:
    names = dict.fromkeys(name for aggregate in found for name in aggregate.metrics)
    return AggregateCounts(
        successes=sum(aggregate.successes for aggregate in found),
        episodes=sum(aggregate.episodes for aggregate in found),
        metrics={name: _mean(name, found) for name in names},
        attempts=frozenset((aggregate.session, aggregate.attempt) for aggregate in found),
    )


def _mean(name: str, found: Sequence[Aggregate]) -> float:
    """A mean weighted by episodes; 0 episodes weigh as one, so that a mean exists."""
    values = [(aggregate.metrics[name], max(1, aggregate.episodes)) for aggregate in found if name in aggregate.metrics]
    total = sum(weight for _, weight in values)
    return sum(value * (weight / total) for value, weight in values)


@dataclass(frozen=True)
class MacroMean:
    """The unweighted mean of a policy's success rates over the environments of the report, taken as fixed."""

    policy: str
    environments: int
    """the number of environments in which any policy's episodes count"""
    episodes: int
    """completed episodes in all environments"""
    mean: float | None
    """None if this policy has no completed episode in an environment"""
    interval: Interval | None
    """95 %, the environments taken as fixed"""
    missing: tuple[str, ...]
    """environments without a completed episode of this policy"""
    partial: tuple[str, ...]
    """environments in which some planned episodes have no verdict"""
    early: tuple[str, ...] = ()
    """environments in which its episodes stopped early: their number depends on the results, and so does the rate"""


def macro_means(
    policies: Sequence[str], environments: Sequence[str], combos: Sequence[ComboSummary]
) -> tuple[MacroMean, ...]:
    """One per policy with counted episodes; none for fewer than two environments, where a mean says nothing new."""
    cells = {combo.key: combo for combo in combos if combo.rate is not None}
    counted = {environment for _, environment in cells}
    names = [environment for environment in environments if environment in counted]
    if len(names) < 2:
        return ()
    ran = {policy for policy, _ in cells}
    return tuple(_macro_mean(policy, names, cells) for policy in policies if policy in ran)


def _macro_mean(policy: str, names: Sequence[str], cells: Mapping[Combo, ComboSummary]) -> MacroMean:
    found = {name: cell for name in names if (cell := cells.get((policy, name))) and cell.rate and cell.rate.n}
    rates = [(cell.rate.successes, cell.rate.n) for cell in found.values() if cell.rate]
    whole = len(found) == len(names)
    return MacroMean(
        policy=policy,
        environments=len(names),
        episodes=sum(n for _, n in rates),
        mean=fmean(k / n for k, n in rates) if whole else None,
        interval=mean_of_rates(rates) if whole else None,
        missing=tuple(name for name in names if name not in found),
        partial=tuple(
            name for name, cell in found.items() if cell.counts and cell.counts.completed < cell.counts.planned
        ),
        early=tuple(name for name, cell in found.items() if cell.not_needed),
    )
