"""Success rates: a heat map of all combos, and each environment's rates with their intervals."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import ceil, nan
from typing import TYPE_CHECKING, Any

from comborun.reporter.figures.figure import (
    BLACK,
    MOST,
    PAGE,
    Figure,
    Panel,
    by_environment,
    figure_of,
    fit,
    fit_apart,
    per_cent,
)
from comborun.reporter.text import interval, of, rate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from matplotlib.axes import Axes

    from comborun.reporter.counting.combo import ComboSummary
    from comborun.reporter.summary import Summary
    from comborun.work import Combo

WORDED, NUMBERED, CHARACTER = 1.3, 0.22, 0.068
"""inches from which on a cell holds its interval, and a number; and of a character"""
DARK = 0.45
"""cells of lower rates are too dark for black text"""


def heat_map(summary: Summary) -> Figure | None:
    grid = summary.axes
    if grid is None:
        return None
    columns, rows = grid.columns[:MOST], grid.rows[:MOST]
    heads, labels = fit_apart(columns), fit_apart(rows)
    left = CHARACTER * max(map(len, labels)) + 0.4
    width = min((PAGE - left) / len(columns), 1.5)
    height = 0.5 if width >= WORDED else 0.2 if len(rows) <= 40 else 0.12
    most = max((len(of(combo.rate)) for combo in summary.combos), default=0)
    above = 0.2
    words: Callable[[ComboSummary | None], str] | None = _claim
    if width >= WORDED:
        heads = fit_apart(columns, int(width / CHARACTER))
        note = "Successes of completed episodes, and the rate with its 95 % interval (Clopper-Pearson)."
    else:
        above += CHARACTER * max(map(len, heads))
        words = _count if width >= CHARACTER * most + 0.05 else _per_cent
        shown = "Successes of completed episodes" if words is _count else "Success rates, rounded to whole per cent"
        note = f"{shown}; a star marks missing or errored episodes."
        if width < NUMBERED or height < 0.2:
            words = None
            note = "A colour for each combo's success rate. The tables and summary.csv have the numbers."
    if max(len(grid.rows), len(grid.columns)) > MOST:
        shown = f"{len(rows)} of {len(grid.rows)} rows and {len(columns)} of {len(grid.columns)} columns."
        note += f" The first {shown}"
    combos = {combo.key: combo for combo in summary.combos}
    cells = [[combos.get(grid.combo(column, row)) for column in columns] for row in rows]

    def draw(axes: Axes) -> None:
        axes.set_facecolor("#80808050")
        axes.grid(visible=False)
        rates = [[nan if (share := _rate(cell)) is None else share for cell in line] for line in cells]
        look: Any = {"edgecolors": "#80808080", "linewidth": 0.3} if words else {"rasterized": True}
        map_ = axes.pcolormesh(rates, cmap="cividis", vmin=0, vmax=1, **look)
        axes.invert_yaxis()
        axes.xaxis.tick_top()
        step = ceil(0.11 / width)  # so that labels don't overlap
        axes.set_xticks([place + 0.5 for place in range(0, len(columns), step)], heads[::step])
        axes.set_yticks([place + 0.5 for place in range(len(rows))], labels)
        axes.tick_params("x", rotation=0 if words is _claim else 90)
        for down, line in enumerate(cells if words else ()):
            for across, cell in enumerate(line):
                ink = "black" if (share := _rate(cell)) is None else "white" if share < DARK else BLACK
                axes.text(
                    across + 0.5, down + 0.5, words(cell) if words else "", color=ink, size=7, ha="center", va="center"
                )
        wide, high = width * len(columns), height * len(rows)
        place = axes.inset_axes((0, -0.15 / high, 1.5 / wide, 0.1 / high))
        bar = axes.figure.colorbar(map_, cax=place, orientation="horizontal", ticks=(0, 1))
        bar.set_label("success rate", labelpad=-6)
        bar.outline.set_visible(False)

    panel = Panel("", height * len(rows), draw, 0.34, above, left + max(width * len(columns), 1.5), labels)
    return Figure("success_rates", "Success rates", note, (panel,))


def _rate(combo: ComboSummary | None) -> float | None:
    return combo.rate.rate if combo and combo.rate else None


def _absent(combo: ComboSummary) -> str:
    lacking = ((combo.counts.missing, "missing"), (combo.counts.errored, "errored")) if combo.counts else ()
    return ", ".join(f"{count} {word}" for count, word in lacking if count)


def _claim(combo: ComboSummary | None) -> str:
    if combo is None:
        return "no such combo"
    if combo.counts is None:
        return f"{combo.unit}s, no rate" if combo.unit == "step" else "no records"
    if _rate(combo) is None:
        return f"no verdict: 0 of {combo.counts.planned}"
    return f"{of(combo.rate)}\n{rate(combo.rate)} {interval(combo.rate)}\n{_absent(combo)}".strip()


def _count(combo: ComboSummary | None) -> str:
    return "–" if combo is None or _rate(combo) is None else of(combo.rate) + "*" * bool(_absent(combo))


def _per_cent(combo: ComboSummary | None) -> str:
    found = _rate(combo)
    if combo is None or found is None:
        return "–"
    whole = round(100 * found)
    if found not in {0, 1}:  # only these are rounded to
        whole = min(max(whole, 1), 99)
    return f"{whole}{'*' * bool(_absent(combo))}"


def intervals(summary: Summary) -> Figure | None:
    """Every rate with its interval, and the letters of the comparisons. None where nothing has a rate."""
    combos = [combo for combo in summary.combos if combo.rate and combo.rate.interval]
    letters = {combo.key: fit(summary.comparisons.letters_of(*combo.key), 8) for combo in combos}
    beside = [f"{of(combo.rate)} {letters[combo.key]}" for combo in combos]
    panels = by_environment(combos, 0.19, partial(_intervals, letters=letters))
    lettered = "; policies of an environment that share a letter are not told apart" if any(letters.values()) else ""
    note = f"Success rates in per cent with their 95 % intervals (Clopper-Pearson), and k/n{lettered}."
    panels = [replace(panel, beside=beside) for panel in panels]  # as much room in all, so that they can be compared
    return figure_of("intervals", "Intervals", note, panels, {})


def _intervals(axes: Axes, combos: Sequence[ComboSummary], letters: Mapping[Combo, str]) -> None:
    rates = [100 * (_rate(combo) or 0.0) for combo in combos]
    ends = [
        100 * end for combo in combos for end in (combo.rate.interval if combo.rate and combo.rate.interval else ())
    ]
    errors = [[abs(one - end) for one, end in zip(rates, ends[side::2], strict=True)] for side in (0, 1)]
    axes.errorbar(rates, range(len(rates)), xerr=errors, fmt="o", color="black", markersize=4, clip_on=False)
    per_cent(axes, combos)
    for row, combo in enumerate(combos):
        axes.text(104, row, f"{of(combo.rate)} {letters[combo.key]}".rstrip(), va="center")
