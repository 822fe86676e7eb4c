"""What all parts of a summary are made from, each derived once. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from comborun.model.attempt import Verdict, having, held
from comborun.model.work import Combo, Spans, grouped
from comborun.reporter.comparing.factors import Factor, factors
from comborun.reporter.comparing.nominal import Loss, losses
from comborun.reporter.comparing.orders import steps_of
from comborun.reporter.comparing.sides import Results, Side, results_of, with_absent
from comborun.reporter.comparing.stopping import EarlyStopping, spared, stopping_of
from comborun.reporter.counting.measures import JUDGED, EpisodeEnds, Measure, ends_of
from comborun.reporter.evidence.context import ContextFact, alike, run_names
from comborun.reporter.evidence.fields import Fields, fields_of
from comborun.reporter.merge import MergedCombo
from comborun.reporter.records.collected import Collected
from comborun.rules.facts import Fact
from comborun.rules.results.proposals import SCORES
from comborun.text import natural


@dataclass(frozen=True)
class Basis:
    """What all parts of a summary are made from."""

    collected: Collected
    results: Results
    spare: Mapping[Combo, Spans]
    """planned episodes that were not needed"""
    fewer: Mapping[Combo, Fact]
    """without a plan: why combos lack episodes"""
    stopping: EarlyStopping | None
    policies: tuple[str, ...]
    environments: tuple[str, ...]

    @cached_property
    def order(self) -> list[Combo]:
        return [(policy, environment) for environment in self.environments for policy in self.policies]

    @cached_property
    def sides(self) -> dict[Combo, Side]:
        return {combo: self.results.sides[combo] for combo in self.order if combo in self.results.sides}

    @cached_property
    def by_environment(self) -> dict[str, list[Side]]:
        found = grouped(self.sides.items(), lambda one: one[0][1])
        return {name: [side for _, side in found.get(name, ())] for name in self.environments}

    @cached_property
    def fields(self) -> Fields:
        wanted = {name for one in self.collected.sessions for name in one.session.results.metrics}
        return fields_of((one.accepted for one in self.results.merged.values()), wanted)

    @cached_property
    def ends(self) -> dict[Combo, EpisodeEnds]:
        """How the episodes of each combo with a record per episode ended."""
        results = self.results
        return {combo: ends_of(one.accepted) for combo, one in results.merged.items() if combo not in results.counts}

    @cached_property
    def counted(self) -> list[MergedCombo]:
        """The combos with records, in order. None is missing where the program only counts."""
        merged = ((combo, self.results.merged.get(combo)) for combo in self.order)
        return [replace(one, missing=()) if combo in self.results.counts else one for combo, one in merged if one]

    @cached_property
    def names_alike(self) -> list[Fact]:
        axes = (("policies", self.policies), ("environments", self.environments))
        return [
            *(fact for kind, names in axes for fact in alike(names, kind)),
            *run_names(self.policies),
            *run_names(self.environments, "environment"),
            *(Fact(ContextFact.NAMES_OF_STEPS, names=[*one]) for one in steps_of(self.environments, {})),
        ]

    @property
    def runs_of_one(self) -> tuple[str, ...]:
        """Policies that may be runs of one, the first such ones."""
        return next((tuple(one.texts("names")) for one in run_names(self.policies)), ())

    def spelled_alike(self, kind: str) -> tuple[str, ...]:
        """Policies or environments that may be one, the first such ones."""
        names = self.policies if kind == "policy" else self.environments
        return next((tuple(one.texts("names")) for one in alike(names, kind)), ())

    @property
    def nominal(self) -> str:
        named = (one.session.results.nominal for one in self.collected.sessions)
        return next(filter(None, named), "")

    @cached_property
    def metric(self) -> Measure | None:
        """By which policies are ordered: that of `stop_early`; without verdicts the first one of `compare`, else the
        only one that there is."""
        rules = [one.session.results for one in self.collected.sessions]
        lower, higher = ({*chain(*ways)} for ways in ((one.lower for one in rules), (one.higher for one in rules)))
        merged = self.results.merged.values()
        judged = bool(self.results.counts) or any(one.verdict in JUDGED for some in merged for one in some.accepted)
        name = self.stopping.rule.metric if self.stopping else ""
        if not name and not judged:
            named = next((one for rule in rules for one in rule.compare), None)
            name = named or _only_metric(merged, self.fields) or ""
        return Measure.of(name, lower, higher) if name else None

    @property
    def margin(self) -> float:
        return max((one.session.results.margin for one in self.collected.sessions), default=0.0)

    @property
    def losses(self) -> tuple[Loss, ...]:
        return () if not self.nominal or self.stopping else losses(self.sides, self.nominal)

    @cached_property
    def factors(self) -> tuple[Factor, ...]:
        return () if self.stopping else factors(self.results, self.named_factors, self.fields)

    @property
    def named_factors(self) -> set[str]:
        return {name for one in self.collected.sessions for name in one.session.results.factors}


def basis_of(collected: Collected) -> Basis:
    spare: dict[Combo, Spans] = {}
    if collected.stop_early:
        recorded = grouped(collected.records, lambda record: record.combo)
        for combo, histories in collected.by_combo.items():
            spare[combo] = spared(histories, (record.episode for record in recorded.get(combo, ())))
    results = results_of(collected, spare)
    results, fewer = (results, {}) if collected.plan else with_absent(results)
    if collected.plan:
        policies, environments = collected.plan.policies, collected.plan.environments
    else:
        found = ({combo[axis] for combo in (*results.merged, *results.counts)} for axis in (0, 1))
        policies, environments = (tuple(sorted(sorted(names), key=natural)) for names in found)
    return Basis(collected, results, spare, fewer, stopping_of(collected, results), policies, environments)


def _only_metric(merged: Iterable[MergedCombo], fields: Fields) -> str | None:
    """The only metric of the records, or the only one that is called like a score."""
    measured = (having(one.accepted, Verdict.MEASURED) for one in merged)
    names = {name for some in measured for metrics, _ in held(some) for name in metrics}
    names -= fields.identifiers | fields.texts | fields.running
    names = names if len(names) == 1 else {name for name in names if SCORES.search(name)}
    return names.pop() if len(names) == 1 else None
