"""What the HTML and the Markdown report share: which sections there are, and their words. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reporter.headline import Leader, leaders, sentences
from reporter.quality import Finding, Quality
from reporter.summary import describe_missing
from reporter.text import claim, clock, duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reporter.summary import ComboSummary, MetricMean, Summary

FINDINGS_SHOWN = 200

METHOD = (
    "An episode counts at most once: its record of the lowest attempt with a verdict, whatever the verdict; the first"
    " such line within an attempt. Completed episodes have a verdict, success or failure. Errored ones ran, but their"
    " program gave none; missing ones were planned and left no record. Neither enters the rate. Intervals are exact"
    " binomial (Clopper-Pearson) at 95 %, each for its combo alone and assuming independent episodes; no comparison is"
    " tested. A session's outcome follows from its records, not from its exit code."
)


@dataclass(frozen=True)
class Page:
    """Everything in reading order, still as values."""

    summary: Summary
    sentences: tuple[str, ...]
    leaders: tuple[Leader, ...]
    groups: tuple[tuple[str, tuple[ComboSummary, ...]], ...]
    """combos by environment"""
    rated: bool
    """whether any combo is counted in episodes"""
    denominators: bool
    """whether completed and planned differ anywhere, so that both must be shown"""
    metrics: tuple[str, ...]
    measured: tuple[tuple[str, tuple[ComboSummary, ...]], ...]
    """of the groups, the combos with metrics"""
    tallies: tuple[tuple[str, int], ...]
    findings: tuple[Finding, ...]
    unshown: int
    provenance: tuple[tuple[str, str], ...]


def page(summary: Summary) -> Page:
    found = summary.quality.findings
    return Page(
        summary=summary,
        sentences=sentences(summary),
        leaders=leaders(summary),
        groups=tuple(_groups(summary)),
        rated=any(combo.counts for combo in summary.combos),
        denominators=any(combo.counts.completed != combo.counts.planned for combo in summary.combos if combo.counts),
        metrics=tuple(dict.fromkeys(mean.name for combo in summary.combos for mean in combo.metrics)),
        measured=tuple(_measured(summary)),
        tallies=tuple(_tallies(summary.quality)),
        findings=found[:FINDINGS_SHOWN],
        unshown=max(0, len(found) - FINDINGS_SHOWN),
        provenance=tuple(_provenance(summary)),
    )


def means(combo: ComboSummary, names: tuple[str, ...]) -> tuple[MetricMean | None, ...]:
    """The combo's means in the order of `names`."""
    found = {mean.name: mean for mean in combo.metrics}
    return tuple(found.get(name) for name in names)


def planned_words(combo: ComboSummary) -> str:
    return f"{combo.planned:,} steps" if combo.unit == "step" else str(combo.planned)


def shortfall(combo: ComboSummary) -> str:
    """The other denominator, and which episodes are missing; empty where every planned episode has a verdict."""
    counts = combo.counts
    if counts is None or counts.completed == counts.planned:
        return ""
    parts = []
    if combo.rate_of_planned is not None:
        parts.append(f"of all {counts.planned} planned: {claim(combo.rate_of_planned)}")
    if counts.missing:
        parts.append(f"missing: {describe_missing(counts)}")
    return "; ".join(parts)


def _groups(summary: Summary) -> Iterator[tuple[str, tuple[ComboSummary, ...]]]:
    for environment in summary.environments:
        yield environment, tuple(combo for combo in summary.combos if combo.environment == environment)


def _measured(summary: Summary) -> Iterator[tuple[str, tuple[ComboSummary, ...]]]:
    for environment, combos in _groups(summary):
        if measured := tuple(combo for combo in combos if combo.metrics):
            yield environment, measured


def _tallies(quality: Quality) -> Iterator[tuple[str, int]]:
    """What was read and what became of it; of the troubles only those that there are."""
    yield "result files", quality.files
    yield "records read", quality.records
    yield "records that count", quality.accepted
    troubles = (
        ("rejected lines", quality.rejected),
        ("of them cut off", quality.torn),
        ("of them of another combo", quality.foreign),
        ("records outside the plan", quality.outside),
        ("episodes recorded twice, alike", quality.duplicated),
        ("episodes recorded twice, unlike", quality.conflicting),
        ("episodes run again in another attempt", quality.replayed),
        ("of them with another verdict", quality.replays_differ),
        ("records from a later attempt", quality.retried),
    )
    yield from (trouble for trouble in troubles if trouble[1])


def _provenance(summary: Summary) -> Iterator[tuple[str, str]]:
    timing = summary.timing
    yield "run" if summary.planned else "folder", summary.run
    if summary.grid is not None:
        yield "grid", summary.grid
    for name, moment in (("started", timing.started), ("finished", timing.finished)):
        if moment is not None:
            yield name, clock(moment)
    for name, span in (("first start to last end", timing.makespan), ("sum of session times", timing.sequential)):
        if span is not None:
            yield name, duration(span)
    yield from sorted(summary.provenance.items())
