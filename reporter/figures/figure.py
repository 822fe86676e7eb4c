"""A figure: panels side by side, with a legend. And what panels share: colours that people with any colour vision can
tell apart on light and dark paper, and axes. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from comborun.reporter.figures.panel import GRID, NORMAL, SMALL, TITLE, LineStyle, Panel, Text, TextStyle, fit, measure
from comborun.text import several

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comborun.reporter.figures.panel import Point

COLUMN, PAGE = 3.4, 7.0
"""inches of a panel beside others, and of one that fills a row: one column of a paper and both"""
PANELS = 60
"""in a figure: of more, the tables and the JSON have the numbers"""

BLACK, GREY = "#010101", "#808080"
SERIES = ("#0072b2", "#b84a00", "#007a57", "#a8386f", "#8a6200", "#00737f", "#666666")
"""hues of M. Okabe and K. Ito, each at a contrast of 4.5 and more on white; report.css lightens lines on dark paper"""
DASHES: tuple[tuple[float, ...], ...] = ((), (4, 1.6), (1.2, 1.4), (5, 1.5, 1.2, 1.5))
"""a second way to tell lines apart, once the colours are used up"""
LOOKS = len(SERIES) * len(DASHES)
CIVIDIS = (
    *((0x00, 0x22, 0x4E), (0x1A, 0x38, 0x6F), (0x43, 0x4E, 0x6C), (0x61, 0x65, 0x6F), (0x7D, 0x7C, 0x78)),
    *((0x9B, 0x94, 0x76), (0xBC, 0xAE, 0x6C), (0xDE, 0xC9, 0x58), (0xFE, 0xE8, 0x38)),
)
"""the colour map of J. Nuñez, C. Anderton and R. Renslow at nine places"""


@dataclass(frozen=True, eq=False)
class Figure:
    name: str
    """of its files, and the anchor in a page"""
    title: str
    note: str
    """what it shows, how to read it and what is left out; plain text"""
    panels: tuple[Panel, ...]
    """at most PANELS"""
    legend: Panel | None = None


def left_out(panels: int) -> str:
    """A sentence, where a figure would have more than PANELS."""
    rest = panels - PANELS
    return f" {several(rest, 'drawing')} beyond the first {PANELS} not shown." if rest > 0 else ""


# -- colours ----------------------------------------------------------------------------------------------------------


def series(index: int, width: float = 1.4) -> LineStyle:
    """The style of the index-th line."""
    return LineStyle(SERIES[index % len(SERIES)], width, DASHES[index // len(SERIES) % len(DASHES)])


def shade(share: float) -> str:
    """The colour of a share from 0 to 1."""
    place = min(max(share, 0.0), 1.0) * (len(CIVIDIS) - 1)
    below = min(int(place), len(CIVIDIS) - 2)
    pairs = zip(CIVIDIS[below], CIVIDIS[below + 1], strict=True)
    return "#" + "".join(f"{round(low + (high - low) * (place - below)):02x}" for low, high in pairs)


def ink_on(colour: str) -> str:
    """Black or white, whichever is easier to read on a colour: they contrast equally at a relative luminance (WCAG 2)
    of .179."""
    parts = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return "#ffffff" if 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] < 0.179 else BLACK


# -- axes -------------------------------------------------------------------------------------------------------------

HEADING = 0.24
"""inches of a panel's heading"""
PERCENT = ((0.0, "0"), (0.5, "50"), (1.0, "100"))


@dataclass(frozen=True)
class Axes:
    """A plot's rectangle in inches, and the values at its ends; downwards the larger value is above."""

    left: float
    top: float
    width: float
    height: float
    x_limit: float = 1.0
    y_limit: float = 1.0

    @property
    def bottom(self) -> float:
        return self.top + self.height

    def x(self, value: float) -> float:
        return self.left + self.width * value / self.x_limit

    def at(self, across: float, up: float) -> Point:
        return (self.x(across), self.bottom - self.height * up / self.y_limit)

    def x_ticks(self, panel: Panel, ticks: Sequence[tuple[float, str]], title: str = "") -> None:
        """Vertical grid lines with their values and the axis's title below."""
        panel.lines([(self.at(value, 0), self.at(value, self.y_limit)) for value, _ in ticks], GRID)
        for value, words in ticks:
            across = min(self.x(value), panel.width - measure(words, SMALL) / 2)  # a long one stays whole
            panel.text((across, self.bottom + 0.1), words, TextStyle(SMALL))
        panel.text((self.left + self.width / 2, self.bottom + 0.28), title, TextStyle(SMALL))

    def y_ticks(self, panel: Panel, ticks: Sequence[tuple[float, str]]) -> None:
        """Horizontal grid lines with their values at the left."""
        panel.lines([(self.at(0, value), self.at(self.x_limit, value)) for value, _ in ticks], GRID)
        for value, words in ticks:
            _, y = self.at(0, value)
            panel.text((self.left - 0.06, y), words, TextStyle(SMALL, "right"))


def ticks(limit: float, wanted: int = 5, least: float = 0.0) -> tuple[float, ...]:
    """Round values from 0 to at most `limit`, at least `least` apart."""
    if not limit > 0 or not math.isfinite(limit):
        return (0.0,)
    rough = max(limit / wanted, least)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    return tuple(step * count for count in range(int(limit / step + 1e-9) + 1))


def titled(panel: Panel, name: str) -> Panel:
    """With a heading above its plot."""
    panel.text((0, 0.14), fit(name, panel.width, TITLE, bold=True), TextStyle(TITLE, "left", bold=True))
    return panel


def untitled(panel: Panel) -> Panel:
    """Without the heading, for a place that has its own."""
    marks = [mark for mark in panel.marks if not (isinstance(mark, Text) and mark.place[1] < HEADING)]
    return replace(panel, marks=marks, top=HEADING)


# -- legend -----------------------------------------------------------------------------------------------------------

LABEL = 2.2
"""inches that a name may take"""
ROW, SWATCH, BETWEEN = 0.2, 0.36, 0.26


def legend(entries: Sequence[tuple[str, LineStyle | str]]) -> Panel:
    """Names with a line of a style, or with a box of a colour, in as many rows as they need."""
    panel = Panel("What the colours mean", 0, ROW)
    left = 0.0
    for name, style in entries:
        words = fit(name, LABEL, NORMAL)
        width = SWATCH + measure(words, NORMAL)
        if left and left + width > PAGE:
            left, panel.height = 0.0, panel.height + ROW
        middle = panel.height - ROW / 2
        if isinstance(style, str):
            panel.box((left + 0.08, middle - 0.06), (0.2, 0.12), style)
        else:
            panel.lines([[(left, middle), (left + SWATCH - 0.08, middle)]], style)
        panel.text((left + SWATCH, middle), words, TextStyle(align="left"))
        panel.width = max(panel.width, left + width + 0.05)
        left += width + BETWEEN
    return panel
