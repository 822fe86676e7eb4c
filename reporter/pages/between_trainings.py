"""Two runs of trainings side by side: last and best values, and curves in one figure. Nothing is claimed. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from comborun.model.work import Combo
from comborun.reporter.counting.quality import DataFinding
from comborun.reporter.counting.trainings import Training, TrainingCurve, training_findings, trainings
from comborun.reporter.figures.episodes import curves
from comborun.reporter.figures.figure import Figure
from comborun.reporter.pages.document import table
from comborun.reporter.pages.text_table import TextTable, columns, filled
from comborun.reporter.records.collected import Collected
from comborun.reporter.text import combo_name
from comborun.rules.curves.metrics import EVALUATION, LENGTH, REWARD, SUCCESS, TRAINING
from comborun.text import alike, several
from comborun.words.training import at, value

METHOD = (
    "Values are those that the programs wrote: of each run the last one and the highest one, each with its step. The"
    " highest of many values that vary is too high because it was chosen. A training is one run, and a single run says"
    " nothing of the spread between trainings of the same settings; so nothing is tested, and no difference is called"
    " better or worse."
)
_SHOWN = (
    *((TRAINING, REWARD), (TRAINING, SUCCESS), (TRAINING, LENGTH)),
    *((EVALUATION, REWARD), (EVALUATION, SUCCESS), (EVALUATION, LENGTH)),
)
_KEYS = "name unit last last_step best best_step"


@dataclass(frozen=True)
class TrainingPair:
    name: str
    """the policy, or both names of it"""
    environment: str
    before: Training
    after: Training

    @property
    def values(self) -> Iterator[tuple[str, str, TrainingCurve | None, TrainingCurve | None]]:
        """What each curve is of, its role, and both."""
        for of, role in _SHOWN:
            found = self.before.curve(of, role), self.after.curve(of, role)
            if any(found):
                yield of, role, *found


@dataclass(frozen=True)
class TrainingsBetween:
    before: str
    after: str
    pairs: tuple[TrainingPair, ...]
    notes: tuple[str, ...]
    findings: tuple[DataFinding, ...]
    rows: tuple[tuple[str, Any], ...] = ()
    """comparisons that decide something: none"""
    matrix: TextTable | None = None
    method: str = METHOD

    @property
    def answer(self) -> str:
        count = several(len(self.pairs), "training")
        return f"{count} of {self.after} and {self.before} side by side: each is one run, so no difference is claimed."

    @property
    def sentences(self) -> tuple[str, ...]:
        return ()

    @property
    def table(self) -> TextTable:
        rows = [
            [
                *(pair.name, pair.environment, f"{'evaluated ' if of == EVALUATION else ''}{role}{_names(then, now)}"),
                *(_last(then), _last(now), _best(then), _best(now)),
            ]
            for pair in self.pairs
            for of, role, then, now in pair.values
        ]
        heads = columns("policy|environment|value", "last before|last after|highest before|highest after")
        return filled(TextTable("Trainings", heads, rows, "Each side is one run."))

    @cached_property
    def figure(self) -> Figure | None:
        """The curves of both runs, a line for each training."""
        several_policies = len({pair.name for pair in self.pairs}) > 1
        drawn = [
            replace(one, policy=f"{run}: {pair.name}" if several_policies else run, environment=pair.environment)
            for pair in self.pairs
            for run, one in ((self.before, pair.before), (self.after, pair.after))
        ]
        return curves(drawn, (), ())

    @property
    def quality(self) -> tuple[str, ...]:
        return tuple(alike((one.where, one.what) for one in self.findings))

    @property
    def document(self) -> dict[str, Any]:
        curve = table(TrainingCurve, _KEYS)
        return {
            "comparisons": [],
            "trainings": [
                {
                    "policy": pair.name,
                    "environment": pair.environment,
                    "of": of,
                    "role": role,
                    "before": then and curve.write(then),
                    "after": now and curve.write(now),
                }
                for pair in self.pairs
                for of, role, then, now in pair.values
            ],
        }


def compare_trainings(
    runs: tuple[Collected, Collected], notes: Sequence[str], renamed: Callable[[Combo], Combo]
) -> TrainingsBetween | None:
    """None without a training in common: of the same combo, or the only one of each run. Several of one combo are
    joined in their order.

    `renamed`: what the first run calls a combo of the second.
    """
    before, after = ([one for one in trainings(run.sessions, run.trained) if one.curves] for run in runs)
    if len(before) == len(after) == 1:
        pairs = [(before[0], after[0])]
    else:
        there, here = _by_combo(before, lambda combo: combo), _by_combo(after, renamed)
        pairs = [pair for combo in here for pair in zip(there.get(combo, ()), here[combo], strict=False)]
    if not pairs:
        return None
    told = [*_alone(runs[0].name, before, [one for one, _ in pairs])]
    told += _alone(runs[1].name, after, [one for _, one in pairs])
    findings = [
        DataFinding(f"{run.name}: {one.where}", one.what)
        for run, found in zip(runs, (before, after), strict=True)
        for one in training_findings(found)
    ]
    return TrainingsBetween(
        before=runs[0].name,
        after=runs[1].name,
        pairs=tuple(
            TrainingPair(_both(a.policy, b.policy), _both(a.environment, b.environment), a, b) for a, b in pairs
        ),
        notes=(*told, *notes),
        findings=tuple(findings),
    )


def _both(before: str, after: str) -> str:
    return after if before == after else f"{before} → {after}"


def _by_combo(found: Sequence[Training], name: Callable[[Combo], Combo]) -> dict[Combo, list[Training]]:
    combos: dict[Combo, list[Training]] = {}
    for one in found:
        combos.setdefault(name((one.policy, one.environment)), []).append(one)
    return combos


def _alone(run: str, found: Sequence[Training], paired: Sequence[Training]) -> Iterator[str]:
    if left := [combo_name(one.policy, one.environment) for one in found if one not in paired]:
        yield f"Only in {run}: {', '.join(left)}."


def _names(before: TrainingCurve | None, after: TrainingCurve | None) -> str:
    """What the programs call it, if that differs: the two may be counted differently."""
    return f" ({before.name} → {after.name})" if before and after and before.name != after.name else ""


def _last(one: TrainingCurve | None) -> str:
    return f"{value(one.role, one.last)} at {at(one.last_step, one.unit)}" if one else ""


def _best(one: TrainingCurve | None) -> str:
    if one is None or one.best is None or one.best_step is None:
        return ""
    return f"{value(one.role, one.best)} at {at(one.best_step, one.unit)}"
