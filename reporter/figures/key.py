"""What the colours of a plate mean: entries in rows. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from comborun.reporter.figures.frame import NORMAL
from comborun.reporter.figures.names import fit
from comborun.reporter.figures.plate import Drawing
from comborun.reporter.figures.sheet import Sheet, drawing, measure

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDTH = 11.85
"""inches: three drawings abreast"""
LABEL = 2.2
ROW = 0.24
SWATCH = 0.36
BETWEEN = 0.26


@dataclass(frozen=True)
class Entry:
    name: str
    colour: str
    dashes: Any = None
    """of a line; None is a filled box"""


@dataclass(frozen=True)
class _Placed:
    entry: Entry
    label: str
    x: float
    row: int


def key(entries: Sequence[Entry], width: float = WIDTH) -> Drawing:
    placed = _place(entries, width)
    rows = 1 + max((one.row for one in placed), default=0)
    used = max((one.x + SWATCH + _width(one.label) for one in placed), default=0.0)
    return Drawing(used + 0.05, rows * ROW, partial(_draw, placed))


def _place(entries: Sequence[Entry], width: float) -> list[_Placed]:
    placed = []
    x, row = 0.0, 0
    with drawing():
        for entry in entries:
            label = fit(entry.name, LABEL, NORMAL)
            if x and x + SWATCH + _width(label) > width:
                x, row = 0.0, row + 1
            placed.append(_Placed(entry, label, x, row))
            x += SWATCH + _width(label) + BETWEEN
    return placed


def _draw(placed: Sequence[_Placed], sheet: Sheet, x: float, y: float) -> None:
    for one in placed:
        middle = y + (one.row + 0.5) * ROW
        if one.entry.dashes is None:
            sheet.box((x + one.x + 0.08, middle - 0.06), 0.2, 0.12, one.entry.colour)
        else:
            line = [(x + one.x, middle), (x + one.x + SWATCH - 0.08, middle)]
            sheet.line(line, one.entry.colour, 1.8, one.entry.dashes)
        sheet.text((x + one.x + SWATCH, middle), one.label, NORMAL, "left")


def _width(label: str) -> float:
    return measure(label, NORMAL)
