"""The policies in their order with intervals, the differences between them, and every pair as a cell."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from comborun.reporter.comparing.comparison import Tested
from comborun.reporter.comparing.graded import Graded, MeanDifference
from comborun.reporter.figures.figure import (
    GREY,
    INK,
    NORMAL,
    PAGE,
    PHONE,
    SMALL,
    Axes,
    Figure,
    LineStyle,
    Panel,
    TextStyle,
    along,
    room,
    spread,
    zoomed,
)
from comborun.reporter.figures.labels import fit, fit_apart, measure
from comborun.reporter.standing import Place, Standing, corrected
from comborun.reporter.text import WHOLE, fraction, number, points

WIDTH, POLICY, ROW, HEAD, FOOT = 5.0, 1.6, 0.19, 0.06, 0.42
MOST = 100
PAIRS = 40
BESIDE, LEGIBLE = 5.9, 0.37
"""inches beside the ranking on a page, and of a cell with a number"""
LABEL = 2.2
NARROW = 1.1
"""inches of a policy's name on a phone"""
BETTER, WORSE = "#1f5fa8", "#b5532a"


def ranking(standing: Standing | None) -> Figure | None:
    """A forest plot: every policy's rate or mean with its interval, the best first. None for one policy."""
    if standing is None or len(standing.places) < 2:
        return None
    places, by_rate = standing.places[:MOST], standing.by_rate
    limits = [
        end for place in places for end in place.interval or (() if by_rate or place.value is None else (place.value,))
    ]
    if not limits:
        return None
    drawn = [_ranked(standing, places, limits, width) for width in (WIDTH, PHONE)]
    marks = any(standing.letters.get(place.policy) for place in places)
    lettered = f" Policies that share a letter are not told apart{corrected(standing)}." if marks else ""
    some = f" The first {MOST} of {len(standing.places)}." if len(standing.places) > MOST else ""
    early = " † Some environments stopped early." if any(place.early for place in places) else ""
    weight = "" if standing.environment else ", each with the same weight"
    rates = f"{_measure(standing).capitalize()} in per cent {standing.where}{weight}, with its 95 % interval."
    note = f"{rates if by_rate else of_means(standing)}{lettered}{early}{some}"
    return Figure("ranking", "Ranking", note, (drawn[0],), phone=drawn[1])


def _measure(standing: Standing) -> str:
    return standing.measure if standing.by_rate and standing.environment else f"mean {standing.measure}"


def _ranked(standing: Standing, places: Sequence[Place], limits: Sequence[float], width: float) -> Panel:
    by_rate, most = standing.by_rate, POLICY if width == WIDTH else NARROW
    names = fit_apart([place.policy for place in places], most, NORMAL, bold=True)
    values = [_value(place, by_rate=by_rate) for place in places]
    marks = [fit(standing.letters.get(place.policy, ""), 0.7, NORMAL, bold=True) for place in places]
    left, right = room(names, most, bold=True) + 0.14, room(values, 1.4, SMALL) + 0.12
    far = room(marks, 0.7, bold=True) + (0.12 if any(marks) else 0.0)
    panel = Panel("Policies in their order", width, HEAD + ROW * len(places) + FOOT)
    size = (width - left - right - far - 0.1, ROW * len(places))
    ticks, unit = (zoomed(limits), " (%)") if by_rate else (spread(limits), "")
    axes = along(ticks, (left, HEAD), size, panel, fit(_measure(standing), size[0], SMALL), unit)
    for row, (place, name, words, mark) in enumerate(zip(places, names, values, marks, strict=True)):
        middle = axes.top + (row + 0.5) * ROW
        panel.text((left - 0.1, middle), name, TextStyle(align="right", bold=place.policy in standing.leaders))
        if place.interval and place.value is not None:
            panel.lines([[(axes.x(limit), middle) for limit in place.interval]], LineStyle(width=1.6))
        if place.value is not None and (place.interval or not by_rate):
            panel.dot((axes.x(place.value), middle))
        panel.text((width - far, middle), words, TextStyle(SMALL, "right"))
        panel.text((width - far + 0.1, middle), mark, TextStyle(align="left", bold=True))
    return panel


