"""One combo as values: counts, measurements, times, and how its sessions ended; and means over environments. Pure."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean

from comborun.model.attempt import Aggregate, EpisodeRecord, Verdict
from comborun.model.plan import Unit
from comborun.model.work import Combo, Spans, describe, grouped, size
from comborun.reporter.counting.ending import ComboEnding, ending
from comborun.reporter.counting.measures import (
    LIMIT,
    NO_FIELDS,
    Balanced,
    Consistency,
    EpisodeEnds,
    FailureKinds,
    MetricMean,
    TimeToSuccess,
    balanced_rate,
    consistency,
    failure_kinds,
    metrics,
    time_to_success,
)
from comborun.reporter.evidence.fields import Fields
from comborun.reporter.json_types import Share, TextOrNull
from comborun.reporter.merge import MergedCombo
from comborun.reporter.records.collected import SessionHistory
from comborun.reporter.statistics.proportion import Interval, Proportion, mean_of_rates, proportion
from comborun.reporter.text import combo_name
from comborun.rules.vocabulary import Completeness


@dataclass(frozen=True)
class AggregateCounts:
    """The counts of a program that reports only how many episodes succeeded."""

    successes: int
    episodes: int
    metrics: Mapping[str, float]
    attempts: frozenset[tuple[str, int]]


def tallies(aggregates: Iterable[Aggregate], planned: Mapping[str, int]) -> dict[Combo, AggregateCounts]:
    """One per combo, over its sessions; `planned` is session -> episodes. The lowest complete attempt of a session
    counts, else the one with the most episodes."""
    sessions = grouped(aggregates, lambda one: (one.combo, one.session))
    taken: defaultdict[Combo, list[Aggregate]] = defaultdict(list)
    for (combo, session), found in sessions.items():
        found.sort(key=lambda one: one.attempt)
        most = planned.get(session) or sys.maxsize
        taken[combo].append(max(found, key=lambda one: min(one.episodes, most)))
    return {combo: _sum(found) for combo, found in taken.items()}


def _sum(found: Sequence[Aggregate]) -> AggregateCounts:
    metrics = {}
    for name in dict.fromkeys(name for aggregate in found for name in aggregate.metrics):
        having = [aggregate for aggregate in found if name in aggregate.metrics]
        weights = [max(1, aggregate.episodes) for aggregate in having]  # so that a mean exists without episodes
        pairs = zip(having, weights, strict=True)
        metrics[name] = sum(aggregate.metrics[name] * (weight / sum(weights)) for aggregate, weight in pairs)
    return AggregateCounts(
        successes=sum(aggregate.successes for aggregate in found),
        episodes=sum(aggregate.episodes for aggregate in found),
        metrics=metrics,
        attempts=frozenset((aggregate.session, aggregate.attempt) for aggregate in found),
    )


@dataclass(frozen=True)
class MacroMean:
    """The unweighted mean of a policy's success rates over the environments."""

    policy: str
    environments: int
    """environments in which any policy has episodes"""
    episodes: int
    mean: Share | None
    """None if an environment is missing"""
    interval: Interval | None
    """95 %, the environments taken as fixed"""
    missing: tuple[str, ...]
    """environments without an episode"""
    partial: tuple[str, ...]
    """environments in which some planned episodes have no verdict"""
    early: tuple[str, ...] = ()
    """environments that stopped early, so that the rate depends on the results"""
    rank: tuple[int, int] | None = None
    """the best and the worst that the overall comparisons leave open"""


def macro_means(
    policies: Sequence[str], environments: Sequence[str], combos: Sequence[ComboSummary]
) -> tuple[MacroMean, ...]:
    """One per policy with counted episodes; none for a single environment."""
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
    starts = [(cell.rate.starts or cell.rate.n) for cell in found.values() if cell.rate]
    by_start = [(k / n * count, count) for (k, n), count in zip(rates, starts, strict=True)]
    whole = len(found) == len(names)
    return MacroMean(
        policy=policy,
        environments=len(names),
        episodes=sum(n for _, n in rates),
        mean=fmean(k / n for k, n in rates) if whole else None,
        interval=mean_of_rates(by_start) if whole else None,
        missing=tuple(name for name in names if name not in found),
        partial=tuple(
            name for name, cell in found.items() if cell.counts and cell.counts.completed < cell.counts.planned
        ),
        early=tuple(name for name, cell in found.items() if cell.not_needed),
    )


