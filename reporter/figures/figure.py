"""A figure is panels and a legend, which matplotlib draws: one by one for a page, together for files.

The same figure gives the same bytes.
"""

from __future__ import annotations

import io
import logging
import re
import threading
import unicodedata
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from html import escape
from itertools import accumulate, takewhile
from typing import TYPE_CHECKING, Any

from comborun.text import printable, several
from comborun.work import grouped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Sheet

    from comborun.reporter.counting.combo import ComboSummary

    Legend = Mapping[str, Mapping[str, Any]]
    """how the line of each name looks"""

FORMS = ("pdf", "png", "svg")
COLUMN, PAGE = 3.4, 7.0
"""inches: a column of a paper, and both"""
PANELS, MOST = 60, 100
"""of a figure, and rows of a panel"""
ON_PAGE = 16
"""most panels of a figure in a page, of which each takes 30 to 40 ms"""
TOGETHER = 8
"""most panels of a file, so that it fits on a page"""
LABEL = 24
"""most characters of a name in a drawing"""

BLACK, GREY = "#010101", "#7a7a7a"
"""#000000 becomes the text colour of a page, this black doesn't"""
SERIES = ("#007fc7", "#c85800", "#008b65", "#be548f", "#9e7200", "#8367d5", "#008694")
"""hues of M. Okabe and K. Ito with two more, each at a contrast of 4 and more on white, on dark paper and to white"""
DASHES = ("-", "--", ":", "-.")
"""for lines beyond the number of colours"""
LOOKS = len(SERIES) * len(DASHES)

_SETTINGS: dict[Any, Any] = {
    "font.size": 7.5,
    "font.sans-serif": ["DejaVu Sans"],  # matplotlib brings it along
    "axes.labelsize": 7,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#80808060",
    "legend.frameon": False,
    "legend.borderpad": 0,
    "lines.linewidth": 1.4,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "text.parse_math": False,  # a `$` in a name is not a formula
    "xtick.labelsize": 7,
    **{f"axes.spines.{side}": False for side in ("left", "right", "top", "bottom")},
    **{f"{axis}tick.major.size": 0 for axis in "xy"},
}
_FILES: Mapping[str, dict[str, Any]] = {
    "pdf": {"dpi": 200, "metadata": {"CreationDate": None}},
    "png": {"metadata": {"Software": None}, "dpi": 200, "pil_kwargs": {"compress_level": 3}},
    "svg": {"dpi": 200, "metadata": dict.fromkeys(("Creator", "Date", "Format", "Type"))},
}
_LOCK = threading.RLock()
"""matplotlib's settings belong to the process, not to a thread"""


@contextmanager
def _settings(salt: str) -> Iterator[Any]:
    """Ours, whatever a user's matplotlibrc says. Ids in an SVG are made with `salt`."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # it tells where it keeps its list of fonts
    import matplotlib as mpl

    with _LOCK, mpl.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        mpl.rcdefaults()
        mpl.rcParams.update({**_SETTINGS, "svg.hashsalt": salt})
        yield mpl.rcParams


@dataclass(frozen=True, eq=False)
class Panel:
    """A plot; sizes in inches."""

    title: str
    height: float
    draw: Callable[[Axes], None]
    below: float = 0.2
    above: float = 0.08
    width: float = COLUMN
    """with what stands beside the plot"""
    labels: Sequence[str] = ("100",)
    """left of it"""
    beside: Sequence[str] = ()
    """right of it"""


@dataclass(frozen=True, eq=False)
class Figure:
    name: str
    """of its files, and the anchor in a page"""
    title: str
    note: str
    panels: tuple[Panel, ...]
    legend: Legend = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The legend as SVG for a page."""
        with _settings(self.name):
            return _inline(_sheet((), self.legend), "What the colours mean")

    def drawings(self, *, titled: bool = True) -> list[str]:
        """SVG for a page, with no id twice and black as the colour of its text."""
        drawn = []
        with _settings("") as settings:
            for number, panel in enumerate(self.panels[:ON_PAGE]):
                settings["svg.hashsalt"] = f"{self.name} {number}"
                shown = panel if titled else replace(panel, title="")
                drawn.append(_inline(_sheet([shown], {}), f"{self.title}: {panel.title}".removesuffix(": ")))
        return drawn

    def files(self, forms: Sequence[str]) -> dict[str, bytes]:
        """By name: `intervals.pdf`, then `intervals-2.pdf` for more than TOGETHER panels."""
        made: dict[str, bytes] = {}
        for start in range(0, len(self.panels) if forms else 0, TOGETHER):
            name = f"{self.name}-{start // TOGETHER + 1}" if start else self.name
            with _settings(name):
                sheet = _sheet(self.panels[start : start + TOGETHER], self.legend)
                for form in forms:
                    buffer = io.BytesIO()
                    sheet.savefig(buffer, format=form, **_FILES[form])
                    made[f"{name}.{form}"] = buffer.getvalue()
        return made


