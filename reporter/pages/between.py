"""Two runs side by side: their comparisons, and the files that show them. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from comborun.errors import UserError
from comborun.model.work import Combo
from comborun.reporter.comparing.claims import left_out, unknown_words
from comborun.reporter.comparing.comparison import (
    Comparison,
    Overall,
    Tested,
    comparison_of,
    not_paired,
    overall_of,
)
from comborun.reporter.comparing.limits import evidence
from comborun.reporter.comparing.pairing import meet
from comborun.reporter.comparing.sides import Meeting, Results, Side, results_of, with_absent
from comborun.reporter.comparing.stopping import spared
from comborun.reporter.counting.quality import DataFinding, between_runs, quality
from comborun.reporter.evidence.context import namesakes
from comborun.reporter.evidence.repeats import repeated_run
from comborun.reporter.evidence.words import limits
from comborun.reporter.evidence.words import say as say_evidence
from comborun.reporter.pages.between_means import MeansBetween, changed, compare_means, family, not_decided
from comborun.reporter.pages.between_trainings import TrainingsBetween, compare_trainings
from comborun.reporter.pages.comparison_tables import holm_p, strong
from comborun.reporter.pages.document import SCHEMA, as_json, table
from comborun.reporter.pages.page import rendered
from comborun.reporter.pages.policy_tables import MATRIX
from comborun.reporter.pages.text_table import Strong, TextTable, columns, filled
from comborun.reporter.records.collected import Collected
from comborun.reporter.shown_names import in_quotes
from comborun.reporter.text import NOTHING, claim, combo_name, fraction, p_value, points, points_interval
from comborun.text import alike, several
from comborun.words import say

FINDINGS = 200
OPEN = 20
"""undecided combos of which more is told than their row in the table"""


@dataclass(frozen=True)
class Between:
    before: str
    after: str
    rows: tuple[tuple[str, Comparison], ...]
    """the policy and the comparison, in which a is the second run and b the first; Holm's p is over all of them"""
    overall: tuple[tuple[str, Overall], ...]
    """the same over all environments that a policy has in both, if they are several"""
    notes: tuple[str, ...]
    findings: tuple[DataFinding, ...]
    """of the data of both runs; each place begins with the run's name"""
    fewer: Mapping[Combo, str]
    """by run and environment, why episodes count as missing"""
    early: frozenset[str] = frozenset()
    """the runs that stopped early, so that their rates lean"""

    @property
    def answer(self) -> str:
        return changed((self.before, self.after), [one for _, one in self.rows])

    @property
    def sentences(self) -> tuple[str, ...]:
        found = [_over_all(policy, one) for policy, one in self.overall if one.decided]
        found += [f"{self._got(policy, one)}." + self._limits(one) for policy, one in self.rows if one.decided]
        undecided = [(policy, one) for policy, one in self.rows if not one.decided]
        found += not_decided(len(undecided))
        told = [one for one in undecided if one[1].facts or any(one[1].unknown) or not one[1].paired]
        for policy, one in told[:OPEN]:
            where = f"{policy} in {one.environment}"
            change = f"{points(one.difference)} points {points_interval(one.interval)}"
            words = f"Only among completed episodes: {self._got(policy, one)}" if one.only_completed else ""
            why = "" if words or one.paired else f" {not_paired([one])}"
            found.append(f"{words or f'Not decided: {where}, {change}'}.{why}{self._limits(one)}")
        return tuple(found)

    def _got(self, policy: str, one: Comparison) -> str:
        return (
            f"{policy} in {one.environment} got {'better' if one.difference > 0 else 'worse'}: {points(one.difference)}"
            f" points {points_interval(one.interval)}, {one.basis}, Holm p {p_value(one.p_holm)}"
        )

    def _limits(self, one: Comparison) -> str:
        return f"{unknown_words(one, self.fewer)}{limits(one.facts)}"

    @property
    def table(self) -> TextTable:
        rows = [
            [
                *(policy, one.environment, *self._rates(one), strong(points(one.difference), one)),
                *(points_interval(one.interval), holm_p(one)),
                *("/".join(map(str, one.unknown[::-1])) if any(one.unknown) else "", f"{one.test}, {one.paired_word}"),
            ]
            for policy, one in self.rows
        ]
        rows += [
            [
                *(policy, f"all {one.environments}", f"{fraction(one.mean_b)} %", f"{fraction(one.mean_a)} %"),
                *(strong(points(one.difference), one), points_interval(one.interval), holm_p(one)),
                *("/".join(map(str, one.unknown[::-1])) if any(one.unknown) else "", "stratified"),
            ]
            for policy, one in self.overall
        ]
        heads = columns("policy|environment", "before|after|change|95 % interval|p (Holm)|no verdict", "test")
        return filled(TextTable("Combos", heads, rows))

    @property
    def matrix(self) -> TextTable | None:
        """The changes by policy and environment; None unless there are several of both."""
        changes = {(policy, one.environment): one for policy, one in self.rows}
        policies, environments = (list(dict.fromkeys(combo[axis] for combo in changes)) for axis in (0, 1))
        if len(policies) < 2 or not 1 < len(environments) <= MATRIX:
            return None

        def cell(found: Comparison | None) -> str:
            if found is None:
                return NOTHING
            change = points(found.difference)
            return Strong(change) if found.decided else f"({change})"

        rows = [[policy, *(cell(changes.get((policy, place))) for place in environments)] for policy in policies]
        note = f"{self.after} minus {self.before} in percentage points; in brackets what is not decided."
        heads = [*columns("policy"), *((place, "right") for place in environments)]
        return TextTable("Changes", heads, rows, note)

    def _rates(self, one: Comparison) -> Iterator[str]:
        for run, found in ((self.before, one.rate_b), (self.after, one.rate_a)):
            yield f"{claim(found)}{'†' * (run in self.early)}"

    @property
    def quality(self) -> tuple[str, ...]:
        return tuple(alike((one.where, one.what) for one in self.findings))

    @property
    def method(self) -> str:
        return METHOD

    @property
    def document(self) -> dict[str, Any]:
        compared, over_all = table(Comparison, _KEYS), table(Overall, _OVERALL)
        return {
            "comparisons": [{"policy": policy, **compared.write(one)} for policy, one in self.rows],
            "overall": [{"policy": policy, **over_all.write(one)} for policy, one in self.overall],
        }