@dataclass(frozen=True)
class EpisodeCounts:
    """Episodes of a combo: planned = completed + measured + errored + missing."""

    planned: int
    completed: int
    """episodes with a verdict: success or failure"""
    successes: int
    """episodes that succeeded"""
    errored: int
    """episodes that ran without a verdict"""
    missing: int
    """planned episodes without a record"""
    missing_episodes: Spans = ()
    measured: int = 0
    """episodes with numbers, if no verdict was requested"""

    @property
    def which_missing(self) -> str:
        """Ranges of indexes, such as 3-7, 12"""
        return describe(self.missing_episodes)

    @property
    def bounds(self) -> Interval:
        """The success rate if every episode without a verdict had failed, and if each had succeeded."""
        untold = self.errored + self.measured + self.missing
        return self.successes / self.planned, (self.successes + untold) / self.planned

    @property
    def recorded(self) -> int:
        return self.completed + self.measured + self.errored

    @property
    def completeness(self) -> Completeness:
        evaluated = self.completed + self.measured
        if evaluated and not self.missing:  # without the requested verdicts nothing was evaluated
            return Completeness.COMPLETE
        return Completeness.PARTIAL if self.recorded else Completeness.NONE


@dataclass(frozen=True)
class ComboSummary:
    policy: str
    """as the grid names it"""
    environment: str
    """as the grid names it"""
    unit: Unit
    """what is counted"""
    planned: int
    """episodes: completed + errored + missing + measured; or steps"""
    counts: EpisodeCounts | None
    """None if records can't show it: steps, or a program without records"""
    rate: Proportion | None
    ending: ComboEnding
    metrics: tuple[MetricMean, ...]
    metrics_absent: tuple[str, ...]
    retried: int | None
    """episodes whose record comes from a second attempt or a later one"""
    failures: FailureKinds | None
    """failed episodes by kind"""
    time_to_success: TimeToSuccess | None
    """over all completed episodes"""
    balanced: Balanced | None
    """over as many first episodes of each copy of the environment"""
    consistency: Consistency | None = None
    """how alike the episodes of a start went, if starts repeat"""
    not_needed: int = 0
    """episodes that were left out after a decision; `planned` is without them"""
    letters: TextOrNull = ""
    """policies of an environment that share a letter are not told apart"""
    not_paired: str = ""
    """why it is not paired with other policies; empty if it is, or if nothing is compared"""
    limits: str = ""
    """what limits its comparisons with other policies"""

    @property
    def key(self) -> Combo:
        return self.policy, self.environment

    @property
    def name(self) -> str:
        return combo_name(self.policy, self.environment)

    @property
    def leans(self) -> bool:
        """Whether its rate leans away from the others', since it stopped early: † in tables"""
        return bool(self.not_needed and self.rate and self.rate.n)

    @property
    def rate_of_planned(self) -> Proportion | None:
        """Of all planned episodes, as if those without a verdict had failed; None without completed episodes."""
        if self.counts is None or self.rate is None or not self.counts.completed:
            return None
        starts = self.rate.starts
        of_starts = (self.counts.successes / self.counts.planned * starts, starts) if starts else None
        return proportion(self.counts.successes, self.counts.planned, of_starts)

    @property
    def bounds(self) -> Interval | None:
        """The lowest and highest rate that episodes without a verdict leave possible; None without completed ones."""
        return self.counts.bounds if self.counts and self.counts.completed else None

    @property
    def metrics_by_name(self) -> Mapping[str, MetricMean]:
        """Means over completed episodes, by name."""
        return {mean.name: mean for mean in self.metrics}


