"""What the episodes of a combo measure beside their success rate. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import accumulate, groupby
from math import fsum
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING

from comborun.attempt import EpisodeRecord, Verdict, metric_columns
from comborun.reporter.statistics.means import mean_interval
from comborun.reporter.statistics.proportion import Balanced, Incidence, balanced, incidence
from comborun.rules.episodes import COPY, ORDER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

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
"""told apart per combo; a program that writes a sentence of its own each time must not fill the report"""
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
    values = metric_columns(record for record in records if record.verdict is not Verdict.ERRORED)
    named = [*(name for name in wanted if name in values), *(name for name in values if name not in wanted)]
    return {name: values[name] for name in named[: len(wanted) or LIMIT]}


def _percentiles(values: Sequence[float]) -> Interval | None:
    if len(values) < FEWEST_FOR_PERCENTILES:
        return None
    import numpy as np

    scale = max(map(abs, values)) or 1.0
    low, high = np.percentile(np.array(values) / scale, (5, 95)) * scale
    return float(low), float(high)


def _mean(values: Sequence[float]) -> float:
    try:
        return fsum(values) / len(values)
    except OverflowError:
        return fsum(value / len(values) for value in values)


def failure_kinds(records: Sequence[EpisodeRecord]) -> FailureKinds:
    """Why episodes failed, in the words of their program."""
    field, by_episode = kinds_of(records)
    kinds = Counter(by_episode.values())
    untold = kinds.pop("", 0)
    ranked = sorted(kinds.items(), key=lambda item: (-item[1], item[0]))
    return FailureKinds(
        field=field,
        counts=tuple(ranked[:KINDS]),
        other=sum(count for _, count in ranked[KINDS:]),
        untold=untold,
        errored=sum(record.verdict is Verdict.ERRORED for record in records),
    )


def kinds_of(records: Sequence[EpisodeRecord]) -> tuple[str | None, dict[int, str]]:
    """The field that says it, and how each failed episode did; empty where its record does not say so."""
    failed = [record for record in records if record.verdict is Verdict.FAILURE]
    held = {name for _, names in {record.names for record in failed} for name in names}
    fields = (name for name in FAILURE_FIELDS if name in held)
    field = next((name for name in fields if any(_told(record, name) for record in failed)), None)
    return field, {record.episode: _told(record, field) if field else "" for record in failed}


def _told(record: EpisodeRecord, field: str) -> str:
    """The first line of what the field says, if that is text."""
    value = record.field(field)
    return value.strip().partition("\n")[0][:KIND_LENGTH] if isinstance(value, str) else ""


def time_field(combos: Iterable[Sequence[EpisodeRecord]]) -> str | None:
    """The field of which all curves of a report are made, since seconds and steps have no axis in common: that of the
    most combos, then the plainest. Steps that are no whole numbers are not steps."""
    found = Counter(name for records in combos for name in _timed(records))
    return min(found, key=lambda name: (-found[name], tuple(TIME_FIELDS).index(name)), default=None)


def _timed(records: Sequence[EpisodeRecord]) -> set[str]:
    columns = metric_columns(record for record in records if record.verdict is Verdict.SUCCESS)
    named = columns.keys() & TIME_FIELDS.keys()
    return {name for name in named if TIME_FIELDS[name] != "steps" or not any(value % 1 for value in columns[name])}


def time_to_success(records: Sequence[EpisodeRecord], field: str | None) -> TimeToSuccess | None:
    """Of the completed episodes; None where no successful one has the field."""
    succeeded = [record for record in records if record.verdict is Verdict.SUCCESS]
    times = metric_columns(succeeded).get(field or "", [])
    if not field or not times:
        return None
    curve = incidence(times, len(_judged(records)))
    return TimeToSuccess(field, TIME_FIELDS[field], curve, len(succeeded) - len(times))


def balanced_rate(records: Sequence[EpisodeRecord]) -> Balanced | None:
    """None unless every completed record names its copy of the environment and its place there, and there are several
    copies."""
    copies: dict[object, list[tuple[float, bool]]] = {}
    for record in records:
        if record.success is None:
            continue
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
    by_combo = {combo: _judged(tuple(group)) for combo, group in groupby(episodes, attrgetter("combo"))}
    return {combo: _running(records) for combo, records in by_combo.items() if records}


def _running(records: Sequence[EpisodeRecord]) -> Running:
    """Every place of a short line; of a long one the first places, where it moves most, and the last."""
    count = len(records)
    step = max(1, count // PLACES)
    places = {*range(1, min(count, PLACES // 4) + 1), *range(step, count + 1, step), count}
    successes = list(accumulate(record.verdict is Verdict.SUCCESS for record in records))
    return tuple((n, int(successes[n - 1])) for n in sorted(places))


def _judged(records: Sequence[EpisodeRecord]) -> list[EpisodeRecord]:
    return [record for record in records if record.success is not None]
