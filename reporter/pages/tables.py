"""The report's tables as rows of text: the same in HTML, Markdown and LaTeX. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Self, TypeVar

from comborun.reporter.comparing.comparison import Comparison, Tested
from comborun.reporter.comparing.factors import Factor
from comborun.reporter.comparing.graded import Graded, KindComparison, MeanDifference
from comborun.reporter.comparing.nominal import Loss
from comborun.reporter.counting.combo import ComboSummary, MacroMean
from comborun.reporter.counting.measures import MetricMean
from comborun.reporter.figures.figure import zoomed
from comborun.reporter.records.collected import SessionVideos
from comborun.reporter.standing import Place, Standing
from comborun.reporter.summary import Summary
from comborun.reporter.text import (
    NOTHING,
    claim,
    duration,
    fraction,
    interval,
    number,
    of,
    p_number,
    p_value,
    per_cent,
    points,
    points_interval,
    rank,
    rate,
    with_interval,
)
from comborun.rules.vocabulary import Outcome, amount

T = TypeVar("T")

_VIDEOS_SHOWN = 6
SHOWN = 40
"""comparisons of a table, the smallest p first"""
KINDS_SHOWN = 8
WIDTH = 30
"""signs of an interval"""
NAMED, NAMED_LENGTH = 3, 50
"""environments in a cell, and their characters together"""
STRENGTHS = (
    "Log-odds that an episode goes better than one of an average policy in the same environment; equal ends count half."
    " Policies that did not meet are compared through others. The intervals cover all strengths at once, with"
    " 5 % of error of their own: beside the claims of this report, which share another 5 %."
)
NO_STRENGTHS = (
    "There are none: the run may stop early or is not over, policies are not connected by environments that they share,"
    " or one of them always won or always lost."
)
_ONLY = {"success": "successes", "failure": "failures"}
_UNPLANNED = ", not CASM as planned"
LEANS = "† Stopped early: the number of episodes depends on how they went, so this number leans away from the others."
EARLY = "† Some of its environments stopped early, where the number of episodes depends on how they went."


class Strong(str):
    __slots__ = ()


class Plot(str):
    """The text of a cell in which every sign has the same width."""

    __slots__ = ()


class Tagged(str):
    """The text of a cell that a page shows as a tag, in a style of report.css."""

    style: str

    def __new__(cls, text: str, style: str) -> Self:
        tag = super().__new__(cls, text)
        tag.style = style
        return tag


@dataclass(frozen=True)
class TextTable:
    title: str
    columns: Sequence[tuple[str, str]]
    """heads and alignments: `left` for words, `right` for numbers"""
    rows: Sequence[Sequence[str]]
    note: str = ""
    total: int = 0
    below: Sequence[str] = ()

    @property
    def more(self) -> str:
        count = len(self.rows)
        return (
            f"The {count} with the smallest p of {self.total}; final_benchmark_report.json has all."
            if count < self.total
            else ""
        )


def columns(left: str, right: str = "", last: str = "") -> list[tuple[str, str]]:
    """Heads between bars: of words, of numbers, and again of words."""
    sides = (("left", left), ("right", right), ("left", last))
    return [(head, side) for side, heads in sides for head in heads.split("|") if head]


def filled(table: TextTable) -> TextTable:
    """Without the columns that are empty in all rows."""
    kept = [column for column, _ in enumerate(table.columns) if any(row[column] for row in table.rows)]
    rows = [[row[column] for column in kept] for row in table.rows]
    return replace(table, columns=[table.columns[column] for column in kept], rows=rows)


def _smallest(found: Sequence[T]) -> Sequence[T]:
    """All in their order, or those with the smallest p."""
    return found if len(found) <= SHOWN else sorted(found, key=attrgetter("p_holm"))[:SHOWN]


# -- means over environments ------------------------------------------------------------------------------------------


def ranking(standing: Standing | None) -> TextTable | None:
    """The policies in their order, with a forest plot in text; None for one policy or by a metric."""
    if standing is None or standing.measure != "success rate" or len(standing.places) < 2:
        return None
    limits = [end for place in standing.places for end in place.interval or ()]
    if not limits:
        return None
    shown = zoomed(limits)
    rows = [
        [
            place.policy,
            Strong(NOTHING if place.value is None else f"{fraction(place.value)}{'†' if place.early else ''}"),
            per_cent(place.interval),
            place.counts,
            standing.letters.get(place.policy, ""),
            Plot(forest(place, shown)),
        ]
        for place in standing.places
    ]
    mean = "success rate" if standing.environment else "mean"
    what = (
        f"Success rates in per cent {standing.where}."
        if standing.environment
        else f"Mean success rates in per cent {standing.where}, each with the same weight."
    )
    lettered = " Policies that share a letter are not told apart." if standing.letters else ""
    early = f" {EARLY}" if any(place.early for place in standing.places) else ""
    counts = "k/n" if standing.environment else "environments"
    heads = columns("policy", f"{mean}|95 % interval|{counts}", f"letters|{shown[0][1]} to {shown[-1][1]} %")
    return filled(TextTable("Ranking", heads, rows, f"{what}{lettered}{early}"))


MATRIX = 16
"""most policies of a matrix of pairs"""


def matrix(standing: Standing | None) -> TextTable | None:
    """Every pair: the row's policy minus the column's; None for two policies, or too many."""
    if standing is None or not 2 < len(standing.places) <= MATRIX or not standing.comparisons:
        return None
    pairs = {**standing.by_pair, **{(b, a): one for (a, b), one in standing.by_pair.items()}}

    def cell(row: str, column: str) -> str:
        found = pairs.get((row, column))
        if found is None:
            return "" if row == column else NOTHING
        difference = found.difference if found.a == row else -found.difference
        return Strong(points(difference)) if found.decided else f"({points(difference)})"

    rows = [
        [f"{number} {name}", *(cell(name, other) for other in standing.names)]
        for number, name in enumerate(standing.names, 1)
    ]
    heads = columns("row minus column", "|".join(str(one) for one in range(1, len(rows) + 1)))
    what = "in percentage points" if standing.measure == "success rate" else "as chances of more, in points"
    note = f"Differences {what} {standing.where}; in brackets what is not decided."
    return TextTable("Pairs", heads, rows, note)


def forest(place: Place, axis: Sequence[tuple[float, str]]) -> str:
    """`···├──●──┤····`: the interval and the value along an axis."""
    if place.interval is None or place.value is None:
        return ""
    first, last = axis[0][0], axis[-1][0]
    low, middle, high = (
        round((WIDTH - 1) * (end - first) / (last - first))
        for end in (place.interval[0], place.value, place.interval[1])
    )
    signs = ["·"] * low + ["├"] + ["─"] * (high - low - 1) + ["┤"] * (high > low) + ["·"] * (WIDTH - 1 - high)
    if low == high:
        signs[low : low + 1] = ["●"]
    signs[min(max(middle, low + (high - low > 1)), high - (high - low > 1))] = "●"
    return "".join(signs)


def means(summary: Summary) -> TextTable | None:
    found = sorted(summary.macro_means, key=lambda mean: (mean.mean is None, -(mean.mean or 0.0)))
    if not found or (summary.totals.measured and not summary.totals.completed):
        return None
    ranked = any(mean.rank and mean.rank != (1, len(found)) for mean in found)
    early = f" {EARLY}" if any(mean.early for mean in found) else ""
    return filled(
        TextTable(
            "Means over environments",
            columns("policy", "mean|95 % interval|rank|environments|episodes", "environments missing|not complete"),
            [_mean_row(mean, rank(mean.rank) if ranked else "") for mean in found],
            f"Success rates in per cent, every environment with the same weight.{early}",
        )
    )


def _mean_row(mean: MacroMean, ranks: str) -> list[str]:
    value = NOTHING if mean.mean is None else f"{fraction(mean.mean)}{'†' if mean.early else ''}"
    counts = (str(mean.environments - len(mean.missing)), str(mean.episodes))
    return [
        mean.policy,
        Strong(value),
        per_cent(mean.interval),
        ranks,
        *counts,
        *map(_some, (mean.missing, mean.partial)),
    ]


def _some(names: Sequence[str]) -> str:
    shown = list(names if len(names) <= NAMED else names[: NAMED - 1])
    while len(shown) > 1 and sum(map(len, shown)) > NAMED_LENGTH:
        shown.pop()
    left = len(names) - len(shown)
    return ", ".join(shown) + (f" and {left} more" if left else "")


def strengths(summary: Summary) -> TextTable | None:
    if summary.strengths is None:
        return None
    rows = [
        [one.policy, Strong(f"{one.strength:+.2f}"), f"[{one.interval[0]:+.2f}, {one.interval[1]:+.2f}]"]
        for one in summary.strengths
    ]
    return TextTable(
        "Bradley-Terry strengths",
        columns("policy", "strength|95 % interval"),
        rows,
        STRENGTHS if rows else NO_STRENGTHS,
    )


# -- comparisons ------------------------------------------------------------------------------------------------------


def comparisons(found: Sequence[Comparison], title: str, note: str = "") -> TextTable:
    several = len({one.environment for one in found}) > 1
    rows = [
        [
            *(one.environment if several else "", one.a, one.b),
            *(strong(f"{points(one.difference)}{'†' * one.leans}", one), points_interval(one.interval)),
            *(
                holm_p(one),
                _both(one.rate_a.n, one.rate_b.n),
                f"{one.test}{_UNPLANNED if one.prevented else ''}, {one.paired_word}",
                _better(one),
            ),
        ]
        for one in _smallest(found)
    ]
    heads = columns("environment|a|b", "a − b|95 % interval|p (Holm)|n", "test|better")
    note = f"{note} {LEANS}".strip() if any(one.leans for one in found) else note
    return filled(TextTable(title, heads, rows, note, len(found)))


def graded(found: Sequence[Graded]) -> TextTable | None:
    rows = [
        [
            *(one.metric, f"all {len(one.environments)}" if one.environments[1:] else one.environments[0]),
            *(one.a, one.b, strong(fraction(one.chance), one), per_cent(one.chance_interval), *map(number, one.middle)),
            *(holm_p(one), _both(*one.n), one.test, _better(one)),
        ]
        for one in _smallest(found)
    ]
    note = (
        "How often a has more of the metric than b, in per cent of the same episodes or, unpaired, of all pairings;"
        " equal values count half. 50 is no difference. IQM is the interquartile mean. Intervals are 95 % for each"
        " alone; p adjusted by Holm in the family of the success rates."
    )
    heads = columns("metric|environment|a|b", "a above b|95 % interval|IQM a|IQM b|p (Holm)|n", "test|more")
    return TextTable("Compared by metrics", heads, rows, note, len(found)) if rows else None


def mean_differences(found: Sequence[MeanDifference]) -> TextTable | None:
    rows = [
        [
            *(one.metric, f"all {len(one.environments)}" if one.environments[1:] else one.environments[0]),
            *(one.a, one.b, strong(f"{number(one.difference)}{'†' * one.leans}", one)),
            f"[{number(one.interval[0])}, {number(one.interval[1])}]",
            *map(number, one.means),
            *(holm_p(one), _both(*one.n), one.test, _better(one)),
        ]
        for one in _smallest(found)
    ]
    note = (
        "The difference of means with its 95 % t interval, each environment with the same weight; p by permutation,"
        " adjusted by Holm in the family of the success rates."
    )
    if any(one.sequential for one in found):
        note = f"The difference of means, tested after every pair, and its 95 % interval, both by betting. {LEANS}"
    heads = columns("metric|environment|a|b", "a − b|95 % interval|mean a|mean b|p (Holm)|n", "test|more")
    return TextTable("Means of metrics compared", heads, rows, note, len(found)) if rows else None


def losses(found: Sequence[Loss]) -> TextTable | None:
    rows = [
        [
            *(one.policy, f"all {len(one.environments)} others" if one.environments[1:] else one.environments[0]),
            *(fraction(one.rate_nominal), fraction(one.rate), strong(points(one.difference), one)),
            *(points_interval(one.interval), holm_p(one)),
        ]
        for one in _smallest(found)
    ]
    note = (
        "How much lower each policy's rate is than in the nominal environment, in percentage points, of independent"
        " episodes (Barnard, Newcombe; over several environments t); p adjusted by Holm over all losses, with 5 % of"
        " error of their own."
    )
    title = f"Losses from {found[0].nominal}" if found else ""
    heads = columns("policy|environment", "nominal|here|loss|95 % interval|p (Holm)")
    return TextTable(title, heads, rows, note, len(found)) if rows else None


def factors(found: Sequence[Factor]) -> TextTable | None:
    rows = [
        [one.field, level.name, str(level.starts), fraction(level.rate), per_cent(level.interval), p_value(one.p_holm)]
        for one in found
        for level in one.levels
    ]
    note = (
        "Success at the levels of what was set before the episodes. Each start counts once, at its mean over policies;"
        " intervals are 95 % for all levels of a factor together; p by permutation within environments, adjusted by"
        " Holm over all factors. Factors that change together are not told apart."
    )
    heads = columns("factor|level", "starts|success, %|95 % interval|p (Holm)")
    return TextTable("Factors", heads, rows, note, len(rows)) if rows else None


def kinds_compared(found: Sequence[KindComparison]) -> TextTable | None:
    rows = [
        [
            *(kind.kind, one.a, one.b, strong(points(one.difference), one), points_interval(one.interval)),
            *(holm_p(one), _better(one)),
        ]
        for kind, one in ((kind, kind.found) for kind in found[:SHOWN])
    ]
    note = (
        "How much more of a's episodes end so than of b's, in percentage points, over all environments; p adjusted by"
        " Holm over all failure kinds, apart from the success rates."
    )
    heads = columns("kind|a|b", "a − b|95 % interval|p (Holm)", "more")
    return TextTable("Failure kinds compared", heads, rows, note, len(found)) if rows else None


def strong(text: str, comparison: Tested) -> str:
    return Strong(text) if comparison.decided else text


def _better(comparison: Tested) -> str:
    return Strong(comparison.better) if comparison.better else ""


def holm_p(comparison: Tested) -> str:
    return p_number(comparison.p_holm, bound=comparison.bounded)


def _both(a: int, b: int) -> str:
    return str(a) if a == b else f"{a}, {b}"


# -- failure kinds and metrics of each combo --------------------------------------------------------------------------


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
    note = (
        "Means over completed episodes with their 95 % intervals, how many episodes have the metric, and the values"
        " that 5 and 95 of 100 episodes stay under."
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
    words, spread = f"{with_interval(found.mean, found.interval)} (n = {found.n}{only}{starts})", found.percentiles
    return f"{words}; {number(spread[0])} to {number(spread[1])}" if spread else words


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


# -- combos -----------------------------------------------------------------------------------------------------------


def combos(summary: Summary, shown: Sequence[ComboSummary]) -> TextTable | None:
    """Each with its counts, how it ended and how long it took."""
    below = ["; ".join(filter(None, _below(combo, summary))) for combo in shown]
    rated = any(combo.counts and (combo.counts.completed or not combo.counts.measured) for combo in shown)
    notes = (
        "Rate = successes / completed episodes, with 95 % Clopper-Pearson intervals. At least: what it exceeds with"
        " 95 % confidence, one-sided."
        if rated
        else "",
        "Where episodes are errored or missing, the rate over all planned ones stands below, as if these had failed."
        if any(combo.counts.completed != combo.counts.planned for combo in shown if combo.counts)
        else "",
        "Succeeded without more means complete, and ended with exit code 0."
        if summary.by_run
        else ""
        if summary.planned
        else "Planned is what the records show: no plan says how many there should be.",
        LEANS if any(combo.leans for combo in shown) else "",
    )
    heads = columns(
        "policy|environment",
        "k/n|rate|95 % interval|at least|letters|planned|completed|errored|missing|attempts|duration",
        "outcome",
    )
    rows = [[combo.policy, combo.environment, *_counted(combo), *_ended(combo, summary)] for combo in shown]
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
    if combo.rate_of_planned is not None:
        yield f"of all {counts.planned} planned: {claim(combo.rate_of_planned)}"
    if counts.missing:
        yield f"missing: {counts.which_missing}"
    if combo.bounds is not None:
        low, high = map(fraction, combo.bounds)
        yield f"between {low} and {high} per cent, however the others would have gone"
