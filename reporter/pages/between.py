"""Two runs side by side: their comparisons, and the files that show them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from comborun.errors import UserError
from comborun.model.work import Combo
from comborun.reporter.comparing.comparison import Comparison, comparison_of, corrected
from comborun.reporter.comparing.pairing import meet, results_of
from comborun.reporter.comparing.stopping import spared
from comborun.reporter.counting.quality import between_runs
from comborun.reporter.evidence.words import limits
from comborun.reporter.pages.document import SCHEMA, as_json, table
from comborun.reporter.pages.page import rendered
from comborun.reporter.pages.tables import TextTable, columns, holm_p, strong
from comborun.reporter.records.collected import Collected
from comborun.reporter.text import claim, combo_name, p_value, points, points_interval
from comborun.text import several


@dataclass(frozen=True)
class Between:
    before: str
    after: str
    rows: tuple[tuple[str, Comparison], ...]
    """the policy and the comparison, in which a is the second run and b the first; Holm's p is over all of them"""
    notes: tuple[str, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        found = [
            f"{policy} in {one.environment} got {'better' if one.difference > 0 else 'worse'}: {points(one.difference)}"
            f" points {points_interval(one.interval)}, {one.paired_word} ({one.test}), Holm p {p_value(one.p_holm)}."
            f"{limits(one.facts)}"
            for policy, one in self.rows
            if one.decided
        ]
        if undecided := len(self.rows) - len(found):
            found.append(
                f"{several(undecided, 'comparison')} not decided, which does not mean that nothing has changed."
            )
            open_ones = [(policy, one) for policy, one in self.rows if one.facts and not one.decided]
            found += [f"{policy} in {one.environment}:{limits(one.facts)}" for policy, one in open_ones]
        return tuple(found)

    @property
    def table(self) -> TextTable:
        rows = [
            [
                *(policy, one.environment, claim(one.rate_b), claim(one.rate_a), strong(points(one.difference), one)),
                *(points_interval(one.interval), holm_p(one), f"{one.test}, {one.paired_word}"),
            ]
            for policy, one in self.rows
        ]
        return TextTable(
            "Combos", columns("policy|environment", "before|after|change|95 % interval|p (Holm)", "test"), rows
        )


def compare_runs(before: Collected, after: Collected) -> Between:
    """Compare every combo that both have, paired if seeds or initial states show it. Raises UserError without any."""
    if before.name == after.name:
        raise UserError(f"{before.name} is compared with itself", "name two runs")
    first, second = (
        {combo: side for combo, side in results_of(run).sides.items() if side.counts[1]} for run in (before, after)
    )
    then, now = ({policy for policy, _ in combos} for combos in (first, second))
    alone = len(then) == len(now) == 1  # then their names don't matter
    partners = {(policy, environment): (min(then) if alone else policy, environment) for policy, environment in second}
    partner = {combo: other for combo, other in partners.items() if other in first}
    pairs = [(partner[combo], combo) for combo in second if combo in partner]
    if not pairs:
        raise UserError(
            f"{before.name} and {after.name} have no combo in common",
            "compared are policies of the same name in environments of the same name, or one policy with one",
        )
    found = [comparison_of(meet(now[1], second[now], first[then])) for then, now in pairs]
    return Between(
        before=before.name,
        after=after.name,
        rows=tuple(
            (
                now[0] if then == now else f"{then[0]} → {now[0]}",
                replace(one, a=after.name, b=before.name),
            )
            for one, (then, now) in zip(corrected(found), pairs, strict=True)
        ),
        notes=tuple(_notes((before, after), (first.keys() - {*partner.values()}, second.keys() - partner.keys()))),
    )


def _notes(runs: Sequence[Collected], alone: Sequence[set[Combo]]) -> Iterator[str]:
    for run, combos in zip(runs, alone, strict=True):
        if combos:
            yield f"Only in {run.name}: {', '.join(combo_name(*combo) for combo in sorted(combos))}."
        if run.stop_early and spared(run.sessions, ()):
            yield f"{run.name} stopped early: how many episodes it has depends on how they went, and so do its rates."
    yield from between_runs(*runs)


METHOD = (
    "Differences are the second run's success rate minus the first's, in percentage points with 95 % intervals of each"
    " alone. Where the records show equal seeds or initial states in all common episodes, only these count, by an exact"
    " McNemar test with Zou-Donner intervals; else all episodes, taken as independent, by Barnard's test with"
    " Newcombe intervals. p is two-sided and adjusted by Holm over all comparisons of this page."
)


_KEYS = "environment before=rate_b after=rate_a difference interval p p_holm decided paired pairing test facts?"
"""of a comparison in comparison.json, as in `document.KEYS`"""


def render_between(between: Between) -> dict[str, bytes]:
    pages = [f"comparison.{kind}" for kind in ("html", "md")]
    texts = {name: rendered(f"{name}.j2", between=between, table=between.table, method=METHOD) for name in pages}
    compared = table(Comparison, _KEYS)
    texts["comparison.json"] = as_json(
        {
            "schema": SCHEMA,
            "before": between.before,
            "after": between.after,
            "comparisons": [{"policy": policy, **compared.write(one)} for policy, one in between.rows],
            "sentences": between.sentences,
            "notes": between.notes,
        }
    )
    return {name: text.encode("utf-8", "replace") for name, text in texts.items()}
