"""A panel: a drawing in inches from its top left corner, kept as a list of marks.

`Panel.svg` makes a page's text from them, where text keeps the colour and the font of the page.
reporter/figures/files.py makes files for a paper.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from functools import lru_cache
from html import escape
from itertools import takewhile
from typing import TYPE_CHECKING, Literal

from comborun.text import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

INK = "currentColor"
"""the text colour of the page; black in a file"""
SMALL, NORMAL, TITLE = 7.0, 7.5, 8.0
"""sizes of text in points"""
PIXELS = 110
"""of a page per inch"""

Point = tuple[float, float]


@dataclass(frozen=True)
class TextStyle:
    size: float = NORMAL
    align: Literal["left", "center", "right"] = "center"
    bold: bool = False
    colour: str = INK
    upwards: bool = False
    """the reading direction"""

    def svg(self, x: str, y: str) -> str:
        """The attributes of a text at a place in points."""
        anchor = {"left": "", "center": ' text-anchor="middle"', "right": ' text-anchor="end"'}[self.align]
        turned = f' transform="rotate(-90 {x} {y})"' if self.upwards else ""
        weight = ' font-weight="700"' if self.bold else ""
        colour = "" if self.colour == INK else f' fill="{self.colour}"'
        # A third of an em down, which sets the middle of capitals on the place.
        return f'x="{x}" y="{y}" dy=".35em" font-size="{self.size:g}"{anchor}{turned}{weight}{colour}'


@dataclass(frozen=True)
class LineStyle:
    colour: str = INK
    width: float = 1.0
    """points"""
    dashes: tuple[float, ...] = ()
    """in line widths"""
    opacity: float = 1.0
    round: bool = False
    """at the ends"""

    def svg(self) -> str:
        dashes = f' stroke-dasharray="{" ".join(f"{part * self.width:.3g}" for part in self.dashes)}"'
        faint = f' stroke-opacity="{self.opacity:g}"' if self.opacity < 1 else ""
        cap = ' stroke-linecap="round"' if self.round else ""
        return f'stroke="{self.colour}" stroke-width="{self.width:g}"{dashes if self.dashes else ""}{cap}{faint}'


GRID = LineStyle("#808080", 0.7, opacity=0.35)


@dataclass(frozen=True)
class Text:
    place: Point
    words: str
    style: TextStyle

    def svg(self) -> str:
        return f"<text {self.style.svg(*map(_points, self.place))}>{escape(self.words, quote=False)}</text>"


@dataclass(frozen=True)
class Lines:
    lines: Sequence[Sequence[Point]]
    style: LineStyle

    def svg(self) -> str:
        return f'<path d="{"".join(map(_path, self.lines))}" fill="none" {self.style.svg()}/>'


@dataclass(frozen=True)
class Area:
    corners: Sequence[Point]
    colour: str
    opacity: float

    def svg(self) -> str:
        faint = f' fill-opacity="{self.opacity:g}"' if self.opacity < 1 else ""
        return f'<path d="{_path(self.corners)}z" fill="{self.colour}"{faint}/>'


@dataclass
class Panel:
    title: str
    """what it shows, for those who can't see it"""
    width: float
    height: float
    marks: list[Text | Lines | Area] = field(default_factory=list)
    top: float = 0.0
    """inches that are cut off above"""

    def text(self, place: Point, words: str, style: TextStyle = TextStyle()) -> None:
        """One line, vertically centred on `place`."""
        if words:
            self.marks.append(Text(place, words, style))

    def lines(self, lines: Sequence[Sequence[Point]], style: LineStyle) -> None:
        self.marks.append(Lines(lines, style))

    def dot(self, place: Point, colour: str = INK, size: float = 4.5) -> None:
        ends = [(place[0], place[1] - 0.002), (place[0], place[1] + 0.002)]
        self.lines([ends], LineStyle(colour, size, round=True))

    def box(self, corner: Point, size: Point, colour: str, opacity: float = 1.0) -> None:
        (left, top), (width, height) = corner, size
        right, bottom = left + width, top + height
        self.area([corner, (right, top), (right, bottom), (left, bottom)], colour, opacity)

    def area(self, corners: Sequence[Point], colour: str, opacity: float = 0.16) -> None:
        self.marks.append(Area(corners, colour, opacity))

    def svg(self, place: str = "") -> str:
        """To stand inside a page, without an id that two could share. `place` are attributes of a part of a file."""
        box = f"0 {_points(self.top)} {_points(self.width)} {_points(self.height - self.top)}"
        size = place or f'width="{PIXELS * self.width:.0f}" role="img" aria-label="{escape(printable(self.title))}"'
        marks = "".join(mark.svg() for mark in self.marks)
        return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" {size}>{marks}</svg>'


def _points(inches: float) -> str:
    """With one decimal: a hundredth of an inch is some seven of them."""
    return f"{72 * inches:.1f}".removesuffix(".0")


def _path(points: Sequence[Point]) -> str:
    return "M" + " ".join(f"{_points(x)} {_points(y)}" for x, y in points)


# -- text that fits ---------------------------------------------------------------------------------------------------

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
_LONGEST = 200
"""characters of a name that a panel has room for"""


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
    if len(text) <= _LONGEST and measure(text, size, bold=bold) <= width:
        return text
    low, high = 1, min(len(text) - 1, _LONGEST)
    while low < high:
        middle = (low + high + 1) // 2
        fits = measure(shortened(text, middle), size, bold=bold) <= width
        low, high = (middle, high) if fits else (low, middle - 1)
    return shortened(text, low)


def fit_apart(names: Sequence[str], width: float, size: float, *, bold: bool = False) -> list[str]:
    """As `fit`; where two would look the same, without the words that all have in common at their ends."""
    shown = [fit(name, width, size, bold=bold) for name in names]
    if len({*shown}) == len({*names}):
        return shown
    parts = [_SEAM.split(name) for name in names]
    start = _alike(parts)
    end = _alike([one[:start:-1] for one in parts])
    marks = ("…" if start else "", "…" if end else "")
    middles = ("".join(one[start : len(one) - end]).strip() for one in parts)
    return [fit(middle.join(marks), width, size, bold=bold) for middle in middles]


def _alike(parts: Sequence[Sequence[str]]) -> int:
    """How many parts are the same in all, from the first one on."""
    return sum(1 for _ in takewhile(lambda column: len({*column}) == 1, zip(*parts, strict=False)))


def shortened(text: str, kept: int) -> str:
    """So many characters of both its ends."""
    return f"{text[: (kept + 1) // 2]}…{text[len(text) - kept // 2 :]}"


def wrap(name: str, width: float, size: float, *, bold: bool = False) -> tuple[str, ...]:
    """On one line or two: broken at the seam nearest the middle, where there is one."""
    text = printable(name)
    seams = [seam.start() for seam in _SEAM.finditer(text)]
    if measure(text, size, bold=bold) <= width or not seams:
        return (fit(name, width, size, bold=bold),)
    seam = min(seams, key=lambda place: abs(2 * place - len(text)))
    return tuple(fit(half, width, size, bold=bold) for half in (text[:seam], text[seam:]))


def room(labels: Sequence[str], limit: float, size: float = NORMAL, *, bold: bool = False) -> float:
    """The inches that labels beside a plot need, up to a limit."""
    return min(limit, max((measure(label, size, bold=bold) for label in labels), default=0.0))
