"""Policies times environments, and which of the products are combos."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from comborun.errors import Problem
from comborun.grid.draft import Draft, Path
from comborun.grid.keys.axis import AxisEntry, Match
from comborun.grid.layers import settings_of
from comborun.grid.model import AXES, GridFile
from comborun.grid.settings import Settings
from comborun.grid.yaml_tree import Place
from comborun.text import did_you_mean, session_name

_EXAMPLES = {"policies": "[flat, rough]", "environments": "[grass, stairs]"}
AXIS_OF = {"policy": "policies", "environment": "environments"}
MOST_COMBOS = 10_000
"""each is a session, with a directory of its own on the host"""


@dataclass(frozen=True)
class Axis:
    """A policy or an environment."""

    name: str
    """as the user wrote it"""
    attributes: Mapping[str, str]
    """name -> text as written, without quotes"""


@dataclass(frozen=True)
class Combo:
    policy: Axis
    environment: Axis
    settings: Settings
    """the grid's, with every override that matches on top, in their order"""

    @property
    def session(self) -> str:
        return session_name(self.environment.name, self.policy.name)

    @property
    def label(self) -> str:
        return f"{self.policy.name} in {self.environment.name}"


def combos_of(file: GridFile) -> tuple[Combo, ...]:
    """Policies in the outer loop, environments in the inner; without `exclude`, then with `include` at the end."""
    if len(file.policies) * len(file.environments) > MOST_COMBOS:
        return ()
    product = [(policy, environment) for policy in axis(file.policies) for environment in axis(file.environments)]
    kept = [pair for pair in product if not any(_matches(match, *pair) for match in file.exclude)]
    back = [pair for match in file.include for pair in product if _matches(match, *pair)]
    pairs = {(policy.name, environment.name): (policy, environment) for policy, environment in [*kept, *back]}

    @cache
    def settings(layers: tuple[int, ...]) -> Settings:
        return settings_of([file, *(file.overrides[index] for index in layers)])

    return tuple(
        Combo(policy, environment, settings(matching(file, policy, environment)))
        for policy, environment in pairs.values()
    )


def axis(entries: Iterable[AxisEntry]) -> tuple[Axis, ...]:
    return tuple(Axis(entry.name, MappingProxyType(entry.attributes)) for entry in entries)


def matching(file: GridFile, policy: Axis, environment: Axis) -> tuple[int, ...]:
    """The indexes of the overrides for a combo, in their order."""
    return tuple(index for index, entry in enumerate(file.overrides) if _matches(entry.when, policy, environment))


def _matches(match: Match, policy: Axis, environment: Axis) -> bool:
    named = bool(match.policy or match.environment)
    return (
        named
        and (not match.policy or policy.name in match.policy)
        and (not match.environment or environment.name in match.environment)
    )


def axis_problems(draft: Draft) -> Iterator[Problem]:
    """Axes that are missing, empty, too long, or that name something twice."""
    for key in AXES:
        entries: tuple[AxisEntry, ...] = getattr(draft.file, key)
        if not entries and key not in draft.broken:
            if key in draft.source.root:
                yield draft.source.problem(draft.source.place(key), f"`{key}` is empty", "a grid needs at least one")
            else:
                yield draft.source.problem(None, f"`{key}` is missing", f"such as `{key}: {_EXAMPLES[key]}`")
        first: dict[str, int] = {}
        for index, entry in enumerate(entries):
            if first.setdefault(entry.name, index) != index:
                place, earlier = (draft.source.key_place(key, number) for number in (index, first[entry.name]))
                message = f"`{key}` names `{entry.name}` twice"
                yield draft.source.problem(place, message, f"the first is in line {earlier.line}")
    count = len(draft.file.policies) * len(draft.file.environments)
    if count > MOST_COMBOS:
        message = f"{count:,} combos are more than comborun handles ({MOST_COMBOS:,})"
        yield draft.source.problem(None, message, "cut the grid into several")


def match_problems(draft: Draft, combos: tuple[Combo, ...]) -> Iterator[Problem]:
    """Entries of include, exclude and overrides that match nothing."""
    for path, match in _entries(draft.file):
        if not (match.policy or match.environment):
            if path[0] not in draft.broken:
                message = f"an entry of `{path[0]}` that names no policy and no environment"
                when = "when: " if path[-1] == "when" else ""
                hint = f"`{when}{{policy: ..., environment: ...}}`, or one of the two"
                yield draft.source.problem(draft.source.place(*path), message, hint)
            continue
        strangers = list(_strangers(draft, path, match))
        yield from strangers
        if combos and not strangers and not draft.broken.intersection(AXES) and not _found(path, match, combos):
            message = f"an entry of `{path[0]}` that matches no combo"
            yield draft.source.problem(draft.source.place(*path), message, "`exclude` has taken them all out")


def _found(path: Path, match: Match, combos: tuple[Combo, ...]) -> bool:
    """Whether an override still has a combo; the others are matched against the whole product, and always do."""
    return path[0] != "overrides" or any(_matches(match, combo.policy, combo.environment) for combo in combos)


def _entries(file: GridFile) -> Iterator[tuple[Path, Match]]:
    yield from ((("include", index), match) for index, match in enumerate(file.include))
    yield from ((("exclude", index), match) for index, match in enumerate(file.exclude))
    yield from ((("overrides", index, "when"), entry.when) for index, entry in enumerate(file.overrides))


def _strangers(draft: Draft, path: Path, match: Match) -> Iterator[Problem]:
    """Names that are on no axis."""
    for key, names, entries in (
        ("policy", match.policy, draft.file.policies),
        ("environment", match.environment, draft.file.environments),
    ):
        known = [entry.name for entry in entries]
        if AXIS_OF[key] in draft.broken:
            continue
        for index, name in enumerate(names):
            if name not in known:
                place = draft.source.place(*path, key, index)
                yield draft.source.problem(place, f"there is no {key} `{name}`", did_you_mean(name, known))


def session_problems(draft: Draft, combos: tuple[Combo, ...]) -> Iterator[Problem]:
    """No combo at all, and combos whose sessions would have one name."""
    if not combos and draft.file.exclude and draft.file.policies and draft.file.environments:
        yield draft.source.problem(draft.source.key_place("exclude"), "`exclude` leaves no combo", "leave one in")
    first: dict[str, Combo] = {}
    collisions: dict[Place, tuple[Combo, Combo]] = {}
    for combo in combos:
        other = first.setdefault(combo.session, combo)
        if other is not combo:
            collisions.setdefault(_later(draft, other, combo), (other, combo))
    for place, (other, combo) in collisions.items():
        message = f"`{other.label}` and `{combo.label}` would both run in the session `{combo.session}`"
        hint = "session names hold A-Z, a-z, 0-9, _ and - only: rename one of them"
        yield draft.source.problem(place, message, hint)


def _later(draft: Draft, first: Combo, second: Combo) -> Place:
    """Where the name stands that made the second of two combos collide."""
    if first.policy != second.policy:
        names = [entry.name for entry in draft.file.policies]
        return draft.source.key_place("policies", names.index(second.policy.name))
    names = [entry.name for entry in draft.file.environments]
    return draft.source.key_place("environments", names.index(second.environment.name))
