"""Curves of trainings: reward, success and length over steps, a panel for each environment and kind, a line for each
policy."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from comborun.reporter.counting.trainings import Training, TrainingCurve
from comborun.reporter.figures.figure import (
    COLUMN,
    PANELS,
    STYLES,
    Axes,
    Figure,
    Panel,
    left_out,
    legend,
    series,
    spread,
    titled,
)
from comborun.reporter.summary import Summary
from comborun.reporter.text import number
from comborun.rules.curves.metrics import EVALUATION, ROLES

HEIGHT = 2.0
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
    panels = tuple(_panel(environments[key[0]], key[1:], groups[key]) for key in keys[:PANELS])
    drawn = sorted({style for lines in groups.values() for style, _ in lines})
    named = legend([(policies[style], series(style, 1.8)) for style in drawn]) if drawn else None
    note = (
        "As the programs wrote them, thinned: of equal parts of the steps the lowest and the highest value. A line that"
        " was written again by a later start has the newest values."
    )
    return Figure("training", "Curves of trainings", note + left_out(len(keys)), panels, named) if panels else None


def _panel(environment: str, key: tuple[str, str, str], lines: Sequence[Line]) -> Panel:
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
