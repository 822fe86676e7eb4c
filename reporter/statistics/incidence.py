"""Time to success as cumulative incidence: which share of all episodes has succeeded by a time. Pure.

Every episode runs until it succeeds or can succeed no more, so nothing is censored before the horizon, and the share is
a plain proportion of all n. Falls are a competing event, not censoring: Kaplan-Meier would take them for episodes that
might still have succeeded, and would say too much.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from math import log, sqrt
from typing import TYPE_CHECKING

from comborun.reporter.statistics.proportion import CONFIDENCE, Interval, clopper_pearson_each

if TYPE_CHECKING:
    from collections.abc import Iterable

STEPS = 200
"""of a curve at most; of more, every so-manieth is kept"""


@dataclass(frozen=True)
class Incidence:
    """A step function: from `times[i]` on, `successes[i]` of `n` episodes have succeeded; before the first, none."""

    n: int
    times: tuple[float, ...]
    successes: tuple[int, ...]
    band: tuple[Interval, ...]
    """Clopper-Pearson at 95 %, for each time alone"""
    median: float | None
    """by when half of all episodes have succeeded; None where fewer ever do"""

    @property
    def margin(self) -> float:
        """Half the height of a band that holds the whole curve at once with 95 %."""
        return dkw(self.n)


def incidence(times: Iterable[float], n: int) -> Incidence:
    """From the times of the successful episodes among n > 0, of which there may be fewer than successes."""
    ordered = sorted(times)
    half = (n + 1) // 2
    counts = {time: len(list(group)) for time, group in groupby(ordered)}
    steps: list[tuple[float, int]] = []
    total = 0
    for time, count in counts.items():
        total += count
        steps.append((time, total))
    kept = _thinned(steps)
    successes = tuple(total for _, total in kept)
    return Incidence(
        n=n,
        times=tuple(time for time, _ in kept),
        successes=successes,
        band=clopper_pearson_each(successes, n),
        median=ordered[half - 1] if len(ordered) >= half else None,
    )


def dkw(n: int, confidence: float = CONFIDENCE) -> float:
    """Massart's constant in the Dvoretzky-Kiefer-Wolfowitz inequality: P. Massart, Annals of Probability 18 (1990)
    1269-1283."""
    return sqrt(log(2 / (1 - confidence)) / (2 * n))


def _thinned(steps: list[tuple[float, int]]) -> list[tuple[float, int]]:
    """At most STEPS of them, the last one among them; what is kept is exact."""
    if len(steps) <= STEPS:
        return steps
    return [steps[(place + 1) * len(steps) // STEPS - 1] for place in range(STEPS)]
