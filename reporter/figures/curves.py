"""Two kinds of lines per environment: the success rate as episodes accumulate, and when episodes succeed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from comborun.reporter.figures.colours import look
from comborun.reporter.figures.frame import PERCENT, SMALL, WIDTH, Frame, heading, ticks
from comborun.reporter.figures.key import Entry, key
from comborun.reporter.figures.plate import Drawing, Plate
from comborun.reporter.text import number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from comborun.reporter.counting.measures import Running
    from comborun.reporter.figures.sheet import Point, Sheet
    from comborun.reporter.summary import ComboSummary, Summary

HEIGHT = 2.1
EPISODES = "completed episodes, in the order of their index"
STEPS = 36
BANDS = 3
"""policies whose bands can be told apart in one plot"""


@dataclass(frozen=True)
class _Curve:
    policy: int
    """its place in the report's order, which gives its look"""
    points: tuple[Point, ...]
    low: tuple[Point, ...] = ()
    high: tuple[Point, ...] = ()
    """the band around it; empty without one"""


@dataclass(frozen=True)
class _Plot:
    environment: str
    axis: str
    curves: tuple[_Curve, ...]
    counted: bool = False
    """whether the axis holds whole numbers only"""
    held: bool = False
    """whether a curve keeps its last value to the end of the axis"""


def cumulative_success(summary: Summary, running: Mapping[tuple[str, str], Running]) -> Plate | None:
    """The success rate of the first i completed episodes, in the order of their index; None without any."""
    plots = []
    for environment in summary.environments:
        curves = [
            _Curve(index, _running_points(running[policy, environment]))
            for index, policy in enumerate(summary.policies)
            if (policy, environment) in running
        ]
        if any(len(curve.points) > 1 for curve in curves):
            plots.append(_Plot(environment, EPISODES, tuple(curves), counted=True))
    return _plate(
        summary,
        plots,
        Plate(
            name="cumulative_success",
            title="Success rate as episodes accumulate",
            note="The success rate in per cent of the first episodes, in the order of their index and not of their"
            " arrival. A line that still drifts at its end says that more episodes are needed.",
            drawings=(),
        ),
    )


def time_to_success(summary: Summary) -> Plate | None:
    """The share of all episodes that has succeeded by a time; None where no record says when."""
    plots = []
    for environment in summary.environments:
        timed = [combo for combo in summary.combos if combo.environment == environment and _timed(combo)]
        if timed:
            banded = len(timed) <= BANDS
            curves = tuple(_incidence(summary.policies.index(combo.policy), combo, banded=banded) for combo in timed)
            plots.append(_Plot(environment, _axis(timed), curves, held=True))
    return _plate(
        summary,
        plots,
        Plate(
            name="time_to_success",
            title="Time to success",
            note="The share in per cent of all completed episodes that has succeeded by a time (cumulative incidence:"
            f" failures stay in the denominator). Bands, where at most {BANDS} policies meet, are 95 % Clopper-Pearson"
            " at each time alone.",
            drawings=(),
        ),
    )


def _plate(summary: Summary, plots: Sequence[_Plot], plate: Plate) -> Plate | None:
    if not plots:
        return None
    drawings = tuple(Drawing(WIDTH, HEIGHT, partial(_draw, plot)) for plot in plots)
    drawn = {curve.policy for plot in plots for curve in plot.curves}
    entries = [Entry(summary.policies[index], *look(index)) for index in sorted(drawn)]
    return Plate(plate.name, plate.title, plate.note, drawings, key(entries))


def _draw(plot: _Plot, sheet: Sheet, x: float, y: float) -> None:
    limit = max(point[0] for curve in plot.curves for point in curve.points) or 1.0
    frame = Frame(x + 0.5, y + 0.36, WIDTH - 0.62, HEIGHT - 0.86, limits=(0.0, limit))
    heading(sheet, (x, y + 0.14), plot.environment, WIDTH)
    frame.rows(sheet, PERCENT)
    frame.columns(sheet, [(value, number(value)) for value in ticks(limit, least=1.0 if plot.counted else 0.0)])
    sheet.text((frame.left + frame.width / 2, frame.top + frame.height + 0.28), plot.axis, SMALL)
    for curve in plot.curves:
        colour, dashes = look(curve.policy)
        if curve.low:
            band = [frame.at(*point) for point in (*curve.low, *reversed(curve.high))]
            sheet.area(band, colour, 0.16)
        held = [(limit, curve.points[-1][1])] if plot.held else []
        sheet.line([frame.at(*point) for point in (*curve.points, *held)], colour, 1.4, dashes)


def _running_points(found: Running) -> tuple[Point, ...]:
    return tuple((float(n), successes / n) for n, successes in found)


def _timed(combo: ComboSummary) -> bool:
    return combo.time_to_success is not None and combo.time_to_success.curve.n > 0


def _axis(combos: Sequence[ComboSummary]) -> str:
    """What the times are, in the words of the records."""
    found = dict.fromkeys(
        (combo.time_to_success.field, combo.time_to_success.unit) for combo in combos if combo.time_to_success
    )
    return ", ".join(f"{field} ({unit})" for field, unit in found)


def _incidence(policy: int, combo: ComboSummary, *, banded: bool) -> _Curve:
    assert combo.time_to_success
    curve = combo.time_to_success.curve
    shown = _places(len(curve.times))
    low = [(curve.times[place], curve.band[place][0]) for place in shown if banded]
    high = [(curve.times[place], curve.band[place][1]) for place in shown if banded]
    points = [(curve.times[place], curve.successes[place] / curve.n) for place in shown]
    return _Curve(policy, tuple(_stairs([(0.0, 0.0), *points])), tuple(_stairs(low)), tuple(_stairs(high)))


def _places(count: int) -> Sequence[int]:
    """Of a long curve no more steps than a small plot can show apart; the last is always one."""
    step = -(-count // STEPS)
    return sorted({*range(0, count, step or 1), count - 1}) if count else ()


def _stairs(points: Sequence[Point]) -> list[Point]:
    """Level until the next point, then up."""
    found: list[Point] = []
    for time, value in points:
        if found:
            found.append((time, found[-1][1]))
        found.append((time, value))
    return found