AnyBetween = Between | MeansBetween | TrainingsBetween


def _over_all(policy: str, one: Overall) -> str:
    return (
        f"{policy} over {several(one.environments, 'environment')} got {'better' if one.difference > 0 else 'worse'}:"
        f" {points(one.difference)} points {points_interval(one.interval)}, mean rate {fraction(one.mean_b)} % before"
        f" and {fraction(one.mean_a)} % after, Holm p {p_value(one.p_holm)}.{left_out(one)}{limits(one.facts)}"
    )


def compare_runs(before: Collected, after: Collected, same: Mapping[str, str] = MappingProxyType({})) -> AnyBetween:
    """Compare every combo that both have, paired if seeds or initial states show it; without verdicts by the
    means of their metric. Raises UserError without any.

    `same`: names of policies or environments in `before`, by what they are called in `after`.
    """
    if before.name == after.name:
        raise UserError(f"{before.name} is compared with itself", "name two runs")
    results = [results_of(run) for run in (before, after)]
    findings = [*_findings(before, results[0]), *_findings(after, results[1])]
    first, second = ({combo: side for combo, side in one.sides.items() if side.counts[1]} for one in results)
    then, now = ({policy for policy, _ in combos} for combos in (first, second))
    alone = len(then) == len(now) == 1  # then their names don't matter
    partners = {combo: _renamed(combo, same) for combo in second}
    if alone:
        partners = {combo: (min(then), environment) for combo, (_, environment) in partners.items()}
    partner = {combo: other for combo, other in partners.items() if other in first}
    unmet = (first.keys() - {*partner.values()}, second.keys() - partner.keys())
    alike_names = [*_alike_names((before, after), unmet)]
    pairs = [(partner[combo], combo) for combo in second if combo in partner]
    if not pairs:
        return _without_pairs((before, after), results, findings, alike_names, same)
    meetings, fewer, again = _meetings((before, after), results, pairs)
    findings += again
    of_policies = {name: [one for own, one in meetings if own == name] for name in dict(meetings)}
    over = {name: some for name, some in of_policies.items() if len(some) > 1}
    overall: list[Tested] = [overall_of(some) for some in over.values()]
    within = [comparison_of(one) for _, one in meetings]
    tested = family((before, after), overall, within)
    found = [one for one in tested if isinstance(one, Comparison)]
    return Between(
        before=before.name,
        after=after.name,
        rows=tuple((name, one) for (name, _), one in zip(meetings, found, strict=True)),
        overall=tuple(zip(over, (one for one in tested if isinstance(one, Overall)), strict=True)),
        notes=(
            *_notes((before, after), unmet, {*first, *second}),
            *map(_sentence, alike_names),
        ),
        findings=tuple(findings),
        fewer=fewer,
        early=frozenset(run.name for run in (before, after) if run.stop_early and spared(run.sessions, ())),
    )


