"""Checks the two axes and what selects combos: `include`, `exclude`, `overrides`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from comborun.errors import Problem
from comborun.grid.combos import MOST_COMBOS
from comborun.grid.keys.axes import AXES, AXIS_OF
from comborun.text import did_you_mean

if TYPE_CHECKING:
    from comborun.grid.combos import Combo
    from comborun.grid.draft import Draft, Path
    from comborun.grid.keys.axes import ComboMatch
    from comborun.grid.keys.grid_file import GridFile

_EXAMPLES = {"policies": "[flat, rough]", "environments": "[grass, stairs]"}


def axis_problems(draft: Draft) -> Iterator[Problem]:
    """Missing, empty or too long axes, repeated names, entries that match nothing, and sessions with the same name."""
    for axis in AXES:
        names = [entry.name for entry in getattr(draft.file, axis)]
        if not names and axis not in draft.broken:
            if axis in draft.source.root:
                yield draft.at_value((axis,), f"`{axis}` is empty", "a grid needs at least one")
            else:
                yield draft.at(None, f"`{axis}` is missing", f"such as `{axis}: {_EXAMPLES[axis]}`")
        for index, name in enumerate(names):
            if (first := names.index(name)) != index:
                line = draft.source.key_place(axis, first).line
                yield draft.at_key((axis, index), f"`{axis}` names `{name}` twice", f"the first is in line {line}")
    count = len(draft.file.policies) * len(draft.file.environments)
    if count > MOST_COMBOS:
        message = f"{count:,} combos are more than comborun handles ({MOST_COMBOS:,})"
        yield draft.at(None, message, "cut the grid into several")
    yield from _match_problems(draft)
    yield from _session_problems(draft)


def _match_problems(draft: Draft) -> Iterator[Problem]:
    for path, match in _matches(draft.file):
        if not (match.policy or match.environment):
            if path[0] not in draft.broken:
                message = f"an entry of `{path[0]}` that names no policy and no environment"
                when = "when: " if path[-1] == "when" else ""
                yield draft.at_value(path, message, f"`{when}{{policy: ..., environment: ...}}`, or one of the two")
            continue
        unknown = list(_unknown_names(draft, path, match))
        yield from unknown
        # include and exclude are matched against the whole product, so their names always exist
        lost = path[0] == "overrides" and not any(match.meets(one.policy, one.environment) for one in draft.combos)
        if lost and draft.combos and not unknown and not draft.broken.intersection(AXES):
            message = f"an entry of `{path[0]}` that matches no combo"
            yield draft.at_value(path, message, "`exclude` removes all of them")


def _matches(file: GridFile) -> Iterator[tuple[Path, ComboMatch]]:
    yield from ((("include", index), match) for index, match in enumerate(file.include))
    yield from ((("exclude", index), match) for index, match in enumerate(file.exclude))
    yield from ((("overrides", index, "when"), entry.when) for index, entry in enumerate(file.overrides))


def _unknown_names(draft: Draft, path: Path, match: ComboMatch) -> Iterator[Problem]:
    for kind, axis in AXIS_OF.items():
        known = [entry.name for entry in getattr(draft.file, axis)]
        for index, name in enumerate(getattr(match, kind)):
            if name not in known and axis not in draft.broken:
                yield draft.at_value((*path, kind, index), f"there is no {kind} `{name}`", did_you_mean(name, known))


def _session_problems(draft: Draft) -> Iterator[Problem]:
    """A grid without combos, and combos whose sessions would have the same name."""
    if not draft.combos and draft.file.exclude and draft.file.policies and draft.file.environments:
        yield draft.at_key(("exclude",), "`exclude` leaves no combo", "leave one in")
    first: dict[str, Combo] = {}
    collisions: dict[Path, tuple[Combo, Combo]] = {}
    for combo in draft.combos:
        other = first.setdefault(combo.session, combo)
        if other is not combo:
            kind = "policy" if other.policy != combo.policy else "environment"
            names = [entry.name for entry in getattr(draft.file, AXIS_OF[kind])]
            collisions.setdefault((AXIS_OF[kind], names.index(getattr(combo, kind).name)), (other, combo))
    for path, (other, combo) in collisions.items():
        message = f"`{other.label}` and `{combo.label}` would both run in the session `{combo.session}`"
        yield draft.at_key(path, message, "session names contain A-Z, a-z, 0-9, _ and - only: rename one of them")
