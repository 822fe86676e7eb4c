"""What the HTML and the Markdown report share: which sections there are, and their words. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from comborun.reporter.counting.quality import Finding, Quality
from comborun.reporter.pages.headline import sentences
from comborun.reporter.summary import describe_missing
from comborun.reporter.text import claim, clock, duration, fraction
from comborun.text import GIB

if TYPE_CHECKING:
    from collections.abc import Iterator

    from comborun.reporter.comparing.comparisons import EnvironmentComparisons
    from comborun.reporter.summary import ComboSummary, MetricMean, Summary

FINDINGS_SHOWN = 200
KINDS_SHOWN = 8
EARLY = "† Some of its environments stopped early, where the number of episodes depends on how they went."
GAPS = ("environments missing", "not complete")
"""heads of what a mean lacks: environments without a completed episode, and those where not all are completed"""
OPEN_LENGTH = 3000
"""signs: about a screen of what is not decided"""


@dataclass(frozen=True)
class Page:
    """Everything in reading order, still as values."""

    summary: Summary
    sentences: tuple[str, ...]
    decided: tuple[str, ...]
    """what the comparisons decide, a sentence each"""
    undecided: tuple[str, ...]
    """what they leave open, a sentence per environment"""
    folded: bool
    """whether that is too much to stand open in front of everything else"""
    compared: tuple[EnvironmentComparisons, ...]
    lettered: bool
    """whether any combo has a letter"""
    groups: tuple[tuple[str, tuple[ComboSummary, ...]], ...]
    """combos by environment"""
    rated: bool
    """whether any combo is counted in episodes"""
    denominators: bool
    """whether completed and planned differ anywhere, so that both must be shown"""
    metrics: tuple[str, ...]
    measured: tuple[tuple[str, tuple[ComboSummary, ...]], ...]
    """of the groups, the combos with metrics"""
    kinds: tuple[str, ...]
    """kinds of failures in any combo, the most frequent first"""
    failed: tuple[ComboSummary, ...]
    """combos whose records say how episodes failed"""
    tallies: tuple[tuple[str, int], ...]
    findings: tuple[Finding, ...]
    unshown: int
    provenance: tuple[tuple[str, str], ...]


def page(summary: Summary) -> Page:
    found = summary.quality.findings
    return Page(
        summary=summary,
        sentences=sentences(summary),
        decided=summary.claims.decided,
        undecided=summary.claims.left_open,
        folded=sum(map(len, summary.claims.undecided)) > OPEN_LENGTH,
        compared=summary.comparisons.environments,
        lettered=any(group.letters for group in summary.comparisons.environments),
        groups=tuple(_groups(summary)),
        rated=any(combo.counts for combo in summary.combos),
        denominators=any(combo.counts.completed != combo.counts.planned for combo in summary.combos if combo.counts),
        metrics=tuple(dict.fromkeys(mean.name for combo in summary.combos for mean in combo.metrics)),
        measured=tuple(_measured(summary)),
        kinds=tuple(_kinds(summary)),
        failed=tuple(combo for combo in summary.combos if combo.failures and combo.failures.field),
        tallies=tuple(_tallies(summary.quality)),
        findings=found[:FINDINGS_SHOWN],
        unshown=max(0, len(found) - FINDINGS_SHOWN),
        provenance=tuple(_provenance(summary)),
    )


def means(combo: ComboSummary, names: tuple[str, ...]) -> tuple[MetricMean | None, ...]:
    """The combo's means in the order of `names`."""
    found = {mean.name: mean for mean in combo.metrics}
    return tuple(found.get(name) for name in names)


def letters(combo: ComboSummary, summary: Summary) -> str:
    """Those of the combo among the policies of its environment; empty without comparisons."""
    return summary.comparisons.letters_of(combo.policy, combo.environment)


def tallies_of(combo: ComboSummary, names: tuple[str, ...]) -> tuple[int, ...]:
    """Failed episodes of each kind in `names`, then of other kinds, untold and errored ones."""
    assert combo.failures
    counts = dict(combo.failures.counts)
    other = combo.failures.other + sum(count for kind, count in counts.items() if kind not in names)
    return (*(counts.get(name, 0) for name in names), other, combo.failures.untold, combo.failures.errored)


def planned_words(combo: ComboSummary) -> str:
    spare = f" ({combo.not_needed} not needed)" if combo.not_needed else ""
    return (f"{combo.planned:,} steps" if combo.unit == "step" else str(combo.planned)) + spare


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
    if combo.bounds is not None:
        low, high = map(fraction, combo.bounds)
        parts.append(f"between {low} and {high} per cent, however the others would have gone")
    return "; ".join(parts)


def _groups(summary: Summary) -> Iterator[tuple[str, tuple[ComboSummary, ...]]]:
    for environment in summary.environments:
        yield environment, tuple(combo for combo in summary.combos if combo.environment == environment)


def _measured(summary: Summary) -> Iterator[tuple[str, tuple[ComboSummary, ...]]]:
    for environment, combos in _groups(summary):
        if measured := tuple(combo for combo in combos if combo.metrics):
            yield environment, measured


def _kinds(summary: Summary) -> Iterator[str]:
    totals = Counter[str]()
    for combo in summary.combos:
        totals.update(dict(combo.failures.counts) if combo.failures else {})
    yield from (kind for kind, _ in totals.most_common(KINDS_SHOWN))


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
    yield from ((name, _sized(name, value)) for name, value in sorted(summary.provenance.items()))


def _sized(name: str, value: str) -> str:
    """A size in bytes as a person reads it; the JSON has the bytes."""
    return f"{int(value) / GIB:.1f} GiB" if name == "host.memory" and value.isdecimal() else value
