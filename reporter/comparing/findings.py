"""What to know of the evidence of single combos, and of what the grid asks and records don't show. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import chain, combinations
from operator import itemgetter

from comborun.model.work import grouped
from comborun.reporter.comparing.factors import FEWEST, LEVELS, Factor, values_of
from comborun.reporter.comparing.family import Comparisons
from comborun.reporter.comparing.sides import Arm, Results
from comborun.reporter.counting.quality import DataFinding
from comborun.reporter.evidence import words as evidence_words
from comborun.reporter.evidence.context import parts_of_one, varying
from comborun.reporter.evidence.horizons import limits_of
from comborun.reporter.evidence.runs import RunFact, joined
from comborun.reporter.text import combo_name
from comborun.rules.facts import Fact


def evidence(results: Results) -> Iterator[DataFinding]:
    """What limits the evidence of single combos."""
    arms = {combo: side for combo, side in results.sides.items() if isinstance(side, Arm)}
    policies = {environment: [policy for policy, _ in own] for environment, own in grouped(arms, itemgetter(1)).items()}
    for combo, arm in arms.items():
        beside = (arms[policy, combo[1]].context for policy in policies[combo[1]])
        if len(arm.run_rates) > 1:
            yield DataFinding(combo_name(*combo), evidence_words.say(joined(combo[0], arm.run_rates)))
        settings = (*arm.settings.marks, *arm.settings.clusters)
        for fact in (*arm.starts.facts, *settings, *varying(arm.context, beside)):
            yield DataFinding(combo_name(*combo), evidence_words.say(fact))
    parts: dict[tuple[str, ...], Fact] = {}
    for environment, own in policies.items():
        for pair in combinations(own, 2):
            episodes = arms[pair[0], environment].completed, arms[pair[1], environment].completed
            parts |= {tuple(fact.texts("names")): fact for fact in parts_of_one(pair, episodes)}
    yield from (DataFinding("names", evidence_words.say(fact)) for fact in parts.values())
    for environment, own in policies.items():
        for fact in limits_of({policy: arms[policy, environment].lengths for policy in own}):
            yield DataFinding(environment, evidence_words.say(fact))


def single_runs(comparisons: Comparisons) -> Iterator[DataFinding]:
    tested = chain(comparisons.all, comparisons.graded, comparisons.mean_differences)
    facts = (fact for one in tested for fact in one.facts if fact.code == RunFact.ONE_EACH)
    if runs := [*dict.fromkeys(run for fact in facts for run in fact.texts("runs"))]:
        yield DataFinding("runs", evidence_words.say(Fact(RunFact.ONE_EACH, runs=runs)))


def without_levels(results: Results, named: Collection[str], found: Sequence[Factor]) -> Iterator[DataFinding]:
    """Factors that the grid names, but about which nothing can be said, and why."""
    for name in sorted({*named} - {one.field for one in found}):
        values = [values_of(one.accepted, name) for one in results.merged.values()]
        why = f"has a level with fewer than {FEWEST} starts, or more than {LEVELS} levels that are texts"
        if not any(values):
            why = "is in no record"
        elif max(map(len, values)) == 1:
            why = "never varies inside a policy and an environment, so nothing tells it from them"
        yield DataFinding("factors", f"{name!r} {why}")
