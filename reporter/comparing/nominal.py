"""What each policy loses from a nominal environment to the others. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from comborun.model.work import Combo
from comborun.reporter.comparing.comparison import Tested, corrected, rates_of_runs, wider
from comborun.reporter.comparing.limits import repeated
from comborun.reporter.comparing.sides import Arm, Side
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
        if base is None or not cells:
            continue
        if len(cells) > 1:
            found.append(_over_all(policy, nominal, base, cells))
        found += [_loss(policy, nominal, base, name, side) for name, side in cells.items()]
    return tuple(corrected(found))


def _loss(policy: str, nominal: str, base: Side, name: str, side: Side) -> Loss:
    a, b = base.by_start, side.by_start
    difference = a[0] / a[1] - b[0] / b[1]
    interval, p = wider(newcombe(a, b), barnard(a, b), _of_runs(base, [side]))
    loss = Loss(
        a=policy, b=policy, difference=difference, interval=interval, p=p, worst_p=p, facts=_facts(base, [side]),
        nominal=nominal, environments=(name,), rate_nominal=a[0] / a[1], rate=b[0] / b[1],
    )  # fmt: skip
    if not base.unknown and not side.unknown:
        return loss
    lost = difference > 0
    first, second = base.filled(success=not lost).by_start, side.filled(success=lost).by_start
    against = first[0] / first[1] - second[0] / second[1]
    return replace(loss, worst_p=max(p, barnard(first, second)) if against * difference > 0 else 1.0)


def _over_all(policy: str, nominal: str, base: Side, cells: Mapping[str, Side]) -> Loss:
    difference, interval, p = _mean_loss(base.by_start, [one.by_start for one in cells.values()])
    interval, p = wider(interval, p, _of_runs(base, [*cells.values()]))
    worst = p
    if base.unknown or any(one.unknown for one in cells.values()):
        lost = difference > 0
        filled = [one.filled(success=lost).by_start for one in cells.values()]
        against, _, found = _mean_loss(base.filled(success=not lost).by_start, filled)
        worst = max(p, found) if against * difference > 0 else 1.0
    rate = base.by_start[0] / base.by_start[1]
    return Loss(
        a=policy, b=policy, difference=difference, interval=interval, p=p, worst_p=worst,
        facts=_facts(base, [*cells.values()]),
        nominal=nominal, environments=(*cells,), rate_nominal=rate, rate=rate - difference,
    )  # fmt: skip


def _of_runs(base: Side, cells: Sequence[Side]) -> tuple[float, float, float] | None:
    """With the run as the unit, each run with its own loss where it ran in all of these environments."""
    rates = [one.run_rates if isinstance(one, Arm) else {} for one in (base, *cells)]
    told = all(one.runs_told for one in (base, *cells) if isinstance(one, Arm) and one.runs)
    common = [run for run in rates[0] if all(run in one for one in rates)]
    if len(common) > 1:
        return differing_runs([rates[0][run] - fmean(one[run] for one in rates[1:]) for run in common], told=told)
    return between_runs(rates_of_runs([base])[0], rates_of_runs(cells)[0], told=told)


def _facts(base: Side, cells: Sequence[Side]) -> tuple[Fact, ...]:
    arms = [one for one in (base, *cells) if isinstance(one, Arm)]
    random = [Fact(RunFact.RANDOM)] if any(len(one.run_rates) > 1 for one in arms) else []
    return (*repeated(arms), *random)


def _mean_loss(
    base: tuple[float, int], others: Sequence[tuple[float, int]]
) -> tuple[float, tuple[float, float], float]:
    difference = base[0] / base[1] - sum(k / n for k, n in others) / len(others)
    variance = rate_variance(*base) + sum(rate_variance(k, n) for k, n in others) / len(others) ** 2
    freedom = max(1, min(base[1], sum(n for _, n in others)) - 1)
    half = t_quantile(freedom) * variance**0.5
    p = t_probability(freedom, difference / variance**0.5)
    return difference, (max(-1.0, difference - half), min(1.0, difference + half)), p
