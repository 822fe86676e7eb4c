"""Figures as SVG text. matplotlib is imported on the first call; no pyplot, so no figure outlives its call.

Text stays text, in the colour and the font of the page around it; the same summary gives the same bytes.
"""

from __future__ import annotations

import io
import re
import threading
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reporter.text import interval, of, printable, rate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from reporter.summary import ComboSummary, Summary

CELL = (2.5, 0.84)
"""inches"""
INK = "#010203"
"""stands for the page's own text colour until the SVG is written"""
LABEL_LENGTH = 22

_SETTINGS = threading.Lock()
"""matplotlib's settings belong to the process, not to a thread"""

_PAGE_WIDE = re.compile(r"<metadata>.*?</metadata>\s*|<style.*?</style>\s*", re.DOTALL)
"""what names the moment of drawing, and what would reach beyond the SVG once it stands inside a page"""


@dataclass(frozen=True)
class Grid:
    """Which axis goes where: the shorter one across, so that a large grid grows downwards."""

    columns: tuple[str, ...]
    rows: tuple[str, ...]
    policies_across: bool

    @classmethod
    def of(cls, summary: Summary) -> Grid | None:
        combos = [combo for combo in summary.combos if combo.counts]
        policies = tuple(name for name in summary.policies if any(combo.policy == name for combo in combos))
        environments = tuple(
            name for name in summary.environments if any(combo.environment == name for combo in combos)
        )
        if not combos:
            return None
        if len(policies) <= len(environments):
            return cls(policies, environments, policies_across=True)
        return cls(environments, policies, policies_across=False)

    def combo(self, column: int, row: int) -> tuple[str, str]:
        """(policy, environment) of a cell."""
        across, down = self.columns[column], self.rows[row]
        return (across, down) if self.policies_across else (down, across)


def heat_map(summary: Summary) -> str:
    """Success rates by policy and environment, k/n and interval in every cell; empty without a combo to show."""
    grid = Grid.of(summary)
    if grid is None:
        return ""
    import matplotlib as mpl

    with _SETTINGS, mpl.rc_context():
        mpl.rcdefaults()  # whatever a user's matplotlibrc says
        mpl.rcParams["svg.fonttype"] = "none"
        mpl.rcParams["svg.hashsalt"] = "comborun"
        return _svg(_draw(grid, {(combo.policy, combo.environment): combo for combo in summary.combos}))


def columns(summary: Summary) -> int:
    """How many columns the heat map has; a page must know how wide it needs to be."""
    grid = Grid.of(summary)
    return len(grid.columns) if grid else 0


def label(name: str) -> str:
    """A name short enough for an axis; both ends stay, where names of one family differ."""
    text = printable(name)
    half = (LABEL_LENGTH - 1) // 2
    return text if len(text) <= LABEL_LENGTH else f"{text[:half]}…{text[-half:]}"


def _draw(grid: Grid, combos: dict[tuple[str, str], ComboSummary]) -> Figure:
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    labels = [label(name) for name in grid.rows]
    left = 0.3 + 0.1 * max(map(len, labels))
    width, height = left + CELL[0] * len(grid.columns) + 0.1, 0.42 + CELL[1] * len(grid.rows) + 0.62
    figure = Figure(figsize=(width, height))
    figure.patch.set_visible(False)
    axes = figure.add_axes((left / width, 0.62 / height, 1 - (left + 0.1) / width, 1 - 1.04 / height))
    axes.set(xlim=(0, len(grid.columns)), ylim=(len(grid.rows), 0))
    axes.axis("off")
    for column, name in enumerate(grid.columns):
        _text(axes, (column + 0.5, -0.16), label(name), size=13, weight="bold")
        for row in range(len(grid.rows)):
            _cell(axes, (column, row), combos.get(grid.combo(column, row)), colormaps["cividis"])
    for row, name in enumerate(labels):
        _text(axes, (-0.06, row + 0.5), name, size=13, weight="bold", horizontalalignment="right")
    _scale(figure, axes, colormaps["cividis"])
    return figure


def _cell(axes: Axes, place: tuple[int, int], combo: ComboSummary | None, colours: Any) -> None:
    from matplotlib.patches import Rectangle

    column, row = place
    proportion = combo.rate if combo else None
    gap = 0.02
    corner = (column + gap / 2, row + gap * 1.6)
    box = Rectangle(corner, 1 - gap, 1 - 3.2 * gap, linewidth=0)
    axes.add_patch(box)
    if combo is None or proportion is None or proportion.rate is None:
        box.set(facecolor="#80808022")
        _text(axes, (column + 0.5, row + 0.5), _absence(combo), size=11)
        return
    fill = colours(proportion.rate)
    box.set(facecolor=fill)
    ink = "#ffffff" if _luminance(fill) < 0.179 else "#000000"
    absent = _absent(combo)
    middle = row + (0.29 if absent else 0.38)
    _text(axes, (column + 0.5, middle), of(proportion), size=17, weight="bold", color=ink)
    _text(axes, (column + 0.5, middle + 0.31), f"{rate(proportion)} {interval(proportion)}", size=11, color=ink)
    if absent:
        _text(axes, (column + 0.5, middle + 0.54), absent, size=9.5, color=ink)


def _absent(combo: ComboSummary) -> str:
    counts = combo.counts
    assert counts is not None
    parts = [f"{counts.missing} missing"] * bool(counts.missing) + [f"{counts.errored} errored"] * bool(counts.errored)
    return f"{', '.join(parts)} of {counts.planned}" if parts else ""


def _absence(combo: ComboSummary | None) -> str:
    if combo is None:
        return "no such combo"
    if combo.counts is None:
        return f"{combo.unit}s, no rate" if combo.unit == "step" else "no records"
    return f"no verdict: 0 of {combo.counts.planned}"


def _scale(figure: Figure, axes: Axes, colours: Any) -> None:
    """What the colours mean, in a strip below the cells."""
    from matplotlib.patches import Rectangle

    box = axes.get_position()
    height = figure.get_figheight()
    strip = figure.add_axes((box.x0, 0.36 / height, min(box.width, 2.3 / figure.get_figwidth()), 0.1 / height))
    strip.set(xlim=(0, 1), ylim=(0, 1))
    for step in range(32):  # each reaches to the end, under the next, so that no seams show
        strip.add_patch(Rectangle((step / 32, 0), 1 - step / 32, 1, linewidth=0, facecolor=colours(step / 31)))
    strip.axis("off")
    for place, words, alignment in ((0.0, "0", "left"), (0.5, "success rate", "center"), (1.0, "1", "right")):
        _text(strip, (place, -1.2), words, size=9, horizontalalignment=alignment)


def _text(axes: Axes, place: tuple[float, float], words: str, **style: Any) -> None:
    """One line, centred unless the style says otherwise. A `$` in a name is no formula."""
    style = {"color": INK, "horizontalalignment": "center", "verticalalignment": "center", **style}
    axes.text(*place, words, parse_math=False, **style)


def _luminance(colour: tuple[float, float, float, float]) -> float:
    """Relative luminance as WCAG 2 defines it; black and white contrast equally at .179."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour[:3]]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _svg(figure: Figure) -> str:
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        # The page's font draws the text; that the one used for measuring lacks a sign is no news.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        figure.savefig(buffer, format="svg")
    text = buffer.getvalue().decode("utf-8")
    text = text[text.index("<svg") :].replace(INK, "currentColor")
    return _PAGE_WIDE.sub("", text)
