"""Two policies with the run as the unit, or a value of a setting that they do not share: another day, say. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from statistics import fmean

from comborun.reporter.comparing.sides import Arm, Meeting, Side
from comborun.reporter.evidence.runs import between_runs
from comborun.reporter.evidence.settings import SettingFact
from comborun.rules.facts import Fact

OfRuns = tuple[float, float, float] | None
"""with the run as the unit, the difference, half of its interval and p; None without several runs"""


def p_of_runs(meetings: Sequence[Meeting], shift: float, sign: int) -> float:
    """p, with the run as the unit, of a's rate plus `shift` minus b's having this sign; 0 without several runs."""
    of_runs = of_both(meetings, shift)
    if of_runs is None:
        return 0.0
    return of_runs[2] if of_runs[0] * sign > 0 else 1.0


def run_rates_of(meetings: Sequence[Meeting]) -> tuple[tuple[list[float], list[float]] | None, bool]:
    """The mean rates of the runs of a and of b, or their means of a metric, and whether files tell that they are runs.
    In each environment a policy has the same runs, or one; else those runs count that it has in all. None if both have
    one, unless it is a value of a setting, which they do not share."""
    by_value = any(one.by_value for one in meetings)
    sides = ([one.a for one in meetings], [one.b for one in meetings])
    (a, told_a), (b, told_b) = (rates_of_runs(one, by_value=by_value) for one in sides)
    return ((a, b) if by_value or max(len(a), len(b)) > 1 else None), told_a and told_b


def of_both(meetings: Sequence[Meeting], shift: float = 0.0) -> OfRuns:
    """`between_runs` of both policies, with `shift` added to a's rates."""
    rates, told = run_rates_of(meetings)
    if rates is None:
        return None
    a = [rate + shift for rate in rates[0]]
    # A value of a setting for each policy, and not the same: no spread says how much it makes.
    return between_runs(a, rates[1], told=told) or (fmean(a) - fmean(rates[1]), inf, 1.0)


def rates_of_runs(sides: Sequence[Side], *, by_value: bool = False) -> tuple[list[float], bool]:
    """The same of one policy; a single rate if it has no runs. `by_value`: its runs are the values of a setting, and an
    environment may lack some."""
    least = 1 if by_value else 2
    found = [own if len(own := _of_runs(one)) >= least else {} for one in sides]
    told = all(one.runs_told for one, own in zip(sides, found, strict=True) if own and isinstance(one, Arm))
    alone = [_mean_of(one) for one, own in zip(sides, found, strict=True) if not own]
    several = [own for own in found if own]
    names = [run for run in several[0] if all(run in one for one in several)] if several else []
    if by_value:
        names = [*dict.fromkeys(run for one in several for run in one)]
    means = [
        (sum(alone) + len(several) * fmean(one[run] for one in several if run in one)) / (len(alone) + len(several))
        for run in names
    ]
    return means or [fmean(alone or (fmean(own.values()) for own in several))], told


def _of_runs(one: Side) -> Mapping[str, float]:
    if not isinstance(one, Arm):
        return {}
    return one.run_means if one.metric else one.run_rates


def _mean_of(one: Side) -> float:
    if isinstance(one, Arm) and one.metric:
        return fmean(one.values_by_start)
    return one.counts[0] / one.counts[1]


def of_several(found: list[tuple[Fact, list[str]]], meetings: Sequence[Meeting]) -> list[tuple[Fact, list[str]]]:
    """With one fact of a setting that has another value in each environment: over these it has several."""
    alone = [one for one in found if one[0].code == SettingFact.ALONE]
    rates, _ = run_rates_of(meetings) if alone else (None, True)
    if not rates or max(values := [*map(len, rates)]) < 2:
        return found
    first = alone[0][0]
    told = Fact(SettingFact.NESTED, field=first.text("field"), values=values, policies=first.texts("policies"))
    return [(told, [place for _, places in alone for place in places]), *(one for one in found if one not in alone)]
