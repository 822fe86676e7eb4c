"""Graded metrics of a combo: where the mean lies, and how far the episodes lie apart. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING

from comborun.attempt import Verdict
from comborun.reporter.statistics.bootstrap import bca_means

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comborun.attempt import EpisodeRecord
    from comborun.reporter.statistics.proportion import Interval

    Measured = tuple[Sequence[EpisodeRecord], tuple[str, ...]]
    """the records of a combo, and the metrics that the grid names for it"""

LIMIT = 40
"""metrics per combo where the grid names none; a program that invents field names must not fill the report"""
FEWEST_FOR_PERCENTILES = 20
"""with fewer values, 5 % and 95 % are little more than the extremes"""
TOGETHER = 256
"""metrics resampled at a time, over all combos"""


@dataclass(frozen=True)
class MetricMean:
    """Over the completed episodes that have the metric."""

    name: str
    mean: float
    n: int
    interval: Interval | None
    """95 % for the mean (BCa bootstrap); None where a single value, or equal ones, say nothing of it"""
    percentiles: Interval | None
    """5 % and 95 % of the episodes; None below 20 values"""


def metrics(combos: Sequence[Measured]) -> tuple[tuple[MetricMean, ...], ...]:
    """Of each combo in the order of the metrics that are named, or where none is in the order in which the records name
    them. All combos together, since resampling them one by one takes twenty times as long."""
    values = [_values(records, wanted) for records, wanted in combos]
    intervals = iter(_intervals([numbers for found in values for numbers in found.values()]))
    return tuple(
        tuple(
            MetricMean(name, _mean(numbers), len(numbers), next(intervals), _percentiles(numbers))
            for name, numbers in found.items()
        )
        for found in values
    )


def _values(records: Sequence[EpisodeRecord], wanted: tuple[str, ...]) -> dict[str, list[float]]:
    values: dict[str, list[float]] = {name: [] for name in wanted}
    for record in records:
        if record.verdict is not Verdict.ERRORED:
            for name, value in record.metrics.items():
                values.setdefault(name, []).append(value)
    return dict([(name, numbers) for name, numbers in values.items() if numbers][: len(wanted) or LIMIT])


def _intervals(columns: Sequence[Sequence[float]]) -> list[Interval | None]:
    """Columns of the same length are resampled together, so many at a time."""
    by_length: dict[int, list[int]] = {}
    for place, numbers in enumerate(columns):
        by_length.setdefault(len(numbers), []).append(place)
    intervals: list[Interval | None] = [None] * len(columns)
    for places in by_length.values():
        for start in range(0, len(places), TOGETHER):
            some = places[start : start + TOGETHER]
            for place, interval in zip(some, bca_means([columns[place] for place in some]), strict=True):
                intervals[place] = interval
    return intervals


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
