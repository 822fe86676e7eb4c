"""Numbers that measure nothing: identifiers, and values that stand for "none". Settled over all combos. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from operator import attrgetter
from typing import TYPE_CHECKING

from comborun.model.attempt import EpisodeRecord, Verdict, having, held, metric_columns
from comborun.model.work import grouped
from comborun.reporter.evidence.running import going_on, running
from comborun.reporter.evidence.units import FACTORS, NARROW, other_units
from comborun.rules.facts import Fact

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_IDENTIFIER = re.compile(
    r"(?:^|[_./ ])(?:p?pid|port|rank|worker|gpu|device|thread|ids?|idx|index|uid|timestamp|trial|run|attempt|seed"
    r"|global_step|line|shard|instance|init_state)(?:_?(?:id|idx|index|num|number))?$",
    re.IGNORECASE,
)
_PLAIN = re.compile(r"(?:^|[_./ ])(?:ids?|idx|index|uid|seed|time_?stamp)$", re.IGNORECASE)
"""names by which everybody knows that a field has no mean, so that nothing is told of it"""
_TIME = re.compile(r"time|steps?|length|duration|seconds|frames|(?:^|_)(?:len|t|s|ms)$", re.IGNORECASE)
_UNTIL = re.compile(r"(?:time|steps?|seconds|frames)_(?:to|until)_", re.IGNORECASE)
"""times until something: an episode without it has none, however long it is"""
_SIGNED = re.compile(r"reward|return|score|delta|diff|error|offset|gain|improvement", re.IGNORECASE)
"""measurements that can be negative; of them -1 is a value like others"""
_MEASURES = re.compile(f"{_TIME.pattern}|{_SIGNED.pattern}", re.IGNORECASE)
"""names of measurements that may grow evenly by chance"""
CLOCK = (1e9, 4e9)
"""seconds since 1970, from 2001 to 2096; milliseconds, micro- and nanoseconds are this in thousands"""
HUGE = 1e6
"""a power of ten from here on, far above all else, is no measurement"""
ROWS = 10
"""fewest values that grow by the same step and so count rows"""
DISTINCT = 3
"""fewest different values beside -1, if that stands for "none": verdicts as 1 and -1 are values"""
_NUMBER_IN_TEXT = re.compile(r"\s*[+-]?[\d.,]*\d[\d.,]*\s*[\w%/°]{0,5}\s*")
"""`3,75`, `85 %`: a number for people"""
_LARGEST = {float(2**bits - 1) for bits in (31, 32, 63, 64)}


class FieldFact(StrEnum):
    IDENTIFIERS = "identifiers"
    NO_VALUE = "value_that_means_none"
    TEXTS = "numbers_as_text"
    RUNNING = "running_numbers"
    GOES_ON = "values_that_go_on"
    GRADED = "progress_not_compared"


@dataclass(frozen=True)
class Fields:
    identifiers: frozenset[str] = frozenset()
    """they are not averaged, unless the grid names them"""
    none: Mapping[str, float] = field(default_factory=dict)
    """by metric, the value that stands for "none": it is left out"""
    texts: frozenset[str] = frozenset()
    """some of their numbers are text, which can't be read for sure: they are not averaged"""
    running: frozenset[str] = frozenset()
    """they sum up the rows before them, or go on from them, so they are no values of episodes"""
    going_on: frozenset[str] = frozenset()
    """those of which only that is known: one that is swept may be a factor"""
    other_units: frozenset[tuple[str, str]] = frozenset()
    """metrics and environments in which policies seem to record them in other units: they are not compared"""
    shares: tuple[str, ...] = ()
    """metrics that lie between 0 and 1, and not only at these ends"""
    facts: tuple[Fact, ...] = ()

    def value(self, record: EpisodeRecord, name: str) -> float | None:
        found = record.metric(name)
        none = found is None or name in self.texts | self.running or (name in self.none and found == self.none[name])
        return None if none else found

    def columns(self, records: Sequence[EpisodeRecord], wanted: Sequence[str] = ()) -> dict[str, list[float]]:
        """As `metric_columns`, without identifiers and values that stand for "none"."""
        found = metric_columns(records, wanted)
        for name in (self.identifiers - {*wanted} | self.texts | self.running) & found.keys():
            del found[name]
        for name in self.none.keys() & found.keys():
            found[name] = [value for value in found[name] if value != self.none[name]]
        return {name: values for name, values in found.items() if values}


@dataclass
class _Column:
    """What is known of a metric over all combos."""

    low: float = float("inf")
    high: float = float("-inf")
    whole: bool = True
    counts_rows: bool = True


