"""Points of curves, as a program writes them: one after the other, in bounded memory. Pure.

Steps that go back and go on from there are a restart from a checkpoint: what was written of them and of later ones is
superseded. A single one that is lower came late, or the line with it is cut off. Several values of one step in a row,
as of several environments, are averaged. What is no finite number is counted and not drawn.
"""

from __future__ import annotations

from bisect import bisect_left

from comborun.rules.curves.metrics import UNITS, words_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, Iterator, Mapping, Sequence, Tuple

    from comborun.rules.curves.metrics import Metric

    Key = Tuple[str, str, str, str]

KEPT = 4096
"""points of a curve that are held; then every two that lie together become their lowest and highest value"""
SHOWN = 200
"""points of a curve in a record"""
TRACKS_MOST = 64
"""curves of one source; some programs give every joint a name"""
_BEYOND_MOST = 1000
LARGEST = 1e300
_CHAOS, _STANDS = 0.25, 20
"""a number that goes back as often, or never changes in so many values, is no step"""


def thin(steps: Sequence[float], values: Sequence[float], most: int) -> tuple[list[float], list[float]]:
    """At most so many points: of equal parts of the steps the lowest and the highest value, and the first and last one
    of all."""
    if len(steps) <= max(most, 4):
        return [*steps], [*values]
    parts, first, span = max(1, (most - 2) // 2), steps[0], steps[-1] - steps[0]
    chosen = {0, len(steps) - 1}
    ends: dict[int, list[int]] = {}
    for at, step in enumerate(steps):
        part = min(parts - 1, int((step - first) / span * parts)) if span > 0 else 0
        held = ends.setdefault(part, [at, at])
        if values[at] < values[held[0]]:
            held[0] = at
        if values[at] > values[held[1]]:
            held[1] = at
    for held in ends.values():
        chosen.update(held)
    order = sorted(chosen)
    return [steps[at] for at in order], [values[at] for at in order]


class Points:
    """One metric over one kind of step, from one writer. The steps are in order."""

    def __init__(self) -> None:
        self.steps: list[float] = []
        self.values: list[float] = []
        self.read = self.not_numbers = self.back = self.superseded = 0
        """`back`: how often a step was lower than the one before"""
        self._same = 1
        self._doubt: tuple[float, float] | None = None
        """the newest step and its value, which is lower than those before: a restart if others follow it"""

    def add(self, step: float, value: float) -> None:
        self.read += 1
        if not abs(value) <= LARGEST:
            self.not_numbers += 1
            return
        if self._doubt and self._doubt[0] < step <= self.steps[-1]:
            self._restart(*self._doubt)
        elif self._doubt and self._doubt[0] == step:
            self._doubt = step, value
            return
        self.settle()
        if not self.steps or step > self.steps[-1]:
            self._append(step, value)
        elif step == self.steps[-1]:
            self._same += 1
            self.values[-1] += (value - self.values[-1]) / self._same
        else:
            self.back += 1
            self._doubt = step, value

    def _append(self, step: float, value: float) -> None:
        self.steps.append(step)
        self.values.append(value)
        self._same = 1
        if len(self.steps) > KEPT:
            self.steps, self.values = thin(self.steps, self.values, KEPT // 2)

    def _restart(self, step: float, value: float) -> None:
        place = bisect_left(self.steps, step)
        self.superseded += len(self.steps) - place
        del self.steps[place:], self.values[place:]
        self._doubt = None
        self._append(step, value)

    def settle(self) -> None:
        """Put a value that came late in its place. The newest value of a step counts."""
        if self._doubt is None:
            return
        (step, value), self._doubt = self._doubt, None
        place = bisect_left(self.steps, step)
        self._same = 1
        if self.steps[place] == step:
            self.values[place] = value
            self.superseded += 1
        else:
            self.steps.insert(place, step)
            self.values.insert(place, value)

    @property
    def chaotic(self) -> bool:
        goes_back = self.back > 3 and (self.back > _CHAOS * self.read or 2 * self.superseded > self.read)
        return goes_back or (len(self.steps) == 1 and self.read - self.not_numbers > _STANDS)


class Curve:
    """One metric over the steps of a training; of several ranks their mean."""

    def __init__(self, metric: Metric, unit: str, source: str, ranks: Sequence[Points]) -> None:
        self.role, self.name, self.of, self.score = metric.role, metric.name, metric.of, metric.score
        self.unit, self.source, self.ranks = unit, source, len(ranks)
        self.steps, self.values = _mean(ranks)
        self.read = sum(one.read for one in ranks)
        self.not_numbers = sum(one.not_numbers for one in ranks)
        self.superseded = sum(one.superseded for one in ranks)
        """points that a later start wrote again"""


def _mean(ranks: Sequence[Points]) -> tuple[list[float], list[float]]:
    """The mean of those that have a step."""
    for one in ranks:
        one.settle()
    if len(ranks) == 1:
        return ranks[0].steps, ranks[0].values
    found: dict[float, list[float]] = {}
    for one in ranks:
        for step, value in zip(one.steps, one.values):
            found.setdefault(step, []).append(value)
    steps = sorted(found)
    return steps, [sum(found[step]) / len(found[step]) for step in steps]


class Tracks:
    """The curves of one source while it is read."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.jumping: list[str] = []
        """metrics without a curve, because their steps go back too often, or stand still; known once the curves are"""
        self.beyond: set[tuple[str, str, str]] = set()
        """metrics for which there was no room; of very many only some"""
        self._tracks: dict[Key, tuple[Metric, dict[int, Points]]] = {}

    def add(self, metric: Metric, steps: Mapping[str, float], value: float, rank: int = 0) -> None:
        """A value, at its step in every unit in which the program counts."""
        for unit, step in steps.items():
            key = (metric.role, metric.of, metric.name, unit)
            if key not in self._tracks:
                if len(self._tracks) >= TRACKS_MOST:
                    if len(self.beyond) < _BEYOND_MOST and not any(one[:3] == key[:3] for one in self._tracks):
                        self.beyond.add(key[:3])
                    continue
                self._tracks[key] = metric, {}
            ranks = self._tracks[key][1]
            if rank in ranks or len(ranks) < TRACKS_MOST:
                ranks.setdefault(rank, Points()).add(step, value / 100 if metric.percent else value)

    def curves(self) -> Iterator[Curve]:
        """Each metric once, over the first of UNITS that are steps."""
        told, jumping = set(), set()
        tracks = sorted(self._tracks.items(), key=lambda one: (one[0][:3], UNITS.index(one[0][3])))
        for (role, of, name, unit), (metric, ranks) in tracks:
            points = [one for one in ranks.values() if one.read]
            if (role, of, name) not in told and points and not any(one.chaotic for one in points):
                told.add((role, of, name))
                yield Curve(metric, unit, self.source, points)
            elif points:
                jumping.add((role, of, name))
        self.jumping = sorted(name for _, _, name in jumping - told)


def best_of(curves: Iterable[Curve]) -> list[Curve]:
    """Each metric from the source that holds most of it, the surest name of each role first."""
    chosen: dict[tuple[str, str, str], Curve] = {}
    for one in curves:
        key = (one.of, one.role, " ".join(one.name.lower().split()))
        if key not in chosen or len(one.steps) > len(chosen[key].steps):
            chosen[key] = one

    def place(one: Curve) -> tuple[object, ...]:
        """The plainer of two names first: `Mean reward` before `Mean extrinsic reward`."""
        return one.of, one.role, not one.steps, -one.score, -len(one.steps), len(words_of(one.name)), one.name

    return sorted(chosen.values(), key=place)
