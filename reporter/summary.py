"""What a report says, as values: every number of every format comes from here. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING

from comborun.episode import EpisodeRecord, Verdict
from comborun.state import Completeness
from reporter.ending import Ending, Evidence, ending, started
from reporter.merge import Combo, MergedCombo, merge
from reporter.quality import Finding, Quality, combo_name, quality
from reporter.spans import Spans, describe, size, union
from reporter.statistics import Proportion, proportion

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from comborun.plan import Unit
    from reporter.collect import Collected, SessionHistory

METRIC_LIMIT = 40
"""metrics per combo where the grid names none; a program that invents field names must not fill the report"""


@dataclass(frozen=True)
class MetricMean:
    """Over the completed episodes that have the metric."""

    name: str
    mean: float
    n: int


@dataclass(frozen=True)
class Counts:
    """Episodes of a combo: planned = completed + errored + missing."""

    planned: int
    completed: int
    """with a verdict: success or failure"""
    successes: int
    errored: int
    missing: int
    missing_episodes: Spans

    @property
    def completeness(self) -> Completeness:
        if not self.missing:
            return Completeness.COMPLETE
        return Completeness.PARTIAL if self.completed + self.errored else Completeness.NONE


@dataclass(frozen=True)
class ComboSummary:
    policy: str
    environment: str
    unit: Unit
    planned: int
    counts: Counts | None
    """None where records can't tell: steps instead of episodes, or a program that leaves no records"""
    rate: Proportion | None
    """of completed episodes"""
    rate_of_planned: Proportion | None
    """the same successes over all planned episodes: errored and missing ones as failures; None where none completed,
    because such a rate would speak of nothing that ran"""
    ending: Ending
    metrics: tuple[MetricMean, ...]
    metrics_absent: tuple[str, ...]
    """metrics that the grid names and no completed episode has"""

    @property
    def name(self) -> str:
        return combo_name(self.policy, self.environment)


@dataclass(frozen=True)
class Timing:
    """Seconds since 1970 on the host's clock, and seconds; None where the records don't support it."""

    started: float | None
    finished: float | None
    sequential: float | None
    """the sum of the session times that count"""

    @property
    def makespan(self) -> float | None:
        """From the first start to the last end."""
        if self.started is None or self.finished is None or self.finished < self.started:
            return None
        return self.finished - self.started


@dataclass(frozen=True)
class Summary:
    run: str
    grid: str | None
    planned: bool
    """whether a plan says which episodes there should be; if not, planned is what the records show"""
    ended: bool
    """whether nothing runs any more: the dispatcher says so, or every session has its end record"""
    timing: Timing
    policies: tuple[str, ...]
    environments: tuple[str, ...]
    combos: tuple[ComboSummary, ...]
    """by environment, then by policy: what is to be compared stands together"""
    quality: Quality
    provenance: Mapping[str, str]

    @property
    def counts(self) -> Counts:
        """Over all combos that are counted in episodes."""
        counted = [combo.counts for combo in self.combos if combo.counts]
        return Counts(
            planned=sum(counts.planned for counts in counted),
            completed=sum(counts.completed for counts in counted),
            successes=sum(counts.successes for counts in counted),
            errored=sum(counts.errored for counts in counted),
            missing=sum(counts.missing for counts in counted),
            missing_episodes=(),
        )


@dataclass(frozen=True)
class Report:
    """A summary and the episodes that it stands on, in the order of its combos."""

    summary: Summary
    episodes: tuple[EpisodeRecord, ...]


def summarize(collected: Collected) -> Report:
    """All numbers of the report from what was collected."""
    sessions = _by_combo(collected.sessions)
    planned = {combo: _planned(histories) for combo, histories in sessions.items() if _counts_episodes(histories)}
    merged = {(combo.policy, combo.environment): combo for combo in merge(collected.records, planned)}
    policies, environments = _axes(collected, merged)
    order = [(policy, environment) for environment in environments for policy in policies]
    summarized = [
        _summarize_combo(combo, merged.get(combo), sessions.get(combo, ()), run_over=bool(collected.done))
        for combo in order
        if combo in merged or combo in sessions
    ]
    timing, ended = _timing(collected, summarized)
    counted = [merged[combo] for combo in order if combo in merged]
    summary = Summary(
        run=collected.name,
        grid=collected.plan.grid if collected.plan else None,
        planned=collected.plan is not None,
        ended=ended,
        timing=timing,
        policies=policies,
        environments=environments,
        combos=tuple(summarized),
        quality=quality(collected, counted, _warnings(summarized)),
        provenance=collected.provenance,
    )
    return Report(summary, tuple(record for combo in counted for record in combo.accepted))


