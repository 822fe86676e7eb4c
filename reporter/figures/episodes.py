"""How episodes went: the success rate as they accumulate, when they succeed, and why they fail."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from comborun.reporter.figures.canvas import (
    ABREAST,
    DASHES,
    FAINT,
    NORMAL,
    PERCENT,
    SERIES,
    SMALL,
    Canvas,
    Frame,
    fit,
    gutter,
    heading,
    ink_on,
    look,
    measure,
    ticks,
)
from comborun.reporter.figures.plate import Drawing, Entry, Plate, key
from comborun.reporter.text import number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from comborun.reporter.counting.measures import FailureKinds, Running
    from comborun.reporter.figures.canvas import Canvas, Point
    from comborun.reporter.summary import ComboSummary, Summary

HEIGHT = 2.0
STEPS = 36
BANDS = 3
"""policies whose bands can be told apart in one plot"""
CURVES = len(SERIES) * len(DASHES)
"""policies in one plot: of more, the first in the report's order"""
BARS = 100
"""policies in one plot of failure kinds"""


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

    def draw(self, canvas: Canvas, x: float, y: float) -> None:
        limit = max(point[0] for curve in self.curves for point in curve.points) or 1.0
        frame = Frame(x + 0.5, y + 0.36, ABREAST - 0.62, HEIGHT - 0.86, limits=(0.0, limit))
        heading(canvas, (x, y), self.environment)
        frame.rows(canvas, PERCENT)
        frame.columns(canvas, [(value, number(value)) for value in ticks(limit, least=1.0 if self.counted else 0.0)])
        canvas.text((frame.left + frame.width / 2, frame.top + frame.height + 0.28), self.axis, SMALL)
        for curve in self.curves:
            colour, dashes = look(curve.policy)
            if curve.low:
                canvas.area([frame.at(*point) for point in (*curve.low, *reversed(curve.high))], colour)
            held = [(limit, curve.points[-1][1])] if self.held else []
            canvas.line([frame.at(*point) for point in (*curve.points, *held)], colour, 1.4, dashes)


