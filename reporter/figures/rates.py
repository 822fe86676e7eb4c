"""Success rates: a heat map of all combos, and each environment's rates with their intervals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING

from comborun.reporter.figures.figure import (
    COLUMN,
    GREY,
    PAGE,
    PANELS,
    PERCENT,
    Axes,
    Figure,
    ink_on,
    left_out,
    shade,
    titled,
)
from comborun.reporter.figures.panel import (
    NORMAL,
    SMALL,
    LineStyle,
    Panel,
    TextStyle,
    fit,
    fit_apart,
    measure,
    room,
    wrap,
)
from comborun.reporter.text import interval, of, rate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from comborun.reporter.figures.panel import Point
    from comborun.reporter.summary import ComboSummary, Summary

MOST = 100
"""columns and rows of the map; of more, the tables have the numbers"""
WIDEST, NARROWEST = 1.5, 0.07
"""inches of a cell"""
WORDED, NUMBERED = 1.3, 0.2
"""inches from which on a cell holds its interval too, and those from which on it holds a number"""
FEW_ROWS, MANY_ROWS = 15, 40
ROW_LABEL, COLUMN_LABEL, WRAPPED = 1.6, 1.2, 1.0
"""inches of a label, and of one on two lines"""
TWO_LINES = 0.3
"""inches of a cell from which on its label may have two"""
BELOW = 0.4
BOLD = TextStyle(bold=True)


@dataclass(frozen=True)
class _Map:
    """The measures of a heat map, in inches."""

    columns: Sequence[str]
    rows: Sequence[str]
    counts: float
    """the width of the longest k/n"""

    @cached_property
    def left(self) -> float:
        return room(self.labels, ROW_LABEL, bold=True) + 0.14

    @cached_property
    def labels(self) -> list[str]:
        return fit_apart(self.rows, ROW_LABEL, NORMAL, bold=True)

    @cached_property
    def width(self) -> float:
        """Of a cell."""
        return min(max((PAGE - self.left) / len(self.columns), NARROWEST), WIDEST)

    @property
    def height(self) -> float:
        if self.worded:
            return 0.52
        return 0.2 if len(self.rows) <= FEW_ROWS else 0.145 if len(self.rows) <= MANY_ROWS else 0.1

    @property
    def top(self) -> float:
        if self.worded:
            return 0.4
        return room([line for name in self.columns for line in self.head(name)], COLUMN_LABEL, bold=True) + 0.12

    def head(self, name: str) -> Sequence[str]:
        """The lines of a column's label that reads upwards."""
        if self.width < TWO_LINES:
            return (fit(name, COLUMN_LABEL, NORMAL, bold=True),)
        return wrap(name, WRAPPED, NORMAL, bold=True)

    @property
    def worded(self) -> bool:
        return self.width >= WORDED

    @property
    def numbered(self) -> bool:
        return self.width >= NUMBERED and self.height > 0.1

    @property
    def counted(self) -> bool:
        return self.width >= self.counts + 0.08

    @property
    def note(self) -> str:
        if self.worded:
            return "Successes of completed episodes, and the rate with its 95 % interval (Clopper-Pearson)."
        if not self.numbered:
            return "A colour for each combo's success rate. The tables and summary.csv have the numbers."
        shown = "Successes of completed episodes" if self.counted else "Success rates, rounded to whole per cent"
        return f"{shown}; a dot marks missing or errored episodes."


def heat_map(summary: Summary) -> Figure | None:
    """None without a combo to show."""
    grid = summary.axes
    if grid is None:
        return None
    combos = {combo.key: combo for combo in summary.combos}
    counts = max((measure(of(combo.rate), SMALL) for combo in summary.combos if combo.rate), default=0.0)
    map_ = _Map(grid.columns[:MOST], grid.rows[:MOST], counts)
    left, top, width, height = map_.left, map_.top, map_.width, map_.height
    bottom = top + height * len(map_.rows)
    panel = Panel("Success rates of all combos", left + max(width * len(map_.columns), WIDEST), bottom + BELOW)
    _column_heads(panel, map_)
    for down, (row, label) in enumerate(zip(map_.rows, map_.labels, strict=True)):
        panel.text((left - 0.08, top + (down + 0.5) * height), label, TextStyle(align="right", bold=True))
        for across, column in enumerate(map_.columns):
            place = (left + across * width, top + down * height)
            _cell(panel, map_, place, combos.get(grid.combo(column, row)))
    _colour_bar(panel, (left, bottom + 0.1))
    note = map_.note
    if max(len(grid.rows), len(grid.columns)) > MOST:
        rows, columns = f"{len(map_.rows)} of {len(grid.rows)}", f"{len(map_.columns)} of {len(grid.columns)}"
        note += f" The first {rows} rows and {columns} columns."
    return Figure("success_rates", "Success rates", note, (panel,))


def _column_heads(panel: Panel, map_: _Map) -> None:
    step = max(1, ceil(0.11 / map_.width))  # so that labels don't overlap
    for across, name in enumerate(map_.columns):
        middle = map_.left + (across + 0.5) * map_.width
        if map_.worded:
            for above, words in enumerate(reversed(wrap(name, map_.width - 0.1, NORMAL, bold=True))):
                panel.text((middle, map_.top - 0.1 - 0.13 * above), words, BOLD)
        elif across % step == 0:
            for line, words in enumerate(lines := map_.head(name)):
                place = (middle + 0.13 * (line - (len(lines) - 1) / 2), map_.top - 0.06)
                panel.text(place, words, TextStyle(align="left", bold=True, upwards=True))