def fields_of(combos: Iterable[Sequence[EpisodeRecord]], wanted: Collection[str] = ()) -> Fields:
    """`wanted`: the metrics that the grid names."""
    combos = [*combos]
    columns: defaultdict[str, _Column] = defaultdict(_Column)
    for records in combos:
        for names, values in _tables(records):
            low, high = values.min(axis=0).tolist(), values.max(axis=0).tolist()
            whole, rows = (values == values.round()).all(axis=0).tolist(), _even_steps(values)
            for at, name in enumerate(names):
                column = columns[name]
                column.low, column.high = min(column.low, low[at]), max(column.high, high[at])
                column.whole, column.counts_rows = column.whole and whole[at], column.counts_rows and rows[at]
    numbering = frozenset(name for name, column in columns.items() if name not in wanted and _identifies(name, column))
    found = [*_nones(combos, columns, numbering)]
    sums = {name: way for name, way in running(combos).items() if name not in numbering}
    unclear = sorted(name for name in numbering if not _PLAIN.search(name) and columns[name].low < columns[name].high)
    facts = [Fact(FieldFact.IDENTIFIERS, fields=unclear)] if unclear else []
    facts += [
        Fact(FieldFact.RUNNING, field=name, of=other, what=what, **({"last": last} if last else {}))
        for name, (other, what, last) in sums.items()
    ]
    goes_on = {name: one for name, one in going_on(combos).items() if name not in {*numbering, *sums, *wanted}}
    facts += [
        Fact(FieldFact.GOES_ON, field=name, turns=one.turns, of=one.places, expected=round(one.expected))
        for name, one in goes_on.items()
    ]
    texts = {fact.text("field"): fact for fact in _texts(combos, columns)}
    facts += texts.values()
    facts += [
        Fact(FieldFact.NO_VALUE, field=name, value=value, episodes=count, of=total)
        for name, value, count, total in found
    ]
    left_out = {*numbering, *texts, *sums, *goes_on}
    wide = [
        name
        for name, one in columns.items()
        if name not in left_out and 0 <= one.low * FACTORS[0] / NARROW**2 < one.high
    ]
    units = [*other_units(combos, wide)]
    facts += units
    none = {name: value for name, value, _, _ in found}
    shares = (name for name, one in columns.items() if 0 <= one.low < one.high <= 1 and not one.whole)
    return Fields(
        numbering,
        none,
        frozenset(texts),
        frozenset({*sums, *goes_on}),
        frozenset(goes_on),
        frozenset((fact.text("field"), one) for fact in units for one in fact.texts("environments")),
        tuple(name for name in shares if name not in left_out),
        (*facts,),
    )


def _texts(combos: Iterable[Sequence[EpisodeRecord]], columns: Mapping[str, _Column]) -> Iterator[Fact]:
    """Metrics with some values that are numbers written as text."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for records in combos:
        both = {names: [name for name in names[1] if name in columns] for names in held(records)}
        for record in records if any(both.values()) else ():
            for name in both[record.names]:
                if isinstance(value := record.field(name), str) and _NUMBER_IN_TEXT.fullmatch(value):
                    found[name].append(value)
    for name, values in sorted(found.items()):
        yield Fact(FieldFact.TEXTS, field=name, episodes=len(values), value=values[0])


def _tables(records: Sequence[EpisodeRecord]) -> Iterator[tuple[Sequence[str], NDArray[np.float64]]]:
    """The metrics of records with the same fields: a row each."""
    import numpy as np

    kinds = held(records)
    groups = {kinds.pop(): records} if len(kinds) == 1 else grouped(records, attrgetter("names"))
    for (names, _), alike in groups.items():
        if names:
            numbers = b"".join(map(attrgetter("numbers"), alike))
            yield names, np.frombuffer(numbers, dtype=np.float64).reshape(len(alike), len(names))


def _even_steps(values: NDArray[np.float64]) -> list[bool]:
    """By column, whether each value is one and the same step above the one before."""
    if len(values) < ROWS:
        return [False] * values.shape[1]
    steps = values[1:] - values[:-1]
    return [bool(one) for one in (steps == steps[0]).all(axis=0) & (steps[0] != 0)]


def _identifies(name: str, column: _Column) -> bool:
    if any(CLOCK[0] * unit <= column.low <= column.high < CLOCK[1] * unit for unit in (1, 1e3, 1e6, 1e9)):
        return True
    return column.whole and bool(_IDENTIFIER.search(name) or (column.counts_rows and not _MEASURES.search(name)))


def _nones(
    combos: Iterable[Sequence[EpisodeRecord]], columns: Mapping[str, _Column], identifiers: frozenset[str]
) -> Iterator[tuple[str, float, int, int]]:
    """Metric, value, in how many episodes, and of how many."""
    suspects = {
        name: value
        for name, column in columns.items()
        for value in (column.low, column.high)
        if name not in identifiers and _may_mean_none(name, value)
    }
    if not suspects:
        return
    found: defaultdict[str, list[float]] = defaultdict(list)
    of_failures: defaultdict[str, list[float]] = defaultdict(list)
    for records in combos:
        for name, values in metric_columns(records, suspects).items():
            found[name] += values
        for name, values in metric_columns(having(records, Verdict.FAILURE), suspects).items():
            of_failures[name] += values
    for name, value in suspects.items():
        others = [one for one in found[name] if one != value]
        count = len(found[name]) - len(others)
        enough = len({*others}) >= (DISTINCT if value in (-1, 0) else 1)
        if not enough or not (count > 1 or abs(value) >= HUGE):
            continue
        # What all failures have, and no success, is no time.
        failed = len(of_failures[name]) == count and {*of_failures[name]} == {value} and bool(_TIME.search(name))
        if (failed and value in (-1, 0) and min(others) > 0) or _apart(value, others):
            yield name, value, count, len(found[name])


def _may_mean_none(name: str, value: float) -> bool:
    if value == 0:  # no time is zero
        return bool(_TIME.search(name))
    if value == -1:
        return not _SIGNED.search(name)
    size = abs(value)
    may_last = _TIME.search(name) and not _UNTIL.search(name)  # 999 steps may be all that there are
    if size < (HUGE if may_last else 99) or size != int(size):
        return False
    digits = f"{size:.0f}"
    return {*digits} == {"9"} or (size >= HUGE and digits.rstrip("0") == "1") or size in _LARGEST


def _apart(value: float, others: Sequence[float]) -> bool:
    low, high = min(others), max(others)
    if value in (-1, 0):
        return low >= 0 if value else low >= high - low
    return min(abs(value - low), abs(value - high)) > high - low
