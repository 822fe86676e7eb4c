"""One cell of the grid as values: counts, measurements, times, and how its sessions ended. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from comborun.attempt import Verdict
from comborun.reporter.counting.ending import Ending, ending
from comborun.reporter.counting.measures import (
    LIMIT,
    FailureKinds,
    MetricMean,
    TimeToSuccess,
    balanced_rate,
    failure_kinds,
    metrics,
    time_to_success,
)
from comborun.reporter.statistics.proportion import Interval, Proportion, proportion
from comborun.reporter.text import combo_name
from comborun.rules.words import Completeness
from comborun.work import Spans, describe, size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comborun.plan import Unit
    from comborun.reporter.collected import SessionHistory
    from comborun.reporter.counting.aggregates import AggregateCounts
    from comborun.reporter.counting.measures import Ends
    from comborun.reporter.merge import MergedCombo
    from comborun.reporter.statistics.proportion import Balanced
    from comborun.work import Combo


@dataclass(frozen=True)
class Counts:
    """Episodes of a combo: planned = completed + measured + errored + missing."""

    planned: int
    completed: int
    """episodes with a verdict: success or failure"""
    successes: int
    errored: int
    missing: int
    missing_episodes: Spans
    measured: int = 0
    """episodes with numbers, if no verdict was requested"""

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
    environment: str
    unit: Unit
    planned: int
    counts: Counts | None
    """None if records can't show it: steps instead of episodes, or a program without records"""
    rate: Proportion | None
    """of completed episodes"""
    rate_of_planned: Proportion | None
    """the same successes over all planned episodes, with errored and missing ones as failures; None without completed
    episodes, because it would describe nothing that ran
    """
    ending: Ending
    metrics: tuple[MetricMean, ...]
    metrics_absent: tuple[str, ...]
    """metrics of the grid that no completed episode has"""
    bounds: tuple[float, float] | None
    """the success rate if every errored and missing episode had failed, and if each had succeeded; None without
    completed episodes
    """
    retried: int
    """episodes whose record comes from a second attempt or a later one"""
    failures: FailureKinds | None
    """None without records"""
    time_to_success: TimeToSuccess | None
    """None if no record says when it succeeded"""
    balanced: Balanced | None
    """None if the records don't name parallel copies of the environment"""
    not_needed: int = 0
    """episodes that were left out after a decision; none of them is planned any more"""

    @property
    def key(self) -> Combo:
        return self.policy, self.environment

    @property
    def name(self) -> str:
        return combo_name(self.policy, self.environment)


@dataclass(frozen=True)
class ComboRecords:
    """The records of one combo."""

    histories: Sequence[SessionHistory]
    """empty without a plan"""
    merged: MergedCombo | None
    tally: AggregateCounts | None
    """None if there are records"""
    not_needed: int = 0
    """episodes"""
    time_field: str | None = None
    """the field with the times to success"""
    starts: int | None = None
    """number of different starts among the episodes with a verdict, if known"""
    ends: Ends | None = None
    """None if no record says it"""


def summarize_combo(combo: Combo, found: ComboRecords, *, run_over: bool) -> ComboSummary:
    merged, tally, histories = found.merged, found.tally, found.histories
    records = merged.accepted if merged else ()
    counts = _counted(tally, histories) if tally else _count(merged) if merged else None
    wanted = histories[0].session.results.metrics if histories else ()
    means = _reported_means(tally, wanted) if tally else metrics(records, wanted)
    absent = {*wanted} - {mean.name for mean in means} if counts and counts.completed + counts.measured else set()
    completeness = counts.completeness if counts and (tally or (merged and merged.planned is not None)) else None
    contributing = {(record.session, record.attempt) for record in records} | (tally.attempts if tally else set())
    return ComboSummary(
        policy=combo[0],
        environment=combo[1],
        unit=histories[0].session.unit if histories else "episode",
        planned=counts.planned if counts else sum(history.session.count for history in histories),
        counts=counts,
        rate=proportion(counts.successes, counts.completed, found.starts) if counts else None,
        rate_of_planned=(
            proportion(counts.successes, counts.planned, found.starts) if counts and counts.completed else None
        ),
        ending=ending(histories, completeness, contributing, run_over=run_over),
        metrics=means,
        metrics_absent=tuple(name for name in wanted if name in absent),
        bounds=_bounds(counts) if counts and counts.completed else None,
        retried=merged.retried if merged else 0,
        failures=failure_kinds(found.ends) if counts and found.ends and not counts.measured else None,
        time_to_success=time_to_success(records, found.time_field),
        balanced=balanced_rate(records),
        not_needed=found.not_needed,
    )


def _count(combo: MergedCombo) -> Counts:
    planned = size(combo.planned) if combo.planned is not None else len(combo.accepted)
    errored, measured = combo.count(Verdict.ERRORED), combo.count(Verdict.MEASURED)
    missing = combo.missing if combo.planned is not None else ()
    return Counts(
        planned=planned,
        completed=len(combo.accepted) - errored - measured,
        successes=combo.count(Verdict.SUCCESS),
        errored=errored,
        missing=size(missing),
        missing_episodes=missing,
        measured=measured,
    )


def _counted(tally: AggregateCounts, histories: Sequence[SessionHistory]) -> Counts:
    planned = max(tally.episodes, sum(history.session.count for history in histories))
    return Counts(planned, tally.episodes, tally.successes, 0, planned - tally.episodes, ())


def _reported_means(tally: AggregateCounts, wanted: tuple[str, ...]) -> tuple[MetricMean, ...]:
    """The program's own means, without a spread."""
    names = wanted or tuple(tally.metrics)[:LIMIT]
    return tuple(
        MetricMean(name, tally.metrics[name], tally.episodes, None, None) for name in names if name in tally.metrics
    )


def _bounds(counts: Counts) -> Interval:
    untold = counts.errored + counts.measured + counts.missing
    return counts.successes / counts.planned, (counts.successes + untold) / counts.planned


def describe_missing(counts: Counts) -> str:
    """`3-7, 12`; empty if nothing is missing."""
    return describe(counts.missing_episodes)