def _meetings(
    runs: tuple[Collected, Collected], results: Sequence[Results], pairs: Sequence[tuple[Combo, Combo]]
) -> tuple[list[tuple[str, Meeting]], dict[Combo, str], list[DataFinding]]:
    """Of each pair of combos its name and how they meet; what one of them has fewer of; findings of equal rows."""
    before, after = runs
    meetings: list[tuple[str, Meeting]] = []
    fewer: dict[Combo, str] = {}
    findings: list[DataFinding] = []
    for then, now in pairs:
        old, new, told = _without_plan((before, results[0].sides[then]), (after, results[1].sides[now]), now[1])
        fewer |= told
        met = meet(now[1], new, old)
        rows = [one.merged.get(combo) for one, combo in zip(results, (then, now), strict=True)]
        both = [one.accepted for one in rows if one]
        if len(both) == 2 and (again := repeated_run(both[0], both[1], (before.name, after.name))):
            met = replace(met, facts=(*met.facts, again))
            findings.append(DataFinding(combo_name(*now), say_evidence(again)))
        meetings.append((now[0] if then[0] == now[0] else f"{then[0]} → {now[0]}", met))
    return meetings, fewer, findings


def _without_pairs(
    runs: tuple[Collected, Collected],
    results: Sequence[Results],
    findings: Sequence[DataFinding],
    alike_names: Sequence[str],
    same: Mapping[str, str],
) -> MeansBetween | TrainingsBetween:
    """Runs without a common combo that has verdicts: by means of their metric, or trainings side by side. Raises
    UserError if they have neither.
    """
    there = {*results[0].merged}
    here = {_renamed(combo, same): combo for combo in results[1].merged}
    alone = there - here.keys(), {here[one] for one in here.keys() - there}
    notes = [*between_runs(*runs), *map(_sentence, _alike_names(runs, alone))]
    if means := compare_means(runs, findings, notes, _without_plan, lambda one: _renamed(one, same)):
        return means
    if side_by_side := compare_trainings(runs, notes, lambda one: _renamed(one, same)):
        return side_by_side
    before, after = runs
    raise UserError(
        "\n".join(
            [
                f"{before.name} and {after.name} have no combo in common in which both completed an episode",
                *(f"  {one}" for one in alike_names),
                *(f"  {one}" for one in alike((one.where, one.what) for one in findings)[:OPEN]),
            ]
        ),
        "compared are policies of the same name in environments of the same name, or one policy with one",
    )


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _renamed(combo: Combo, same: Mapping[str, str]) -> Combo:
    policy, environment = combo
    return same.get(policy, policy), same.get(environment, environment)


