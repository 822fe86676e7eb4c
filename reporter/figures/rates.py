"""Success rates: a heat map of all combos, and each environment's rates with their intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from comborun.reporter.figures.canvas import (
    ABREAST,
    FAINT,
    INK,
    NORMAL,
    PERCENT,
    SMALL,
    WHOLE,
    Canvas,
    Frame,
    fit,
    gutter,
    heading,
    ink_on,
    measure,
    shade,
    wrap,
)
from comborun.reporter.figures.plate import Drawing, Plate
from comborun.reporter.text import interval, of, rate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from comborun.reporter.figures.canvas import Point
    from comborun.reporter.summary import Axes, ComboSummary, Summary

MAP_LABEL = 1.6
"""inches that a row's label may take"""
MAP_FOOT = 0.4
MAP_MOST = (40, 100)
"""columns and rows; of more, the tables have the numbers"""
WIDEST, NARROWEST = 1.5, 0.2
"""inches of a cell"""
WORDED = 1.3
"""inches from which on a cell holds its interval too"""
FEW_ROWS = 15
"""more are lower, so that thirty stand on one screen"""
TURNED = 1.2
"""inches that a turned heading may take"""

ROW = 0.19
HEAD = 0.34
FOOT = 0.3
LABEL = 1.2
"""inches that a policy's name may take"""


def heat_map(summary: Summary) -> Plate | None:
    """None without a combo to show."""
    grid = summary.axes
    if grid is None:
        return None
    columns, rows = grid.columns[: MAP_MOST[0]], grid.rows[: MAP_MOST[1]]
    labels = [fit(row, MAP_LABEL, NORMAL, bold=True) for row in rows]
    left = gutter(labels, MAP_LABEL, NORMAL, bold=True) + 0.14
    width = min(max((WHOLE - left) / len(columns), NARROWEST), WIDEST)
    combos = {combo.key: combo for combo in summary.combos}
    room = max((measure(of(combo.rate), SMALL) for combo in summary.combos if combo.rate), default=0.0) + 0.08
    map_ = _Map(grid, (columns, labels), left, width, combos, counted=width >= room)
    shown = "Successes of completed episodes, and the rate with its 95 % interval (Clopper-Pearson)."
    if not map_.worded:
        title = "Successes of completed episodes" if map_.counted else "Success rates, rounded to whole per cent"
        shown = f"{title}; a dot marks missing or errored episodes. The tables below have rates and intervals."
    if len(columns) < len(grid.columns) or len(rows) < len(grid.rows):
        shown += f" The first {len(rows)} of {len(grid.rows)} rows and {len(columns)} of {len(grid.columns)} columns."
    size = (left + width * len(columns), map_.top + map_.height * len(rows) + MAP_FOOT)
    return Plate("success_rates", "Success rates", shown, (Drawing("Success rates of all combos", *size, map_.draw),))


@dataclass(frozen=True)
class _Map:
    grid: Axes
    names: tuple[Sequence[str], Sequence[str]]
    """of columns and of rows"""
    left: float
    """inches for the labels"""
    width: float
    combos: Mapping[tuple[str, str], ComboSummary]
    counted: bool
    """whether k/n fits into a cell"""

    @property
    def worded(self) -> bool:
        return self.width >= WORDED

    @property
    def height(self) -> float:
        return 0.52 if self.worded else 0.2 if len(self.names[1]) <= FEW_ROWS else 0.15

    @property
    def top(self) -> float:
        return 0.4 if self.worded else gutter(self.names[0], TURNED, NORMAL, bold=True) + 0.12

    def draw(self, canvas: Canvas, x: float, y: float) -> None:
        left, top = x + self.left, y + self.top
        for across, column in enumerate(self.names[0]):
            self._head(canvas, (left + (across + 0.5) * self.width, top), column)
            for down in range(len(self.names[1])):
                combo = self.combos.get(self.grid.combo(column, self.grid.rows[down]))
                self._cell(canvas, (left + across * self.width, top + down * self.height), combo)
        for down, label in enumerate(self.names[1]):
            canvas.text((left - 0.08, top + (down + 0.5) * self.height), label, NORMAL, "right", bold=True)
        _scale(canvas, (left, top + len(self.names[1]) * self.height + 0.1))

    def _head(self, canvas: Canvas, foot: Point, name: str) -> None:
        if not self.worded:
            canvas.text(
                (foot[0], foot[1] - 0.06), fit(name, TURNED, NORMAL, bold=True), NORMAL, "left", bold=True, turned=True
            )
            return
        for above, words in enumerate(reversed(wrap(name, self.width - 0.1, NORMAL, bold=True))):
            canvas.text((foot[0], foot[1] - 0.1 - 0.13 * above), words, NORMAL, bold=True)

    def _cell(self, canvas: Canvas, corner: Point, combo: ComboSummary | None) -> None:
        gap = 0.03 if self.worded else 0.015
        width, height = self.width - gap, self.height - gap
        middle = (corner[0] + width / 2, corner[1] + height / 2)
        found = combo.rate if combo else None
        if combo is None or found is None or found.rate is None:
            canvas.box(corner, width, height, FAINT, 0.3)
            canvas.text(middle, _absence(combo) if self.worded else "–", SMALL)
            return
        fill = shade(found.rate)
        ink, absent = ink_on(fill), _absent(combo)
        canvas.box(corner, width, height, fill)
        if not self.worded:
            canvas.text(middle, of(found) if self.counted else whole_percent(found.rate), SMALL, colour=ink)
            if absent:
                canvas.dot((corner[0] + width - 0.035, corner[1] + 0.035), ink, 2.6)
            return
        top = middle[1] - (0.14 if absent else 0.08)
        canvas.text((middle[0], top), of(found), 9.0, bold=True, colour=ink)
        canvas.text((middle[0], top + 0.17), f"{rate(found)} {interval(found)}", SMALL, colour=ink)
        if absent:
            canvas.text((middle[0], top + 0.3), absent, SMALL, colour=ink)


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


