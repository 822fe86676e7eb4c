"""What the episodes of a combo measure beside their success rate. Pure."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, compress, groupby
from math import fsum
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING

from comborun.attempt import EpisodeRecord, Verdict, field_column, having, metric_columns
from comborun.reporter.statistics.means import mean_interval
from comborun.reporter.statistics.proportion import Balanced, Incidence, balanced, incidence
from comborun.rules.episodes import COPY, ORDER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from comborun.attempt import JsonValue
    from comborun.reporter.statistics.proportion import Interval
    from comborun.work import Combo

LIMIT = 40
"""metrics per combo where the grid names none; a program that invents field names must not fill the report"""
FEWEST_FOR_PERCENTILES = 20
"""with fewer values, 5 % and 95 % are little more than the extremes"""
FAILURE_FIELDS = (
    *("failure", "failure_kind", "failure_mode", "failure_reason", "termination", "termination_reason", "end_reason"),
    *("reason", "error"),
)
"""the plainest first"""
KINDS = 12
"""shown per combo; a program that writes a sentence of its own each time must not fill the report"""
ERRORED = "no verdict (errored)"
KIND_LENGTH = 80
"""characters"""
TIME_FIELDS = {
    **dict.fromkeys(
        ("time_to_success_s", "time_to_success", "sim_time_s", "time_s", "duration_s", "episode_length_s"), "s"
    ),
    **dict.fromkeys(("steps_to_success", "steps", "num_steps", "episode_length", "episode_steps"), "steps"),
}
"""field -> unit, the plainest first; wall time is none of them, since it tells of the machine"""
PLACES = 36
"""of a line: more than a small plot can show apart"""

Running = tuple[tuple[int, int], ...]
"""(completed, successes) of the first episodes by index, at places close enough to draw a line through"""


@dataclass(frozen=True)
class MetricMean:
    """Over the completed episodes that have the metric."""

    name: str
    mean: float
    n: int
    interval: Interval | None
    """95 % for the mean (t); None where fewer than 5 values, or equal ones, say nothing of it"""
    percentiles: Interval | None
    """5 % and 95 % of the episodes; None below 20 values"""


@dataclass(frozen=True)
class FailureKinds:
    """Of the episodes of a combo that count and did not succeed, errored ones included."""

    field: str | None
    """the field of the records that says it; None where no record has one"""
    counts: tuple[tuple[str, int], ...]
    """kind -> failed episodes, the most frequent first"""
    other: int
    """of kinds beyond the limit"""
    untold: int
    """failed, and the record does not say how"""
    errored: int
    """gave no verdict"""

    @property
    def total(self) -> int:
        return sum(count for _, count in self.counts) + self.other + self.untold + self.errored


@dataclass(frozen=True)
class TimeToSuccess:
    field: str
    """the metric that holds the time of each successful episode; of a program that goes on after a success it is the
    length of the episode"""
    unit: str
    """`s` or `steps`"""
    curve: Incidence
    untimed: int
    """successful episodes without the field: in n, but in no step of the curve"""


def metrics(records: Sequence[EpisodeRecord], wanted: tuple[str, ...]) -> tuple[MetricMean, ...]:
    """In the order of the metrics that are named, or where none is in the order in which the records name them."""
    return tuple(
        MetricMean(name, _mean(values), len(values), mean_interval(values), _percentiles(values))
        for name, values in _values(records, wanted).items()
    )


def _values(records: Sequence[EpisodeRecord], wanted: tuple[str, ...]) -> dict[str, list[float]]:
    values = metric_columns(having(records, Verdict.SUCCESS, Verdict.FAILURE, Verdict.MEASURED), wanted)
    named = [*(name for name in wanted if name in values), *(name for name in values if name not in wanted)]
    return {name: values[name] for name in named[: len(wanted) or LIMIT]}


def _percentiles(values: Sequence[float]) -> Interval | None:
    if len(values) < FEWEST_FOR_PERCENTILES:
        return None
    import numpy as np

    array = np.array(values)
    scale = np.abs(array).max() or 1.0
    low, high = np.percentile(array / scale, (5, 95)) * scale
    return float(low), float(high)


def _mean(values: Sequence[float]) -> float:
    try:
        return fsum(values) / len(values)
    except OverflowError:
        return fsum(value / len(values) for value in values)


@dataclass(frozen=True)
class Ends:
    """How the failed episodes of a combo ended, in the words of their program."""

    field: str | None
    """the field of the records that says it; None where no record has one"""
    episodes: Sequence[int]
    words: Sequence[str]
    """of each of them; empty where its record does not say so"""
    errored: Sequence[int]
    """episodes that gave no verdict"""

    def by(self, kind: str) -> frozenset[int]:
        """The episodes that ended so."""
        return frozenset(self.errored if kind == ERRORED else compress(self.episodes, map(kind.__eq__, self.words)))


def ends_of(records: Sequence[EpisodeRecord]) -> Ends:
    failed = having(records, Verdict.FAILURE)
    errored = [*map(attrgetter("episode"), having(records, Verdict.ERRORED))]
    held = {name for _, names in {*map(attrgetter("names"), failed)} for name in names}
    for field in (name for name in FAILURE_FIELDS if name in held):
        column = field_column(failed, field)
        words = [_word(value) for value in column]
        if any(words):
            return Ends(field, [*map(attrgetter("episode"), failed)], words, errored)
    return Ends(None, (), [""] * len(failed), errored)


def failure_kinds(ends: Ends) -> FailureKinds:
    """The most frequent ones."""
    kinds = Counter(ends.words)
    untold = kinds.pop("", 0)
    ranked = sorted(kinds.items(), key=lambda item: (-item[1], item[0]))
    other = sum(count for _, count in ranked[KINDS:])
    return FailureKinds(ends.field, tuple(ranked[:KINDS]), other, untold, len(ends.errored))


@lru_cache(maxsize=1024)
def _first_line(text: str) -> str:
    return sys.intern(text.strip().partition("\n")[0][:KIND_LENGTH])


def _word(value: JsonValue) -> str:
    """The first line of what a field says, if that is text."""
    return _first_line(value) if isinstance(value, str) else ""


def time_field(combos: Iterable[Sequence[EpisodeRecord]]) -> str | None:
    """The field of which all curves of a report are made, since seconds and steps have no axis in common: that of the
    most combos, then the plainest. Steps that are no whole numbers are not steps."""
    found = Counter(name for records in combos for name in _timed(having(records, Verdict.SUCCESS)))
    return min(found, key=lambda name: (-found[name], tuple(TIME_FIELDS).index(name)), default=None)


def _timed(succeeded: Sequence[EpisodeRecord]) -> set[str]:
    held = {name for names, _ in {*map(attrgetter("names"), succeeded)} for name in names} & TIME_FIELDS.keys()
    steps = {name for name in held if TIME_FIELDS[name] == "steps"}
    columns = metric_columns(succeeded, steps) if steps else {}
    return held - {name for name, values in columns.items() if not all(map(float.is_integer, values))}


def time_to_success(records: Sequence[EpisodeRecord], field: str | None) -> TimeToSuccess | None:
    """Of the completed episodes; None where no successful one has the field."""
    succeeded = having(records, Verdict.SUCCESS)
    times = metric_columns(succeeded, {field}).get(field, []) if field else []
    if not field or not times:
        return None
    curve = incidence(times, len(judged(records)))
    return TimeToSuccess(field, TIME_FIELDS[field], curve, len(succeeded) - len(times))


def balanced_rate(records: Sequence[EpisodeRecord]) -> Balanced | None:
    """None unless every completed record names its copy of the environment and its place there, and there are several
    copies."""
    copies: dict[object, list[tuple[float, bool]]] = {}
    for record in judged(records):
        order, copy = record.metric(ORDER), record.field(COPY)
        if order is None or not isinstance(copy, str | int | float):
            return None
        copies.setdefault(copy, []).append((order, record.verdict is Verdict.SUCCESS))
    if len(copies) < 2:
        return None
    in_order = {copy: sorted(found, key=itemgetter(0)) for copy, found in copies.items()}
    return balanced({copy: [success for _, success in found] for copy, found in in_order.items()})


def running(episodes: Sequence[EpisodeRecord]) -> Mapping[Combo, Running]:
    """Of every combo with a completed episode; `episodes` stand by combo and index."""
    by_combo = {combo: judged(tuple(group)) for combo, group in groupby(episodes, attrgetter("combo"))}
    return {combo: _running(records) for combo, records in by_combo.items() if records}


def _running(records: Sequence[EpisodeRecord]) -> Running:
    """Every place of a short line; of a long one the first places, where it moves most, and the last."""
    count = len(records)
    step = max(1, count // PLACES)
    places = {*range(1, min(count, PLACES // 4) + 1), *range(step, count + 1, step), count}
    successes = list(accumulate(map((Verdict.SUCCESS,).__contains__, map(attrgetter("verdict"), records))))
    return tuple((n, int(successes[n - 1])) for n in sorted(places))


def judged(records: Sequence[EpisodeRecord]) -> list[EpisodeRecord]:
    """Those with a verdict."""
    return having(records, Verdict.SUCCESS, Verdict.FAILURE)
