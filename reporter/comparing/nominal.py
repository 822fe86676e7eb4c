"""What each policy loses from a nominal environment to the others. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from comborun.model.work import Combo
from comborun.reporter.comparing.comparison import Found, Tested, corrected, outcome_of
from comborun.reporter.comparing.limits import repeated
from comborun.reporter.comparing.sides import Arm, Side
from comborun.reporter.comparing.units import OfRuns, rates_of_runs
from comborun.reporter.evidence.runs import RunFact, between_runs, differing_runs
from comborun.reporter.json_types import Rounded
from comborun.reporter.statistics.barnard import barnard
from comborun.reporter.statistics.difference import newcombe
from comborun.reporter.statistics.proportion import rate_variance, t_probability, t_quantile
from comborun.rules.facts import Fact


@dataclass(frozen=True)
class Loss(Tested):
    """`a`: the policy. `difference`: its rate in the nominal environment minus that elsewhere, of independent
    episodes."""

    nominal: str
    environments: tuple[str, ...]
    """elsewhere; several mean: the mean of them, each with the same weight"""
    rate_nominal: Rounded
    rate: Rounded
    """elsewhere"""

    @property
    def policy(self) -> str:
        """the policy in both"""
        return self.a


def losses(sides: Mapping[Combo, Side], nominal: str) -> tuple[Loss, ...]:
    """Of each policy with completed episodes in the nominal environment: over all others, then in each. They have 5 %
    of the error of their own (Holm)."""
    found: list[Loss] = []
    for policy in dict.fromkeys(policy for policy, _ in sides):
        cells = {name: side for (one, name), side in sides.items() if one == policy and side.counts[1]}
        base = cells.pop(nominal, None)
        if base and cells:
            groups = [cells] * (len(cells) > 1) + [{name: side} for name, side in cells.items()]
            found += [_loss(nominal, base, some) for some in groups]
    return tuple(corrected(found))


def _loss(nominal: str, base: Side, cells: Mapping[str, Side]) -> Loss:
    every = [base, *cells.values()]

    def test(lost_by: int) -> Found:
        filled = [base.filled(success=lost_by < 0), *(one.filled(success=lost_by > 0) for one in cells.values())]
        first, *others = (one.by_start for one in (filled if lost_by else every))
        return _difference(first, others)

    rate, *others = (one.by_start[0] / one.by_start[1] for one in every)
    return Loss(
        **outcome_of(test, lambda _: _of_runs(base, every[1:]), unknown=any(one.unknown for one in every)),
        a=base.policy,
        b=base.policy,
        facts=_facts(every),
        nominal=nominal,
        environments=(*cells,),
        rate_nominal=rate,
        rate=fmean(others),
    )


def _of_runs(base: Side, cells: Sequence[Side]) -> OfRuns:
    """With the run as the unit, each run with its own loss where it ran in all of these environments."""
    rates = [one.run_rates if isinstance(one, Arm) else {} for one in (base, *cells)]
    told = all(one.runs_told for one in (base, *cells) if isinstance(one, Arm) and one.runs)
    common = [run for run in rates[0] if all(run in one for one in rates)]
    if len(common) > 1:
        return differing_runs([rates[0][run] - fmean(one[run] for one in rates[1:]) for run in common], told=told)
    return between_runs(rates_of_runs([base])[0], rates_of_runs(cells)[0], told=told)


def _facts(sides: Sequence[Side]) -> tuple[Fact, ...]:
    arms = [one for one in sides if isinstance(one, Arm)]
    random = [Fact(RunFact.RANDOM)] if any(len(one.run_rates) > 1 for one in arms) else []
    return (*repeated(arms), *random)


def _difference(base: tuple[float, int], others: Sequence[tuple[float, int]]) -> Found:
    difference = base[0] / base[1] - sum(k / n for k, n in others) / len(others)
    if len(others) == 1:
        return difference, newcombe(base, others[0]), barnard(base, others[0])
    variance = rate_variance(*base) + sum(rate_variance(k, n) for k, n in others) / len(others) ** 2
    freedom = max(1, min(base[1], sum(n for _, n in others)) - 1)
    half = t_quantile(freedom) * variance**0.5
    p = t_probability(freedom, difference / variance**0.5)
    return difference, (max(-1.0, difference - half), min(1.0, difference + half)), p
