"""Success rates by policy and environment: k/n and interval in every cell."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from comborun.reporter.figures.colours import ink_on
from comborun.reporter.figures.frame import NORMAL, SMALL
from comborun.reporter.figures.names import fit, wrap
from comborun.reporter.figures.plate import Drawing, Plate
from comborun.reporter.figures.sheet import FAINT, Sheet, drawing, measure
from comborun.reporter.pages.axes import Axes
from comborun.reporter.text import interval, of, rate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from comborun.reporter.figures.sheet import Point
    from comborun.reporter.summary import ComboSummary, Summary

CELL = (1.56, 0.66)
"""inches"""
LABEL = 2.1
"""inches that a row's label may take"""
HEAD = 0.46
FOOT = 0.42
SIZE = 10
"""of labels, in points"""


def heat_map(summary: Summary) -> Plate | None:
    """None without a combo to show."""
    grid = Axes.of(summary)
    if grid is None:
        return None
    with drawing():
        labels = [fit(name, LABEL, SIZE, "bold") for name in grid.rows]
        left = max(measure(label, SIZE, "bold") for label in labels) + 0.14
    combos = {combo.key: combo for combo in summary.combos}
    height = HEAD + CELL[1] * len(grid.rows) + FOOT
    whole = Drawing(left + CELL[0] * len(grid.columns), height, partial(_draw, _Map(grid, labels, left, combos)))
    return Plate(
        name="success_rates",
        title="Success rates",
        note="Successes of completed episodes, and the rate with its 95 % interval (Clopper-Pearson).",
        drawings=(whole,),
    )


@dataclass(frozen=True)
class _Map:
    grid: Axes
    labels: Sequence[str]
    left: float
    """inches for the labels"""
    combos: Mapping[tuple[str, str], ComboSummary]


def _draw(shown: _Map, sheet: Sheet, x: float, y: float) -> None:
    grid, left = shown.grid, shown.left
    for column, name in enumerate(grid.columns):
        _head(sheet, (x + left + (column + 0.5) * CELL[0], y + HEAD - 0.1), name)
        for row in range(len(grid.rows)):
            corner = (x + left + column * CELL[0], y + HEAD + row * CELL[1])
            _cell(sheet, corner, shown.combos.get(grid.combo(column, row)))
    for row, label in enumerate(shown.labels):
        middle = (x + left - 0.1, y + HEAD + (row + 0.5) * CELL[1])
        sheet.text(middle, label, SIZE, "right", weight="bold")
    _scale(sheet, (x + left, y + HEAD + len(grid.rows) * CELL[1] + 0.12))


def _head(sheet: Sheet, foot: Point, name: str) -> None:
    lines = wrap(name, CELL[0] - 0.1, SIZE, "bold")
    for above, words in enumerate(reversed(lines)):
        sheet.text((foot[0], foot[1] - 0.16 * above), words, SIZE, weight="bold")


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
    assert counts is not None
    parts = [f"{counts.missing} missing"] * bool(counts.missing) + [f"{counts.errored} errored"] * bool(counts.errored)
    return ", ".join(parts)


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
