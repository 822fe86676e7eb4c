"""Checks on `progress`: what depends on the combo whose log is read."""

from __future__ import annotations

from collections.abc import Iterator

from comborun.errors import Problem
from comborun.grid.checks.count import no_number
from comborun.grid.combos import Combo, matching
from comborun.grid.draft import Draft, Path


def progress_problems(draft: Draft, combos: tuple[Combo, ...]) -> Iterator[Problem]:
    """`each` that is no number once the attributes of a combo have filled it; told once for all combos alike."""
    if draft.broken & {"progress", "overrides", "policies", "environments"}:
        return
    for combo in combos:
        if problem := no_number(combo.settings.each, combo):
            place = draft.source.key_place(*_layer(draft, combo), "progress", "each")
            yield draft.source.problem(place, f"`progress.each`: {problem.message}", problem.hint)


def _layer(draft: Draft, combo: Combo) -> Path:
    """Whose `progress` holds for a combo: that of the last override that has one, or else the grid's."""
    for index in reversed(matching(draft.file, combo.policy, combo.environment)):
        if "progress" in draft.file.overrides[index].model_fields_set:
            return ("overrides", index)
    return ()
