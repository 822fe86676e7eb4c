"""Success rates: a heat map of all combos, and each environment's rates with their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
    fit,
    fit_apart,
    ink_on,
    left_out,
    measure,
    room,
    shade,
    titled,
    wrap,
    zoomed,
)
from comborun.reporter.summary import Summary
from comborun.reporter.text import interval, of, rate

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
class _Cells:
    """Their size in inches, and what they hold."""

    width: float
    height: float
    worded: bool
    """counts, rate and interval"""
    numbered: bool
    """counts or the rate"""
    counted: bool

    @property
    def note(self) -> str:
        if self.worded:
            return "Successes of completed episodes, and the rate with its 95 % interval (Clopper-Pearson)."
        if not self.numbered:
            return "A colour for each combo's success rate. The tables and summary.csv have the numbers."
        shown = "Successes of completed episodes" if self.counted else "Success rates, rounded to whole per cent"
        return f"{shown}; a dot marks missing or errored episodes."

    def head(self, name: str) -> Sequence[str]:
        """The lines of a column's label, which reads upwards except over wide cells."""
        if self.width < TWO_LINES:
            return (fit(name, COLUMN_LABEL, NORMAL, bold=True),)
        return wrap(name, self.width - 0.1 if self.worded else WRAPPED, NORMAL, bold=True)


def heat_map(summary: Summary) -> Figure | None:
    grid = summary.axes
    if grid is None:
        return None
    columns, rows = grid.columns[:MOST], grid.rows[:MOST]
    labels = fit_apart(rows, ROW_LABEL, NORMAL, bold=True)
    left = room(labels, ROW_LABEL, bold=True) + 0.14
    width = min(max((PAGE - left) / len(columns), NARROWEST), WIDEST)
    worded = width >= WORDED
    height = 0.52 if worded else 0.2 if len(rows) <= FEW_ROWS else 0.145 if len(rows) <= MANY_ROWS else 0.1
    counts = max((measure(_counts(combo), SMALL) for combo in summary.combos if combo.rate), default=0.0)
    cells = _Cells(width, height, worded, width >= NUMBERED and height > 0.1, width >= counts + 0.08)
    heads = [line for name in columns for line in cells.head(name)]
    top = 0.4 if worded else room(heads, COLUMN_LABEL, bold=True) + 0.12
    bottom = top + height * len(rows)
    panel = Panel("Success rates of all combos", left + max(width * len(columns), WIDEST), bottom + BELOW)
    _column_heads(panel, columns, cells, (left, top))
    combos = {combo.key: combo for combo in summary.combos}
    for down, (row, label) in enumerate(zip(rows, labels, strict=True)):
        panel.text((left - 0.08, top + (down + 0.5) * height), label, TextStyle(align="right", bold=True))
        for across, column in enumerate(columns):
            place = (left + across * width, top + down * height)
            _cell(panel, cells, place, combos.get(grid.combo(column, row)))
    _colour_bar(panel, (left, bottom + 0.1))
    note = f"{cells.note}{STOPPED * any(combo.leans for combo in summary.combos)}"
    if max(len(grid.rows), len(grid.columns)) > MOST:
        shown = f"{len(rows)} of {len(grid.rows)} rows and {len(columns)} of {len(grid.columns)} columns."
        note += f" The first {shown}"
    return Figure("success_rates", "Success rates", note, (panel,))


