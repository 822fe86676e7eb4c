"""The frame of a small plot: where it lies on its sheet, its scales, its grid and its words. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from comborun.reporter.figures.names import fit
from comborun.reporter.figures.sheet import measure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comborun.reporter.figures.sheet import Point, Sheet

WIDTH = 3.75
"""inches of a drawing that stands beside others"""
SMALL = 7.5
NORMAL = 8.5
TITLE = 10.5
"""sizes of text in points"""


@dataclass(frozen=True)
class Frame:
    """A plot's rectangle in inches, and the values at its ends; downwards the larger value is above."""

    left: float
    top: float
    width: float
    height: float
    limits: tuple[float, float] = (0.0, 1.0)
    heights: tuple[float, float] = (0.0, 1.0)

    def x(self, value: float) -> float:
        low, high = self.limits
        return self.left + self.width * (value - low) / (high - low)

    def y(self, value: float) -> float:
        low, high = self.heights
        return self.top + self.height * (1 - (value - low) / (high - low))

    def at(self, across: float, up: float) -> Point:
        return (self.x(across), self.y(up))

    def columns(self, sheet: Sheet, ticks: Sequence[tuple[float, str]]) -> None:
        """Upright grid lines with their values below; room is left out where words would meet."""
        sheet.lines([((self.x(value), self.top), (self.x(value), self.top + self.height)) for value, _ in ticks])
        for value, words in ticks:
            sheet.text((self.x(value), self.top + self.height + 0.1), words, SMALL)

    def rows(self, sheet: Sheet, ticks: Sequence[tuple[float, str]]) -> None:
        """Level grid lines with their values at the left."""
        sheet.lines([((self.left, self.y(value)), (self.left + self.width, self.y(value))) for value, _ in ticks])
        for value, words in ticks:
            sheet.text((self.left - 0.06, self.y(value)), words, SMALL, "right")


PERCENT = ((0.0, "0"), (0.5, "50"), (1.0, "100"))


def heading(sheet: Sheet, place: Point, name: str, width: float) -> None:
    sheet.text(place, fit(name, width, TITLE, "bold"), TITLE, "left", weight="bold")


def gutter(labels: Sequence[str], limit: float, size: float = NORMAL) -> float:
    """The room that row labels need, in inches, up to a limit."""
    return min(limit, max((measure(label, size) for label in labels), default=0.0))


def ticks(limit: float, wanted: int = 5, least: float = 0.0) -> tuple[float, ...]:
    """Round values from 0 to at most `limit`, at least `least` apart."""
    if not limit > 0 or not math.isfinite(limit):
        return (0.0,)
    rough = max(limit / wanted, least)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    return tuple(step * count for count in range(int(limit / step + 1e-9) + 1))