def cumulative_success(summary: Summary, running: Mapping[tuple[str, str], Running]) -> Plate | None:
    """The success rate of the first i completed episodes, in the order of their index; None without any."""
    plots = []
    for environment in summary.environments:
        curves = tuple(
            _Curve(index, tuple((float(n), successes / n) for n, successes in running[policy, environment]))
            for index, policy in enumerate(summary.policies[:CURVES])
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
        combos = [combo for combo in summary.combos if combo.environment == environment]
        for axis in dict.fromkeys(_timed(combo) for combo in combos):  # seconds and steps share no axis
            timed = [combo for combo in combos if axis and _timed(combo) == axis][:CURVES]
            banded = len(timed) <= BANDS
            curves = tuple(_incidence(summary.policies.index(combo.policy), combo, banded=banded) for combo in timed)
            if curves:
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


def trends(summary: Summary) -> Plate | None:
    """The rates of checkpoints by step, in a band that holds for all at once; None without such policies."""
    plots = []
    for index, trend in enumerate(summary.trends):
        points = tuple((one.step, one.rate) for one in trend.checkpoints)
        low, high = (tuple((one.step, one.interval[end]) for one in trend.checkpoints) for end in (0, 1))
        title = f"{trend.checkpoints[0].policy} to {trend.checkpoints[-1].policy}"
        plots.append(_Plot(title, "step", (_Curve(index % CURVES, points, low, high),), counted=False, held=False))
    plate = Plate(
        name="trends",
        title="Checkpoints by step",
        note="Mean success rates in per cent over the environments that all checkpoints have, and a band that covers"
        " all of a curve at 95 % (Bonferroni), so that it also holds for the one that is picked.",
        drawings=tuple(
            Drawing(f"Checkpoints by step: {plot.environment}", ABREAST, HEIGHT, plot.draw) for plot in plots
        ),
    )
    return plate if plots else None


def _drawn(plate: Plate, plots: Sequence[_Plot], summary: Summary) -> Plate | None:
    """`plate` with its drawings and its key."""
    policies = sorted({curve.policy for plot in plots for curve in plot.curves})
    entries = [Entry(summary.policies[index], *look(index)) for index in policies]
    drawings = tuple(Drawing(f"{plate.title}: {plot.environment}", ABREAST, HEIGHT, plot.draw) for plot in plots)
    return replace(plate, drawings=drawings, key=key(entries)) if plots else None


def _timed(combo: ComboSummary) -> str:
    """The axis that its times belong on; empty where no record has one."""
    time = combo.time_to_success
    return f"{time.field} ({time.unit})" if time and time.curve.n > 0 else ""


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


# -- why episodes failed: a bar per policy, in the words of the records -----------------------------------------------

ROW = 0.21
HEAD = 0.34
FOOT = 0.26
LABEL = 1.1
NUMBERED = 80
"""combos whose bars carry numbers; of more, the table below the figure has them"""
OTHER, UNTOLD, ERRORED = "other kinds", "not told", "errored"
REST = {OTHER: "#666666", UNTOLD: "#b0b0b0", ERRORED: SERIES[-2]}
SPARE = SERIES[:-2]
"""colours of the most frequent kinds"""


def failure_kinds(summary: Summary) -> Plate | None:
    """None where no record says how it failed."""
    if not any(combo.failures and combo.failures.field for combo in summary.combos):
        return None
    by_combo = {combo.key: combo.failures for combo in summary.combos if combo.failures and _tells(combo)}
    totals = Counter[str]()
    for failures in by_combo.values():
        totals.update(dict(failures.counts))
    most = (kind for kind, _ in totals.most_common(len(SPARE)))
    every = {**dict(zip(most, SPARE, strict=False)), **REST}
    seen = {colour for failures in by_combo.values() for colour, _ in _segments(failures, every)}
    colours = {kind: colour for kind, colour in every.items() if colour in seen}
    numbered = len(by_combo) <= NUMBERED
    groups = [
        [combo for combo in summary.combos if combo.key in by_combo and combo.environment == name][:BARS]
        for name in summary.environments
    ]
    return Plate(
        name="failure_kinds",
        title="Failure kinds",
        note="The share in per cent of all episodes with a record that failed, or were errored, in the words of their"
        f" records; what a bar leaves free succeeded.{' Numbers in the bars are episodes.' * numbered}",
        drawings=tuple(
            Drawing(
                f"Failure kinds: {combos[0].environment}",
                ABREAST,
                HEAD + ROW * len(combos) + FOOT,
                _Bars(combos, colours, numbered).draw,
            )
            for combos in groups
            if combos
        ),
        key=key([Entry(kind, colour) for kind, colour in colours.items()]),
    )


def _tells(combo: ComboSummary) -> bool:
    """Whether its records say how it failed, or it never did."""
    if combo.failures is None or combo.counts is None:
        return False
    return combo.failures.field is not None or (combo.counts.completed > 0 and combo.failures.total == 0)


def _segments(failures: FailureKinds, colours: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    """Colour and episodes, in the order of the key."""
    found = Counter({UNTOLD: failures.untold, ERRORED: failures.errored, OTHER: failures.other})
    for kind, count in failures.counts:
        found[kind if kind in colours else OTHER] += count
    yield from ((colour, found[kind]) for kind, colour in colours.items() if found[kind])


@dataclass(frozen=True)
class _Bars:
    combos: Sequence[ComboSummary]
    colours: Mapping[str, str]
    """of the kinds that there are, in the order of the key"""
    numbered: bool

    def draw(self, canvas: Canvas, x: float, y: float) -> None:
        names = [fit(combo.policy, LABEL, NORMAL) for combo in self.combos]
        left = gutter(names, LABEL) + 0.14
        frame = Frame(x + left, y + HEAD, ABREAST - left - 0.25, ROW * len(self.combos))
        heading(canvas, (x, y), self.combos[0].environment)
        for row, (combo, name) in enumerate(zip(self.combos, names, strict=True)):
            assert combo.failures
            assert combo.counts
            middle = frame.top + (row + 0.5) * ROW
            episodes = combo.counts.completed + combo.counts.errored
            canvas.text((frame.left - 0.1, middle), name, NORMAL, "right")
            canvas.box((frame.left, middle - 0.07), frame.width, 0.14, FAINT, 0.12)
            start = 0
            for colour, count in _segments(combo.failures, self.colours):
                place, width = frame.x(start / episodes), frame.width * count / episodes
                canvas.box((place, middle - 0.07), width, 0.14, colour)
                if self.numbered and width > measure(str(count), SMALL) + 0.05:
                    canvas.text((place + width / 2, middle), str(count), SMALL, colour=ink_on(colour))
                start += count
        frame.columns(canvas, PERCENT)