def _alike_names(runs: Sequence[Collected], alone: Sequence[set[Combo]]) -> Iterator[str]:
    """Names of combos that only one run has, which differ from names of the other by their signs alone."""
    before, after = runs
    for axis, kind in ((0, "policy"), (1, "environment")):
        there, here = (sorted({combo[axis] for combo in combos}) for combos in alone)
        for own, theirs in namesakes(here, there).items():
            both = f"{kind} {theirs!r} of {before.name} and {own!r} of {after.name}"
            what = f"{both} differ only by case, blanks or punctuation"
            yield f"{what}: `--same {shlex.quote(f'{own}={theirs}')}` takes them as one"


def _findings(run: Collected, results: Results) -> Iterator[DataFinding]:
    counted = [replace(one, missing=()) if key in results.counts else one for key, one in results.merged.items()]
    for one in quality(run, counted, evidence(results)).findings[:FINDINGS]:
        yield DataFinding(f"{run.name}: {one.where}", one.what)


def _without_plan(
    before: tuple[Collected, Side], after: tuple[Collected, Side], environment: str
) -> tuple[Side, Side, Mapping[Combo, str]]:
    """Both sides; the one that no plan vouches for and that has fewer records lacks episodes."""
    sides = {(run.name, environment): side for run, side in (before, after)}
    found, facts = with_absent(Results({}, {}, sides, {}))
    lacking = {(run.name, environment) for run, _ in (before, after) if run.plan is None}
    old, new = (found.sides[combo] if combo in lacking else side for combo, side in sides.items())
    return old, new, {combo: say(fact) for combo, fact in facts.items() if combo in lacking}


def _notes(runs: Sequence[Collected], alone: Sequence[set[Combo]], known: Iterable[Combo]) -> Iterator[str]:
    quoted = in_quotes(*({combo[axis] for combo in known} for axis in (0, 1)))
    for run, combos in zip(runs, alone, strict=True):
        if combos:
            named = ((quoted.get(policy, policy), quoted.get(place, place)) for policy, place in sorted(combos))
            yield f"Only in {run.name}: {', '.join(combo_name(*combo) for combo in named)}."
        if run.stop_early and spared(run.sessions, ()):
            yield f"† {run.name} stopped early: how many episodes it has depends on how they went, and so do its rates."
    yield from between_runs(*runs)


METHOD = (
    "Differences are the second run's success rate minus the first's, in percentage points with 95 % intervals of each"
    " alone. Where the records show equal seeds or initial states in all common episodes, only these count, by an exact"
    " McNemar test with Zou-Donner intervals; else all episodes, taken as independent, by Barnard's test with"
    " Newcombe intervals. Over several environments each has the same weight (stratified randomization test, t"
    " interval). p is two-sided and adjusted by Holm over all comparisons of this page, with half of the error for"
    " those over several environments. Decided is what also holds if episodes without a verdict count against it."
)


_KEYS = (
    "environment before=rate_b after=rate_a difference interval p p_holm worst_p worst_holm decided only_completed"
    " unknown worst_difference? paired pairing test facts?"
)
_OVERALL = (
    "environments before=mean_b after=mean_a difference interval p p_holm worst_p worst_holm decided only_completed"
    " unknown worst_difference? unpaired? range heterogeneity facts?"
)
"""of a comparison in comparison.json, as in `document.KEYS`"""


def render_between(between: AnyBetween) -> dict[str, bytes]:
    pages = [f"comparison.{kind}" for kind in ("html", "md")]
    figure = between.figure if isinstance(between, TrainingsBetween) else None
    shown = {"table": between.table, "matrix": between.matrix, "method": between.method, "figure": figure}
    texts = {name: rendered(f"{name}.j2", between=between, **shown) for name in pages}
    texts["comparison.json"] = as_json(
        {
            "schema": SCHEMA,
            "before": between.before,
            "after": between.after,
            "answer": between.answer,
            **between.document,
            "sentences": between.sentences,
            "notes": between.notes,
            "findings": [{"where": one.where, "what": one.what} for one in between.findings],
        }
    )
    return {name: text.encode("utf-8", "replace") for name, text in texts.items()}
