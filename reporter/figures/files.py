"""Figures as files for papers and slides, made by matplotlib when somebody asks for them. No pyplot, so no figure
outlives its call; the same figure gives the same bytes.

Widths are those of a paper: one column is 3.4 inches, both are 7.
"""

from __future__ import annotations

import io
import threading
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from comborun.reporter.figures.canvas import INK, WHOLE, Canvas, Shape, Stroke, Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from comborun.reporter.figures.canvas import Mark
    from comborun.reporter.figures.plate import Drawing, Plate

GAP = 0.2
"""inches between drawings"""
OPTIONS: Mapping[str, dict[str, Any]] = {
    "svg": {"metadata": {"Date": None}},
    "png": {"dpi": 200, "metadata": {"Software": None}, "pil_kwargs": {"compress_level": 3}},
    "pdf": {"metadata": {"CreationDate": None}},
}
TALLEST = 60.0
"""inches of a file: the rest goes into the next one, so that no image takes more memory than this one"""

_SETTINGS = threading.RLock()
"""matplotlib's settings belong to the process, not to a thread"""


def files(plates: Iterable[Plate], endings: Sequence[str]) -> dict[str, bytes]:
    """By name: `intervals.pdf`, then `intervals-2.pdf` where one file would be too tall."""
    found: dict[str, bytes] = {}
    with _drawing():
        for plate in plates:
            for number, rows in enumerate(_sheets(plate), 1):
                name = plate.name if number == 1 else f"{plate.name}-{number}"
                figure = _figure(_sheet(rows))
                found |= {f"{name}.{ending}": _saved(figure, ending) for ending in endings}
                figure.clear()
    return found


def _sheets(plate: Plate) -> Iterator[list[list[Drawing]]]:
    """The drawings in rows no wider than the paper, and as many rows as one file takes."""
    rows: list[list[Drawing]] = []
    for drawing in plate.shown:
        row = [*rows[-1], drawing] if rows else [drawing]
        if rows and sum(part.width for part in row) + GAP * (len(row) - 1) <= WHOLE and rows[-1][0] is not plate.key:
            rows[-1] = row
        elif rows and sum(_height(one) for one in rows) + _height([drawing]) > TALLEST:
            yield rows
            rows = [[drawing]]
        else:
            rows.append([drawing])
    yield rows


def _height(row: Sequence[Drawing]) -> float:
    return max(part.height for part in row) + GAP


def _sheet(rows: Sequence[Sequence[Drawing]]) -> Canvas:
    width = max(sum(part.width for part in row) + GAP * (len(row) - 1) for row in rows)
    canvas = Canvas(width, sum(map(_height, rows)) - GAP)
    top = 0.0
    for row in rows:
        left = 0.0
        for part in row:
            part.draw(canvas, left, top)
            left += part.width + GAP
        top += _height(row)
    return canvas


def _figure(canvas: Canvas) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(canvas.width, canvas.height), facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, canvas.width), ylim=(canvas.height, 0))
    axes.axis("off")
    for order, mark in enumerate(canvas.marks):
        _put(axes, mark, order)
    return figure


def _put(axes: Axes, mark: Mark, order: int) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Polygon

    colour = "black" if mark.colour == INK else mark.colour
    if isinstance(mark, Text):
        style: dict[str, Any] = {"ha": mark.align, "va": "center_baseline"}
        if mark.turned:
            style = {"ha": "center", "va": "bottom", "rotation": 90}
        style |= {"size": mark.size, "weight": "bold" if mark.bold else "normal", "color": colour, "zorder": order}
        axes.text(*mark.place, mark.words, parse_math=False, **style)  # a `$` in a name is no formula
    elif isinstance(mark, Shape):
        shape = Polygon(list(mark.corners), closed=True, facecolor=colour, alpha=mark.opacity, linewidth=0)
        axes.add_patch(shape).set(clip_on=False, zorder=order)
    elif isinstance(mark, Stroke):
        gap = (float("nan"), float("nan"))
        points = [point for line in mark.lines for point in (*line, gap)]
        dashes: Any = (0, tuple(mark.dashes)) if mark.dashes else "solid"
        across, down = [point[0] for point in points], [point[1] for point in points]
        line = Line2D(across, down, color=colour, linewidth=mark.width, linestyle=dashes, alpha=mark.opacity)
        cap = "round" if mark.round else "butt"
        line.set(solid_capstyle=cap, dash_capstyle="butt", clip_on=False, zorder=order)
        axes.add_line(line)


def _saved(figure: Figure, form: str) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format=form, **OPTIONS[form])
    return buffer.getvalue()


@contextmanager
def _drawing() -> Iterator[None]:
    """Settings that give the same bytes everywhere, for as long as something is drawn."""
    import matplotlib as mpl

    with _SETTINGS, mpl.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        mpl.rcdefaults()  # whatever a user's matplotlibrc says
        mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "comborun", "pdf.fonttype": 42})
        yield
