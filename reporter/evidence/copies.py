"""The results of one policy under the name of another one too, or of one environment. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from math import comb
from operator import attrgetter

from comborun.model.attempt import EpisodeRecord, Verdict, field_column, held
from comborun.model.work import Combo, grouped
from comborun.reporter.counting.measures import FAILURE_FIELDS
from comborun.reporter.evidence.states import plain
from comborun.rules.facts import Fact

COPY, AGAIN = "rows_of_another_name", "rows_of_another_run"
LOOKED_AT = 64
CHANCE = 1_000_000
"""two policies that know nothing of each other have the same verdicts in fewer than one of so many cases"""
VALUES = 5
"""fewest different values of a measurement that tells as much"""
_MEASUREMENT = re.compile(
    r"time|steps?|length|duration|frames|return|reward|score|progress|distance|energy|error", re.IGNORECASE
)


def copies(combos: Mapping[Combo, Sequence[EpisodeRecord]]) -> dict[Combo, Fact]:
    """For each combo that has the rows of an earlier one, of the same environment or else of the same policy."""
    found: dict[Combo, Fact] = {}
    alike = grouped((one for one in combos if len(combos[one]) > 1), lambda one: _beginning(combos[one]))
    for some in alike.values():
        for at, own in enumerate(some):
            others = [one for one in some[:at] if one not in found]
            if fact := next(_of_any(own, others, combos), None):
                found[own] = fact
    return found


def repeated_run(before: Sequence[EpisodeRecord], after: Sequence[EpisodeRecord], runs: tuple[str, str]) -> Fact | None:
    """The fact that a combo has the same rows in a second run, or the one begins with all rows of the other. A program
    that takes nothing from chance gives them again, and so do a folder that was copied and a run that went on."""
    n = min(len(before), len(after))
    if not n or (apart := _apart(before[:n], after[:n])) is None:
        return None
    of, other = runs if len(before) < len(after) else runs[::-1]
    return Fact(AGAIN, of=of, other=other, rows=n, apart=apart, more=max(len(before), len(after)) - n)


def _beginning(records: Sequence[EpisodeRecord]) -> tuple[int, tuple[Verdict, ...]]:
    return len(records), tuple(map(attrgetter("verdict"), islice(records, LOOKED_AT)))


def _of_any(own: Combo, others: Iterable[Combo], combos: Mapping[Combo, Sequence[EpisodeRecord]]) -> Iterator[Fact]:
    for axis, beside in ((0, 1), (1, 0)):
        for other in others:
            if own[beside] == other[beside] and (apart := _apart(combos[other], combos[own])) is not None:
                kind = ("policy", "environment")[axis]
                yield Fact(COPY, kind=kind, of=own[axis], other=other[axis], rows=len(combos[own]), apart=apart)


def _apart(a: Sequence[EpisodeRecord], b: Sequence[EpisodeRecord]) -> list[str] | None:
    """The fields besides the name that are not the same; None if the rows are not those of one evaluation."""
    for one, other in zip(a, b, strict=True):
        if one.verdict is not other.verdict or (one.episode, one.seed) != (other.episode, other.seed):
            return None
    apart, telling = [], _unlikely(a)
    names = dict.fromkeys(name for both in (*sorted(held(a)), *sorted(held(b))) for some in both for name in some)
    for name in names:
        first, second = field_column(a, name), field_column(b, name)
        if first == second:
            telling = telling or bool(_MEASUREMENT.search(name) and len({*map(plain, first)}) >= VALUES)
        elif name in FAILURE_FIELDS or not (_constant(first) and _constant(second)):
            return None
        else:
            apart.append(name)
    return apart if telling else None


def _constant(column: Sequence[object]) -> bool:
    """Or of texts: a path, or a time of the day."""
    return all(isinstance(one, str) for one in column) or all(one == column[0] for one in column)


def _unlikely(records: Sequence[EpisodeRecord]) -> bool:
    verdicts = [*map(attrgetter("verdict"), records)]
    return comb(len(verdicts), verdicts.count(Verdict.SUCCESS)) >= CHANCE
