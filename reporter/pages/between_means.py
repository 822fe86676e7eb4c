"""Two runs whose episodes have numbers and no verdicts, side by side: by the means of their metric. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from comborun.model.work import Combo, grouped
from comborun.reporter.basis import Basis, basis_of
from comborun.reporter.comparing.comparison import One, Tested, corrected
from comborun.reporter.comparing.graded import MeanDifference, enough, mean_difference_of, scores
from comborun.reporter.comparing.pairing import meet
from comborun.reporter.comparing.sides import Arm, Meeting, Side
from comborun.reporter.counting.quality import DataFinding
from comborun.reporter.evidence.words import limits
from comborun.reporter.pages.comparison_tables import holm_p, strong
from comborun.reporter.pages.document import table
from comborun.reporter.pages.text_table import TextTable, columns, filled
from comborun.reporter.records.collected import Collected
from comborun.reporter.text import combo_name, number, numbers, p_value
from comborun.text import alike, several

METHOD = (
    "Episodes have numbers and no verdicts. Differences are the second run's mean minus the first's, with a 95 % t"
    " interval of each alone. Where the records show equal seeds or initial states in all common episodes, only these"
    " count, by flipping signs; else all episodes, taken as independent, by a studentized permutation (from 300 values"
    " on t). Over several environments each has the same weight. p is two-sided and adjusted by Holm over all"
    " comparisons of this page, with half of the error for those over several environments. Decided is what also holds"
    " if episodes without a value count as the worst of the run that is ahead."
)
_KEYS = (
    "environments means n difference=gap interval=limits p p_holm worst_p worst_holm decided paired test unpaired?"
    " facts?"
)


@dataclass(frozen=True)
class MeansBetween:
    before: str
    after: str
    metric: str
    better: Literal["higher", "lower", ""]
    """which values are better; empty: nobody says it"""
    rows: tuple[tuple[str, MeanDifference], ...]
    """the policy and the comparison, in which a is the second run and b the first; those over several environments
    last"""
    notes: tuple[str, ...]
    findings: tuple[DataFinding, ...]
    matrix: TextTable | None = None
    method: str = METHOD

    @property
    def answer(self) -> str:
        words = self._word(True), self._word(False)
        found = [one for _, one in self.rows if len(one.environments) == 1]
        return changed((self.before, self.after), found, words, f", by mean {self.metric}")

    def _word(self, more: bool) -> str:
        if not self.better:
            return "higher" if more else "lower"
        return "better" if more is (self.better == "higher") else "worse"

    @property
    def sentences(self) -> tuple[str, ...]:
        undecided = sum(not one.decided for _, one in self.rows)
        return (*(self._got(policy, one) for policy, one in self.rows if one.decided), *not_decided(undecided))

    def _got(self, policy: str, one: MeanDifference) -> str:
        return (
            f"{policy} {one.where} got {self._word(one.difference > 0)}: mean {self.metric} {number(one.means[1])}"
            f" before and {number(one.means[0])} after, {number(one.difference)} {numbers(one.interval)},"
            f" Holm p {p_value(one.p_holm)}.{limits(one.facts)}"
        )

    @property
    def table(self) -> TextTable:
        rows = [
            [
                *(policy, one.environments[0] if len(one.environments) == 1 else f"all {len(one.environments)}"),
                *(number(one.means[1]), number(one.means[0]), strong(number(one.difference), one)),
                *(numbers(one.interval), holm_p(one)),
                *(f"{one.n[1]}/{one.n[0]}", "/".join(map(str, one.unknown[::-1])) if any(one.unknown) else ""),
                one.test,
            ]
            for policy, one in self.rows
        ]
        heads = columns("policy|environment", "before|after|change|95 % interval|p (Holm)|n|no value", "test")
        return filled(TextTable(f"Means of {self.metric}", heads, rows))

    @property
    def quality(self) -> tuple[str, ...]:
        return tuple(alike((one.where, one.what) for one in self.findings))

    @property
    def document(self) -> dict[str, Any]:
        compared = table(MeanDifference, _KEYS)
        return {
            "metric": self.metric,
            "better": self.better or None,
            "comparisons": [],
            "means": [{"policy": policy, **compared.write(one)} for policy, one in self.rows],
        }


def changed(
    runs: tuple[str, str], found: Sequence[Tested], words: tuple[str, str] = ("better", "worse"), measure: str = ""
) -> str:
    """The answer: in how many of these combos the second run differs. `words`: of higher and of lower values."""
    before, after = runs
    counts = [sum(one.decided and (one.difference > 0) is higher for one in found) for higher in (True, False)]
    if not any(counts):
        where = f"any of {len(found)} combos" if len(found) > 1 else "the only combo"
        return f"{after} and {before} are not told apart in {where}{measure}."
    parts = " and ".join(f"{word} in {count}" for word, count in zip(words, counts, strict=True) if count)
    left = len(found) - sum(counts)
    return f"{after} is {parts} of {several(len(found), 'combo')}{measure}{f'; {left} not decided' if left else ''}."


def not_decided(count: int) -> list[str]:
    return [f"{several(count, 'comparison')} not decided, which does not mean that nothing has changed."] * bool(count)


def family(runs: tuple[Collected, Collected], overall: Sequence[One], within: Sequence[One]) -> list[One]:
    """The second run against the first, with p adjusted: half of the error for those over several environments."""
    shares = [1 / len(some) for some in (overall, within) for _ in some]
    return [replace(one, a=runs[1].name, b=runs[0].name) for one in corrected([*overall, *within], shares)]


Vouch = Callable[[tuple[Collected, Side], tuple[Collected, Side], str], tuple[Side, Side, Mapping[Combo, str]]]
"""both sides, the one with fewer records and no plan with missing episodes; and why"""


def compare_means(
    runs: tuple[Collected, Collected],
    findings: Sequence[DataFinding],
    notes: Sequence[str],
    vouch: Vouch,
    renamed: Callable[[Combo], Combo],
) -> MeansBetween | None:
    """None if the runs have no metric in common, or no combo with enough values of it.

    `renamed`: what the first run calls a combo of the second.
    """
    before, after = runs
    bases = basis_of(before), basis_of(after)
    old, new = (one.metric for one in bases)
    if old is None or new is None or old.name != new.name:
        return None
    first, second = (_scores(one, new.name) for one in bases)
    second = {renamed(combo): one for combo, one in second.items()}
    pairs, fewer = _met(runs, first, second, vouch)
    known = [(combo, met) for combo, met in pairs if enough(met)]
    within = {combo: mean_difference_of(new.name, [met]) for combo, met in known}
    of_policies = grouped(known, lambda one: one[0][0])
    over = {
        name: mean_difference_of(new.name, [met for _, met in some])
        for name, some in of_policies.items()
        if len(some) > 1
    }
    overall = [(name, one) for name, one in over.items() if one]
    single = [(combo[0], one) for combo, one in within.items() if one]
    if not single:
        return None
    told = family(runs, [one for _, one in overall], [one for _, one in single])
    names = [name for name, _ in (*overall, *single)]
    rows = sorted(zip(names, told, strict=True), key=lambda row: len(row[1].environments) > 1)
    few = [combo for combo, _ in pairs if not within.get(combo)]
    return MeansBetween(
        before=before.name,
        after=after.name,
        metric=new.name,
        better=new.better,
        rows=tuple(rows),
        notes=(
            *_notes((before.name, first), (after.name, second), few),
            *(f"{run} in {environment}: {why}." for (run, environment), why in fewer.items()),
            *notes,
        ),
        findings=tuple(findings),
    )


def _scores(basis: Basis, metric: str) -> dict[Combo, Arm]:
    settled = basis.results.settled
    return {
        combo: scores(merged, metric, settled.get(combo), basis.fields)
        for combo, merged in basis.results.merged.items()
    }


def _met(
    runs: tuple[Collected, Collected], first: Mapping[Combo, Arm], second: Mapping[Combo, Arm], vouch: Vouch
) -> tuple[list[tuple[Combo, Meeting]], dict[Combo, str]]:
    """The combos of both runs, the second run's values first, and which runs have fewer episodes in which, and why."""
    before, after = runs
    pairs, fewer = [], dict[Combo, str]()
    for combo in (one for one in second if one in first):
        old, new, told_of = vouch((before, first[combo]), (after, second[combo]), combo[1])
        fewer |= told_of
        pairs.append((combo, meet(combo[1], new, old)))
    return pairs, fewer


def _notes(
    before: tuple[str, Mapping[Combo, Arm]], after: tuple[str, Mapping[Combo, Arm]], few: Sequence[Combo]
) -> Iterator[str]:
    for (run, own), (_, other) in ((before, after), (after, before)):
        if alone := sorted(combo_name(*combo) for combo in own.keys() - other.keys()):
            yield f"Only in {run}: {', '.join(alone)}."
    if few:
        yield f"Too few values to compare: {', '.join(combo_name(*combo) for combo in few)}."
