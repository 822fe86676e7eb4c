"""What a report says, as values: every number of every format comes from here. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import fsum
from typing import TYPE_CHECKING

from comborun.errors import UserError
from comborun.reporter.comparing.claims import Claims, claims, prevented
from comborun.reporter.comparing.comparisons import Comparisons, compare
from comborun.reporter.comparing.pairing import Side, sides_of, tallies_of
from comborun.reporter.comparing.stopping import as_run, spared, stopping_of
from comborun.reporter.counting.aggregates import MacroMean, macro_means
from comborun.reporter.counting.combo import ComboSummary, Counts, Found, describe_missing, summarize_combo
from comborun.reporter.counting.measures import MetricMean, metrics
from comborun.reporter.counting.quality import Finding, Quality, quality
from comborun.reporter.merge import MergedCombo, merge
from comborun.work import Spans, episodes_of, minus, size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from comborun.attempt import EpisodeRecord
    from comborun.reporter.collected import Collected, SessionHistory
    from comborun.reporter.comparing.canary import Canary
    from comborun.reporter.counting.aggregates import Tally
    from comborun.work import Combo

__all__ = ["ComboSummary", "Counts", "MetricMean", "Report", "Summary", "Timing", "describe_missing", "summarize"]


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
class Axes:
    """Which axis of a grid goes where: the shorter one across, so that a large grid grows downwards."""

    columns: tuple[str, ...]
    rows: tuple[str, ...]
    policies_across: bool

    def combo(self, column: str, row: str) -> Combo:
        return (column, row) if self.policies_across else (row, column)


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
    comparisons: Comparisons
    claims: Claims
    macro_means: tuple[MacroMean, ...]
    """by policy; empty where there is only one environment"""
    quality: Quality
    provenance: Mapping[str, str]
    canary: Canary | None = None

    @property
    def axes(self) -> Axes | None:
        """Of the combos that are counted in episodes; None without any."""
        combos = [combo for combo in self.combos if combo.counts]
        policies = tuple(name for name in self.policies if any(combo.policy == name for combo in combos))
        environments = tuple(name for name in self.environments if any(combo.environment == name for combo in combos))
        if len(policies) <= len(environments):
            return Axes(policies, environments, policies_across=True) if combos else None
        return Axes(environments, policies, policies_across=False)

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


def summarize(collected: Collected, baseline: str | None = None) -> Report:
    """All numbers of the report from what was collected; with a `baseline` every other policy is compared with it, and
    with no other. Raises UserError when there is no such policy."""
    sessions = collected.by_combo
    spare = _spared(collected, sessions)
    planned = {
        combo: _planned(histories, spare.get(combo, ()))
        for combo, histories in sessions.items()
        if _counts_episodes(histories)
    }
    merged = {combo.key: combo for combo in merge(collected.records, planned)}
    tallied = tallies_of(collected, merged)
    policies, environments = _axes(collected, {*merged, *tallied})
    _check_baseline(baseline, policies)
    order = [(policy, environment) for environment in environments for policy in policies]
    means = _metrics(merged, sessions)
    found = {
        combo: Found(
            as_run(sessions.get(combo, ())),
            merged.get(combo),
            tallied.get(combo),
            size(spare.get(combo, ())),
            means.get(combo, ()),
        )
        for combo in order
        if combo in merged or combo in sessions or combo in tallied
    }
    summarized = [summarize_combo(combo, one, run_over=bool(collected.done)) for combo, one in found.items()]
    timing, ended = _timing(collected, summarized)
    sides = sides_of(collected, merged, tallied)
    by_environment: dict[str, list[Side]] = {}
    for combo in order:
        if combo in sides:
            by_environment.setdefault(combo[1], []).append(sides[combo])
    comparisons = compare(by_environment, baseline, stopping_of(collected, sides))
    counted = [_lacking(merged[combo], tallied.get(combo)) for combo in order if combo in merged]
    warnings = (*_warnings(summarized), *_short(summarized, tallied), *prevented(comparisons))
    summary = Summary(
        run=collected.name,
        grid=collected.plan.grid if collected.plan else None,
        planned=collected.plan is not None,
        ended=ended,
        timing=timing,
        policies=policies,
        environments=environments,
        combos=tuple(summarized),
        comparisons=comparisons,
        claims=claims(comparisons),
        macro_means=macro_means(policies, environments, summarized),
        quality=quality(collected, counted, warnings),
        provenance=collected.provenance,
        canary=collected.canary,
    )
    return Report(summary, tuple(record for combo in counted for record in combo.accepted))


def _check_baseline(baseline: str | None, policies: Sequence[str]) -> None:
    if baseline is not None and baseline not in policies:
        raise UserError(f"no policy is named {baseline!r}", f"the baseline must be one of: {', '.join(policies)}")


def _counts_episodes(histories: Sequence[SessionHistory]) -> bool:
    """Whether the sessions of a combo leave a record per episode."""
    session = histories[0].session
    return session.unit == "episode" and session.results.told


def _metrics(
    merged: Mapping[Combo, MergedCombo], sessions: Mapping[Combo, Sequence[SessionHistory]]
) -> dict[Combo, tuple[MetricMean, ...]]:
    measured = [
        (found.accepted, sessions[combo][0].session.results.metrics if combo in sessions else ())
        for combo, found in merged.items()
    ]
    return dict(zip(merged, metrics(measured), strict=True))


def _spared(collected: Collected, sessions: Mapping[Combo, Sequence[SessionHistory]]) -> dict[Combo, Spans]:
    """By combo, the episodes that were not needed; empty for a run without comparisons that may stop early."""
    if collected.stop_early is None:
        return {}
    recorded: dict[Combo, list[int]] = {}
    for record in collected.records:
        recorded.setdefault(record.combo, []).append(record.episode)
    return {combo: spared(histories, recorded.get(combo, ())) for combo, histories in sessions.items()}


def _planned(histories: Iterable[SessionHistory], spare: Spans) -> Spans | None:
    """The episodes of a combo that are due; None where the plan leaves their number to the program."""
    return minus(episodes_of(history.session for history in histories), spare) or None


def _axes(collected: Collected, merged: Iterable[Combo]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """In the plan's order; by name where there is no plan, so that the layout of the files does not matter."""
    if collected.plan:
        return collected.plan.policies, collected.plan.environments
    combos = tuple(merged)
    return tuple(sorted({policy for policy, _ in combos})), tuple(sorted({name for _, name in combos}))


def _timing(collected: Collected, combos: Sequence[ComboSummary]) -> tuple[Timing, bool]:
    """When it all began and ended, and whether it has; the grid's `after` command is no part of it."""
    attempts = [attempt for history in collected.sessions for attempt in history.attempts]
    latest = [history.attempts[-1].end if history.attempts else None for history in collected.sessions]
    ended = all(latest) or bool(collected.done)
    starts = [attempt.started for attempt in attempts if attempt.started is not None]
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


def _lacking(found: MergedCombo, tally: Tally | None) -> MergedCombo:
    """A program that only counts leaves no record that could be missing."""
    return replace(found, missing=()) if tally else found


def _short(combos: Iterable[ComboSummary], tallied: Mapping[Combo, Tally]) -> Iterator[Finding]:
    """What is missing of counts alone has no numbers."""
    for combo in combos:
        if combo.key in tallied and combo.counts and combo.counts.missing:
            yield Finding(
                combo.name, f"{combo.counts.missing} of {combo.counts.planned} episodes missing, not told which"
            )
