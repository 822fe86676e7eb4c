"""Success rates: a heat map of all combos, and each environment's rates with their intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from comborun.reporter.figures.plate import Drawing, Plate
from comborun.reporter.figures.sheet import (
    ABREAST,
    FAINT,
    INK,
    NORMAL,
    PERCENT,
    SMALL,
    Frame,
    Sheet,
    drawing,
    fit,
    gutter,
    heading,
    ink_on,
    measure,
    wrap,
)
from comborun.reporter.text import interval, of, rate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from comborun.reporter.figures.sheet import Point
    from comborun.reporter.summary import Axes, ComboSummary, Summary

CELL = (1.56, 0.66)
"""inches"""
MAP_LABEL = 2.1
"""inches that a row's label may take"""
MAP_HEAD = 0.46
MAP_FOOT = 0.42
SIZE = 10
"""of the map's labels, in points"""

ROW = 0.22
HEAD = 0.34
FOOT = 0.3
LABEL = 1.3
"""inches that a policy's name may take"""


def heat_map(summary: Summary) -> Plate | None:
    """None without a combo to show."""
    grid = summary.axes
    if grid is None:
        return None
    with drawing():
        labels = [fit(row, MAP_LABEL, SIZE, "bold") for row in grid.rows]
        left = max(measure(label, SIZE, "bold") for label in labels) + 0.14
    combos = {combo.key: combo for combo in summary.combos}
    height = MAP_HEAD + CELL[1] * len(grid.rows) + MAP_FOOT
    return Plate(
        name="success_rates",
        title="Success rates",
        note="Successes of completed episodes, and the rate with its 95 % interval (Clopper-Pearson).",
        drawings=(Drawing(left + CELL[0] * len(grid.columns), height, _Map(grid, labels, left, combos).draw),),
    )


@dataclass(frozen=True)
class _Map:
    grid: Axes
    labels: Sequence[str]
    left: float
    """inches for the labels"""
    combos: Mapping[tuple[str, str], ComboSummary]

    def draw(self, sheet: Sheet, x: float, y: float) -> None:
        left, top = x + self.left, y + MAP_HEAD
        for across, column in enumerate(self.grid.columns):
            for above, words in enumerate(reversed(wrap(column, CELL[0] - 0.1, SIZE, "bold"))):
                place = (left + (across + 0.5) * CELL[0], top - 0.1 - 0.16 * above)
                sheet.text(place, words, SIZE, weight="bold")
            for down, row in enumerate(self.grid.rows):
                corner = (left + across * CELL[0], top + down * CELL[1])
                _cell(sheet, corner, self.combos.get(self.grid.combo(column, row)))
        for down, label in enumerate(self.labels):
            sheet.text((left - 0.1, top + (down + 0.5) * CELL[1]), label, SIZE, "right", weight="bold")
        _scale(sheet, (left, top + len(self.labels) * CELL[1] + 0.12))


def _cell(sheet: Sheet, corner: Point, combo: ComboSummary | None) -> None:
    from matplotlib import colormaps

    gap = 0.03
    width, height = CELL[0] - gap, CELL[1] - gap
    middle = (corner[0] + width / 2, corner[1] + height / 2)
    proportion = combo.rate if combo else None
    if combo is None or proportion is None or proportion.rate is None:
        sheet.box(corner, width, height, FAINT)
        sheet.text(middle, _absence(combo), SMALL)
        return
    fill = colormaps["cividis"](proportion.rate)
    ink = ink_on(fill)
    sheet.box(corner, width, height, fill)
    absent = _absent(combo)
    top = middle[1] - (0.17 if absent else 0.1)
    sheet.text((middle[0], top), of(proportion), 12, weight="bold", color=ink)
    sheet.text((middle[0], top + 0.21), f"{rate(proportion)} {interval(proportion)}", NORMAL, color=ink)
    if absent:
        sheet.text((middle[0], top + 0.38), absent, SMALL, color=ink)


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


def _scale(sheet: Sheet, corner: Point) -> None:
    """What the colours mean, in a strip below the cells."""
    from matplotlib import colormaps

    width = CELL[0]
    for step in range(24):  # each reaches to the end, under the next, so that no seams show
        place = (corner[0] + width * step / 24, corner[1])
        sheet.box(place, width * (1 - step / 24), 0.1, colormaps["cividis"](step / 23))
    for share, words, align in ((0.0, "0", "left"), (0.5, "success rate", "center"), (1.0, "1", "right")):
        sheet.text((corner[0] + width * share, corner[1] + 0.2), words, SMALL, align)


def forest(summary: Summary) -> Plate | None:
    """Every rate with its interval, and the letters of the comparisons. None where nothing has a rate."""
    combos = [combo for combo in summary.combos if combo.rate and combo.rate.interval]
    if not combos:
        return None
    letters = {combo.key: summary.comparisons.letters_of(*combo.key) for combo in combos}
    with drawing():
        # The same in every environment, so that they can be compared by eye.
        sides = (
            gutter([fit(combo.policy, LABEL, NORMAL) for combo in combos], LABEL) + 0.14,
            gutter([of(combo.rate) for combo in combos], 1.0, SMALL) + 0.1,
            gutter([*letters.values()], 0.8, NORMAL) + 0.12,
        )
    lettered = "; policies of an environment that share a letter are not told apart" if any(letters.values()) else ""
    groups = [[combo for combo in combos if combo.environment == name] for name in summary.environments]
    return Plate(
        name="intervals",
        title="Intervals",
        note=f"Success rates in per cent with their 95 % intervals (Clopper-Pearson), and k/n{lettered}.",
        drawings=tuple(
            Drawing(ABREAST, HEAD + ROW * len(group) + FOOT, _Forest(group, letters, sides).draw)
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

    def draw(self, sheet: Sheet, x: float, y: float) -> None:
        names, counts, marks = self.sides
        frame = Frame(x + names, y + HEAD, ABREAST - names - counts - marks - 0.1, ROW * len(self.combos))
        heading(sheet, (x, y), self.combos[0].environment)
        frame.columns(sheet, PERCENT)
        for row, combo in enumerate(self.combos):
            assert combo.rate
            assert combo.rate.interval
            middle = frame.top + (row + 0.5) * ROW
            sheet.text((frame.left - 0.1, middle), fit(combo.policy, LABEL, NORMAL), NORMAL, "right")
            sheet.line([(frame.x(limit), middle) for limit in combo.rate.interval], INK, 1.6)
            sheet.dot((frame.x(combo.rate.rate or 0.0), middle))
            sheet.text((x + ABREAST - marks, middle), of(combo.rate), SMALL, "right")
            if word := self.letters[combo.key]:
                sheet.text((x + ABREAST - marks + 0.1, middle), word, NORMAL, "left", weight="bold")
