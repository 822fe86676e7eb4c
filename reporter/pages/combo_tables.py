"""Tables of combos: how they went, by kind of failure, metrics, consistency, videos. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from comborun.reporter.counting.combo import ComboSummary
from comborun.reporter.counting.measures import MetricMean
from comborun.reporter.pages.text_table import LEANS, Strong, Tagged, TextTable, columns, filled
from comborun.reporter.records.collected import SessionVideos
from comborun.reporter.summary import Summary
from comborun.reporter.text import (
    NOTHING,
    claim,
    duration,
    fraction,
    interval,
    number,
    numbers,
    of,
    per_cent,
    rate,
    with_interval,
)
from comborun.rules.vocabulary import Outcome, amount

_VIDEOS_SHOWN = 6
KINDS_SHOWN = 8
_ONLY = {"success": "successes", "failure": "failures"}


def failures(combos: Iterable[ComboSummary]) -> TextTable | None:
    failed = [(combo, combo.failures) for combo in combos if combo.failures and combo.failures.field]
    if not failed:
        return None
    totals = Counter[str]()
    for _, found in failed:
        totals.update(found.kinds)
    names = [kind for kind, _ in totals.most_common(KINDS_SHOWN)]
    rows = []
    for combo, found in failed:
        other = found.other + sum(count for kind, count in found.kinds.items() if kind not in names)
        cells = (*(found.kinds.get(name, 0) for name in names), other, found.untold, found.errored)
        rows.append([combo.policy, combo.environment, *map(str, cells)])
    kinds = [*((name, "right") for name in names), *columns("", "other kinds|not told|errored")]
    note = "Episodes, in the words of their records."
    return filled(TextTable("Failed episodes by kind", [*columns("policy|environment"), *kinds], rows, note))


def metrics(combos: Sequence[ComboSummary]) -> TextTable | None:
    names = tuple(dict.fromkeys(mean.name for combo in combos for mean in combo.metrics))
    rows = [
        [combo.policy, combo.environment, *(_metric(combo.metrics_by_name.get(name)) for name in names)]
        for combo in combos
        if combo.metrics
    ]
    judged = any(combo.counts and combo.counts.completed for combo in combos)
    note = (
        f"Means over {'completed ' * judged}episodes with their 95 % intervals, how many episodes have the metric, and"
        " the values that 5 and 95 of 100 episodes stay under."
    )
    heads = [*columns("policy|environment"), *((name, "right") for name in names)]
    return TextTable("Metrics", heads, rows, note) if names else None


def videos(found: Sequence[SessionVideos]) -> TextTable | None:
    """The videos that sessions left, without those that episodes name; None without any."""
    rows = [
        [
            one.policy,
            one.environment,
            one.session,
            str(one.whole),
            str(one.found - one.whole or ""),
            "" if one.expected is None else str(one.expected),
            amount(one.size),
            ", ".join(one.apart[:_VIDEOS_SHOWN]),
        ]
        for one in found
        if one.found or one.expected
    ]
    heads = columns("policy|environment|session", "whole|broken|expected|size", "of no single episode")
    return filled(TextTable("Videos", heads, rows)) if rows else None


def _metric(found: MetricMean | None) -> str:
    if found is None:
        return NOTHING
    starts = f", {found.starts} starts" if found.starts else ""
    only = f", {_ONLY[found.only]} only" if found.only else ""
    words = f"{with_interval(found.mean, found.interval, found.runs)} (n = {found.n}{only}{starts})"
    return f"{words}; {' to '.join(map(number, found.percentiles))}" if found.percentiles else words


def consistency(combos: Iterable[ComboSummary]) -> TextTable | None:
    found = [(combo, combo.consistency) for combo in combos if combo.consistency]
    if not found:
        return None
    rows = [
        [
            *(combo.policy, combo.environment, str(one.starts), str(one.each), fraction(one.passes[0])),
            *(fraction(one.passes[1]), fraction(one.passes[-1]), fraction(one.agreement), per_cent(one.interval)),
            f"{one.always}/{one.starts - one.always - one.never}/{one.never}",
        ]
        for combo, one in found
    ]
    heads = columns("policy|environment", "starts|episodes each|pass^1|pass^2|pass^n|alike|95 % interval|a/s/n")
    note = (
        "Starts that were run several times. pass^k: the chance in per cent that k episodes of one start all succeed, n"
        " being the fewest episodes of any start; alike: that two of them end alike; a/s/n: starts that always,"
        " sometimes and never succeeded."
    )
    return TextTable("Consistency per start", heads, rows, note)


def combos(summary: Summary, shown: Sequence[ComboSummary]) -> TextTable | None:
    """Each with its counts, how it ended and how long it took."""
    below = ["; ".join(filter(None, _below(combo, summary))) for combo in shown]
    planned = [combo.counts for combo in shown if combo.counts]
    rated = any(combo.counts and (combo.counts.completed or not combo.counts.measured) for combo in shown)
    notes = (
        "Rate = successes / completed episodes, with 95 % Clopper-Pearson intervals. At least: what it exceeds with"
        " 95 % confidence, one-sided."
        if rated
        else "",
        "Of several runs both hold for these runs alone: the spread between runs is in comparisons."
        if any(combo.rate and combo.rate.runs for combo in shown)
        else "",
        "Where episodes are errored or missing, the rate over all planned ones stands below, as if these had failed."
        if not summary.by_numbers and any(one.completed != one.planned for one in planned)
        else "",
        f"Mean {summary.metric.name} with its 95 % interval (t)." if summary.metric and summary.by_numbers else "",
        "Succeeded without more means complete, and ended with exit code 0."
        if summary.by_run
        else ""
        if summary.planned
        else "Planned is what the records show: no plan says how many there should be.",
        LEANS if any(combo.leans for combo in shown) else "",
    )
    numbers = "k/n|rate|95 % interval|at least"
    metric = summary.metric.name if summary.metric and summary.by_numbers else ""
    heads = [
        *columns("policy|environment", "" if summary.by_numbers else numbers),
        *([(metric, "right"), *columns("", "95 % interval")] if metric else ()),
        *columns(
            "", f"letters|planned|{'recorded' if summary.by_numbers else 'completed'}|errored|missing|attempts|duration"
        ),
        *columns("outcome"),
    ]
    rows = [
        [
            *(combo.policy, combo.environment),
            *(_measured(combo, metric) if summary.by_numbers else _counted(combo)),
            *_ended(combo, summary),
        ]
        for combo in shown
    ]
    return filled(TextTable("Combos", heads, rows, " ".join(filter(None, notes)), below=below)) if rows else None


def _counted(combo: ComboSummary) -> list[str]:
    counts = combo.counts
    if counts is None:
        return ["", "", "", "", "", _planned(combo), "", "", ""]
    lost = [Strong(count) if count else "0" for count in (counts.errored, counts.missing)]
    if counts.measured and not counts.completed:  # episodes with numbers, and no verdicts
        return ["", "", "", "", "", _planned(combo), str(counts.measured), *lost]
    least = NOTHING if combo.rate is None or combo.rate.at_least is None else fraction(combo.rate.at_least)
    rates = [
        *(Strong(of(combo.rate)), Strong(f"{rate(combo.rate)}{'†' * combo.leans}")),
        *(interval(combo.rate), least, combo.letters),
    ]
    return [*rates, _planned(combo), str(counts.completed), *lost]


def _measured(combo: ComboSummary, metric: str) -> list[str]:
    """Of episodes with numbers and no verdicts."""
    counts = combo.counts
    if counts is None:
        return [*(["", ""] if metric else []), "", _planned(combo), "", "", ""]
    found = combo.metrics_by_name.get(metric)
    some = f" of {found.n}" if found and found.n < counts.measured else ""
    mean = (
        [Strong(number(found.mean)) if found else NOTHING, numbers(found.interval if found else None) + some]
        if metric
        else []
    )
    lost = [Strong(count) if count else "0" for count in (counts.errored, counts.missing)]
    return [*mean, combo.letters, _planned(combo), str(counts.measured), *lost]


def _ended(combo: ComboSummary, summary: Summary) -> list[str]:
    if not summary.by_run:
        return [""] * 3
    end = combo.ending
    warned = " warned" if end.outcome is Outcome.SUCCEEDED and end.warnings else ""
    return [str(end.attempts), duration(end.seconds), Tagged(end.words, f"{end.outcome or ''}{warned}")]


def _planned(combo: ComboSummary) -> str:
    spare = f" ({combo.not_needed} not needed)" if combo.not_needed else ""
    return (f"{combo.planned:,} steps" if combo.unit == "step" else str(combo.planned)) + spare


def _below(combo: ComboSummary, summary: Summary) -> Iterator[str]:
    """Why it ended, unless it ended as it should; and which planned episodes have no verdict."""
    end, counts = combo.ending, combo.counts
    if summary.by_run and not (end.clean and end.outcome is Outcome.SUCCEEDED):
        yield end.cause
    if counts is None or counts.completed == counts.planned:
        return
    if summary.by_numbers and counts.measured == counts.planned:
        return
    if combo.rate_of_planned is not None:
        yield f"of all {counts.planned} planned: {claim(combo.rate_of_planned)}"
    if counts.missing:
        yield f"missing: {counts.which_missing}"
    if combo.bounds is not None:
        low, high = map(fraction, combo.bounds)
        yield f"between {low} and {high} per cent, however the others would have gone"
