"""Two kinds of lines per environment: the success rate as episodes accumulate, and when episodes succeed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from comborun.reporter.figures.plate import Drawing, Entry, Plate, key
from comborun.reporter.figures.sheet import ABREAST, PERCENT, SMALL, Frame, heading, look, ticks
from comborun.reporter.text import number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from comborun.reporter.counting.measures import Running
    from comborun.reporter.figures.sheet import Point, Sheet
    from comborun.reporter.summary import ComboSummary, Summary

HEIGHT = 2.1
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
    counted: bool
    """whether the axis holds whole numbers only"""
    held: bool
    """whether a curve keeps its last value to the end of the axis"""

    def draw(self, sheet: Sheet, x: float, y: float) -> None:
        limit = max(point[0] for curve in self.curves for point in curve.points) or 1.0
        frame = Frame(x + 0.5, y + 0.36, ABREAST - 0.62, HEIGHT - 0.86, limits=(0.0, limit))
        heading(sheet, (x, y), self.environment)
        frame.rows(sheet, PERCENT)
        frame.columns(sheet, [(value, number(value)) for value in ticks(limit, least=1.0 if self.counted else 0.0)])
        sheet.text((frame.left + frame.width / 2, frame.top + frame.height + 0.28), self.axis, SMALL)
        for curve in self.curves:
            colour, dashes = look(curve.policy)
            if curve.low:
                sheet.area([frame.at(*point) for point in (*curve.low, *reversed(curve.high))], colour)
            held = [(limit, curve.points[-1][1])] if self.held else []
            sheet.line([frame.at(*point) for point in (*curve.points, *held)], colour, 1.4, dashes)


def cumulative_success(summary: Summary, running: Mapping[tuple[str, str], Running]) -> Plate | None:
    """The success rate of the first i completed episodes, in the order of their index; None without any."""
    plots = []
    for environment in summary.environments:
        curves = tuple(
            _Curve(index, tuple((float(n), successes / n) for n, successes in running[policy, environment]))
            for index, policy in enumerate(summary.policies)
            if (policy, environment) in running
        )
        if any(len(curve.points) > 1 for curve in curves):
            axis = "completed episodes, in the order of their index"
            plots.append(_Plot(environment, axis, curves, counted=True, held=False))
    plate = Plate(
        name="cumulative_success",
        title="Success rate as episodes accumulate",
        note="The success rate in per cent of the first episodes, in the order of their index and not of their"
        " arrival. A line that still drifts at its end says that more episodes are needed.",
        drawings=(),
    )
    return _drawn(plate, plots, summary)


def time_to_success(summary: Summary) -> Plate | None:
    """The share of all episodes that has succeeded by a time; None where no record says when."""
    plots = []
    for environment in summary.environments:
        combos = [combo for combo in summary.combos if combo.environment == environment and _timed(combo)]
        if combos:
            banded = len(combos) <= BANDS
            curves = tuple(_incidence(summary.policies.index(combo.policy), combo, banded=banded) for combo in combos)
            times = [combo.time_to_success for combo in combos if combo.time_to_success]
            axis = ", ".join(dict.fromkeys(f"{time.field} ({time.unit})" for time in times))
            plots.append(_Plot(environment, axis, curves, counted=False, held=True))
    plate = Plate(
        name="time_to_success",
        title="Time to success",
        note="The share in per cent of all completed episodes that has succeeded by a time (cumulative incidence:"
        f" failures stay in the denominator). Bands, where at most {BANDS} policies meet, are 95 % Clopper-Pearson"
        " at each time alone.",
        drawings=(),
    )
    return _drawn(plate, plots, summary)


def _drawn(plate: Plate, plots: Sequence[_Plot], summary: Summary) -> Plate | None:
    """`plate` with its drawings and its key."""
    policies = sorted({curve.policy for plot in plots for curve in plot.curves})
    entries = [Entry(summary.policies[index], *look(index)) for index in policies]
    drawings = tuple(Drawing(ABREAST, HEIGHT, plot.draw) for plot in plots)
    return replace(plate, drawings=drawings, key=key(entries)) if plots else None


def _timed(combo: ComboSummary) -> bool:
    return combo.time_to_success is not None and combo.time_to_success.curve.n > 0


def _incidence(policy: int, combo: ComboSummary, *, banded: bool) -> _Curve:
    assert combo.time_to_success
    curve = combo.time_to_success.curve
    # Of a long curve no more steps than a small plot can show apart, and the last.
    count = len(curve.times)
    shown = sorted({*range(0, count, -(-count // STEPS)), count - 1}) if count else []
    points = [(curve.times[place], curve.successes[place] / curve.n) for place in shown]
    low, high = ([(curve.times[place], curve.band[place][end]) for place in shown if banded] for end in (0, 1))
    return _Curve(policy, tuple(_stairs([(0.0, 0.0), *points])), tuple(_stairs(low)), tuple(_stairs(high)))


def _stairs(points: Sequence[Point]) -> Iterator[Point]:
    """Level until the next point, then up."""
    last: float | None = None
    for time, value in points:
        if last is not None:
            yield time, last
        yield time, value
        last = value
