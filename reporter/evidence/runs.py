"""Runs of one policy side by side, such as training seeds: joined, with the run as a random effect. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from math import sqrt
from statistics import fmean, variance

from comborun.reporter.statistics.proportion import CONFIDENCE, Interval, t_probability, t_quantile
from comborun.rules.facts import Fact


class RunFact(StrEnum):
    JOINED = "runs_joined"
    RANDOM = "run_as_random_effect"
    ONE_EACH = "one_run_of_a_side"


Runs = Mapping[str, range]
"""by the name of a run, its episodes in the joined numbering"""


def run_rates(runs: Runs, completed: frozenset[int], successes: frozenset[int]) -> dict[str, float]:
    """The success rate of each run with completed episodes."""
    counted = {name: completed.intersection(episodes) for name, episodes in runs.items()}
    return {name: len(some & successes) / len(some) for name, some in counted.items() if some}


def joined(policy: str, rates: Mapping[str, float]) -> Fact:
    return Fact(RunFact.JOINED, policy=policy, runs=[*rates], rates=[round(rate, 6) for rate in rates.values()])


def between_runs(a: Sequence[float], b: Sequence[float]) -> tuple[Interval, float] | None:
    """Interval and p of the difference of means with the run as the unit (Student's t); None without two of each."""
    if min(len(a), len(b)) < 2:
        return None
    difference, freedom = fmean(a) - fmean(b), len(a) + len(b) - 2
    pooled = ((len(a) - 1) * variance(a) + (len(b) - 1) * variance(b)) / freedom
    error = sqrt(pooled * (1 / len(a) + 1 / len(b)))
    half = t_quantile(freedom, CONFIDENCE) * error
    p = t_probability(freedom, difference / error) if error else float(not difference)
    return (max(-1.0, difference - half), min(1.0, difference + half)), p