def _column_heads(panel: Panel, columns: Sequence[str], cells: _Cells, corner: Point) -> None:
    (left, top), step = corner, max(1, ceil(0.11 / cells.width))  # so that labels don't overlap
    for across, name in enumerate(columns):
        middle, lines = left + (across + 0.5) * cells.width, cells.head(name)
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
    found = combo.rate if combo else None
    if combo is None or found is None or found.rate is None:
        panel.box(corner, (width, height), GREY, 0.3)
        if cells.numbered:
            panel.text(middle, _absence(combo) if cells.worded else "–", TextStyle(SMALL))
        return
    fill = shade(found.rate)
    small = TextStyle(SMALL, colour=ink_on(fill))
    lacking = ((combo.counts.missing, "missing"), (combo.counts.errored, "errored")) if combo.counts else ()
    absent = ", ".join(f"{count} {word}" for count, word in lacking if count)
    panel.box(corner, (width, height), fill)
    if cells.worded:
        top = middle[1] - (0.14 if absent else 0.08)
        panel.text((middle[0], top), _counts(combo), TextStyle(9.0, bold=True, colour=small.colour))
        panel.text((middle[0], top + 0.17), f"{rate(found)} {interval(found)}", small)
        panel.text((middle[0], top + 0.3), absent, small)
    elif cells.numbered:
        whole = round(100 * found.rate)
        if found.rate not in {0, 1}:  # only these are rounded to
            whole = min(max(whole, 1), 99)
        panel.text(middle, _counts(combo) if cells.counted else f"{whole}{'†' * combo.leans}", small)
        if absent:
            panel.dot((corner[0] + width - 0.035, corner[1] + 0.035), small.colour, 2.6)


def _counts(combo: ComboSummary) -> str:
    return f"{of(combo.rate)}{'†' * combo.leans}"


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
    panel.text((left + width / 2, top + 0.2), "success rate (%)", TextStyle(SMALL))
    panel.text((left + width, top + 0.2), "100", TextStyle(SMALL, "right"))


# -- rates with their intervals ---------------------------------------------------------------------------------------

ROW, HEAD, FOOT = 0.19, 0.34, 0.42
POLICY = 1.2


def intervals(summary: Summary) -> Figure | None:
    """Every rate with its interval, and the letters of the comparisons. None where nothing has a rate."""
    combos = [combo for combo in summary.combos if combo.rate and combo.rate.interval]
    letters = {combo.key: fit(combo.letters, 0.6, NORMAL) for combo in combos}
    sides = (  # the same in every environment, so that they can be compared by eye
        room([fit(combo.policy, POLICY, NORMAL) for combo in combos], POLICY) + 0.14,
        room([_counts(combo) for combo in combos], 0.8, SMALL) + 0.1,
        room([*letters.values()], 0.6) + 0.12,
    )
    groups = [[combo for combo in combos if combo.environment == name][:MOST] for name in summary.environments]
    shown = [group for group in groups if group]
    lettered = "; policies of an environment that share a letter are not told apart" if any(letters.values()) else ""
    note = (
        f"Success rates in per cent with their 95 % intervals (Clopper-Pearson), and k/n{lettered}. Each axis is zoomed"
        f" to its intervals.{STOPPED * any(combo.leans for combo in combos)}"
    )
    panels = tuple(_intervals(group, letters, sides) for group in shown[:PANELS])
    return Figure("intervals", "Intervals", note + left_out(len(shown)), panels) if panels else None


def _intervals(
    combos: Sequence[ComboSummary], letters: Mapping[tuple[str, str], str], sides: tuple[float, float, float]
) -> Panel:
    """`sides` are the inches for names, counts and letters beside the plot."""
    environment = combos[0].environment
    names, counts, marks = sides
    panel = titled(Panel(f"Intervals: {environment}", COLUMN, HEAD + ROW * len(combos) + FOOT), environment)
    limits = [limit for combo in combos if combo.rate and combo.rate.interval for limit in combo.rate.interval]
    axes = along(zoomed(limits), (names, HEAD), (COLUMN - names - counts - marks - 0.1, ROW * len(combos)), panel)
    for row, combo in enumerate(combos):
        assert combo.rate
        assert combo.rate.interval
        middle = axes.top + (row + 0.5) * ROW
        panel.text((axes.left - 0.1, middle), fit(combo.policy, POLICY, NORMAL), TextStyle(align="right"))
        panel.lines([[(axes.x(limit), middle) for limit in combo.rate.interval]], LineStyle(width=1.6))
        panel.dot((axes.x(combo.rate.rate or 0.0), middle))
        panel.text((COLUMN - marks, middle), _counts(combo), TextStyle(SMALL, "right"))
        panel.text((COLUMN - marks + 0.1, middle), letters[combo.key], TextStyle(align="left", bold=True))
    return panel
