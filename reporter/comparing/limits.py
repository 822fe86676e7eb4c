"""What limits a claim about two policies, or a rate of one: what differs besides the policies, and within one. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import combinations
from operator import itemgetter

from comborun.model.work import grouped
from comborun.reporter.comparing.sides import Arm, Results, Side
from comborun.reporter.counting.quality import DataFinding
from comborun.reporter.evidence.context import (
    alike,
    differing,
    limits_of,
    parts_of_one,
    run_names,
    runs_in_names,
    unlike_limits,
    varying,
)
from comborun.reporter.evidence.runs import RunFact, differing_runs, joined, run_rates
from comborun.reporter.evidence.settings import other_verdicts, unlike_mixes
from comborun.reporter.evidence.starts import StartFact
from comborun.reporter.evidence.words import say
from comborun.reporter.text import combo_name
from comborun.rules.facts import Fact

SEEN = 0.005
"""a difference of rates is told from here on"""


def repeated(arms: Iterable[Arm]) -> list[Fact]:
    """Which of them have several episodes of a start."""
    found = []
    for one in arms:
        (summed, starts), (successes, n) = one.by_start, one.counts
        if starts < n:
            mean, rate = summed / starts, successes / n  # they differ where some starts have more episodes
            apart = {"mean": round(mean, 6), "rate": round(rate, 6)} if abs(mean - rate) >= SEEN else {}
            told = {"of": one.policy, **apart} if apart else {}
            found.append(Fact(StartFact.REPEATED, episodes=n, starts=starts, policy=one.policy, **told))
    return each_once(found)


def conditions(a: Arm, b: Arm) -> Iterable[Fact]:
    """What differs between two policies besides themselves, or inside one of them."""
    if a.policy != b.policy:
        yield from alike((a.policy, b.policy), "policies")
        yield from run_names((a.policy, b.policy))
        yield from parts_of_one((a.policy, b.policy), (a.completed, b.completed))
    same = a.policy == b.policy
    name_a, name_b = (f"{a.policy} after", f"{b.policy} before") if same else (a.policy, b.policy)
    named = ((b, name_b), (a, name_a)) if same else ((a, name_a), (b, name_b))
    rates = {name: one.run_means if one.metric else one.run_rates for one, name in named}
    several = [name for name, found in rates.items() if len(found) > 1]
    yield from (joined(name, rates[name], a.metric) for name in several)
    if len(several) > 1:
        yield Fact(RunFact.RANDOM)
    if len(several) == 1:
        yield Fact(RunFact.ONE_SIDE, policy=next(name for name in rates if name not in several), other=several[0])
    if not several and (single := one_each(a, b)):
        yield single
    yield from differing(a.context, b.context, one_policy=same)
    yield from unlike_limits(*((name, one.lengths) for one, name in named))
    for one, name in named:
        yield from (Fact(fact.code, **fact.fields, of_policy=name) for fact in one.settings.marks)
    mixed = [*unlike_mixes(a.settings, b.settings, (name_a, name_b))]
    yield from _clusters(a, b, [fact.text("field") for fact in mixed])
    yield from (*mixed, *other_verdicts(a.settings, b.settings, (name_a, name_b)))
    for one, other in ((a, b), (b, a)):
        yield from (Fact(fact.code, **fact.fields, policy=one.policy) for fact in varying(one.context, [other.context]))


def _clusters(a: Arm, b: Arm, mixed: Collection[str]) -> Iterable[Fact]:
    """Settings with which outcomes go, and the difference if the values were drawn from many others like them. `mixed`:
    those that one of both had more often."""
    for name, fact in {fact.text("field"): fact for one in (a, b) for fact in one.settings.clusters}.items():
        rates = [
            run_rates(one.settings.groups.get(name, {}), one.completed, one.successes) if not one.metric else {}
            for one in (a, b)
        ]
        common = [rates[0][value] - rates[1][value] for value in rates[0].keys() & rates[1].keys()]
        drawn = differing_runs(sorted(common), told=True) if len(common) > 2 and name not in mixed else None
        ends = {"difference": drawn[0], "half": drawn[1]} if drawn else {}
        yield Fact(fact.code, **fact.fields, **{key: round(value, 6) for key, value in ends.items()})


def one_each(a: Arm, b: Arm) -> Fact | None:
    """That two policies are of one run each, if a folder or a field of either says so."""
    named = [*dict.fromkeys(name for one in (a, b) if len(one.runs) == 1 for name in one.runs)]
    named = named or ([] if a.runs or b.runs else runs_in_names(a.policy, b.policy))
    return Fact(RunFact.ONE_EACH, runs=named) if named and (a.policy != b.policy or len(named) > 1) else None


def facts_of(sides: Iterable[Side]) -> tuple[Fact, ...]:
    """What limits rates of one policy alone."""
    arms = [one for one in sides if isinstance(one, Arm)]
    told = [fact for one in arms for fact in (*one.starts.facts, *one.settings.marks, *one.settings.clusters)]
    runs = (joined(one.policy, one.run_rates) for one in arms if len(one.run_rates) > 1)
    return (*each_once([*told, *repeated(arms)]), *runs)


def each_once(facts: Iterable[Fact]) -> list[Fact]:
    """Each fact once: what is true of both policies is said once."""
    found: list[Fact] = []
    for fact in facts:
        one = fact.without("policy")
        found += [] if one in found else [one]
    return found


def evidence(results: Results) -> Iterator[DataFinding]:
    """What limits the evidence of single combos."""
    arms = {combo: side for combo, side in results.sides.items() if isinstance(side, Arm)}
    policies = {environment: [policy for policy, _ in own] for environment, own in grouped(arms, itemgetter(1)).items()}
    for combo, arm in arms.items():
        beside = (arms[policy, combo[1]].context for policy in policies[combo[1]])
        if len(arm.run_rates) > 1:
            yield DataFinding(combo_name(*combo), say(joined(combo[0], arm.run_rates)))
        settings = (*arm.settings.marks, *arm.settings.clusters)
        for fact in (*arm.starts.facts, *settings, *varying(arm.context, beside)):
            yield DataFinding(combo_name(*combo), say(fact))
    parts: dict[tuple[str, ...], Fact] = {}
    for environment, own in policies.items():
        for pair in combinations(own, 2):
            episodes = arms[pair[0], environment].completed, arms[pair[1], environment].completed
            parts |= {tuple(fact.texts("names")): fact for fact in parts_of_one(pair, episodes)}
    yield from (DataFinding("names", say(fact)) for fact in parts.values())
    for environment, own in policies.items():
        for fact in limits_of({policy: arms[policy, environment].lengths for policy in own}):
            yield DataFinding(environment, say(fact))