def of_means(standing: Standing) -> str:
    """What the values of a metric in the order of policies are."""
    order = {"higher": "The highest first", "lower": "The lowest first"}.get(standing.better, "No order of merit")
    raw = "" if standing.environment else ", each with the same weight, in its own units: large values weigh more"
    return f"Mean {standing.measure} {standing.where}{raw}, with its 95 % interval (t). {order}."


def _value(place: Place, *, by_rate: bool) -> str:
    early = "†" if place.early else ""
    if not by_rate:
        return place.counts if place.value is None else f"{number(place.value)}{early}"
    if place.value is None or "/" in place.counts:
        return place.counts
    return f"{fraction(place.value)}{early}"


def pairs(standing: Standing | None) -> Figure | None:
    """A cell for each pair, filled if it is decided. None for fewer than three policies."""
    if standing is None or len(standing.places) < 3 or not standing.comparisons:
        return None
    places = standing.names[:PAIRS]
    names = fit_apart(places, POLICY, NORMAL)
    left = room(names, POLICY) + 0.12
    beside = (BESIDE - left) / len(places)
    cell = min(0.44, beside if beside >= LEGIBLE else (PAGE - left) / len(places))
    numbered = cell > 0.33
    top, tall = room(names, POLICY) + 0.12, min(cell, 0.22)
    panel = Panel("Pairs of policies", left + cell * len(places) + 0.02, top + tall * len(places) + 0.02)
    found = standing.by_pair
    for row, (policy, name) in enumerate(zip(places, names, strict=True)):
        middle = top + (row + 0.5) * tall
        panel.text((left - 0.08, middle), name, TextStyle(align="right"))
        panel.text((left + (row + 0.5) * cell, top - 0.06), name, TextStyle(align="left", upwards=True))
        for column, other in enumerate(places):
            corner = (left + column * cell, top + row * tall)
            one = found.get((policy, other)) or found.get((other, policy))
            if one and row != column:
                _pair(panel, corner, (cell - 0.02, tall - 0.02), one, policy, numbered=numbered)
    what = "points of the row's rate minus the column's" if numbered else "the row against the column"
    if any(isinstance(one, Graded) for one in standing.comparisons):
        what = f"how often the row has more {standing.measure} than the column, in per cent"
    some = f" The first {PAIRS} of {len(standing.places)} policies." if len(standing.places) > PAIRS else ""
    more, less = ("better", "worse") if standing.better == "higher" else ("more", "less")
    verb = "is" if more == "better" else "has"
    where = f"blue where the row {verb} {more}, brown where it {verb} {less}"
    note = (
        f"{what[:1].upper()}{what[1:]}. A blue or brown cell is decided: {where}."
        f" A grey one is not decided, which does not mean equal.{some}"
    )
    return Figure("pairs", "Pairs of policies", note, (panel,))


def _pair(
    panel: Panel, corner: tuple[float, float], size: tuple[float, float], one: Tested, policy: str, *, numbered: bool
) -> None:
    difference = one.difference if one.a == policy else -one.difference
    ink = INK
    if one.decided:
        panel.box(corner, size, BETTER if difference > 0 else WORSE)
        ink = "#ffffff"
    else:
        panel.box(corner, size, GREY, 0.12)
    if numbered:
        chance = one.chance if isinstance(one, Graded) else None
        share = chance if one.a == policy or chance is None else 1 - chance
        words = points(difference) if share is None else fraction(share)
        panel.text((corner[0] + size[0] / 2, corner[1] + size[1] / 2), words, TextStyle(SMALL, colour=ink))


