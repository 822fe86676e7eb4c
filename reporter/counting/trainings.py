"""Trainings: their curves over steps, their evaluations and their checkpoints, over all attempts of a session. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from comborun.model.work import combo_of
from comborun.reporter.counting.quality import DataFinding
from comborun.reporter.json_types import Facts
from comborun.reporter.records.collected import SessionHistory
from comborun.reporter.records.reading import UNNAMED
from comborun.reporter.text import combo_name
from comborun.rules.curves import record
from comborun.rules.curves.metrics import EVALUATION
from comborun.rules.curves.series import thin
from comborun.rules.facts import Fact
from comborun.words import say

DRAWN = 200
"""points of a curve in a report: of equal parts of the steps the lowest and the highest value"""
CHECKPOINTS_MOST, EVALUATIONS_MOST = 20, 20


@dataclass(frozen=True)
class TrainingCurve:
    role: str
    """reward, success or length"""
    of: str
    """training or evaluation"""
    name: str
    """as the program calls it"""
    unit: str
    """what its steps are: steps, iterations, epochs or episodes"""
    source: str
    """the log, or a file below the output folder"""
    ranks: int
    """several: the mean over them"""
    last_step: float
    last: float
    best_step: float | None
    """of the highest value, the first of several; null for a length"""
    best: float | None
    steps: tuple[float, ...]
    values: tuple[float, ...]
    """at most 200 points: of equal parts of the steps the lowest and the highest value"""
    superseded: int
    """values that a later start wrote again"""
    not_numbers: int
    """values that are no finite numbers, and are left out"""


@dataclass(frozen=True)
class TrainingCheckpoint:
    path: str
    """below the output folder of its attempt"""
    attempt: int
    step: float | None
    """as its name says"""
    unit: str
    size: int
    """bytes"""


@dataclass(frozen=True)
class Training:
    session: str
    policy: str
    environment: str
    planned: int
    """steps; 0 if no plan says it"""
    announced: float | None
    """steps that the program said it would take"""
    curves: tuple[TrainingCurve, ...]
    """the surest one of each role in training and in evaluations first"""
    more_curves: int
    """further ones that are not kept"""
    checkpoints: tuple[TrainingCheckpoint, ...]
    """the last ones by step"""
    checkpoints_found: int
    checkpoints_size: int
    """bytes of all of them"""
    notes: Facts

    @property
    def shown(self) -> tuple[TrainingCurve, ...]:
        """The surest curve of each role."""
        chosen: dict[tuple[str, str], TrainingCurve] = {}
        for one in self.curves:
            chosen.setdefault((one.of, one.role), one)
        return tuple(chosen.values())

    @property
    def reached(self) -> tuple[float, str]:
        """The last step, and its unit, of the surest curve; there must be one."""
        unit = self.shown[0].unit
        return max(one.last_step for one in self.shown if one.unit == unit), unit

    def curve(self, of: str, role: str) -> TrainingCurve | None:
        return next((one for one in self.shown if (one.of, one.role) == (of, role)), None)

    @property
    def evaluations(self) -> list[tuple[float, str, dict[str, float]]]:
        """Step, unit, and the value of each role, of the curves of evaluations."""
        found: dict[tuple[float, str], dict[str, float]] = {}
        for one in self.shown:
            if one.of == EVALUATION:
                for step, value in zip(one.steps, one.values, strict=True):
                    found.setdefault((step, one.unit), {})[one.role] = value
        return [(step, unit, found[step, unit]) for step, unit in sorted(found)]


def trainings(
    histories: Iterable[SessionHistory], found: Mapping[str, Sequence[tuple[int, dict[str, Any]]]]
) -> tuple[Training, ...]:
    """`found`: for each session its attempts' numbers and records; in a folder without a plan, for each training."""
    planned = tuple(one.session for one in histories)
    known = {one.name for one in planned}
    return (
        *(_training(one.name, *combo_of(one), one.count, found[one.name]) for one in planned if found.get(one.name)),
        *(_training(name, name, UNNAMED, 0, found[name]) for name in found if name not in known),
    )


def _training(
    session: str, policy: str, environment: str, planned: int, attempts: Sequence[tuple[int, dict[str, Any]]]
) -> Training:
    all_of_it = record.joined(attempts)
    listed = sorted(all_of_it["checkpoints"], key=lambda one: (one["step"] is None, one["step"] or 0, one["attempt"]))
    return Training(
        session=session,
        policy=policy,
        environment=environment,
        planned=planned,
        announced=all_of_it["announced"],
        curves=tuple(map(_curve, all_of_it["curves"])),
        more_curves=all_of_it["more_curves"],
        checkpoints=tuple(TrainingCheckpoint(**one) for one in listed[-CHECKPOINTS_MOST:]),
        checkpoints_found=all_of_it["checkpoints_found"],
        checkpoints_size=all_of_it["checkpoints_size"],
        notes=tuple(all_of_it["facts"]),
    )


def _curve(found: dict[str, Any]) -> TrainingCurve:
    best = record.best(found)
    steps, values = thin(found["steps"], found["values"], DRAWN)
    return TrainingCurve(
        **{key: found[key] for key in ("role", "of", "name", "unit", "source", "superseded", "not_numbers")},
        ranks=max(1, found["ranks"]),
        last_step=found["steps"][-1],
        last=found["values"][-1],
        best_step=best[0] if best else None,
        best=best[1] if best else None,
        steps=tuple(steps),
        values=tuple(values),
    )


def training_findings(found: Iterable[Training]) -> Iterator[DataFinding]:
    """What to know of the curves."""
    for one in found:
        where = combo_name(one.policy, one.environment)
        for note in one.notes:
            yield DataFinding(where, say(note))
        if superseded := sum(curve.superseded for curve in one.shown):
            yield DataFinding(where, say(Fact("values_superseded", superseded=superseded)))
        for curve in one.shown:
            if curve.not_numbers:
                yield DataFinding(where, say(Fact("values_no_numbers", name=curve.name, not_numbers=curve.not_numbers)))