def _scale(canvas: Canvas, corner: Point) -> None:
    """What the colours mean, in a strip below the cells."""
    width = WIDEST
    for step in range(24):  # each reaches to the end, under the next, so that no seams show
        place = (corner[0] + width * step / 24, corner[1])
        canvas.box(place, width * (1 - step / 24), 0.1, shade(step / 23))
    for share, words, align in ((0.0, "0", "left"), (0.5, "success rate", "center"), (1.0, "1", "right")):
        canvas.text((corner[0] + width * share, corner[1] + 0.2), words, SMALL, align)


def forest(summary: Summary) -> Plate | None:
    """Every rate with its interval, and the letters of the comparisons. None where nothing has a rate."""
    combos = [combo for combo in summary.combos if combo.rate and combo.rate.interval]
    if not combos:
        return None
    letters = {combo.key: summary.comparisons.letters_of(*combo.key) for combo in combos}
    # The same in every environment, so that they can be compared by eye.
    sides = (
        gutter([fit(combo.policy, LABEL, NORMAL) for combo in combos], LABEL) + 0.14,
        gutter([of(combo.rate) for combo in combos], 0.8, SMALL) + 0.1,
        gutter([*letters.values()], 0.6, NORMAL) + 0.12,
    )
    lettered = "; policies of an environment that share a letter are not told apart" if any(letters.values()) else ""
    groups = [[combo for combo in combos if combo.environment == name][: MAP_MOST[1]] for name in summary.environments]
    return Plate(
        name="intervals",
        title="Intervals",
        note=f"Success rates in per cent with their 95 % intervals (Clopper-Pearson), and k/n{lettered}.",
        drawings=tuple(
            Drawing(
                f"Intervals: {group[0].environment}",
                ABREAST,
                HEAD + ROW * len(group) + FOOT,
                _Forest(group, letters, sides).draw,
            )
            for group in groups
            if group
        ),
    )


@dataclass(frozen=True)
class _Forest:
    combos: Sequence[ComboSummary]
    letters: Mapping[tuple[str, str], str]
    sides: tuple[float, float, float]
    """inches for names, counts and letters beside the plot"""

    def draw(self, canvas: Canvas, x: float, y: float) -> None:
        names, counts, marks = self.sides
        frame = Frame(x + names, y + HEAD, ABREAST - names - counts - marks - 0.1, ROW * len(self.combos))
        heading(canvas, (x, y), self.combos[0].environment)
        frame.columns(canvas, PERCENT)
        for row, combo in enumerate(self.combos):
            assert combo.rate
            assert combo.rate.interval
            middle = frame.top + (row + 0.5) * ROW
            canvas.text((frame.left - 0.1, middle), fit(combo.policy, LABEL, NORMAL), NORMAL, "right")
            canvas.line([(frame.x(limit), middle) for limit in combo.rate.interval], INK, 1.6)
            canvas.dot((frame.x(combo.rate.rate or 0.0), middle))
            canvas.text((x + ABREAST - marks, middle), of(combo.rate), SMALL, "right")
            if word := fit(self.letters[combo.key], 0.6, NORMAL):
                canvas.text((x + ABREAST - marks + 0.1, middle), word, NORMAL, "left", bold=True)