def _sheet(panels: Sequence[Panel], legend: Legend) -> Sheet:
    """The panels in two columns, below the legend."""
    from matplotlib.figure import Figure as Sheet  # not pyplot's, which would outlive its call
    from matplotlib.lines import Line2D

    names = [fit(name) for name in legend]
    each = max(map(_measure, names), default=0) + 0.5
    columns = min(int(PAGE / each), max(1, len(names)))
    top = 0.17 * -(-len(names) // columns)
    rows = [panels[at : at + 2] for at in range(0, len(panels), 2)]
    tops = [*accumulate((max(map(_height, row)) for row in rows), initial=top + 0.1 if names and panels else top)]
    width, height = max([sum(panel.width for panel in row) for row in rows], default=columns * each), tops[-1]
    sheet = Sheet(figsize=(width, height), facecolor="none")
    if names:
        lines = [Line2D([], [], label=name, **look) for name, look in zip(names, legend.values(), strict=True)]
        sheet.legend(handles=lines, ncols=columns, loc="upper left", borderaxespad=0, columnspacing=1)
    for row, place in zip(rows, tops, strict=False):
        for number, panel in enumerate(row):
            left = panel.width * number + max(map(_measure, panel.labels), default=0) + 0.1
            right = panel.width * (number + 1) - max(map(_measure, panel.beside), default=0.05) - 0.15
            low = place + _height(panel) - panel.below
            box = (left / width, 1 - low / height, (right - left) / width, panel.height / height)
            panel.draw(sheet.add_axes(box))
            corner = (panel.width * number / width, 1 - (place + 0.06) / height)
            sheet.text(*corner, panel.title, size=8, weight="bold", va="top")
    return sheet


def _height(panel: Panel) -> float:
    return panel.height + panel.above + panel.below + (0.16 if panel.title else 0)


@lru_cache(maxsize=4096)
def _measure(words: str) -> float:
    """The width of a line of the most usual size in inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(family="DejaVu Sans", size=7.5)
    return text_to_path.get_text_width_height_descent(words, font, ismath=False)[0] / 72


def _inline(sheet: Sheet, label: str) -> str:
    buffer = io.StringIO()
    sheet.savefig(buffer, format="svg", **_FILES["svg"])
    svg = buffer.getvalue()
    svg = re.sub(r"<defs>\s*<style.*?</defs>", "", svg[svg.index("<svg") :], count=1, flags=re.DOTALL)
    needless = r""" id="[\w.]+_\d+"|font-family: [^;"]*;? ?|(?<=\n) +| transform="rotate\(-0 [^)]*\)\""""
    svg = re.sub(needless, "", svg).replace("#000000", "currentColor")
    # In ems, as the text around it; 110 pixels for an inch where that has 16.
    size = f'width="{sheet.get_figwidth() * 110 / 16:.2f}em" role="img" aria-label="{escape(printable(label))}"'
    return re.sub(r'width="[\d.]+pt" height="[\d.]+pt"', lambda _: size, svg, count=1)


def figure_of(name: str, title: str, note: str, panels: Sequence[Panel], legend: Legend) -> Figure | None:
    """The first PANELS; None without any."""
    rest = len(panels) - PANELS
    more = f" {several(rest, 'drawing')} beyond the first {PANELS} not shown." if rest > 0 else ""
    titles = fit_apart([panel.title for panel in panels], 40)
    shown = tuple(replace(panel, title=one) for panel, one in zip(panels[:PANELS], titles, strict=False))
    return Figure(name, title, note + more, shown, legend) if panels else None


def by_environment(combos: Iterable[ComboSummary], row: float, draw: Callable[..., None]) -> list[Panel]:
    """A panel for each environment with a row for each policy, `row` inches high. `draw` is called with the combos."""
    groups = {name: group[:MOST] for name, group in grouped(combos, lambda combo: combo.environment).items()}
    return [
        Panel(name, row * len(group), partial(draw, combos=group), labels=[fit(combo.policy) for combo in group])
        for name, group in groups.items()
    ]


def per_cent(axes: Axes, combos: Sequence[ComboSummary]) -> None:
    """Per cent across, and a row for each policy."""
    axes.set_xlim(0, 100)
    axes.set_xticks((0, 50, 100))
    axes.set_ylim(len(combos) - 0.5, -0.5)
    axes.set_yticks(())
    for row, combo in enumerate(combos):  # ticks are three times as slow
        axes.text(-2, row, fit(combo.policy), ha="right", va="center")


def look(index: int) -> Mapping[str, Any]:
    """Of the line of the policy with this index."""
    return {"color": SERIES[index % len(SERIES)], "linestyle": DASHES[index // len(SERIES) % len(DASHES)]}


# -- names that fit ---------------------------------------------------------------------------------------------------

_SEAM = re.compile(r"(?<=[_\-/. ])(?=[^_\-/. ])")


def fit(name: str, most: int = LABEL) -> str:
    """At most so many characters, wide ones counted twice: the name, or both its ends, where similar names differ."""
    text = printable(name)
    if any(unicodedata.east_asian_width(sign) in "WF" for sign in text[: 2 * most]):
        most = max(most // 2, 2)
    return text if len(text) <= most else shortened(text, most - 1)


def fit_apart(names: Sequence[str], most: int = LABEL) -> list[str]:
    """As `fit`; if two would look the same, without the words that all have in common."""
    shown = [fit(name, most) for name in names]
    if len({*shown}) == len({*names}):
        return shown
    parts = [_SEAM.split(name) for name in names]
    start = _alike(parts)
    end = _alike([one[:start:-1] for one in parts])
    marks = ("…" if start else "", "…" if end else "")
    middles = ("".join(one[start : len(one) - end]).strip() for one in parts)
    return [fit(middle.join(marks), most) for middle in middles]


def _alike(parts: Sequence[Sequence[str]]) -> int:
    """How many parts are the same in all, from the first one on."""
    return sum(1 for _ in takewhile(lambda column: len({*column}) == 1, zip(*parts, strict=False)))


def shortened(text: str, kept: int) -> str:
    """So many characters of both its ends."""
    return f"{text[: (kept + 1) // 2]}…{text[len(text) - kept // 2 :]}"