def _by_combo(histories: Iterable[SessionHistory]) -> dict[Combo, tuple[SessionHistory, ...]]:
    combos: dict[Combo, tuple[SessionHistory, ...]] = {}
    for history in histories:
        combo = (history.session.policy, history.session.environment)
        combos[combo] = (*combos.get(combo, ()), history)
    return combos


def _counts_episodes(histories: Sequence[SessionHistory]) -> bool:
    """Whether the sessions of a combo leave a record per episode."""
    session = histories[0].session
    return session.unit == "episode" and bool(session.results.files)


def _planned(histories: Iterable[SessionHistory]) -> Spans | None:
    """The planned episodes of a combo; None where the plan leaves their number to the program."""
    sessions = [history.session for history in histories]
    return union(range(session.first, session.first + session.count) for session in sessions) or None


def _axes(collected: Collected, merged: Iterable[Combo]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """In the plan's order; by name where there is no plan, so that the layout of the files does not matter."""
    if collected.plan:
        return collected.plan.policies, collected.plan.environments
    combos = tuple(merged)
    return tuple(sorted({policy for policy, _ in combos})), tuple(sorted({name for _, name in combos}))


def _summarize_combo(
    combo: Combo, merged: MergedCombo | None, histories: Sequence[SessionHistory], *, run_over: bool
) -> ComboSummary:
    counts = _count(merged) if merged else None
    records = merged.accepted if merged else ()
    wanted = histories[0].session.results.metrics if histories else ()
    metrics = _metrics(records, wanted)
    absent = {*wanted} - {mean.name for mean in metrics} if counts and counts.completed else set()
    evidence = Evidence(
        counted=counts.completeness if counts and merged and merged.planned is not None else None,
        contributing={(record.session, record.attempt) for record in records},
        run_over=run_over,
    )
    return ComboSummary(
        policy=combo[0],
        environment=combo[1],
        unit=histories[0].session.unit if histories else "episode",
        planned=counts.planned if counts else sum(history.session.count for history in histories),
        counts=counts,
        rate=proportion(counts.successes, counts.completed) if counts else None,
        rate_of_planned=proportion(counts.successes, counts.planned) if counts and counts.completed else None,
        ending=ending(histories, evidence),
        metrics=metrics,
        metrics_absent=tuple(name for name in wanted if name in absent),
    )


def _count(combo: MergedCombo) -> Counts:
    planned = size(combo.planned) if combo.planned is not None else len(combo.accepted)
    errored = combo.count(Verdict.ERRORED)
    missing = combo.missing if combo.planned is not None else ()
    return Counts(
        planned=planned,
        completed=len(combo.accepted) - errored,
        successes=combo.count(Verdict.SUCCESS),
        errored=errored,
        missing=size(missing),
        missing_episodes=missing,
    )


def _metrics(records: Sequence[EpisodeRecord], wanted: tuple[str, ...]) -> tuple[MetricMean, ...]:
    values: dict[str, list[float]] = {name: [] for name in wanted}
    for record in records:
        if record.verdict is not Verdict.ERRORED:
            for name, value in record.metrics.items():
                values.setdefault(name, []).append(value)
    found = [(name, numbers) for name, numbers in values.items() if numbers][: len(wanted) or METRIC_LIMIT]
    return tuple(MetricMean(name, _mean(numbers), len(numbers)) for name, numbers in found)


def _mean(values: Sequence[float]) -> float:
    try:
        return fsum(values) / len(values)
    except OverflowError:
        return fsum(value / len(values) for value in values)


def _timing(collected: Collected, combos: Sequence[ComboSummary]) -> tuple[Timing, bool]:
    """When it all began and ended, and whether it has; the grid's `after` command is no part of it."""
    attempts = [attempt for history in collected.sessions for attempt in history.attempts]
    latest = [history.attempts[-1].end if history.attempts else None for history in collected.sessions]
    ended = all(latest) or bool(collected.done)
    starts = [start for start in map(started, attempts) if start is not None]
    ends = [end.ended for end in (attempt.end for attempt in attempts) if end is not None]
    durations = [combo.ending.seconds for combo in combos if combo.ending.attempts]
    known = [duration for duration in durations if duration is not None]
    timing = Timing(
        started=min(starts, default=None),
        finished=max(ends, default=None) if ended else None,
        sequential=fsum(known) if known and len(known) == len(durations) else None,
    )
    return timing, ended


def _warnings(combos: Iterable[ComboSummary]) -> Iterator[Finding]:
    for combo in combos:
        yield from (Finding(combo.name, warning) for warning in combo.ending.warnings)
        yield from (Finding(combo.name, f"no record has the metric {name!r}") for name in combo.metrics_absent)


def describe_missing(counts: Counts) -> str:
    """`3-7, 12`; empty when nothing is missing."""
    return describe(counts.missing_episodes)
