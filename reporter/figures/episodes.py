"""How episodes went: the success rate as they accumulate and by checkpoint, when they succeed, and why they fail; and
curves of trainings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil

from comborun.reporter.counting.combo import ComboSummary
from comborun.reporter.counting.measures import FailureKinds, Running
from comborun.reporter.counting.trainings import Training, TrainingCurve
from comborun.reporter.figures.figure import (
    COLUMN,
    GREY,
    NORMAL,
    PANELS,
    PERCENT,
    SERIES,
    SMALL,
    STYLES,
    Axes,
    Figure,
    Panel,
    Point,
    TextStyle,
    ink_on,
    left_out,
    legend,
    room,
    series,
    spread,
    ticks,
    titled,
)
from comborun.reporter.figures.labels import fit_apart, measure
from comborun.reporter.summary import Summary
from comborun.reporter.text import number
from comborun.rules.curves.metrics import EVALUATION, ROLES

HEIGHT = 2.0
STEPS = 36
BANDS = 3


@dataclass(frozen=True)
class _Curve:
    style: int
    """of the policy, for `series`"""
    points: tuple[Point, ...]
    band: tuple[Point, ...] = ()
    """its outline; empty without one"""


_Plot = tuple[str, str, tuple[_Curve, ...]]
"""title, title of the axis, and curves"""


def _panel(figure: str, plot: _Plot, least: float) -> Panel:
    title, axis, curves = plot
    panel = titled(Panel(f"{figure}: {title}", COLUMN, HEIGHT), title)
    limit = max(point[0] for curve in curves for point in curve.points) or 1.0
    axes = Axes(0.5, 0.36, COLUMN - 0.62, HEIGHT - 0.86, x_limit=limit)
    axes.y_ticks(panel, PERCENT, "success rate (%)")
    axes.x_ticks(panel, [(value, number(value)) for value in ticks(limit, least=least)], axis)
    for curve in curves:
        style = series(curve.style)
        if curve.band:
            panel.area([axes.at(*point) for point in curve.band], style.colour)
        panel.lines([[axes.at(*point) for point in curve.points]], style)
    return panel


def cumulative_success(summary: Summary, running: Mapping[tuple[str, str], Running]) -> Figure | None:
    """The success rate of the first i completed episodes, in the order of their index; None without any."""
    plots = []
    for environment in summary.environments:
        curves = tuple(
            _Curve(index, tuple((float(n), successes / n) for n, successes in running[policy, environment]))
            for index, policy in enumerate(summary.policies[:STYLES])
            if (policy, environment) in running
        )
        if any(len(curve.points) > 1 for curve in curves):
            plots.append((environment, "completed episodes, in the order of their index", curves))
    note = (
        "The success rate in per cent of the first episodes, in the order of their index and not of their arrival. A"
        " line that still drifts at its end says that more episodes are needed."
    )
    return _figure("cumulative_success", "Success rate as episodes accumulate", note, plots, summary, least=1.0)


def time_to_success(summary: Summary) -> Figure | None:
    """The share of all episodes that has succeeded by a time; None where no record says when."""
    plots = []
    for environment in summary.environments:
        combos = [combo for combo in summary.combos if combo.environment == environment]
        for axis in dict.fromkeys(filter(None, map(_time_axis, combos))):  # seconds and steps share no axis
            timed = [combo for combo in combos if _time_axis(combo) == axis][:STYLES]
            plots.append((environment, axis, _incidences(timed, summary.policies)))
    note = (
        "The share in per cent of all completed episodes that has succeeded by a time (cumulative incidence: failures"
        f" stay in the denominator). Bands, where at most {BANDS} policies meet, are 95 % Clopper-Pearson at each time"
        " alone."
    )
    return _figure("time_to_success", "Time to success", note, plots, summary)


def trends(summary: Summary) -> Figure | None:
    """The rates of checkpoints by step, in a band that holds for all at once; None without such policies."""
    plots = []
    for index, trend in enumerate(summary.trends):
        first, last = trend.checkpoints[0], trend.checkpoints[-1]
        points = tuple((one.step, one.rate) for one in trend.checkpoints)
        low, high = ([(one.step, one.interval[end]) for one in trend.checkpoints] for end in (0, 1))
        plots.append((f"{first.policy} to {last.policy}", "step", (_Curve(index, points, (*low, *high[::-1])),)))
    note = (
        "Mean success rates in per cent over the environments that all checkpoints have, and a band that covers all of"
        " a curve at 95 % (Bonferroni), so that it also holds for the one that is picked."
    )
    return _figure("trends", "Checkpoints by step", note, plots)


def _figure(
    name: str, title: str, note: str, plots: Sequence[_Plot], summary: Summary | None = None, least: float = 0.0
) -> Figure | None:
    panels = tuple(_panel(title, plot, least) for plot in plots[:PANELS])
    shown = sorted({curve.style for _, _, curves in plots for curve in curves})
    key = legend([(summary.policies[style], series(style, 1.8)) for style in shown]) if summary else None
    return Figure(name, title, note + left_out(len(plots)), panels, key) if panels else None


def _time_axis(combo: ComboSummary) -> str:
    time = combo.time_to_success
    if not time or time.curve.n == 0:
        return ""
    return time.field if time.field == time.unit else f"{time.field} ({time.unit})"


def _incidences(combos: Sequence[ComboSummary], policies: Sequence[str]) -> tuple[_Curve, ...]:
    """Each level until its next point, then up; the last value holds to the end of the axis."""
    timed = [(policies.index(one.policy), one.time_to_success.curve) for one in combos if one.time_to_success]
    limit = max((time for _, curve in timed for time in curve.times), default=0.0)
    found = []
    for style, curve in timed:
        count = len(curve.times)
        shown = sorted({*range(0, count, -(-count // STEPS)), count - 1}) if count else []
        points = [(0.0, 0.0), *((curve.times[step], curve.successes[step] / curve.n) for step in shown)]
        banded = shown if len(timed) <= BANDS else ()
        low, high = ([(curve.times[step], curve.band[step][end]) for step in banded] for end in (0, 1))
        points.append((limit, points[-1][1]))
        found.append(_Curve(style, tuple(_stairs(points)), (*_stairs(low), *reversed([*_stairs(high)]))))
    return tuple(found)


def _stairs(points: Sequence[Point]) -> Iterator[Point]:
    yield from points[:1]
    for (_, last), (time, value) in pairwise(points):
        yield time, last
        yield time, value


# -- why episodes failed: a bar per policy, in the words of the records -----------------------------------------------

ROW, HEAD, FOOT = 0.21, 0.34, 0.4
POLICY = 1.1
BARS = 100
NUMBERED = 80
"""most combos whose bars carry numbers"""
OTHER, UNTOLD, ERRORED = "other kinds", "not told", "errored"
REST = {OTHER: "#666666", UNTOLD: "#b0b0b0", ERRORED: "#e0b000"}


def failure_kinds(summary: Summary) -> Figure | None:
    if not any(combo.failures and combo.failures.field for combo in summary.combos):
        return None
    combos = [combo for combo in summary.combos if _tells(combo)]
    totals = Counter[str]()
    for combo in combos:
        totals.update(combo.failures.kinds if combo.failures else {})
    most = (kind for kind, _ in totals.most_common(len(SERIES) - 2))
    colours = {**dict(zip(most, SERIES, strict=False)), **REST}
    numbered = len(combos) <= NUMBERED
    groups = [[combo for combo in combos if combo.environment == name][:BARS] for name in summary.environments]
    shown = [group for group in groups if group]
    seen = {kind for combo in combos if combo.failures for kind, _ in _segments(combo.failures, colours)}
    note = (
        "The share in per cent of all episodes with a record that failed, or were errored, in the words of their"
        f" records; what a bar leaves free succeeded.{' Numbers in the bars are episodes.' * numbered}"
    )
    return Figure(
        "failure_kinds",
        "Failure kinds",
        note + left_out(len(shown)),
        tuple(_bars(group, colours, numbered=numbered) for group in shown[:PANELS]),
        legend([(kind, colour) for kind, colour in colours.items() if kind in seen]),
    )


def _tells(combo: ComboSummary) -> bool:
    """Whether its records say how it failed, or it never failed."""
    if combo.failures is None or combo.counts is None:
        return False
    return combo.failures.field is not None or (combo.counts.completed > 0 and combo.failures.total == 0)


def _segments(failures: FailureKinds, colours: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    """Kinds and their episodes, in the order of the legend."""
    found = Counter({UNTOLD: failures.untold, ERRORED: failures.errored, OTHER: failures.other})
    for kind, count in failures.kinds.items():
        found[kind if kind in colours else OTHER] += count
    yield from ((kind, found[kind]) for kind in colours if found[kind])


def _bars(combos: Sequence[ComboSummary], colours: Mapping[str, str], *, numbered: bool) -> Panel:
    environment, height = combos[0].environment, ROW * len(combos)
    panel = titled(Panel(f"Failure kinds: {environment}", COLUMN, HEAD + height + FOOT), environment)
    names = fit_apart([combo.policy for combo in combos], POLICY, NORMAL)
    left = room(names, POLICY) + 0.14
    axes = Axes(left, HEAD, COLUMN - left - 0.25, height)
    for row, (combo, name) in enumerate(zip(combos, names, strict=True)):
        middle = axes.top + (row + 0.5) * ROW
        panel.text((left - 0.1, middle), name, TextStyle(align="right"))
        panel.box((left, middle - 0.07), (axes.width, 0.14), GREY, 0.12)
        assert combo.failures
        assert combo.counts
        start, episodes = 0, combo.counts.completed + combo.counts.errored
        for kind, count in _segments(combo.failures, colours):
            left_edge, width = axes.x(start / episodes), axes.width * count / episodes
            panel.box((left_edge, middle - 0.07), (width, 0.14), colours[kind])
            if numbered and width > measure(str(count), SMALL) + 0.05:
                panel.text((left_edge + width / 2, middle), str(count), TextStyle(SMALL, colour=ink_on(colours[kind])))
            start += count
    axes.x_ticks(panel, PERCENT, "episodes (%)")
    return panel


# -- curves of trainings, a panel for each environment and kind -------------------------------------------------------

_NAMES_SHOWN = 3
Line = tuple[int, TrainingCurve]
"""the policy's place, and its curve"""


