"""Numbers that run along: at each row the mean, the sum or an extreme of another field so far, or a value that goes on
from that of the row before, as means of the last episodes and clocks do. They are no values of episodes, so they have
no mean and no interval. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import sqrt
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
LAST = 200
"""most rows of a sliding mean that is tried"""
VERDICT = "success"
MEAN = "mean"
_DIGITS = 12
_EXACT = 1e-9
_SHARE = 0.05
"""of the range of its values: the largest rounding at which chance does not explain that all rows agree"""
Way = tuple[str, str, int]
"""the other field, what is made of it, and of how many of the last rows; 0: of all so far"""
LOOKED_AT = 64
"""most policies and environments of a file whose rows show whether a metric goes on"""
TURNS = 2 / 3
"""of three independent values in a row, how often the middle one is the highest or the lowest (Bienayme 1874)"""
GOES_ON, FAR = 0.57, -4.0
"""most turns, as a share, of a metric that goes on (a sum of independent steps has a half), and its z"""
BOTH_WAYS = (0.35, 0.65)
"""steps up, as a share. Episodes side by side that are written as they end go up, and fall back with each batch; rows
that are sorted go one way"""


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
    made = [((name, what, 0), values) for name, own in arrays.items() for what, values in _made(own)]
    found = {}
    for name in known:
        own = arrays[name]
        fits, clear = set(), set()
        varied = len(rows) >= ROWS and len({*own.tolist()}) >= APART
        for way, values in made:
            other, what, _ = way
            if name == other:
                continue
            step = steps[name] + steps[other] * (steps[other] < 1)  # whole numbers are not rounded
            scales = (1, 100) if what == MEAN else (1,)
            tried = [(way, values)]
            if what == MEAN and (most := max(_alike(own, one * values, step) for one in scales)) > 1:
                tried += [((other, what, last), _last(arrays[other], last)) for last in range(2, min(most, LAST) + 1)]
            for one, values_of_it in tried:
                scale = next((scale for scale in scales if _equal(own, scale * values_of_it, step)), 0)
                if scale:
                    fits.add(one)
                    beyond = np.abs(own - arrays[other]) > step + _EXACT
                    sure = step <= _SHARE * np.ptp(own) or _equal(own, scale * values_of_it, 0.0)
                    clear.update([one] if varied and sure and beyond.sum() >= APART else [])
                    break
        found[name] = fits, clear
    return found


def _made(values: Column) -> Iterator[tuple[str, Column]]:
    import numpy as np

    sums = np.cumsum(values)
    yield MEAN, sums / np.arange(1, len(values) + 1)
    yield "sum", sums
    yield "maximum", np.maximum.accumulate(values)
    yield "minimum", np.minimum.accumulate(values)


def _last(values: Column, last: int) -> Column:
    """The mean of the last so many rows, at the beginning of all so far."""
    import numpy as np

    sums = np.cumsum(values)
    before = np.concatenate([np.zeros(min(last, len(sums))), sums[:-last]])
    means: Column = (sums - before) / np.minimum(np.arange(1, len(values) + 1), last)
    return means


def _alike(own: Column, made: Column, step: float) -> int:
    """How many of the first rows agree, if not all do."""
    if (abs(own[:2] - made[:2]) > step + _EXACT * (1 + abs(made[:2]))).any():  # so most pairs are done
        return 0
    differs = ~(abs(own - made) <= step + _EXACT * (1 + abs(made)))
    return int(differs.argmax()) if differs.any() else 0


def _equal(own: Column, made: Column, step: float) -> bool:
    # Most pairs differ early, so a few rows decide.
    return all(bool((abs(own[:n] - made[:n]) <= step + _EXACT * (1 + abs(made[:n]))).all()) for n in (2, len(own)))


def _step(values: Column) -> float:
    """The last digit to which all of them are written; 0 if they have too many."""
    return next((10.0**-digits for digits in range(_DIGITS) if (values.round(digits) == values).all()), 0.0)


@dataclass
class Turns:
    """How a metric goes from row to row. Rows that equal the one before say nothing."""

    turns: int = 0
    places: int = 0
    """where it could have turned"""
    ups: int = 0
    steps: int = 0

    def add(self, values: Column) -> None:
        import numpy as np

        steps = np.sign(np.diff(values))
        steps = steps[steps != 0]
        self.turns += int((steps[1:] != steps[:-1]).sum())
        self.places += max(0, len(steps) - 1)
        self.ups += int((steps > 0).sum())
        self.steps += len(steps)

    @property
    def expected(self) -> float:
        return TURNS * self.places

    @property
    def goes_on(self) -> bool:
        z = (self.turns - self.expected) / sqrt(max(1, self.places) * 16 / 90)
        both_ways = BOTH_WAYS[0] * self.steps <= self.ups <= BOTH_WAYS[1] * self.steps
        return z <= FAR and self.turns <= GOES_ON * self.places and both_ways


def going_on(combos: Iterable[Sequence[EpisodeRecord]]) -> dict[str, Turns]:
    """The metrics that turn less often than independent values do: neighbours are alike, however much they vary. Task
    after task, or a slow drift, changes the level and not how often they turn."""
    import numpy as np

    found: dict[str, Turns] = {}
    for records in islice((some for some in combos if len(some) >= ROWS), LOOKED_AT):
        for rows in grouped(records, attrgetter("path")).values():
            in_order = sorted(rows, key=attrgetter("episode"))
            for name, values in metric_columns(in_order).items():
                found.setdefault(name, Turns()).add(np.array(values))
    return {name: one for name, one in found.items() if one.goes_on}
