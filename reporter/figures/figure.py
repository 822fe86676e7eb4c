"""A figure is panels side by side, with a legend. A panel is a drawing in inches from its top left corner: a list of
marks. Pure.

`Panel.svg` makes a page's text of them, with the colour and the font of the page; figures/files.py makes files.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Literal

from comborun.reporter.figures.labels import fit, fit_apart, measure
from comborun.reporter.text import number
from comborun.text import printable, several

INK = "currentColor"
"""the text colour of the page; black in a file"""
SMALL, NORMAL, TITLE = 7.0, 7.5, 8.0
PIXELS = 110

Point = tuple[float, float]


@dataclass(frozen=True)
class TextStyle:
    size: float = NORMAL
    align: Literal["left", "center", "right"] = "center"
    bold: bool = False
    colour: str = INK
    upwards: bool = False

    def svg(self, x: str, y: str) -> str:
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
    dashes: tuple[float, ...] = ()
    opacity: float = 1.0

    def svg(self) -> str:
        dashes = f' stroke-dasharray="{" ".join(f"{part * self.width:.3g}" for part in self.dashes)}"'
        faint = f' stroke-opacity="{self.opacity:g}"' if self.opacity < 1 else ""
        return f'stroke="{self.colour}" stroke-width="{self.width:g}"{dashes if self.dashes else ""}{faint}'


GRID = LineStyle("#808080", 0.7, opacity=0.35)


@dataclass(frozen=True)
class Text:
    place: Point
    words: str
    style: TextStyle

    def svg(self) -> str:
        return f"<text {self.style.svg(*map(_points, self.place))}>{escape(self.words, quote=False)}</text>"


@dataclass(frozen=True)
class Strokes:
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


@dataclass(frozen=True)
class Dot:
    place: Point
    colour: str
    size: float
    """its diameter in points"""

    def svg(self) -> str:
        across, down = map(_points, self.place)
        return f'<circle cx="{across}" cy="{down}" r="{self.size / 2:g}" fill="{self.colour}"/>'


@dataclass
class Panel:
    title: str
    """for people who can't see it"""
    width: float
    height: float
    marks: list[Text | Strokes | Area | Dot] = field(default_factory=list)
    top: float = 0.0
    """inches that are cut off above"""

    def text(self, place: Point, words: str, style: TextStyle = TextStyle()) -> None:
        """One line, vertically centred on `place`."""
        if words:
            self.marks.append(Text(place, words, style))

    def lines(self, lines: Sequence[Sequence[Point]], style: LineStyle) -> None:
        self.marks.append(Strokes(lines, style))

    def dot(self, place: Point, colour: str = INK, size: float = 4.5) -> None:
        self.marks.append(Dot(place, colour, size))

    def box(self, corner: Point, size: Point, colour: str, opacity: float = 1.0) -> None:
        (left, top), (width, height) = corner, size
        right, bottom = left + width, top + height
        self.area([corner, (right, top), (right, bottom), (left, bottom)], colour, opacity)

    def area(self, corners: Sequence[Point], colour: str, opacity: float = 0.16) -> None:
        self.marks.append(Area(corners, colour, opacity))

    def svg(self, place: str = "") -> str:
        """For a page, or with the attributes `place` for a part of a file. There are no ids, since two drawings could
        share them."""
        box = f"0 {_points(self.top)} {_points(self.width)} {_points(self.height - self.top)}"
        size = place or f'width="{PIXELS * self.width:.0f}" role="img" aria-label="{escape(printable(self.title))}"'
        marks = "".join(mark.svg() for mark in self.marks)
        return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" {size}>{marks}</svg>'


def _points(inches: float) -> str:
    return f"{72 * inches:.1f}".removesuffix(".0")


def _path(points: Sequence[Point]) -> str:
    places = [72 * inches for point in points for inches in point]  # all in one format, since there are many
    return "M" + ("%.1f " * len(places) % (*places,)).replace(".0 ", " ").rstrip()


def room(labels: Sequence[str], limit: float, size: float = NORMAL, *, bold: bool = False) -> float:
    """The inches that labels beside a plot need, up to a limit."""
    return min(limit, max((measure(label, size, bold=bold) for label in labels), default=0.0))


COLUMN, PAGE, PHONE = 3.4, 7.0, 3.2
"""inches of a panel beside others, and of one that fills a row: one column of a paper and both"""
PANELS = 60

BLACK, GREY = "#010101", "#808080"
SERIES = ("#0072b2", "#b84a00", "#007a57", "#a8386f", "#6f42c1", "#00737f", "#666666")
"""hues of M. Okabe and K. Ito, each at a contrast of 4.5 and more on white; report.css lightens lines on dark paper"""
DASHES: tuple[tuple[float, ...], ...] = ((), (4, 1.6), (1.2, 1.4), (5, 1.5, 1.2, 1.5))
"""so that lines differ without their colours; 7 colours and 4 dashes meet once each"""
STYLES = len(SERIES) * len(DASHES)
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
    panels: tuple[Panel, ...]
    legend: Panel | None = None
    phone: Panel | None = None
    """the same as the panels, as wide as the screen of a phone"""


def left_out(panels: int) -> str:
    rest = panels - PANELS
    return f" {several(rest, 'drawing')} beyond the first {PANELS} not shown." if rest > 0 else ""


# -- colours ----------------------------------------------------------------------------------------------------------


def series(index: int, width: float = 1.4) -> LineStyle:
    return LineStyle(SERIES[index % len(SERIES)], width, DASHES[index % len(DASHES)])


