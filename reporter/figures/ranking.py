"""The policies in their order with intervals, the differences between them, and every pair as a cell."""

from __future__ import annotations

from collections.abc import Sequence

from comborun.reporter.comparing.comparison import Tested
from comborun.reporter.comparing.graded import Graded
from comborun.reporter.figures.figure import (
    GREY,
    INK,
    NORMAL,
    PAGE,
    SMALL,
    Axes,
    Figure,
    LineStyle,
    Panel,
    TextStyle,
    along,
    fit,
    fit_apart,
    room,
    zoomed,
)
from comborun.reporter.standing import Place, Standing
from comborun.reporter.text import fraction, points

WIDTH, POLICY, ROW, HEAD, FOOT = 5.0, 1.6, 0.19, 0.06, 0.42
MOST = 100
PAIRS = 40
LABEL = 2.2
BETTER, WORSE = "#1f5fa8", "#b5532a"


def ranking(standing: Standing | None) -> Figure | None:
    """A forest plot: every policy's rate with its interval, the best first. None for one policy or by a metric."""
    if standing is None or standing.measure != "success rate" or len(standing.places) < 2:
        return None
    places = standing.places[:MOST]
    limits = [end for place in places for end in place.interval or ()]
    if not limits:
        return None
    names = fit_apart([place.policy for place in places], POLICY, NORMAL, bold=True)
    values = [_value(place) for place in places]
    marks = [fit(standing.letters.get(place.policy, ""), 0.7, NORMAL, bold=True) for place in places]
    left, right = room(names, POLICY, bold=True) + 0.14, room(values, 1.4, SMALL) + 0.12
    far = room(marks, 0.7, bold=True) + (0.12 if any(marks) else 0.0)
    panel = Panel("Policies in their order", WIDTH, HEAD + ROW * len(places) + FOOT)
    mean = "success rate" if standing.environment else "mean success rate"
    axes = along(zoomed(limits), (left, HEAD), (WIDTH - left - right - far - 0.1, ROW * len(places)), panel, mean)
    for row, (place, name, words, mark) in enumerate(zip(places, names, values, marks, strict=True)):
        middle = axes.top + (row + 0.5) * ROW
        panel.text((left - 0.1, middle), name, TextStyle(align="right", bold=place.policy in standing.leaders))
        if place.interval and place.value is not None:
            panel.lines([[(axes.x(limit), middle) for limit in place.interval]], LineStyle(width=1.6))
            panel.dot((axes.x(place.value), middle))
        panel.text((WIDTH - far, middle), words, TextStyle(SMALL, "right"))
        panel.text((WIDTH - far + 0.1, middle), mark, TextStyle(align="left", bold=True))
    lettered = " Policies that share a letter are not told apart." if any(marks) else ""
    some = f" The first {MOST} of {len(standing.places)}." if len(standing.places) > MOST else ""
    early = " † Some environments stopped early." if any(place.early for place in places) else ""
    weight = "" if standing.environment else ", each with the same weight"
    note = f"{mean.capitalize()} in per cent {standing.where}{weight}, with its 95 % interval.{lettered}{early}{some}"
    return Figure("ranking", "Ranking", note, (panel,))


def _value(place: Place) -> str:
    early = "†" if place.early else ""
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
    cell = min(0.44, (PAGE - left) / len(places))
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
        what = "how often the row has more than the column, in per cent"
    some = f" The first {PAIRS} of {len(standing.places)} policies." if len(standing.places) > PAIRS else ""
    note = (
        f"{what.capitalize()}. A blue or brown cell is decided: blue where the row is better, brown where it is worse."
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


def differences(standing: Standing | None) -> Figure | None:
    """Differences of rates with their intervals, the largest first. None without comparisons of rates."""
    found = [] if standing is None else [one for one in standing.comparisons if not isinstance(one, Graded)]
    if standing is None or not found:
        return None
    shown = sorted(found, key=lambda one: (not one.decided, -abs(one.difference)))[:PAIRS]
    names = [fit(f"{one.ahead} − {one.behind}", LABEL, NORMAL, bold=True) for one in shown]
    limits = [tuple(sorted(end * _sign(one) for end in one.interval)) for one in shown]
    left = room(names, LABEL, bold=True) + 0.14
    words = [points(abs(one.difference)) for one in shown]
    right = room(words, 0.6, SMALL, bold=True) + 0.12
    panel = Panel("Differences between policies", WIDTH, HEAD + ROW * len(shown) + FOOT)
    spread = zoomed([0.0, *(end for pair in limits for end in pair)], -1.0)
    size = (WIDTH - left - right, ROW * len(shown))
    axes = along(spread, (left, HEAD), size, panel, "difference in points", unit="")
    panel.lines([[(axes.x(0), axes.top), (axes.x(0), axes.bottom)]], LineStyle(width=0.9))
    _differences(panel, axes, shown, list(zip(names, limits, words, strict=True)))
    some = f" {PAIRS} of {len(found)} are shown." if len(found) > PAIRS else ""
    note = (
        "Differences of success rates in percentage points with the 95 % interval of each alone. A thick line is"
        f" decided by the corrected p, a thin grey one is not.{some}"
    )
    return Figure("differences", "Differences", note, (panel,))


def _sign(one: Tested) -> int:
    return 1 if one.difference > 0 else -1


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