def differences(standing: Standing | None, by_means: Sequence[MeanDifference] = ()) -> Figure | None:
    """Differences of rates, or of the means of the metric, with their intervals, the largest first."""
    if standing is None:
        return None
    found: Sequence[Tested] = standing.comparisons
    if not standing.by_rate:
        several = not standing.environment
        found = [one for one in by_means if one.metric == standing.measure and bool(one.environments[1:]) is several]
    if not found:
        return None
    shown = sorted(found, key=lambda one: (not one.decided, -abs(one.difference)))[:PAIRS]
    drawn = [_compared(standing, shown, width) for width in (WIDTH, PHONE)]
    some = f" {PAIRS} of {len(found)} are shown." if len(found) > PAIRS else ""
    what = "success rates in percentage points" if standing.by_rate else f"mean {standing.measure}"
    note = (
        f"Differences of {what} with the 95 % interval of each alone. A thick line is"
        f" decided by the corrected p, a thin grey one is not.{some}"
    )
    return Figure("differences", "Differences", note, (drawn[0],), phone=drawn[1])


def _tells(interval: tuple[float, float]) -> bool:
    return interval != WHOLE and all(map(isfinite, interval))


def _compared(standing: Standing, shown: Sequence[Tested], width: float) -> Panel:
    most = LABEL if width == WIDTH else LABEL * PHONE / WIDTH
    names = _differences_named(shown, most)
    finite = [one.interval if _tells(one.interval) else (one.difference,) * 2 for one in shown]
    limits = [
        sorted(end if one.difference > 0 else -end for end in ends) for one, ends in zip(shown, finite, strict=True)
    ]
    left = room(names, most, bold=True) + 0.14
    words = [(points if standing.by_rate else number)(abs(one.difference)) for one in shown]
    right = room(words, 0.6, SMALL, bold=True) + 0.12
    panel = Panel("Differences between policies", width, HEAD + ROW * len(shown) + FOOT)
    ends = [0.0, *(end for pair in limits for end in pair)]
    size = (width - left - right, ROW * len(shown))
    title = "difference in points" if standing.by_rate else f"difference of mean {standing.measure}"
    ticks = zoomed(ends, -1.0) if standing.by_rate else spread(ends)
    axes = along(ticks, (left, HEAD), size, panel, fit(title, size[0], SMALL), unit="")
    panel.lines([[(axes.x(0), axes.top), (axes.x(0), axes.bottom)]], LineStyle(width=0.9))
    _differences(panel, axes, shown, list(zip(names, limits, words, strict=True)))
    return panel


def _differences_named(shown: Sequence[Tested], most: float) -> list[str]:
    whole = [f"{one.ahead} − {one.behind}" for one in shown]
    if all(measure(name, NORMAL, bold=True) <= most for name in whole):
        return whole
    policies = [*dict.fromkeys(name for one in shown for name in (one.ahead, one.behind))]
    each = (most - measure(" − ", NORMAL, bold=True)) / 2
    short = dict(zip(policies, fit_apart(policies, each, NORMAL, bold=True), strict=True))
    return [f"{short[one.ahead]} − {short[one.behind]}" for one in shown]


def _differences(
    panel: Panel, axes: Axes, shown: Sequence[Tested], rows: Sequence[tuple[str, Sequence[float], str]]
) -> None:
    for row, (one, (name, ends, words)) in enumerate(zip(shown, rows, strict=True)):
        middle = axes.top + (row + 0.5) * ROW
        colour, width = (INK, 1.8) if one.decided else (GREY, 0.9)
        panel.text((axes.left - 0.1, middle), name, TextStyle(align="right", bold=one.decided))
        panel.lines([[(axes.x(end), middle) for end in ends]], LineStyle(colour, width))
        panel.dot((axes.x(abs(one.difference)), middle), colour, 4.5 if one.decided else 3.5)
        panel.text((panel.width, middle), words, TextStyle(SMALL, "right", bold=one.decided))
