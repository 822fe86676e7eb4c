"""One number per policy over all environments, and no number where a cell is missing. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from comborun.reporter.statistics.bootstrap import mean_of_rates

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from comborun.reporter.counting.combo import ComboSummary
    from comborun.reporter.statistics.proportion import Interval


@dataclass(frozen=True)
class MacroMean:
    """The unweighted mean of a policy's success rates over the environments of the report, taken as fixed."""

    policy: str
    environments: int
    """how many it should be over: those in which any policy's episodes are counted"""
    episodes: int
    """completed ones, of all environments"""
    mean: float | None
    """None where an environment has no completed episode of this policy"""
    interval: Interval | None
    """95 %: bootstrap, stratified by environment"""
    missing: tuple[str, ...]
    """environments without a completed episode of this policy"""
    partial: tuple[str, ...]
    """environments in which some planned episodes have no verdict"""
    early: tuple[str, ...] = ()
    """environments in which its episodes stopped early: their number depends on how they went, and so does the rate"""


def macro_means(
    policies: Sequence[str], environments: Sequence[str], combos: Sequence[ComboSummary]
) -> tuple[MacroMean, ...]:
    """One per policy with counted episodes; none where fewer than two environments are counted: a mean would say
    nothing new."""
    counted = {combo.environment for combo in combos if combo.rate is not None}
    names = [environment for environment in environments if environment in counted]
    cells = {combo.key: combo for combo in combos}
    if len(names) < 2:
        return ()
    return tuple(
        _macro_mean(policy, {environment: cells.get((policy, environment)) for environment in names})
        for policy in policies
        if any(combo.policy == policy and combo.rate is not None for combo in combos)
    )


def _macro_mean(policy: str, cells: Mapping[str, ComboSummary | None]) -> MacroMean:
    found = {name: cell for name, cell in cells.items() if cell is not None and cell.rate is not None and cell.rate.n}
    rates = [(cell.rate.successes, cell.rate.n) for cell in found.values() if cell.rate is not None]
    whole = len(found) == len(cells)
    return MacroMean(
        policy=policy,
        environments=len(cells),
        episodes=sum(n for _, n in rates),
        mean=fmean(k / n for k, n in rates) if whole else None,
        interval=mean_of_rates(rates) if whole else None,
        missing=tuple(name for name in cells if name not in found),
        partial=tuple(
            name for name, cell in found.items() if cell.counts and cell.counts.completed < cell.counts.planned
        ),
        early=tuple(name for name, cell in found.items() if cell.not_needed),
    )
