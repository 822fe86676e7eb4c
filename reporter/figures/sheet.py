"""A sheet to draw on, measured in inches from its top left corner, and what all figures share: colours that people with
any kind of colour vision tell apart on light paper and on dark, names that fit, and the frame of a small plot.

matplotlib is imported on the first call; no pyplot, so no figure outlives its call. The same drawing gives the same
bytes. In a page, text stays text in the colour and the font around it.
"""

from __future__ import annotations

import io
import math
import re
import threading
import unicodedata
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from comborun.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.figure import Figure

INK = "#010203"
"""stands for the page's own text colour until an SVG is put into a page"""
BLACK = "#010101"
"""not pure black, for which matplotlib writes no colour into an SVG"""
FAINT = "#8080805a"
"""for grid lines and empty boxes"""
SERIES = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#888888")
"""the palette of M. Okabe and K. Ito without yellow and black, which are hard to see on one of the papers"""
DASHES: tuple[Any, ...] = ("solid", (0, (4, 1.6)), (0, (1.2, 1.4)), (0, (5, 1.5, 1.2, 1.5)))
"""a second way to tell lines apart, once the colours are used up"""
RESOLUTION = 150
"""pixels per inch of a PNG"""
ABREAST = 3.75
"""inches of a drawing that stands beside others"""
WHOLE = 11.85
"""inches of a whole row"""
SMALL = 7.5
NORMAL = 8.5
TITLE = 10.5
"""sizes of text in points"""
PERCENT = ((0.0, "0"), (0.5, "50"), (1.0, "100"))

Point = tuple[float, float]

_SETTINGS = threading.RLock()
"""matplotlib's settings belong to the process, not to a thread"""
_SEAM = re.compile(r"(?<=[_\-/. ])(?=[^_\-/. ])")


@contextmanager
def drawing() -> Iterator[None]:
    """Settings that give the same bytes everywhere, for as long as something is drawn or measured."""
    import matplotlib as mpl

    with _SETTINGS, mpl.rc_context(), warnings.catch_warnings():
        # The page's font draws the text; the font used for measuring may lack a sign.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        mpl.rcdefaults()  # whatever a user's matplotlibrc says
        mpl.rcParams["svg.fonttype"] = "none"
        mpl.rcParams["svg.hashsalt"] = "comborun"
        mpl.rcParams["pdf.fonttype"] = 42
        yield


class Sheet:
    """Needs `drawing()` around it."""

    def __init__(self, width: float, height: float) -> None:
        from matplotlib.figure import Figure

        self.part = ""
        """what is drawn now belongs to it: the id of its group in an SVG"""
        self._figure: Figure = Figure(figsize=(width, height), facecolor="white")
        self._axes = self._figure.add_axes((0, 0, 1, 1))
        self._axes.set(xlim=(0, width), ylim=(height, 0))
        self._axes.axis("off")

    def text(self, place: Point, words: str, size: float = 9, align: str = "center", **style: Any) -> None:
        """One line, vertically centred on `place`. A `$` in a name is no formula."""
        style = {"color": INK, "verticalalignment": "center", "gid": self.part, **style}
        self._axes.text(*place, words, parse_math=False, fontsize=size, horizontalalignment=align, **style)

    def line(
        self, points: Sequence[Point], colour: str = INK, width: float = 1.0, dashes: Any = "solid", **style: Any
    ) -> None:
        from matplotlib.lines import Line2D

        across, down = [point[0] for point in points], [point[1] for point in points]
        style = {"solid_capstyle": "butt", "gid": self.part, "clip_on": False, **style}
        self._axes.add_line(Line2D(across, down, color=colour, linewidth=width, linestyle=dashes, **style))

    def grid(self, pairs: Sequence[tuple[Point, Point]]) -> None:
        """Separate strokes, as one path, below all else."""
        gap = (float("nan"), float("nan"))
        points = [point for start, end in pairs for point in (start, end, gap)]
        self.line(points, FAINT, 0.7, solid_capstyle="projecting", zorder=0.5)

    def dot(self, place: Point, colour: str = INK, size: float = 4.5) -> None:
        ends = [(place[0], place[1] - 0.002), (place[0], place[1] + 0.002)]
        self.line(ends, colour, size, solid_capstyle="round")

    def box(self, corner: Point, width: float, height: float, colour: Any, **style: Any) -> None:
        from matplotlib.patches import Rectangle

        style = {"linewidth": 0, "facecolor": colour, "gid": self.part, "clip_on": False, **style}
        self._axes.add_patch(Rectangle(corner, width, height, **style))

    def area(self, points: Sequence[Point], colour: str) -> None:
        """A band, through which the rest shows."""
        from matplotlib.patches import Polygon

        style: dict[str, Any] = {"linewidth": 0, "gid": self.part, "clip_on": False}
        self._axes.add_patch(Polygon(points, closed=True, facecolor=colour, alpha=0.16, **style))

    def files(self) -> dict[str, bytes]:
        """As SVG, PNG and PDF, by the ending of the name. Lets go of what was drawn, whose parts hold one another: a
        report is made without a garbage collector."""
        found = {
            "svg": self._saved("svg", metadata={"Date": None}),
            "png": self._saved("png", dpi=RESOLUTION, metadata={"Software": None}, pil_kwargs={"compress_level": 3}),
            "pdf": self._saved("pdf", metadata={"CreationDate": None}),
        }
        self._figure.clear()
        return found

    def _saved(self, form: str, **options: Any) -> bytes:
        buffer = io.BytesIO()
        self._figure.savefig(buffer, format=form, **options)
        return buffer.getvalue()


