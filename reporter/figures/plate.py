"""A figure of the report: drawings that stand side by side, and a key to their colours. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from comborun.reporter.figures.canvas import NORMAL, WHOLE, Canvas, fit, measure
from comborun.text import several

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MOST = 60
"""drawings in a figure: of more, the tables and the JSON have the numbers"""


@dataclass(frozen=True)
class Drawing:
    """Something of a size in inches, and how to draw it onto a canvas with its corner at a place."""

    title: str
    width: float
    height: float
    draw: Callable[[Canvas, float, float], None]

    def svg(self) -> str:
        canvas = Canvas(self.width, self.height)
        self.draw(canvas, 0.0, 0.0)
        return canvas.svg(self.title)


@dataclass(frozen=True, eq=False)
class Plate:
    name: str
    """of its files, and the anchor in a page"""
    title: str
    note: str
    """what it shows and how to read it; plain text"""
    drawings: tuple[Drawing, ...]
    key: Drawing | None = None
    """what the colours mean"""

    @property
    def shown(self) -> tuple[Drawing, ...]:
        """The key, if there is one, then as many drawings as a figure holds."""
        return (*((self.key,) if self.key else ()), *self.drawings[:MOST])

    @property
    def words(self) -> str:
        """The note, and what is left out."""
        rest = len(self.drawings) - MOST
        return f"{self.note} {several(rest, 'drawing')} beyond the first {MOST} not shown." if rest > 0 else self.note

    def svgs(self) -> tuple[str, ...]:
        """To stand inside a page."""
        return tuple(drawing.svg() for drawing in self.shown)


# -- what the colours mean --------------------------------------------------------------------------------------------

LABEL = 2.2
KEY_ROW = 0.2
SWATCH = 0.36
BETWEEN = 0.26


@dataclass(frozen=True)
class Entry:
    name: str
    colour: str
    dashes: Sequence[float] | None = None
    """of a line; None is a filled box"""


def key(entries: Sequence[Entry]) -> Drawing:
    """The entries with their names, in as many rows as they need."""
    placed: list[tuple[float, int, Entry]] = []
    x, row, used = 0.0, 0, 0.0
    for entry in entries:
        width = SWATCH + measure(fit(entry.name, LABEL, NORMAL), NORMAL)
        if x and x + width > WHOLE:
            x, row = 0.0, row + 1
        placed.append((x, row, entry))
        used = max(used, x + width)
        x += width + BETWEEN
    return Drawing("What the colours mean", used + 0.05, (row + 1) * KEY_ROW, partial(_draw_key, placed))


def _draw_key(placed: Sequence[tuple[float, int, Entry]], canvas: Canvas, x: float, y: float) -> None:
    for across, row, entry in placed:
        left, middle = x + across, y + (row + 0.5) * KEY_ROW
        if entry.dashes is None:
            canvas.box((left + 0.08, middle - 0.06), 0.2, 0.12, entry.colour)
        else:
            canvas.line([(left, middle), (left + SWATCH - 0.08, middle)], entry.colour, 1.8, entry.dashes)
        canvas.text((left + SWATCH, middle), fit(entry.name, LABEL, NORMAL), NORMAL, "left")
