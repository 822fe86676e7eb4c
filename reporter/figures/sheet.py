"""A sheet to draw on, measured in inches from its top left corner, and the files that come of it.

matplotlib is imported on the first call; no pyplot, so no figure outlives its call. The same drawing gives the same
bytes. In a page, text stays text in the colour and the font around it.
"""

from __future__ import annotations

import io
import threading
import unicodedata
import warnings
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.figure import Figure

INK = "#010203"
"""stands for the page's own text colour until an SVG is put into a page"""
FAINT = "#8080805a"
"""for grid lines and empty boxes, on light paper and on dark"""
RESOLUTION = 150
"""pixels per inch of a PNG"""

Point = tuple[float, float]

_SETTINGS = threading.RLock()
"""matplotlib's settings belong to the process, not to a thread"""


@contextmanager
def drawing() -> Iterator[None]:
    """Settings that give the same bytes everywhere, for as long as something is drawn."""
    import matplotlib as mpl

    with _SETTINGS, mpl.rc_context(), warnings.catch_warnings():
        # The page's font draws the text; that the one used for measuring lacks a sign is no news.
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

    def line(self, points: Sequence[Point], colour: str = INK, width: float = 1.0, dashes: Any = "solid") -> None:
        from matplotlib.lines import Line2D

        across, down = zip(*points, strict=True)
        style: dict[str, Any] = {"solid_capstyle": "butt", "gid": self.part, "clip_on": False}
        self._axes.add_line(Line2D(across, down, color=colour, linewidth=width, linestyle=dashes, **style))

    def lines(self, pairs: Sequence[tuple[Point, Point]], colour: str = FAINT, width: float = 0.7) -> None:
        """Separate strokes of one look, as one path, below all else."""
        from matplotlib.lines import Line2D

        gap = (float("nan"), float("nan"))
        points = [point for start, end in pairs for point in (start, end, gap)]
        across, down = [point[0] for point in points], [point[1] for point in points]
        style: dict[str, Any] = {"gid": self.part, "clip_on": False, "zorder": 0.5}
        self._axes.add_line(Line2D(across, down, color=colour, linewidth=width, **style))

    def dot(self, place: Point, colour: str = INK, size: float = 4.5) -> None:
        from matplotlib.lines import Line2D

        across, down = [place[0], place[0]], [place[1] - 0.002, place[1] + 0.002]
        style: dict[str, Any] = {"solid_capstyle": "round", "gid": self.part, "clip_on": False}
        self._axes.add_line(Line2D(across, down, color=colour, linewidth=size, **style))

    def box(self, corner: Point, width: float, height: float, colour: Any, **style: Any) -> None:
        from matplotlib.patches import Rectangle

        style = {"linewidth": 0, "facecolor": colour, "gid": self.part, "clip_on": False, **style}
        self._axes.add_patch(Rectangle(corner, width, height, **style))

    def area(self, points: Sequence[Point], colour: str, opacity: float) -> None:
        from matplotlib.patches import Polygon

        style: dict[str, Any] = {"linewidth": 0, "gid": self.part, "clip_on": False}
        self._axes.add_patch(Polygon(points, closed=True, facecolor=colour, alpha=opacity, **style))

    def files(self) -> dict[str, bytes]:
        """As SVG, PNG and PDF, by the ending of the name."""
        return {
            "svg": self._saved("svg", metadata={"Date": None}),
            "png": self._saved("png", dpi=RESOLUTION, metadata={"Software": None}, pil_kwargs={"compress_level": 3}),
            "pdf": self._saved("pdf", metadata={"CreationDate": None}),
        }

    def clear(self) -> None:
        """Let go of what was drawn: its parts hold one another, and a report is made without a garbage collector."""
        self._figure.clear()

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
