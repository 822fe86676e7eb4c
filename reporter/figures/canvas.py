"""A canvas to draw on, measured in inches from its top left corner, and what all figures share: colours that people
with any colour vision can tell apart on light and dark paper, names that fit, and the frame of a small plot.

A canvas keeps its drawing as a list of marks. `svg` makes a page's text from them; reporter/figures/files.py makes
files for a paper. In a page, text stays text, with the colour and the font of the page.
"""

from __future__ import annotations

import math
import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from typing import TYPE_CHECKING

from comborun.text import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

INK = "currentColor"
"""the text colour of the page; black in a file"""
BLACK = "#010101"
FAINT = "#808080"
"""for grid lines and empty boxes"""
SERIES = ("#0072b2", "#b84a00", "#007a57", "#a8386f", "#8a6200", "#00737f", "#666666")
"""hues of M. Okabe and K. Ito, each at a contrast of 4.5 and more on white; report.css lightens lines on dark paper"""
DASHES: tuple[tuple[float, ...], ...] = ((), (4, 1.6), (1.2, 1.4), (5, 1.5, 1.2, 1.5))
"""in line widths: a second way to tell lines apart, once the colours are used up"""
CIVIDIS = (
    *((0x00, 0x22, 0x4E), (0x1A, 0x38, 0x6F), (0x43, 0x4E, 0x6C), (0x61, 0x65, 0x6F), (0x7D, 0x7C, 0x78)),
    *((0x9B, 0x94, 0x76), (0xBC, 0xAE, 0x6C), (0xDE, 0xC9, 0x58), (0xFE, 0xE8, 0x38)),
)
"""the colour map of J. Nuñez, C. Anderton and R. Renslow at nine places"""
ABREAST = 3.4
"""inches of a drawing that stands beside others: a column of a paper"""
WHOLE = 7.0
"""inches of a whole row: both columns"""
SMALL = 7.0
NORMAL = 7.5
TITLE = 8.0
"""sizes of text in points"""
PIXELS = 110
"""of a page per inch"""
PERCENT = ((0.0, "0"), (0.5, "50"), (1.0, "100"))

Point = tuple[float, float]

_SEAM = re.compile(r"(?<=[_\-/. ])(?=[^_\-/. ])")
_WIDTHS = (
    *(32, 40, 46, 84, 64, 95, 78, 27, 39, 39, 50, 84, 32, 36, 32, 34, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 34, 34),
    *(84, 84, 84, 53, 100, 71, 69, 70, 77, 63, 58, 77, 75, 30, 30, 66, 56, 86, 75, 79, 60, 79, 69, 63, 60, 73, 68),
    *(99, 68, 61, 68, 39, 34, 39, 84, 50, 50, 61, 63, 55, 63, 62, 34, 63, 63, 28, 28, 58, 28, 97, 63, 61, 63, 63, 40),
    *(52, 39, 63, 59, 82, 59, 59, 52, 64, 34, 64, 84),
)
"""hundredths of an em, from the blank on: of DejaVu Sans, which is wider than most"""
_OTHER_SIGN = 70
_BOLD = 1.12


@dataclass(frozen=True)
class Text:
    place: Point
    words: str
    size: float
    align: str
    bold: bool
    colour: str
    turned: bool
    """reads upwards"""

    def svg(self) -> str:
        x, y = (_points(part) for part in self.place)
        anchor = {"left": "", "center": ' text-anchor="middle"', "right": ' text-anchor="end"'}[self.align]
        colour = "" if self.colour == INK else f' fill="{self.colour}"'
        turned = f' transform="rotate(-90 {x} {y})"' if self.turned else ""
        weight = ' font-weight="700"' if self.bold else ""
        # A third of an em down, which sets the middle of capitals on the place.
        return (
            f'<text x="{x}" y="{y}" dy=".35em" font-size="{self.size:g}"{anchor}{weight}{colour}{turned}>'
            f"{escape(self.words, quote=False)}</text>"
        )


@dataclass(frozen=True)
class Stroke:
    """Lines of one look."""

    lines: Sequence[Sequence[Point]]
    colour: str
    width: float
    """points"""
    dashes: Sequence[float] = ()
    round: bool = False
    opacity: float = 1.0

    def svg(self) -> str:
        path = "".join(_path(line) for line in self.lines)
        dashes = f' stroke-dasharray="{" ".join(f"{part * self.width:.3g}" for part in self.dashes)}"'
        cap = ' stroke-linecap="round"' if self.round else ""
        faint = f' stroke-opacity="{self.opacity:g}"' if self.opacity < 1 else ""
        look = f'stroke="{self.colour}" stroke-width="{self.width:g}"{dashes if self.dashes else ""}{cap}{faint}'
        return f'<path d="{path}" fill="none" {look}/>'


@dataclass(frozen=True)
class Shape:
    corners: Sequence[Point]
    colour: str
    opacity: float

    def svg(self) -> str:
        faint = f' fill-opacity="{self.opacity:g}"' if self.opacity < 1 else ""
        return f'<path d="{_path(self.corners)}z" fill="{self.colour}"{faint}/>'


Mark = Text | Stroke | Shape