@dataclass(frozen=True)
class ComboData:
    """What is known of a combo: its sessions, and the records of its episodes or only their counts."""

    histories: Sequence[SessionHistory]
    merged: MergedCombo | None
    tally: AggregateCounts | None
    """its counts, if it has no records"""
    starts: tuple[float, int] | None
    """the sum of the means of different starts and their number, if some repeat"""
    groups: Sequence[frozenset[int]] | None
    """the episodes of each start, if some repeat"""
    ends: EpisodeEnds | None
    not_needed: int
    """number of episodes"""
    fields: Fields = NO_FIELDS
    runs: int | None = None
    """number of runs that are joined, if several"""

    @property
    def records(self) -> Sequence[EpisodeRecord]:
        return self.merged.accepted if self.merged else ()

    @property
    def successes(self) -> frozenset[int]:
        return frozenset(record.episode for record in self.records if record.verdict is Verdict.SUCCESS)

    @property
    def wanted(self) -> tuple[str, ...]:
        """The metrics that the grid names."""
        return self.histories[0].session.results.metrics if self.histories else ()

    @property
    def means(self) -> tuple[MetricMean, ...]:
        if not (tally := self.tally):
            each = metrics(self.records, self.wanted, self.groups, self.fields)
            return tuple(replace(one, runs=self.runs) for one in each)
        names = self.wanted or tuple(tally.metrics)[:LIMIT]
        found = ((name, tally.metrics[name]) for name in names if name in tally.metrics)
        return tuple(MetricMean(name, mean, tally.episodes, None, None) for name, mean in found)

    @property
    def contributing(self) -> set[tuple[str, int]]:
        """Sessions and attempts with results that count."""
        counted = self.tally.attempts if self.tally else set()
        return {(record.session, record.attempt) for record in self.records} | counted

    @property
    def planned(self) -> int:
        """Episodes, or steps."""
        return sum(history.session.count for history in self.histories)

    @cached_property
    def counts(self) -> EpisodeCounts | None:
        """None if records can't show it."""
        if self.tally:
            most = max(self.tally.episodes, self.planned)
            missing = most - self.tally.episodes
            return EpisodeCounts(most, self.tally.episodes, self.tally.successes, errored=0, missing=missing)
        return _counts(self.merged) if self.merged else None

    @property
    def completeness(self) -> Completeness | None:
        """By its records; None if they can't show it, or no plan says how many there should be."""
        planned = self.tally or (self.merged and self.merged.planned is not None)
        return self.counts.completeness if planned and self.counts else None


def summarize_combo(combo: Combo, data: ComboData, *, timed: str | None, run_over: bool) -> ComboSummary:
    """`timed` is the field with the times to success."""
    counts, wanted, means = data.counts, data.wanted, data.means
    absent = {*wanted} - {mean.name for mean in means} if counts and counts.completed + counts.measured else ()
    return ComboSummary(
        policy=combo[0],
        environment=combo[1],
        unit=data.histories[0].session.unit if data.histories else "episode",
        planned=counts.planned if counts else data.planned,
        counts=counts,
        rate=proportion(counts.successes, counts.completed, data.starts, data.runs) if counts else None,
        ending=ending(data.histories, data.completeness, data.contributing, run_over=run_over),
        metrics=means,
        metrics_absent=tuple(name for name in wanted if name in absent),
        retried=(data.merged.retried if data.merged else 0) if counts else None,
        failures=failure_kinds(data.ends) if counts and data.ends and not counts.measured else None,
        time_to_success=time_to_success(data.records, timed),
        balanced=balanced_rate(data.records),
        consistency=consistency(data.groups, data.successes) if data.groups else None,
        not_needed=data.not_needed,
    )


def _counts(combo: MergedCombo) -> EpisodeCounts:
    """Without a plan, as many are planned as have a record."""
    planned = size(combo.planned) if combo.planned is not None else len(combo.accepted)
    errored, measured = combo.count(Verdict.ERRORED), combo.count(Verdict.MEASURED)
    missing = combo.missing if combo.planned is not None else ()
    return EpisodeCounts(
        planned=planned,
        completed=len(combo.accepted) - errored - measured,
        successes=combo.count(Verdict.SUCCESS),
        errored=errored,
        missing=size(missing),
        missing_episodes=missing,
        measured=measured,
    )
