"""Figures as files for papers and slides: SVG as in the page, PDF and PNG by matplotlib. The same figure gives the same
bytes."""

from __future__ import annotations

import io
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from comborun.reporter.figures.figure import INK, PAGE, Area, Dot, Figure, Panel, Strokes, Text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    Placed = list[tuple[Panel, float, float]]
    """with left and top in inches"""

FORMS = ("pdf", "png", "svg")
GAP = 0.2
OPTIONS: Mapping[str, dict[str, Any]] = {
    "png": {"dpi": 200, "metadata": {"Software": None}, "pil_kwargs": {"compress_level": 3}},
    "pdf": {"metadata": {"CreationDate": None}},
}
TALLEST = 60.0
"""most inches of a file, so that no image takes too much memory; the rest goes into the next one"""

_SETTINGS = threading.RLock()
"""matplotlib's settings belong to the process, not to a thread"""


def files(figures: Iterable[Figure], forms: Sequence[str]) -> dict[str, bytes]:
    """By name: `intervals.pdf`, then `intervals-2.pdf` where one file would be too tall."""
    found: dict[str, bytes] = {}
    for figure in figures:
        for number, placed in enumerate(_sheets(figure), 1):
            name = figure.name if number == 1 else f"{figure.name}-{number}"
            found |= {f"{name}.{form}": _svg(placed) if form == "svg" else _drawn(placed, form) for form in forms}
    return found


def _sheets(figure: Figure) -> Iterator[Placed]:
    """The panels row by row, the legend in a row of its own, for each file."""
    placed: Placed = []
    left = top = height = 0.0
    for panel in (*((figure.legend,) if figure.legend else ()), *figure.panels):
        if placed and (left + panel.width > PAGE + 1e-9 or placed[-1][0] is figure.legend):
            left, top, height = 0.0, top + height + GAP, 0.0
            if top + panel.height > TALLEST:
                yield placed
                placed, top = [], 0.0
        placed.append((panel, left, top))
        left, height = left + panel.width + GAP, max(height, panel.height)
    yield placed


def _size(placed: Placed) -> tuple[float, float]:
    return max(left + one.width for one, left, _ in placed), max(top + one.height for one, _, top in placed)


def _svg(placed: Placed) -> bytes:
    width, height = (72 * side for side in _size(placed))
    parts = "\n".join(
        panel.svg(f'x="{72 * left:g}" y="{72 * top:g}" width="{72 * panel.width:g}" height="{72 * panel.height:g}"')
        for panel, left, top in placed
    )
    style = 'color="black" fill="currentColor" font-family="DejaVu Sans, sans-serif"'
    size = f'viewBox="0 0 {width:g} {height:g}" width="{width:g}pt" height="{height:g}pt"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>\n{parts}\n</svg>\n'.encode()


def _drawn(placed: Placed, form: str) -> bytes:
    import matplotlib as mpl
    from matplotlib.figure import Figure as Sheet  # not pyplot's, which would outlive its call

    with _SETTINGS, mpl.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        mpl.rcdefaults()  # the same bytes, whatever a user's matplotlibrc says
        mpl.rcParams["pdf.fonttype"] = 42
        width, height = _size(placed)
        sheet, buffer = Sheet(figsize=(width, height), facecolor="white"), io.BytesIO()
        for panel, left, top in placed:
            box = (left / width, 1 - (top + panel.height) / height, panel.width / width, panel.height / height)
            axes = sheet.add_axes(box, xlim=(0, panel.width), ylim=(panel.height, 0))
            axes.axis("off")
            for order, mark in enumerate(panel.marks):
                _put(axes, mark, order)
        sheet.savefig(buffer, format=form, **OPTIONS[form])
        return buffer.getvalue()


def _put(axes: Axes, mark: Text | Strokes | Area | Dot, order: int) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Circle, Polygon

    if isinstance(mark, Text):
        style = mark.style
        options: dict[str, Any] = {"ha": style.align, "va": "center_baseline"}
        if style.upwards:
            options = {"ha": "center", "va": "bottom", "rotation": "vertical"}
        options |= {"size": style.size, "weight": "bold" if style.bold else "normal", "color": _colour(style.colour)}
        axes.text(
            *mark.place, mark.words, parse_math=False, zorder=order, **options
        )  # a `$` in a name is not a formula
    elif isinstance(mark, Strokes):
        line, gap = mark.style, (float("nan"), float("nan"))
        across, down = zip(*(point for one in mark.lines for point in (*one, gap)), strict=True)
        dashes: Any = (0, line.dashes) if line.dashes else "solid"
        drawn = Line2D(across, down, color=_colour(line.colour), lw=line.width, linestyle=dashes, alpha=line.opacity)
        drawn.set(solid_capstyle="butt", dash_capstyle="butt", clip_on=False, zorder=order)
        axes.add_line(drawn)
    elif isinstance(mark, Dot):
        circle = Circle(mark.place, mark.size / 144, facecolor=_colour(mark.colour), lw=0)
        axes.add_patch(circle).set(clip_on=False, zorder=order)
    else:
        shape = Polygon(list(mark.corners), closed=True, facecolor=_colour(mark.colour), alpha=mark.opacity, lw=0)
        axes.add_patch(shape).set(clip_on=False, zorder=order)


def _colour(colour: str) -> str:
    return "black" if colour == INK else colour