@lru_cache(maxsize=4096)
def measure(words: str, size: float, weight: str = "normal") -> float:
    """The width of a line in inches, in a rather wide font; signs that this font lacks count as a full em."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(weight=weight, size=size)
    wide = sum(unicodedata.east_asian_width(sign) in "WF" for sign in words)
    narrow = "".join(sign for sign in words if unicodedata.east_asian_width(sign) not in "WF")
    width = text_to_path.get_text_width_height_descent(narrow, font, ismath=False)[0] if narrow else 0.0
    return (width + wide * size) / 72


def fit(name: str, width: float, size: float, weight: str = "normal") -> str:
    """The name if it fits; else both its ends, where names of one family differ."""
    text = printable(name)
    if measure(text, size, weight) <= width:
        return text
    low, high = 1, min(len(text) - 1, 200)
    while low < high:
        middle = (low + high + 1) // 2
        fits = measure(_shortened(text, middle), size, weight) <= width
        low, high = (middle, high) if fits else (low, middle - 1)
    return _shortened(text, low)


def _shortened(text: str, kept: int) -> str:
    return f"{text[: (kept + 1) // 2]}…{text[len(text) - kept // 2 :]}"


def wrap(name: str, width: float, size: float, weight: str = "normal") -> tuple[str, ...]:
    """On one line or two: broken at the seam nearest the middle, where there is one."""
    text = printable(name)
    seams = [seam.start() for seam in _SEAM.finditer(text)]
    if measure(text, size, weight) <= width or not seams:
        return (fit(name, width, size, weight),)
    seam = min(seams, key=lambda place: abs(2 * place - len(text)))
    return tuple(fit(half, width, size, weight) for half in (text[:seam], text[seam:]))


def heading(sheet: Sheet, place: Point, name: str) -> None:
    """Of a drawing that stands beside others."""
    sheet.text((place[0], place[1] + 0.14), fit(name, ABREAST, TITLE, "bold"), TITLE, "left", weight="bold")


def gutter(labels: Sequence[str], limit: float, size: float = NORMAL) -> float:
    """The room that row labels need, in inches, up to a limit."""
    return min(limit, max((measure(label, size) for label in labels), default=0.0))


def look(index: int) -> tuple[str, Any]:
    """Colour and dashes of the index-th line."""
    return SERIES[index % len(SERIES)], DASHES[index // len(SERIES) % len(DASHES)]


def ink_on(colour: Any) -> str:
    """Black or white, whichever is easier to read on a colour: they contrast equally at a relative luminance (WCAG 2)
    of .179."""
    from matplotlib.colors import to_rgb

    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(colour)]
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

    def columns(self, sheet: Sheet, ticks: Sequence[tuple[float, str]]) -> None:
        """Upright grid lines with their values below."""
        sheet.grid([((self.x(value), self.top), (self.x(value), self.top + self.height)) for value, _ in ticks])
        for value, words in ticks:
            sheet.text((self.x(value), self.top + self.height + 0.1), words, SMALL)

    def rows(self, sheet: Sheet, ticks: Sequence[tuple[float, str]]) -> None:
        """Level grid lines with their values at the left."""
        sheet.grid([((self.left, self.y(value)), (self.left + self.width, self.y(value))) for value, _ in ticks])
        for value, words in ticks:
            sheet.text((self.left - 0.06, self.y(value)), words, SMALL, "right")


def ticks(limit: float, wanted: int = 5, least: float = 0.0) -> tuple[float, ...]:
    """Round values from 0 to at most `limit`, at least `least` apart."""
    if not limit > 0 or not math.isfinite(limit):
        return (0.0,)
    rough = max(limit / wanted, least)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    return tuple(step * count for count in range(int(limit / step + 1e-9) + 1))
