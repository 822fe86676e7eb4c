"""Success rates: a heat map of all combos, and each environment's rates with their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import ceil

from comborun.reporter.counting.combo import ComboSummary
from comborun.reporter.figures.figure import (
    COLUMN,
    GREY,
    NORMAL,
    PAGE,
    PANELS,
    SMALL,
    Figure,
    LineStyle,
    Panel,
    Point,
    TextStyle,
    along,
    ink_on,
    left_out,
    room,
    shade,
    spread,
    titled,
    zoomed,
)
from comborun.reporter.figures.labels import fit, fit_apart, measure, wrap
from comborun.reporter.standing import standing_of
from comborun.reporter.summary import GridAxes, Summary
from comborun.reporter.text import NOTHING, interval, number, numbers, of, rate

MOST = 100
WIDEST, NARROWEST = 1.5, 0.07
WORDED, NUMBERED = 1.3, 0.2
"""inches from which on a cell holds its interval, and a number"""
FEW_ROWS, MANY_ROWS = 15, 40
ROW_LABEL, COLUMN_LABEL, WRAPPED = 1.6, 1.2, 1.0
"""inches of a label, and of one on two lines"""
TWO_LINES = 0.3
"""inches of a cell from which on its label may have two lines"""
BELOW = 0.4
STOPPED = " † Stopped early, so the rate leans."


@dataclass(frozen=True)
class _Values:
    """What the cells of the map show: success rates, or the means of a metric."""

    metric: str
    """empty: success rates"""
    ends: Mapping[str, tuple[float, float]]
    """environment -> the lowest and the highest mean of the metric"""

    @classmethod
    def of(cls, summary: Summary) -> _Values:
        metric = summary.metric.name if summary.metric and summary.by_numbers else ""
        means: dict[str, list[float]] = {}
        for combo in summary.combos:
            if found := combo.metrics_by_name.get(metric):
                means.setdefault(combo.environment, []).append(found.mean)
        return cls(metric, {name: (min(some), max(some)) for name, some in means.items()})

    @property
    def title(self) -> str:
        return f"Mean {self.metric}" if self.metric else "Success rates"

    @property
    def bar(self) -> tuple[str, str, str]:
        return ("lowest", f"mean {self.metric} in each environment", "highest") if self.metric else RATES_BAR

    def value(self, combo: ComboSummary) -> float | None:
        if not self.metric:
            return combo.rate.rate if combo.rate else None
        found = combo.metrics_by_name.get(self.metric)
        return found.mean if found else None

    def interval(self, combo: ComboSummary) -> tuple[float, float] | None:
        if not self.metric:
            return combo.rate.interval if combo.rate else None
        found = combo.metrics_by_name.get(self.metric)
        return found.interval if found else None

    def share(self, combo: ComboSummary) -> float | None:
        """From 0 to 1, for the colour; None without a value."""
        value = self.value(combo)
        if not self.metric or value is None:
            return value
        low, high = self.ends[combo.environment]
        return (value / 2 - low / 2) / (high / 2 - low / 2) if high > low else 0.5

    def short(self, combo: ComboSummary) -> str:
        found = combo.metrics_by_name.get(self.metric)
        return number(found.mean) if found else NOTHING if self.metric else f"{of(combo.rate)}{'†' * combo.leans}"

    def long(self, combo: ComboSummary) -> str:
        """The line below it in a wide cell."""
        found = combo.metrics_by_name.get(self.metric)
        if not found:
            return f"{rate(combo.rate)} {interval(combo.rate)}"
        return f"{f'{numbers(found.interval)} ' if found.interval else ''}n = {found.n}"


RATES_BAR = ("0", "success rate (%)", "100")


@dataclass(frozen=True)
class _Cells:
    """Their size in inches, and what they hold."""

    width: float
    height: float
    worded: bool
    """counts, rate and interval"""
    numbered: bool
    """counts or the rate"""
    counted: bool
    values: _Values

    @property
    def note(self) -> str:
        if self.values.metric:
            shade = "Colours run from the lowest to the highest mean of each environment"
            if not self.numbered:
                return f"{shade}. The tables and summary.csv have the numbers."
            more = ", its 95 % interval (t) and n" if self.worded else "; a dot marks missing or errored episodes"
            return f"Mean {self.values.metric}{more}. {shade}."
        if self.worded:
            return "Successes of completed episodes, and the rate with its 95 % interval (Clopper-Pearson)."
        if not self.numbered:
            return "A colour for each combo's success rate. The tables and summary.csv have the numbers."
        shown = "Successes of completed episodes" if self.counted else "Success rates, rounded to whole per cent"
        return f"{shown}; a dot marks missing or errored episodes."

    def heads(self, names: Sequence[str]) -> list[Sequence[str]]:
        """The lines of the columns' labels, which read upwards except over wide cells."""
        if self.width < TWO_LINES:
            return [(words,) for words in fit_apart(names, COLUMN_LABEL, NORMAL, bold=True)]
        room = self.width - 0.1 if self.worded else WRAPPED
        wrapped = [wrap(name, room, NORMAL, bold=True) for name in names]
        apart = len({*wrapped}) == len({*names})
        return [*wrapped] if apart else [(words,) for words in fit_apart(names, room, NORMAL, bold=True)]


