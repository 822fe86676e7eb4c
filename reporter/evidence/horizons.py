"""The time limit of episodes, as far as the lengths of failures show it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from comborun.model.attempt import EpisodeRecord, Verdict, having, held, metric_columns
from comborun.rules.facts import Fact

LIMITS, LONGER = "failures_end_at_other_lengths", "episodes_longer_than_the_limit"
FEWEST = 5
"""fewest failures of one length, the longest of all, that show that it is the limit; they are half of the failures"""
_LENGTH = re.compile(r"(?:^|_)(?:steps?|length|len|duration|frames|time)(?:_|$)", re.IGNORECASE)
_NO_LENGTH = re.compile(r"(?:^|_)(?:to|until|wall|wait|mean|min|max|per|limit|global|train)(?:_|$)", re.IGNORECASE)


@dataclass(frozen=True)
class Length:
    longest: float
    limit: float | None
    """at which failures end, above 0; None where they don't show it"""


Lengths = Mapping[str, Length]
"""by field"""


def lengths_of(records: Sequence[EpisodeRecord]) -> Lengths:
    names = {name for metrics, _ in held(records) for name in metrics}
    names = {name for name in names if _LENGTH.search(name) and not _NO_LENGTH.search(name)}
    if not names:
        return {}
    every = metric_columns(having(records, Verdict.SUCCESS, Verdict.FAILURE), names)
    failed = metric_columns(having(records, Verdict.FAILURE), names)
    found = {}
    for name, values in sorted(every.items()):
        longest, own = max(values), failed.get(name, [])
        ended = own.count(longest)
        # A number that successes always have, too, is a constant: the step of a training, say.
        ends = FEWEST <= ended >= len(own) / 2 and not (len(own) < len(values) and min(values) == longest)
        found[name] = Length(longest, longest if ends and longest > 0 else None)
    return found


def unlike_limits(a: tuple[str, Lengths], b: tuple[str, Lengths]) -> Iterator[Fact]:
    """Two policies whose failures end at other lengths, or one of them has episodes longer than the other's limit."""
    (_, first), (_, second) = a, b
    for name in (name for name in first if name in second):
        limits = [one[name].limit for one in (first, second)]
        if None not in limits:
            if limits[0] != limits[1]:
                yield Fact(LIMITS, field=name, names=[a[0], b[0]], limits=limits)
            continue
        for (one, own), (other, theirs) in ((a, b), (b, a)):
            limit = own[name].limit
            if limit is not None and theirs[name].longest > limit:
                yield Fact(LONGER, field=name, of=one, limit=limit, other=other, longest=theirs[name].longest)


def limits_of(sides: Mapping[str, Lengths]) -> Iterator[Fact]:
    """The same of all policies of an environment together."""
    for name in sorted({name for one in sides.values() for name in one}):
        found = {who: one[name].limit for who, one in sides.items() if name in one and one[name].limit is not None}
        if len({*found.values()}) > 1:
            yield Fact(LIMITS, field=name, names=[*found], limits=[*found.values()])
