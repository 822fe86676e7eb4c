"""Runs of one policy side by side, such as training seeds: joined, with the run as a random effect. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from math import inf, sqrt
from statistics import fmean, variance

from comborun.reporter.statistics.proportion import CONFIDENCE, t_probability, t_quantile
from comborun.rules.facts import Fact


class RunFact(StrEnum):
    JOINED = "runs_joined"
    RANDOM = "run_as_random_effect"
    ONE_SIDE = "one_run_of_a_side"
    ONE_EACH = "one_run_each"


Runs = Mapping[str, Collection[int]]
"""by the name of a run, its episodes in the joined numbering"""


def run_rates(runs: Runs, completed: frozenset[int], successes: frozenset[int]) -> dict[str, float]:
    """The success rate of each run with completed episodes."""
    counted = {name: completed.intersection(episodes) for name, episodes in runs.items()}
    return {name: len(some & successes) / len(some) for name, some in counted.items() if some}


def joined(policy: str, rates: Mapping[str, float], metric: str = "") -> Fact:
    """`rates`: of success by run, or its means of `metric`."""
    of = {"metric": metric} if metric else {}
    return Fact(RunFact.JOINED, policy=policy, runs=[*rates], rates=[round(rate, 6) for rate in rates.values()], **of)


FEWEST_SEEDS = 3
"""of seeds that may be those of starts: two starts can go the same way by chance"""


def between_runs(a: Sequence[float], b: Sequence[float], *, told: bool) -> tuple[float, float, float] | None:
    """Difference of means, half of its interval, and p, with the run as the unit (Student's t); None unless one of both
    has several. A single run is taken to differ from others as much as those of the other policy do.

    `told`: whether they are known to be runs. If they may be repeated starts, whose rates lie near 0 and 1, half of the
    degrees of freedom keeps the size (benchmarks/claims.py), and against a single run they decide nothing.
    """
    several = [one for one in (a, b) if len(one) > 1]
    if not (several and a and b):
        return None
    difference, freedom = fmean(a) - fmean(b), len(a) + len(b) - 2
    fewest = min(map(len, several))
    if not told and (fewest < FEWEST_SEEDS or len(several) < 2):
        return difference, inf, 1.0
    pooled = sum((len(one) - 1) * variance(one) for one in several) / freedom
    error = sqrt(pooled * (1 / len(a) + 1 / len(b)))
    freedom = freedom if told else fewest - 1
    p = t_probability(freedom, difference / error) if error else float(not difference)
    return difference, t_quantile(freedom, CONFIDENCE) * error, p


def differing_runs(differences: Sequence[float], *, told: bool) -> tuple[float, float, float] | None:
    """Of a difference that each of several runs has: its mean, half of its interval, and p (Student's t)."""
    if len(differences) < 2:
        return None
    mean, freedom = fmean(differences), len(differences) - 1
    if not told and len(differences) < FEWEST_SEEDS:
        return mean, inf, 1.0
    error = sqrt(variance(differences) / len(differences))
    freedom = freedom if told else max(1, freedom // 2)
    p = t_probability(freedom, mean / error) if error else float(not mean)
    return mean, t_quantile(freedom, CONFIDENCE) * error, p


def above(rates: Sequence[float], share: float, *, told: bool) -> float:
    """p of "the mean rate is at most `share`", twice the one-sided one, with the run as the unit (Student's t); 0
    without several runs. `told` as above."""
    if len(rates) < 2:
        return 0.0
    mean, freedom = fmean(rates), len(rates) - 1
    if mean <= share or (not told and len(rates) < FEWEST_SEEDS):
        return 1.0
    error = sqrt(variance(rates) / len(rates))
    return t_probability(freedom if told else freedom / 2, (mean - share) / error) if error else 0.0