def heat_map(summary: Summary) -> Figure | None:
    """All combos by their rates; without verdicts by the means of the metric, or nothing."""
    grid = summary.axes
    if grid is None or (summary.by_numbers and not summary.metric):
        return None
    values = _Values.of(summary)
    grid = _like_the_ranking(grid, summary)
    columns, rows = grid.columns[:MOST], grid.rows[:MOST]
    labels = fit_apart(rows, ROW_LABEL, NORMAL, bold=True)
    left = room(labels, ROW_LABEL, bold=True) + 0.14
    width = min(max((PAGE - left) / len(columns), NARROWEST), WIDEST)
    worded = width >= WORDED
    height = 0.52 if worded else 0.2 if len(rows) <= FEW_ROWS else 0.145 if len(rows) <= MANY_ROWS else 0.1
    counts = max((measure(values.short(combo), SMALL) for combo in summary.combos if combo.rate), default=0.0)
    numbered = height > 0.1 and width >= (NUMBERED if not values.metric else counts + 0.08)
    cells = _Cells(width, height, worded, numbered, width >= counts + 0.08, values)
    heads = cells.heads(columns)
    top = 0.4 if worded else room([*chain(*heads)], COLUMN_LABEL, bold=True) + 0.12
    bottom = top + height * len(rows)
    below = BELOW + (0.12 if values.metric else 0.0)
    panel = Panel(f"{values.title} of all combos", left + max(width * len(columns), WIDEST), bottom + below)
    _column_heads(panel, heads, cells, (left, top))
    combos = {combo.key: combo for combo in summary.combos}
    for down, (row, label) in enumerate(zip(rows, labels, strict=True)):
        panel.text((left - 0.08, top + (down + 0.5) * height), label, TextStyle(align="right", bold=True))
        for across, column in enumerate(columns):
            place = (left + across * width, top + down * height)
            _cell(panel, cells, place, combos.get(grid.combo(column, row)))
    _colour_bar(panel, (left, bottom + 0.1), values.bar)
    note = f"{cells.note}{STOPPED * any(combo.leans for combo in summary.combos)}"
    if max(len(grid.rows), len(grid.columns)) > MOST:
        shown = f"{len(rows)} of {len(grid.rows)} rows and {len(columns)} of {len(grid.columns)} columns."
        note += f" The first {shown}"
    return Figure("means" if values.metric else "success_rates", values.title, note, (panel,))


def _like_the_ranking(grid: GridAxes, summary: Summary) -> GridAxes:
    """With the policies in their order."""
    found = standing_of(summary)
    place = {name: at for at, name in enumerate(found.names)} if found else {}
    policies = grid.columns if grid.policies_across else grid.rows
    ordered = (*sorted(policies, key=lambda name: place.get(name, len(place))),)
    return replace(grid, columns=ordered) if grid.policies_across else replace(grid, rows=ordered)


def _column_heads(panel: Panel, heads: Sequence[Sequence[str]], cells: _Cells, corner: Point) -> None:
    (left, top), step = corner, max(1, ceil(0.11 / cells.width))  # so that labels don't overlap
    for across, lines in enumerate(heads):
        middle = left + (across + 0.5) * cells.width
        if cells.worded:
            for above, words in enumerate(reversed(lines)):
                panel.text((middle, top - 0.1 - 0.13 * above), words, TextStyle(bold=True))
        elif across % step == 0:
            for line, words in enumerate(lines):
                place = (middle + 0.13 * (line - (len(lines) - 1) / 2), top - 0.06)
                panel.text(place, words, TextStyle(align="left", bold=True, upwards=True))


def _cell(panel: Panel, cells: _Cells, corner: Point, combo: ComboSummary | None) -> None:
    gap = 0.03 if cells.worded else 0.015 if cells.numbered else 0.0
    width, height = cells.width - gap, cells.height - gap
    middle = (corner[0] + width / 2, corner[1] + height / 2)
    share = cells.values.share(combo) if combo else None
    if combo is None or share is None:
        panel.box(corner, (width, height), GREY, 0.3)
        if cells.numbered:
            panel.text(middle, _absence(combo, cells.values) if cells.worded else "–", TextStyle(SMALL))
        return
    fill = shade(share)
    small = TextStyle(SMALL, colour=ink_on(fill))
    lacking = ((combo.counts.missing, "missing"), (combo.counts.errored, "errored")) if combo.counts else ()
    absent = ", ".join(f"{count} {word}" for count, word in lacking if count)
    panel.box(corner, (width, height), fill)
    if cells.worded:
        top = middle[1] - (0.14 if absent else 0.08)
        panel.text((middle[0], top), cells.values.short(combo), TextStyle(9.0, bold=True, colour=small.colour))
        panel.text((middle[0], top + 0.17), cells.values.long(combo), small)
        panel.text((middle[0], top + 0.3), absent, small)
    elif cells.numbered:
        whole = round(100 * share)
        if share not in {0, 1}:  # only these are rounded to
            whole = min(max(whole, 1), 99)
        per_cent = f"{whole}{'†' * combo.leans}"
        panel.text(middle, cells.values.short(combo) if cells.counted or cells.values.metric else per_cent, small)
        if absent:
            panel.dot((corner[0] + width - 0.035, corner[1] + 0.035), small.colour, 2.6)


