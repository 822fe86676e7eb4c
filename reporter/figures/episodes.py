"""How episodes went: the success rate as they accumulate and by checkpoint, when they succeed, and why they fail."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from comborun.reporter.figures.figure import (
    GREY,
    LOOKS,
    SERIES,
    Figure,
    Panel,
    by_environment,
    figure_of,
    look,
    per_cent,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from matplotlib.axes import Axes

    from comborun.reporter.counting.combo import ComboSummary
    from comborun.reporter.counting.measures import FailureKinds, Running
    from comborun.reporter.summary import Summary

HEIGHT = 1.3
STEPS = 36
BANDS = 3


class _Curve(NamedTuple):
    """The rates of the policy with this index, and a band or none."""

    look: int
    x: Sequence[float]
    rates: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()


_Plot = tuple[str, str, list[_Curve]]
"""title, title of the axis, and curves"""


def _draw(axes: Axes, label: str, curves: Sequence[_Curve], *, stairs: bool = False, whole: bool = False) -> None:
    for curve in curves:
        style = look(curve.look)
        axes.plot(curve.x, curve.rates, drawstyle="steps-post" if stairs else "default", **style)
        if curve.low:
            band: Mapping[str, Any] = {"step": "post" if stairs else None, "alpha": 0.16, "linewidth": 0}
            axes.fill_between(curve.x, curve.low, curve.high, color=style["color"], **band)
    axes.set_xlim(0, max(curve.x[-1] for curve in curves) or 1.0)
    axes.set_ylim(0, 1.02)
    axes.set_yticks((0, 0.5, 1), ("0", "50", "100"))
    axes.set_xlabel(label)
    axes.locator_params("x", nbins=5, integer=whole)


def _figure(
    name: str, title: str, note: str, plots: Sequence[_Plot], policies: Sequence[str] = (), draw: Any = _draw
) -> Figure | None:
    panels = [
        Panel(head, HEIGHT, partial(draw, label=label, curves=curves), below=0.36) for head, label, curves in plots
    ]
    looks = sorted({curve.look for _, _, curves in plots for curve in curves}) if policies else []
    return figure_of(name, title, note, panels, {policies[one]: look(one) for one in looks})


def cumulative_success(summary: Summary, running: Mapping[tuple[str, str], Running]) -> Figure | None:
    """The success rate of the first i completed episodes, in the order of their index; None without any."""
    plots: list[_Plot] = []
    for environment in summary.environments:
        curves = [
            _Curve(index, [n for n, _ in points], [successes / n for n, successes in points])
            for index, policy in enumerate(summary.policies[:LOOKS])
            if (points := running.get((policy, environment)))
        ]
        if any(len(curve.x) > 1 for curve in curves):
            plots.append((environment, "completed episodes, in the order of their index", curves))
    note = (
        "The success rate in per cent of the first episodes, in the order of their index and not of their arrival. A"
        " line that still drifts at its end says that more episodes are needed."
    )
    title = "Success rate as episodes accumulate"
    return _figure("cumulative_success", title, note, plots, summary.policies, partial(_draw, whole=True))


def time_to_success(summary: Summary) -> Figure | None:
    """The share of all episodes that has succeeded by a time; None where no record says when."""
    plots: list[_Plot] = []
    for environment in summary.environments:
        combos = [combo for combo in summary.combos if combo.environment == environment]
        for label in dict.fromkeys(filter(None, map(_time_axis, combos))):  # seconds and steps share no axis
            timed = [combo for combo in combos if _time_axis(combo) == label][:LOOKS]
            plots.append((environment, label, list(_incidences(timed, summary.policies))))
    note = (
        "The share in per cent of all completed episodes that has succeeded by a time (cumulative incidence: failures"
        f" stay in the denominator). Bands, where at most {BANDS} policies meet, are 95 % Clopper-Pearson at each time"
        " alone."
    )
    return _figure("time_to_success", "Time to success", note, plots, summary.policies, partial(_draw, stairs=True))


def _time_axis(combo: ComboSummary) -> str:
    time = combo.time_to_success
    return f"{time.field} ({time.unit})" if time and time.curve.n > 0 else ""


def _incidences(combos: Sequence[ComboSummary], policies: Sequence[str]) -> Iterator[_Curve]:
    """The last value of each holds to the end of the axis."""
    timed = [(policies.index(one.policy), one.time_to_success.curve) for one in combos if one.time_to_success]
    limit = max((time for _, curve in timed for time in curve.times), default=0.0)
    for index, curve in timed:
        count = len(curve.times)
        shown = sorted({*range(0, count, -(-count // STEPS)), count - 1}) if count else []
        rates = [0.0, *(curve.successes[place] / curve.n for place in shown)]
        x = [0.0, *(curve.times[place] for place in shown), limit]
        if len(timed) > BANDS or not shown:
            yield _Curve(index, x, [*rates, rates[-1]])
        else:
            low, high = ([0.0, *(curve.band[place][end] for place in shown)] for end in (0, 1))
            yield _Curve(index, x, [*rates, rates[-1]], [*low, low[-1]], [*high, high[-1]])


def trends(summary: Summary) -> Figure | None:
    """The rates of checkpoints by step, in a band that holds for all at once; None without such policies."""
    plots: list[_Plot] = []
    for index, trend in enumerate(summary.trends):
        points = trend.checkpoints
        low, high = ([one.interval[end] for one in points] for end in (0, 1))
        curve = _Curve(index, [one.step for one in points], [one.rate for one in points], low, high)
        plots.append((f"{points[0].policy} to {points[-1].policy}", "step", [curve]))
    note = (
        "Mean success rates in per cent over the environments that all checkpoints have, and a band that covers all of"
        " a curve at 95 % (Bonferroni), so that it also holds for the one that is picked."
    )
    return _figure("trends", "Checkpoints by step", note, plots)


# -- why episodes failed: a bar per policy, in the words of the records -----------------------------------------------

NUMBERED = 80
"""most combos whose bars carry numbers"""
OTHER, UNTOLD, ERRORED = "other kinds", "not told", "errored"
REST = {OTHER: SERIES[-2], UNTOLD: GREY, ERRORED: SERIES[-1]}


def failure_kinds(summary: Summary) -> Figure | None:
    if not any(combo.failures and combo.failures.field for combo in summary.combos):
        return None
    combos = [combo for combo in summary.combos if _tells(combo)]
    totals = Counter[str]()
    for combo in combos:
        totals.update(dict(combo.failures.counts) if combo.failures else {})
    most = (kind for kind, _ in totals.most_common(len(SERIES) - 2))
    colours = {**dict(zip(most, SERIES, strict=False)), **REST}
    panels = by_environment(combos, 0.21, partial(_bars, colours=colours, numbered=len(combos) <= NUMBERED))
    seen = {kind for combo in combos if combo.failures for kind in _counts(combo.failures, colours)}
    note = (
        "The share in per cent of all episodes with a record that failed, or were errored, in the words of their"
        f" records; what a bar leaves free succeeded.{' Numbers in the bars are episodes.' * (len(combos) <= NUMBERED)}"
    )
    legend = {kind: {"color": colour, "linewidth": 6} for kind, colour in colours.items() if kind in seen}
    return figure_of("failure_kinds", "Failure kinds", note, panels, legend)


def _tells(combo: ComboSummary) -> bool:
    """Whether its records say how it failed, or it never failed."""
    if combo.failures is None or combo.counts is None:
        return False
    return combo.failures.field is not None or (combo.counts.completed > 0 and combo.failures.total == 0)


def _counts(failures: FailureKinds, colours: Mapping[str, str]) -> Counter[str]:
    found = Counter({UNTOLD: failures.untold, ERRORED: failures.errored, OTHER: failures.other})
    for kind, count in failures.counts:
        found[kind if kind in colours else OTHER] += count
    return +found


def _bars(axes: Axes, combos: Sequence[ComboSummary], colours: Mapping[str, str], *, numbered: bool) -> None:
    for row, combo in enumerate(combos):
        assert combo.failures
        assert combo.counts
        found, each = _counts(combo.failures, colours), 100 / (combo.counts.completed + combo.counts.errored)
        spans, start = [], 0.0
        for kind in (kind for kind in colours if found[kind]):
            spans.append((start, each * found[kind]))
            if numbered and each * found[kind] > 4:
                middle = start + each * found[kind] / 2
                axes.text(middle, row, str(found[kind]), color="white", size=7, ha="center", va="center")
            start += each * found[kind]
        shown = [colour for kind, colour in colours.items() if found[kind]]
        axes.broken_barh([*spans, (start, 100 - start)], (row - 0.33, 0.66), facecolors=[*shown, "#80808020"])
    per_cent(axes, combos)
