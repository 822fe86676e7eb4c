"""Metrics that two policies seem to record in other units, such as m and mm: the values of one are those of the other
times 1000. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from comborun.model.attempt import EpisodeRecord, Verdict, having, metric_columns
from comborun.model.work import Combo, grouped
from comborun.rules.facts import Fact

UNITS = "perhaps_other_units"
FACTORS = (1000, 1_000_000)
NARROW = 10
"""of most values of one policy, the largest by the smallest: wide ones differ without another unit"""
FEWEST = 5


class _Range(NamedTuple):
    policy: str
    low: float
    middle: float
    high: float


def other_units(combos: Iterable[Sequence[EpisodeRecord]], names: Iterable[str]) -> Iterator[Fact]:
    """For each metric of `names` of which this seems so, with the environments."""
    wanted = [*names]
    if not wanted:
        return
    columns: dict[Combo, Mapping[str, Sequence[float]]] = {
        records[0].combo: metric_columns(having(records, Verdict.SUCCESS, Verdict.FAILURE, Verdict.MEASURED), wanted)
        for records in combos
        if records
    }
    for name in wanted:
        found: dict[tuple[int, tuple[str, ...], tuple[str, ...]], list[str]] = {}
        for environment, some in grouped(columns, lambda combo: combo[1]).items():
            ranges = [one for combo in some if (one := _range_of(combo[0], columns[combo].get(name, ())))]
            ranges.sort(key=lambda one: one.middle)
            for factor in FACTORS:
                above = [one for one in ranges if ranges and _apart(ranges[0], one, factor)]
                if above:
                    below = [one.policy for one in ranges if one.middle * factor**0.5 < above[0].middle]
                    key = factor, tuple(one.policy for one in above), tuple(below)
                    found.setdefault(key, []).append(environment)
        for (factor, policies, others), environments in found.items():
            yield Fact(
                UNITS, field=name, environments=environments, policies=[*policies], others=[*others], factor=factor
            )


def _range_of(policy: str, values: Sequence[float]) -> _Range | None:
    positive = sorted(one for one in values if one > 0)
    if len(positive) < max(FEWEST, 0.9 * len(values)):
        return None
    low, high = (positive[int(share * (len(positive) - 1))] for share in (0.05, 0.95))
    return _Range(policy, low, median(positive), high) if high <= NARROW * low else None


def _apart(a: _Range, b: _Range, factor: int) -> bool:
    """Whether b's values are in the range of a's times the factor."""
    return a.low * factor <= b.high and b.low <= a.high * factor and a.high < b.low