def training(summary: Summary) -> Figure | None:
    """The surest curve of each role; None without any with two points."""
    return curves(summary.trainings, summary.policies, summary.environments)


def curves(trainings: Sequence[Training], policies: Sequence[str], environments: Sequence[str]) -> Figure | None:
    """Without the names of a plan, those of the trainings count."""
    groups: dict[tuple[int, str, str, str], list[Line]] = {}
    policies = policies or list(dict.fromkeys(one.policy for one in trainings))
    environments = environments or list(dict.fromkeys(one.environment for one in trainings))
    order = {name: place for place, name in enumerate(environments)}
    shown = [one for one in trainings if one.policy in policies[:STYLES] and one.environment in order]
    for one in shown:
        for curve in one.shown:
            if len(curve.steps) > 1:
                key = (order[one.environment], curve.of, curve.role, curve.unit)
                groups.setdefault(key, []).append((policies.index(one.policy), curve))
    keys = sorted(groups, key=lambda key: (key[0], key[1] == EVALUATION, ROLES.index(key[2]), key[3]))
    panels = tuple(_training_panel(environments[key[0]], key[1:], groups[key]) for key in keys[:PANELS])
    drawn = sorted({style for lines in groups.values() for style, _ in lines})
    named = legend([(policies[style], series(style, 1.8)) for style in drawn]) if drawn else None
    note = (
        "As the programs wrote them, thinned: of equal parts of the steps the lowest and the highest value. A line that"
        " was written again by a later start has the newest values."
    )
    return Figure("training", "Curves of trainings", note + left_out(len(keys)), panels, named) if panels else None


def _training_panel(environment: str, key: tuple[str, str, str], lines: Sequence[Line]) -> Panel:
    of, role, unit = key
    names = list(dict.fromkeys(curve.name for _, curve in lines))
    what = f"{'evaluated ' if of == EVALUATION else ''}{role}"
    title = f"{environment}: {what} ({', '.join(names[:_NAMES_SHOWN])}{', …' if len(names) > _NAMES_SHOWN else ''})"
    panel = titled(Panel(title, COLUMN, HEIGHT), title)
    values = [value for _, curve in lines for value in curve.values]
    steps = [step for _, curve in lines for step in curve.steps]
    up, along = spread(values), spread(steps)
    low, high = up[0][0], up[-1][0]
    axes = Axes(0.55, 0.36, COLUMN - 0.67, HEIGHT - 0.86, along[-1][0], high - low, along[0][0])
    shown = up[:: max(1, ceil(len(up) / 6))]
    axes.y_ticks(panel, [(value - low, number(value).replace("-", "−")) for value, _ in shown])
    axes.x_ticks(panel, along, unit)
    for style, curve in lines:
        points = [axes.at(step, value - low) for step, value in zip(curve.steps, curve.values, strict=True)]
        panel.lines([points], series(style))
    return panel
