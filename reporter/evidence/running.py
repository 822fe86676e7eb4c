"""Numbers that run along: at each row the mean, the sum or an extreme of another field so far. They are no values of
episodes, so they have no mean and no interval. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING

from comborun.model.attempt import EpisodeRecord, Verdict, metric_columns
from comborun.model.work import grouped

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Column = NDArray[np.float64]

MOST = 100
"""most metrics of a file that are compared with one another"""
ROWS = 8
"""fewest rows of a file that can show it"""
APART = 3
"""fewest rows in which it is not the other field's own value, and fewest values that it takes"""
VERDICT = "success"
MEAN = "mean"
_DIGITS = 12
_EXACT = 1e-9
_SHARE = 0.05
"""of the range of its values: the largest rounding at which chance does not explain that all rows agree"""
Way = tuple[str, str]
"""the other field, and what is made of it"""


def running(combos: Iterable[Sequence[EpisodeRecord]]) -> dict[str, Way]:
    """Metrics that are the running mean, sum, maximum or minimum of another field, each with that field. It must hold
    in every file with the metric, and clearly in one. It may go over a whole file, or start again with each combo."""
    every = [one for records in combos for one in records if one.names[0]]
    parts = [[*grouped(every, by).values()] for by in (attrgetter("path"), attrgetter("path", "policy", "environment"))]
    found = _running(parts[0])
    return found if len(parts[0]) == len(parts[1]) else {**_running(parts[1]), **found}


def _running(parts: Iterable[list[EpisodeRecord]]) -> dict[str, Way]:
    import numpy as np

    left: dict[str, set[Way]] = {}
    shown: dict[str, set[Way]] = {}
    for rows in parts:
        if not any(left.get(name, True) for name in rows[0].names[0]):
            continue
        rows.sort(key=attrgetter("line"))
        columns = {name: values for name, values in metric_columns(rows).items() if len(values) == len(rows)}
        columns = dict(islice(columns.items(), MOST))
        known = [name for name in columns if left.get(name, True)]
        if known and len(rows) > 1:
            with np.errstate(over="ignore", invalid="ignore"):
                ways_of = _ways(rows, columns, known)
            for name, (fits, clear) in ways_of.items():
                left[name] = left[name] & fits if name in left else fits
                shown.setdefault(name, set()).update(clear)
    found = {name: sorted(ways & shown[name]) for name, ways in left.items() if ways}
    return {name: ways[0] for name, ways in found.items() if ways}


def _ways(
    rows: Sequence[EpisodeRecord], columns: dict[str, list[float]], known: Collection[str]
) -> dict[str, tuple[set[Way], set[Way]]]:
    """Of each metric, the ways that fit all rows, and those that are clear in them."""
    import numpy as np

    verdicts = [float(one.verdict is Verdict.SUCCESS) for one in rows]
    judged = {VERDICT: verdicts} if any(verdicts) else {}
    arrays = {name: np.array(values) for name, values in {**columns, **judged}.items()}
    steps = {name: _step(values) for name, values in arrays.items()}
    made = [((name, what), values) for name, own in arrays.items() for what, values in _made(own)]
    found = {}
    for name in known:
        own = arrays[name]
        fits, clear = set(), set()
        varied = len(rows) >= ROWS and len({*own.tolist()}) >= APART
        for (other, what), values in made:
            if name == other:
                continue
            step = steps[name] + steps[other] * (steps[other] < 1)  # whole numbers are not rounded
            scales = (1, 100) if what == MEAN else (1,)
            if scale := next((one for one in scales if _equal(own, one * values, step)), 0):
                fits.add((other, what))
                beyond = np.abs(own - arrays[other]) > step + _EXACT
                sure = step <= _SHARE * np.ptp(own) or _equal(own, scale * values, 0.0)
                clear.update([(other, what)] if varied and sure and beyond.sum() >= APART else [])
        found[name] = fits, clear
    return found


def _made(values: Column) -> Iterator[tuple[str, Column]]:
    import numpy as np

    sums = np.cumsum(values)
    yield MEAN, sums / np.arange(1, len(values) + 1)
    yield "sum", sums
    yield "maximum", np.maximum.accumulate(values)
    yield "minimum", np.minimum.accumulate(values)


def _equal(own: Column, made: Column, step: float) -> bool:
    # Most pairs differ early, so a few rows decide.
    return all(bool((abs(own[:n] - made[:n]) <= step + _EXACT * (1 + abs(made[:n]))).all()) for n in (2, len(own)))


def _step(values: Column) -> float:
    """The last digit to which all of them are written; 0 if they have too many."""
    return next((10.0**-digits for digits in range(_DIGITS) if (values.round(digits) == values).all()), 0.0)
