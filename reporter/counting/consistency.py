"""How alike the episodes of one start go, where starts were run several times. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import comb
from statistics import fmean

from comborun.reporter.json_types import Share
from comborun.reporter.statistics.proportion import Interval, mean_interval

MOST = 10
"""most repeats k of which pass^k is given"""


@dataclass(frozen=True)
class Consistency:
    starts: int
    """different starts that were run at least twice"""
    each: int
    """the fewest episodes of any of them"""
    always: int
    """starts whose episodes all succeeded"""
    never: int
    """starts whose episodes all failed"""
    passes: Sequence[Share]
    """the chance that k episodes of one start all succeed, for k from 1 on (pass^k)"""
    agreement: Share
    """the chance that two episodes of one start end alike (test and retest)"""
    interval: Interval | None
    """95 % interval of it, over the starts (t); None with fewer than 5 starts, or only equal ones"""


def consistency(groups: Sequence[Collection[int]] | None, successes: Collection[int]) -> Consistency | None:
    """`groups`: the episodes of each start. None unless at least two starts were run at least twice."""
    counts = [(sum(one in successes for one in group), len(group)) for group in groups or () if len(group) > 1]
    if len(counts) < 2:
        return None
    each = min(n for _, n in counts)
    agree = [(comb(k, 2) + comb(n - k, 2)) / comb(n, 2) for k, n in counts]
    found = mean_interval(agree)
    return Consistency(
        starts=len(counts),
        each=each,
        always=sum(k == n for k, n in counts),
        never=sum(k == 0 for k, _ in counts),
        passes=tuple(fmean(comb(k, i) / comb(n, i) for k, n in counts) for i in range(1, min(each, MOST) + 1)),
        agreement=fmean(agree),
        interval=found and (max(0.0, found[0]), min(1.0, found[1])),
    )
