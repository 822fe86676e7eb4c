"""Tables of policies: their order, every pair of them, their means and strengths. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from comborun.reporter.counting.combo import MacroMean
from comborun.reporter.figures.figure import spread, zoomed
from comborun.reporter.figures.ranking import of_means
from comborun.reporter.pages.text_table import Plot, Strong, TextTable, columns, filled
from comborun.reporter.standing import Place, Standing, corrected
from comborun.reporter.summary import Summary
from comborun.reporter.text import NOTHING, fraction, number, numbers, per_cent, points, rank, within

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
EARLY = "† Some of its environments stopped early, where the number of episodes depends on how they went."


def ranking(standing: Standing | None) -> TextTable | None:
    """The policies in their order, with a forest plot in text; None for one policy."""
    if standing is None or len(standing.places) < 2:
        return None
    limits = [end for place in standing.places for end in place.interval or ()]
    if not limits and standing.by_rate:
        return None
    shown, value_of, interval_of = (
        (zoomed(limits), fraction, per_cent) if standing.by_rate else (spread(limits), number, numbers)
    )
    rows = [
        [
            place.policy,
            Strong(NOTHING if place.value is None else f"{value_of(place.value)}{'†' if place.early else ''}"),
            f"{interval_of(place.interval)}{within(place.runs) if place.interval else ''}",
            place.counts,
            standing.letters.get(place.policy, ""),
            Plot(forest(place, shown)),
        ]
        for place in standing.places
    ]
    mean = standing.measure if standing.by_rate and standing.environment else "mean"
    what = (
        of_means(standing)
        if not standing.by_rate
        else f"Success rates in per cent {standing.where}."
        if standing.environment
        else f"Mean success rates in per cent {standing.where}, each with the same weight."
    )
    lettered = f" Policies that share a letter are not told apart{corrected(standing)}." if standing.letters else ""
    early = f" {EARLY}" if any(place.early for place in standing.places) else ""
    counts = "episodes" if not standing.by_rate else "k/n" if standing.environment else "environments"
    unit = " %" if standing.by_rate else ""
    heads = columns("policy", f"{mean}|95 % interval|{counts}", f"letters|{shown[0][1]} to {shown[-1][1]}{unit}")
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
    what = "in percentage points" if standing.by_rate else f"as chances of more {standing.measure}, in points"
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
    if not found or summary.by_numbers:
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