def shade(share: float) -> str:
    place = min(max(share, 0.0), 1.0) * (len(CIVIDIS) - 1)
    below = min(int(place), len(CIVIDIS) - 2)
    pairs = zip(CIVIDIS[below], CIVIDIS[below + 1], strict=True)
    return "#" + "".join(f"{round(low + (high - low) * (place - below)):02x}" for low, high in pairs)


def ink_on(colour: str) -> str:
    """Black or white, whichever is easier to read on a colour. They contrast equally at a relative luminance of .179
    (WCAG 2)."""
    parts = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return "#ffffff" if 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] < 0.179 else BLACK


# -- axes -------------------------------------------------------------------------------------------------------------

HEADING = 0.24
PERCENT = ((0.0, "0"), (0.5, "50"), (1.0, "100"))


@dataclass(frozen=True)
class Axes:
    """A plot's rectangle in inches, and the values at its ends."""

    left: float
    top: float
    width: float
    height: float
    x_limit: float = 1.0
    y_limit: float = 1.0
    x_start: float = 0.0

    @property
    def bottom(self) -> float:
        return self.top + self.height

    def x(self, value: float) -> float:
        return self.left + self.width * (value - self.x_start) / (self.x_limit - self.x_start)

    def at(self, across: float, up: float) -> Point:
        return (self.x(across), self.bottom - self.height * up / self.y_limit)

    def x_ticks(self, panel: Panel, ticks: Sequence[tuple[float, str]], title: str = "") -> None:
        panel.lines([(self.at(value, 0), self.at(value, self.y_limit)) for value, _ in ticks], GRID)
        for value, words in ticks:
            across = min(self.x(value), panel.width - measure(words, SMALL) / 2)  # a long one stays whole
            panel.text((across, self.bottom + 0.1), words, TextStyle(SMALL))
        panel.text((self.left + self.width / 2, self.bottom + 0.28), title, TextStyle(SMALL))

    def y_ticks(self, panel: Panel, ticks: Sequence[tuple[float, str]], title: str = "") -> None:
        middle = self.top + (self.height + measure(title, SMALL)) / 2
        panel.text((self.left - 0.3, middle), title, TextStyle(SMALL, "left", upwards=True))
        panel.lines([(self.at(self.x_start, value), self.at(self.x_limit, value)) for value, _ in ticks], GRID)
        for value, words in ticks:
            _, y = self.at(self.x_start, value)
            panel.text((self.left - 0.06, y), words, TextStyle(SMALL, "right"))


def ticks(limit: float, wanted: int = 5, least: float = 0.0) -> tuple[float, ...]:
    """Round values from 0 to at most `limit`, at least `least` apart."""
    if not limit > 0 or not math.isfinite(limit):
        return (0.0,)
    rough = max(limit / wanted, least)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    return tuple(step * count for count in range(int(limit / step + 1e-9) + 1))


STEPS = (0.02, 0.05, 0.1, 0.2, 0.5)
MOST_TICKS, NARROWEST = 5, 0.2
MOST_DRAWN = 1e300
"""larger numbers have no place on an axis"""


def zoomed(values: Iterable[float], low: float = 0.0, high: float = 1.0) -> tuple[tuple[float, str], ...]:
    """Ticks in per cent around shares; the first and the last are the ends of the axis, at least 20 points apart."""
    found = [*values]
    least, most = min(found), max(found)
    lacking = max(NARROWEST - (most - least), 0.0) / 2
    least, most = max(low, least - lacking), min(high, most + lacking)
    step = next((one for one in STEPS if (most - least) / one <= MOST_TICKS), STEPS[-1])
    first, last = math.floor(least / step + 1e-9), math.ceil(most / step - 1e-9)
    return tuple((count * step, f"{100 * count * step:.0f}".replace("-", "−")) for count in range(first, last + 1))


def spread(values: Iterable[float]) -> tuple[tuple[float, str], ...]:
    """Ticks around any numbers; the first and the last are the ends of the axis."""
    found = [value for value in values if abs(value) < MOST_DRAWN]
    least, most = min(found, default=0.0), max(found, default=1.0)
    room = most - least or abs(most) or 1.0
    power = 10.0 ** math.floor(math.log10(room / MOST_TICKS))
    step = next((factor * power for factor in (1, 2, 5) if room <= factor * power * MOST_TICKS), 10 * power)
    first, last = math.floor(least / step + 1e-9), math.ceil(most / step - 1e-9)
    last = max(last, first + 1)
    return tuple((count * step, number(count * step).replace("-", "−")) for count in range(first, last + 1))


def along(
    shown: Sequence[tuple[float, str]], corner: Point, size: Point, panel: Panel, title: str = "", unit: str = " (%)"
) -> Axes:
    """Axes from the first tick to the last one, drawn."""
    axes = Axes(*corner, *size, x_limit=shown[-1][0], x_start=shown[0][0])
    axes.x_ticks(panel, shown, f"{title or 'success rate'}{unit}")
    return axes


def titled(panel: Panel, name: str) -> Panel:
    panel.text((0, 0.14), fit(name, panel.width, TITLE, bold=True), TextStyle(TITLE, "left", bold=True))
    return panel


def untitled(panel: Panel) -> Panel:
    """Without its heading, for a page that has one."""
    marks = [mark for mark in panel.marks if not (isinstance(mark, Text) and mark.place[1] < HEADING)]
    return replace(panel, marks=marks, top=HEADING)


# -- legend -----------------------------------------------------------------------------------------------------------

LABEL = 2.2
ROW, SWATCH, BETWEEN = 0.2, 0.36, 0.26


def legend(entries: Sequence[tuple[str, LineStyle | str]]) -> Panel:
    panel = Panel("What the colours mean", 0, ROW)
    left = 0.0
    names = fit_apart([name for name, _ in entries], LABEL, NORMAL)
    for words, (_, style) in zip(names, entries, strict=True):
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
