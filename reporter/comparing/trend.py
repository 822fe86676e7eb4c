"""Checkpoints of one training, in the order of their steps: a curve with a band, and the best one. Pure.

The largest of several rates is larger than it should be. So the band holds for all checkpoints at once, whichever is
picked; and the rate of the best one is measured again, on episodes that did not choose it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from comborun.reporter.comparing.pairing import Arm
from comborun.reporter.statistics.means import mean_of_rates
from comborun.reporter.statistics.proportion import CONFIDENCE, clopper_pearson

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from comborun.reporter.comparing.pairing import Side
    from comborun.reporter.statistics.proportion import Interval
    from comborun.work import Combo

FEWEST = 3
"""checkpoints of a curve"""
FOLDS = 5
_STEP = re.compile(
    r"(?:steps?|ckpt|checkpoint|iter(?:ation)?|epoch|model(?=_\d\d))[-_]?(\d+)([km]?)(?![a-z0-9])", re.IGNORECASE
)
_THOUSANDS = {"": 1, "k": 1000, "m": 1000000}


@dataclass(frozen=True)
class Checkpoint:
    policy: str
    step: float
    rate: float
    """the mean over the environments"""
    interval: Interval
    """of the band: with those of the others it covers all true rates at 95 %"""


@dataclass(frozen=True)
class Trend:
    checkpoints: tuple[Checkpoint, ...]
    """by step"""
    environments: tuple[str, ...]
    """those in which each has completed episodes"""
    episodes: int
    """completed, of all checkpoints"""
    measured_again: float | None
    """the rate of the best one, chosen by four fifths of the episodes and measured on the rest, the mean of five such
    splits; None where starts come again, or episodes are too few"""

    @property
    def best(self) -> Checkpoint:
        return max(self.checkpoints, key=lambda one: one.rate)


def steps_of(policies: Sequence[str], attributes: Mapping[str, float]) -> list[dict[str, float]]:
    """Policies that are checkpoints of one training, with their steps: those whose names differ in the number after a
    word like `step` alone, else those with the attribute `step`."""
    series: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for policy in policies:
        match = _STEP.search(policy)
        step = float(match[1]) * _THOUSANDS[match[2].lower()] if match else None
        step = attributes.get(policy, step)
        if step is not None:
            series[policy[: match.start(1)] + policy[match.end() :] if match else ""][policy] = step
    return [
        dict(sorted(one.items(), key=lambda item: item[1])) for one in series.values() if len({*one.values()}) >= FEWEST
    ]


def trends(steps: Sequence[Mapping[str, float]], sides: Mapping[Combo, Side]) -> tuple[Trend, ...]:
    return tuple(found for one in steps if (found := _trend(one, sides)))


def _trend(steps: Mapping[str, float], sides: Mapping[Combo, Side]) -> Trend | None:
    environments = tuple(
        name
        for name in dict.fromkeys(environment for _, environment in sides)
        if all((side := sides.get((policy, name))) and side.counts[1] for policy in steps)
    )
    if not environments:
        return None
    confidence = 1 - (1 - CONFIDENCE) / len(steps)
    rows = {policy: [sides[policy, name] for name in environments] for policy in steps}
    return Trend(
        tuple(
            Checkpoint(policy, step, _rate([side.by_start for side in rows[policy]]), _band(rows[policy], confidence))
            for policy, step in steps.items()
        ),
        environments,
        sum(side.counts[1] for row in rows.values() for side in row),
        _measured_again([[side for side in row if isinstance(side, Arm)] for row in rows.values()], len(environments)),
    )


def _rate(counts: Sequence[tuple[float, int]]) -> float:
    return fmean(k / n for k, n in counts)


def _band(row: Sequence[Side], confidence: float) -> Interval:
    """Bonferroni: it holds however the checkpoints depend on each other, on the same seeds for instance."""
    counts = [side.by_start for side in row]
    if len(counts) == 1:
        return clopper_pearson(*counts[0], confidence) or (0.0, 1.0)
    return mean_of_rates(counts, confidence)


def _measured_again(rows: Sequence[Sequence[Arm]], environments: int) -> float | None:
    arms = [arm for row in rows for arm in row]
    if len(arms) < len(rows) * environments or any(arm.starts.groups(arm.completed) for arm in arms):
        return None
    found = []
    for fold in range(FOLDS):
        inside = [[_split(arm, fold, inside=True) for arm in row] for row in rows]
        outside = [[_split(arm, fold, inside=False) for arm in row] for row in rows]
        if not all(n for row in (*inside, *outside) for _, n in row):
            return None
        chosen = max(range(len(rows)), key=lambda one: _rate(outside[one]))
        found.append(_rate(inside[chosen]))
    return fmean(found)


def _split(arm: Arm, fold: int, *, inside: bool) -> tuple[int, int]:
    episodes = frozenset(one for one in arm.completed if (one % FOLDS == fold) is inside)
    return len(episodes & arm.successes), len(episodes)
