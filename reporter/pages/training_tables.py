"""Tables of trainings: last and best values, evaluations by step, and checkpoints. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from comborun.reporter.counting.trainings import EVALUATIONS_MOST, Training
from comborun.reporter.pages.text_table import TextTable, columns, filled
from comborun.rules.curves.metrics import EVALUATION, LENGTH, REWARD, STEPS, SUCCESS, TRAINING, UNITS
from comborun.rules.vocabulary import amount
from comborun.words.training import at, in_digits, value

_SHOWN = ((TRAINING, REWARD), (TRAINING, SUCCESS), (TRAINING, LENGTH), (EVALUATION, REWARD), (EVALUATION, SUCCESS))


def trainings(found: Sequence[Training]) -> TextTable | None:
    """A row for each training; None without any that has curves or checkpoints."""
    rows = [
        [
            *(one.policy, one.environment, _session(one, found), _reached(one)),
            *(cell for of, role in _SHOWN for cell in _values(one, of, role)),
            str(one.checkpoints_found or ""),
            amount(one.checkpoints_size) if one.checkpoints_found else "",
        ]
        for one in found
        if one.curves or one.checkpoints_found
    ]
    heads = [
        *columns("policy|environment|session", "reached|reward|best reward|success|best success|length"),
        *columns("", "evaluated reward|best|evaluated success|best|checkpoints|size"),
    ]
    note = (
        "The last value of each, at the step reached unless it names another, and the highest one with its step. The"
        " highest of many values that vary is too high because it was chosen."
    )
    return filled(TextTable("Trainings", heads, rows, note)) if rows else None


def _session(one: Training, found: Sequence[Training]) -> str:
    """Its session, where its combo has several."""
    return one.session if sum((it.policy, it.environment) == (one.policy, one.environment) for it in found) > 1 else ""


def _reached(one: Training) -> str:
    if not one.curves:
        return ""
    step, unit = one.reached
    of = one.announced if unit == STEPS else None
    return f"{at(step, unit)}{f' of {of:,.0f}' if of else ''}"


def _values(one: Training, of: str, role: str) -> list[str]:
    """The last value and, but for lengths, the highest."""
    found = one.curve(of, role)
    if found is None:
        return [""] if role == LENGTH else ["", ""]
    step, unit = one.reached
    last = value(role, found.last)
    if (found.last_step, found.unit) != (step, unit):
        last += f" at {_place(found.last_step, found.unit, unit)}"
    if found.best is None or found.best_step is None:
        return [last]
    return [last, f"{value(role, found.best)} at {_place(found.best_step, found.unit, unit)}"]


def _place(step: float, unit: str, usual: str) -> str:
    """A step, with its unit if that is not the usual one."""
    return in_digits(step) if unit == usual else at(step, unit)


def evaluations(found: Sequence[Training]) -> TextTable | None:
    """What each training's evaluations gave, by step."""
    rows = []
    several = False
    for one in found:
        told = one.evaluations
        several = several or len(told) > EVALUATIONS_MOST
        for step, unit, values in told[-EVALUATIONS_MOST:]:
            cells = (value(role, values[role]) if role in values else "" for role in (REWARD, SUCCESS, LENGTH))
            rows.append([one.policy, one.environment, _session(one, found), at(step, unit), *cells])
    heads = columns("policy|environment|session", "at|reward|success|length")
    note = f"The last {EVALUATIONS_MOST} of each training." if several else ""
    return filled(TextTable("Evaluations", heads, rows, note)) if rows else None


def checkpoints(found: Sequence[Training]) -> TextTable | None:
    """The checkpoints that each training left, those with the highest steps."""
    rows = [
        [
            *(one.policy, one.environment, _session(one, found)),
            "" if it.step is None else at(it.step, it.unit) if it.unit in UNITS else f"{it.step:,.0f}",
            amount(it.size),
            str(it.attempt) if it.attempt > 1 else "",
            it.path,
        ]
        for one in found
        for it in one.checkpoints
    ]
    more = sum(one.checkpoints_found - len(one.checkpoints) for one in found)
    heads = columns("policy|environment|session", "at|size|attempt", "file or folder")
    note = f"The last ones of each training; {more} more are not shown." if more else ""
    return filled(TextTable("Checkpoints of trainings", heads, rows, note)) if rows else None