def _cell(panel: Panel, map_: _Map, corner: Point, combo: ComboSummary | None) -> None:
    gap = 0.03 if map_.worded else 0.015 if map_.numbered else 0.0
    width, height = map_.width - gap, map_.height - gap
    middle = (corner[0] + width / 2, corner[1] + height / 2)
    found = combo.rate if combo else None
    if combo is None or found is None or found.rate is None:
        panel.box(corner, (width, height), GREY, 0.3)
        if map_.numbered:
            panel.text(middle, _absence(combo) if map_.worded else "–", TextStyle(SMALL))
        return
    fill = shade(found.rate)
    small, absent = TextStyle(SMALL, colour=ink_on(fill)), _absent(combo)
    panel.box(corner, (width, height), fill)
    if map_.worded:
        top = middle[1] - (0.14 if absent else 0.08)
        panel.text((middle[0], top), of(found), TextStyle(9.0, bold=True, colour=small.colour))
        panel.text((middle[0], top + 0.17), f"{rate(found)} {interval(found)}", small)
        panel.text((middle[0], top + 0.3), absent, small)
    elif map_.numbered:
        panel.text(middle, of(found) if map_.counted else whole_percent(found.rate), small)
        if absent:
            panel.dot((corner[0] + width - 0.035, corner[1] + 0.035), small.colour, 2.6)


def whole_percent(share: float) -> str:
    """Only what is exactly 0 or 1 is rounded to it."""
    return str(round(100 * share) if share in {0, 1} else min(max(round(100 * share), 1), 99))


def _absent(combo: ComboSummary) -> str:
    counts = combo.counts
    assert counts
    found = ((counts.missing, "missing"), (counts.errored, "errored"))
    return ", ".join(f"{count} {word}" for count, word in found if count)


def _absence(combo: ComboSummary | None) -> str:
    if combo is None:
        return "no such combo"
    if combo.counts is None:
        return f"{combo.unit}s, no rate" if combo.unit == "step" else "no records"
    return f"no verdict: 0 of {combo.counts.planned}"


def _colour_bar(panel: Panel, corner: Point) -> None:
    width, (left, top) = WIDEST, corner
    for step in range(24):  # each reaches to the end, under the next, so that no seams show
        panel.box((left + width * step / 24, top), (width * (1 - step / 24), 0.1), shade(step / 23))
    panel.text((left, top + 0.2), "0", TextStyle(SMALL, "left"))
    panel.text((left + width / 2, top + 0.2), "success rate", TextStyle(SMALL))
    panel.text((left + width, top + 0.2), "1", TextStyle(SMALL, "right"))


# -- rates with their intervals ---------------------------------------------------------------------------------------

ROW, HEAD, FOOT = 0.19, 0.34, 0.3
POLICY = 1.2
"""inches that a name may take"""


def intervals(summary: Summary) -> Figure | None:
    """Every rate with its interval, and the letters of the comparisons. None where nothing has a rate."""
    combos = [combo for combo in summary.combos if combo.rate and combo.rate.interval]
    letters = {combo.key: fit(summary.comparisons.letters_of(*combo.key), 0.6, NORMAL) for combo in combos}
    sides = (  # the same in every environment, so that they can be compared by eye
        room([fit(combo.policy, POLICY, NORMAL) for combo in combos], POLICY) + 0.14,
        room([of(combo.rate) for combo in combos], 0.8, SMALL) + 0.1,
        room([*letters.values()], 0.6) + 0.12,
    )
    groups = [[combo for combo in combos if combo.environment == name][:MOST] for name in summary.environments]
    shown = [group for group in groups if group]
    lettered = "; policies of an environment that share a letter are not told apart" if any(letters.values()) else ""
    note = f"Success rates in per cent with their 95 % intervals (Clopper-Pearson), and k/n{lettered}."
    panels = tuple(_intervals(group, letters, sides) for group in shown[:PANELS])
    return Figure("intervals", "Intervals", note + left_out(len(shown)), panels) if panels else None


def _intervals(
    combos: Sequence[ComboSummary], letters: Mapping[tuple[str, str], str], sides: tuple[float, float, float]
) -> Panel:
    """`sides` are the inches for names, counts and letters beside the plot."""
    environment = combos[0].environment
    names, counts, marks = sides
    panel = titled(Panel(f"Intervals: {environment}", COLUMN, HEAD + ROW * len(combos) + FOOT), environment)
    axes = Axes(names, HEAD, COLUMN - names - counts - marks - 0.1, ROW * len(combos))
    axes.x_ticks(panel, PERCENT)
    for row, combo in enumerate(combos):
        assert combo.rate
        assert combo.rate.interval
        middle = axes.top + (row + 0.5) * ROW
        panel.text((axes.left - 0.1, middle), fit(combo.policy, POLICY, NORMAL), TextStyle(align="right"))
        panel.lines([[(axes.x(limit), middle) for limit in combo.rate.interval]], LineStyle(width=1.6))
        panel.dot((axes.x(combo.rate.rate or 0.0), middle))
        panel.text((COLUMN - marks, middle), of(combo.rate), TextStyle(SMALL, "right"))
        panel.text((COLUMN - marks + 0.1, middle), letters[combo.key], TextStyle(align="left", bold=True))
    return panel