def _absence(combo: ComboSummary | None, values: _Values) -> str:
    if combo is None:
        return "no such combo"
    if combo.counts is None:
        return f"{combo.unit}s, no rate" if combo.unit == "step" else "no records"
    return f"no {values.metric or 'verdict'}: 0 of {combo.counts.planned}"


def _colour_bar(panel: Panel, corner: Point, words: tuple[str, str, str]) -> None:
    width, (left, top) = WIDEST, corner
    for step in range(24):  # each reaches to the end, under the next, so that no seams show
        panel.box((left + width * step / 24, top), (width * (1 - step / 24), 0.1), shade(step / 23))
    low, middle, high = words
    panel.text((left, top + 0.2), low, TextStyle(SMALL, "left"))
    if words == RATES_BAR:
        panel.text((left + width / 2, top + 0.2), middle, TextStyle(SMALL))
    else:
        panel.text((left, top + 0.34), fit(middle, panel.width - left, SMALL), TextStyle(SMALL, "left"))
    panel.text((left + width, top + 0.2), high, TextStyle(SMALL, "right"))


# -- rates with their intervals ---------------------------------------------------------------------------------------

ROW, HEAD, FOOT = 0.19, 0.34, 0.42
POLICY = 1.2


def intervals(summary: Summary) -> Figure | None:
    """Every rate, or mean of the metric, with its interval, and the letters of the comparisons. None without any."""
    values = _Values.of(summary)
    combos = [combo for combo in summary.combos if values.interval(combo)]
    letters = {combo.key: fit(combo.letters, 0.6, NORMAL) for combo in combos}
    sides = (  # the same in every environment, so that they can be compared by eye
        room(fit_apart([combo.policy for combo in combos], POLICY, NORMAL), POLICY) + 0.14,
        room([values.short(combo) for combo in combos], 0.8, SMALL) + 0.1,
        room([*letters.values()], 0.6) + 0.12,
    )
    groups = [[combo for combo in combos if combo.environment == name][:MOST] for name in summary.environments]
    shown = [group for group in groups if group]
    lettered = "; policies of an environment that share a letter are not told apart" if any(letters.values()) else ""
    what = "Success rates in per cent with their 95 % intervals (Clopper-Pearson), and k/n"
    what = f"Means of {values.metric} with their 95 % intervals (t)" if values.metric else what
    note = f"{what}{lettered}. Each axis is zoomed to its intervals.{STOPPED * any(combo.leans for combo in combos)}"
    panels = tuple(_intervals(group, letters, sides, values) for group in shown[:PANELS])
    return Figure("intervals", "Intervals", note + left_out(len(shown)), panels) if panels else None


def _intervals(
    combos: Sequence[ComboSummary],
    letters: Mapping[tuple[str, str], str],
    sides: tuple[float, float, float],
    values: _Values,
) -> Panel:
    """`sides` are the inches for names, numbers and letters beside the plot."""
    environment = combos[0].environment
    names, counts, marks = sides
    panel = titled(Panel(f"Intervals: {environment}", COLUMN, HEAD + ROW * len(combos) + FOOT), environment)
    limits = [limit for combo in combos for limit in values.interval(combo) or ()]
    size = (COLUMN - names - counts - marks - 0.1, ROW * len(combos))
    ticks, title, unit = (spread(limits), fit(values.title, size[0], SMALL), "")
    if not values.metric:
        ticks, title, unit = zoomed(limits), "", " (%)"
    axes = along(ticks, (names, HEAD), size, panel, title, unit)
    labels = fit_apart([combo.policy for combo in combos], POLICY, NORMAL)
    for row, (combo, label) in enumerate(zip(combos, labels, strict=True)):
        middle = axes.top + (row + 0.5) * ROW
        panel.text((axes.left - 0.1, middle), label, TextStyle(align="right"))
        panel.lines([[(axes.x(limit), middle) for limit in values.interval(combo) or ()]], LineStyle(width=1.6))
        panel.dot((axes.x(values.value(combo) or 0.0), middle))
        panel.text((COLUMN - marks, middle), values.short(combo), TextStyle(SMALL, "right"))
        panel.text((COLUMN - marks + 0.1, middle), letters[combo.key], TextStyle(align="left", bold=True))
    return panel
