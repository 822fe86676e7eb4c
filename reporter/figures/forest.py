"""Every rate with its interval, policy by policy within an environment, with the letters of the comparisons."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from comborun.reporter.figures.frame import NORMAL, PERCENT, SMALL, WIDTH, Frame, gutter, heading
from comborun.reporter.figures.names import fit
from comborun.reporter.figures.plate import Drawing, Plate
from comborun.reporter.figures.sheet import INK, Sheet, drawing
from comborun.reporter.text import of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comborun.reporter.summary import ComboSummary, Summary

ROW = 0.22
HEAD = 0.34
FOOT = 0.3
LABEL = 1.3
"""inches that a policy's name may take"""


@dataclass(frozen=True)
class _Sides:
    """Inches beside the plot, the same in every environment so that they can be compared by eye."""

    names: float
    counts: float
    letters: float


def forest(summary: Summary) -> Plate | None:
    """None where nothing has a rate."""
    letters = {of_.environment: dict(of_.letters) for of_ in summary.comparisons.environments}
    groups = _rated(summary)
    if not groups:
        return None
    combos = [combo for group in groups.values() for combo in group]
    with drawing():
        sides = _Sides(
            gutter([fit(combo.policy, LABEL, NORMAL) for combo in combos], LABEL) + 0.14,
            gutter([of(combo.rate) for combo in combos], 1.0, SMALL) + 0.1,
            gutter([word for words in letters.values() for word in words.values()], 0.8, NORMAL) + 0.12,
        )
    drawings = tuple(
        Drawing(WIDTH, HEAD + ROW * len(group) + FOOT, partial(_draw, group, letters.get(name, {}), sides))
        for name, group in groups.items()
    )
    lettered = "; policies of an environment that share a letter are not told apart" if any(letters.values()) else ""
    return Plate(
        name="intervals",
        title="Intervals",
        note=f"Success rates in per cent with their 95 % intervals (Clopper-Pearson), and k/n{lettered}.",
        drawings=drawings,
    )


def _rated(summary: Summary) -> dict[str, list[ComboSummary]]:
    """The combos with a rate, by environment."""
    groups: dict[str, list[ComboSummary]] = {}
    for combo in summary.combos:
        if combo.rate and combo.rate.interval:
            groups.setdefault(combo.environment, []).append(combo)
    return groups


def _draw(  # what is drawn, then where
    combos: Sequence[ComboSummary], letters: dict[str, str], sides: _Sides, sheet: Sheet, x: float, y: float
) -> None:
    width = WIDTH - sides.names - sides.counts - sides.letters - 0.1
    frame = Frame(x + sides.names, y + HEAD, width, ROW * len(combos))
    heading(sheet, (x, y + 0.14), combos[0].environment, WIDTH)
    frame.columns(sheet, PERCENT)
    for row, combo in enumerate(combos):
        middle = frame.top + (row + 0.5) * ROW
        sheet.text((frame.left - 0.1, middle), fit(combo.policy, LABEL, NORMAL), NORMAL, "right")
        _interval(sheet, frame, middle, combo)
        sheet.text((x + WIDTH - sides.letters, middle), of(combo.rate), SMALL, "right")
        if combo.policy in letters:
            place = (x + WIDTH - sides.letters + 0.1, middle)
            sheet.text(place, letters[combo.policy], NORMAL, "left", weight="bold")


def _interval(sheet: Sheet, frame: Frame, middle: float, combo: ComboSummary) -> None:
    assert combo.rate
    assert combo.rate.interval
    low, high = combo.rate.interval
    sheet.line([(frame.x(low), middle), (frame.x(high), middle)], INK, 1.6)
    sheet.dot((frame.x(combo.rate.rate or 0.0), middle))