class Canvas:
    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self.marks: list[Mark] = []

    def text(
        self,
        place: Point,
        words: str,
        size: float = NORMAL,
        align: str = "center",
        *,
        bold: bool = False,
        colour: str = INK,
        turned: bool = False,
    ) -> None:
        """One line, vertically centred on `place`."""
        self.marks.append(Text(place, words, size, align, bold, colour, turned))

    def line(
        self, points: Sequence[Point], colour: str = INK, width: float = 1.0, dashes: Sequence[float] = ()
    ) -> None:
        self.marks.append(Stroke([points], colour, width, dashes))

    def grid(self, pairs: Sequence[tuple[Point, Point]]) -> None:
        """Separate strokes below what is drawn after them."""
        self.marks.append(Stroke(pairs, FAINT, 0.7, opacity=0.35))

    def dot(self, place: Point, colour: str = INK, size: float = 4.5) -> None:
        ends = [(place[0], place[1] - 0.002), (place[0], place[1] + 0.002)]
        self.marks.append(Stroke([ends], colour, size, round=True))

    def box(self, corner: Point, width: float, height: float, colour: str, opacity: float = 1.0) -> None:
        left, top = corner
        right, bottom = left + width, top + height
        self.area([corner, (right, top), (right, bottom), (left, bottom)], colour, opacity)

    def area(self, points: Sequence[Point], colour: str, opacity: float = 0.16) -> None:
        """A band, through which the rest shows."""
        self.marks.append(Shape(points, colour, opacity))

    def svg(self, title: str) -> str:
        """To stand inside a page, without an id that two could share; `title` says what it shows."""
        box = f"0 0 {_points(self.width)} {_points(self.height)}"
        words = escape(printable(title))
        start = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" width="{PIXELS * self.width:.0f}" role="img"'
        return f'{start} aria-label="{words}">{"".join(mark.svg() for mark in self.marks)}</svg>'


def _points(inches: float) -> str:
    """With one decimal: a hundredth of an inch is some seven of them."""
    return f"{72 * inches:.1f}".removesuffix(".0")


def _path(points: Sequence[Point]) -> str:
    """With the short words for level and upright strokes."""
    found: list[str] = []
    last = ("", "")
    for point in points:
        x, y = _points(point[0]), _points(point[1])
        if not found:
            found.append(f"M{x} {y}")
        elif y == last[1]:
            found.append(f"H{x}")
        elif x == last[0]:
            found.append(f"V{y}")
        else:
            found.append(f"L{x} {y}")
        last = (x, y)
    return "".join(found)


@lru_cache(maxsize=4096)
def measure(words: str, size: float, *, bold: bool = False) -> float:
    """The width of a line in inches, in a rather wide font."""
    return sum(map(_width, words)) * (_BOLD if bold else 1.0) * size / 7200


def _width(sign: str) -> int:
    place = ord(sign) - 32
    if 0 <= place < len(_WIDTHS):
        return _WIDTHS[place]
    return 100 if unicodedata.east_asian_width(sign) in "WF" else _OTHER_SIGN


@lru_cache(maxsize=4096)
def fit(name: str, width: float, size: float, *, bold: bool = False) -> str:
    """The name if it fits; else both its ends, where names of one family differ."""
    text = printable(name)
    if measure(text, size, bold=bold) <= width:
        return text
    low, high = 1, min(len(text) - 1, 200)
    while low < high:
        middle = (low + high + 1) // 2
        fits = measure(_shortened(text, middle), size, bold=bold) <= width
        low, high = (middle, high) if fits else (low, middle - 1)
    return _shortened(text, low)


def _shortened(text: str, kept: int) -> str:
    return f"{text[: (kept + 1) // 2]}…{text[len(text) - kept // 2 :]}"


def wrap(name: str, width: float, size: float, *, bold: bool = False) -> tuple[str, ...]:
    """On one line or two: broken at the seam nearest the middle, where there is one."""
    text = printable(name)
    seams = [seam.start() for seam in _SEAM.finditer(text)]
    if measure(text, size, bold=bold) <= width or not seams:
        return (fit(name, width, size, bold=bold),)
    seam = min(seams, key=lambda place: abs(2 * place - len(text)))
    return tuple(fit(half, width, size, bold=bold) for half in (text[:seam], text[seam:]))


def heading(canvas: Canvas, place: Point, name: str) -> None:
    """Of a drawing that stands beside others."""
    canvas.text((place[0], place[1] + 0.14), fit(name, ABREAST, TITLE, bold=True), TITLE, "left", bold=True)


def gutter(labels: Sequence[str], limit: float, size: float = NORMAL, *, bold: bool = False) -> float:
    """The room that row labels need, in inches, up to a limit."""
    return min(limit, max((measure(label, size, bold=bold) for label in labels), default=0.0))


def look(index: int) -> tuple[str, Sequence[float]]:
    """Colour and dashes of the index-th line."""
    return SERIES[index % len(SERIES)], DASHES[index // len(SERIES) % len(DASHES)]


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

    def columns(self, canvas: Canvas, ticks: Sequence[tuple[float, str]]) -> None:
        """Upright grid lines with their values below."""
        canvas.grid([((self.x(value), self.top), (self.x(value), self.top + self.height)) for value, _ in ticks])
        for value, words in ticks:
            canvas.text((self.x(value), self.top + self.height + 0.1), words, SMALL)

    def rows(self, canvas: Canvas, ticks: Sequence[tuple[float, str]]) -> None:
        """Level grid lines with their values at the left."""
        canvas.grid([((self.left, self.y(value)), (self.left + self.width, self.y(value))) for value, _ in ticks])
        for value, words in ticks:
            canvas.text((self.left - 0.06, self.y(value)), words, SMALL, "right")


def ticks(limit: float, wanted: int = 5, least: float = 0.0) -> tuple[float, ...]:
    """Round values from 0 to at most `limit`, at least `least` apart."""
    if not limit > 0 or not math.isfinite(limit):
        return (0.0,)
    rough = max(limit / wanted, least)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    return tuple(step * count for count in range(int(limit / step + 1e-9) + 1))
