"""Policies times environments: the keys of the two axes, the combos, and the files that a glob stands for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema

from comborun.errors import Problem, UserError
from comborun.grid.shapes import ONE_OR_MANY, Keys, key, merged
from comborun.grid.values import OWNED, SCALAR, TEXT, AsWritten, AttributeName, Name, line_of, parse_whole
from comborun.grid.yaml_tree import Items, Kind, Map, Scalar, Source, Tree
from comborun.model.policy_files import CHECKPOINT, PolicyGlob
from comborun.text import did_you_mean, first_of, session_name

if TYPE_CHECKING:
    from comborun.grid.draft import Draft, Path
    from comborun.grid.model import GridFile, SettingKeys

AXIS_OF = {"policy": "policies", "environment": "environments"}
AXES = tuple(AXIS_OF.values())
_EXAMPLES = {"policies": "[flat, rough]", "environments": "[grass, stairs]"}
MOST_COMBOS = 10_000
"""each is a session with a directory on the host"""
STAND_IN = "each-file"
"""stands for all policies of a glob while its files on the host are unknown"""
_GLOB_KEYS = ("glob", "exclude")
_SHOWN = 4

Found = tuple[tuple[str, str], ...]


def _entries(tree: object) -> object:
    """An axis, list or map, as a list of maps with `name` and `attributes`."""
    if isinstance(tree, Map):
        pairs: list[tuple[Any, Any]] = [(tree.written[name], value) for name, value in tree.items()]
    elif isinstance(tree, Items):
        pairs = [(entry, None) for entry in tree]
    else:
        return tree
    bare = [value is None or (isinstance(value, Scalar) and value.kind is Kind.NULL) for _, value in pairs]
    return [
        {"name": name} if alone else {"name": name, "attributes": value}
        for (name, value), alone in zip(pairs, bare, strict=True)
    ]


class Axis(Keys):
    name: Name
    attributes: dict[AttributeName, AsWritten] = Field(default={})
    """values as written, without quotes"""


_AXIS = {
    "anyOf": [
        {"type": "array", "minItems": 1, "items": TEXT},
        {
            "type": "object",
            "minProperties": 1,
            "additionalProperties": {"anyOf": [{"type": "object", "additionalProperties": SCALAR}, {"type": "null"}]},
        },
    ]
}
Axes = Annotated[tuple[Axis, ...], BeforeValidator(_entries), WithJsonSchema(_AXIS)]
Names = Annotated[tuple[Name, ...], ONE_OR_MANY]


class Match(Keys):
    """Selects combos by policy, by environment, or by both."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    policy: Names = key("a policy of the grid, or a list of them", ())
    environment: Names = key("an environment of the grid, or a list of them", ())

    def meets(self, policy: Axis, environment: Axis) -> bool:
        named = bool(self.policy or self.environment)
        met = not self.policy or policy.name in self.policy
        return named and met and (not self.environment or environment.name in self.environment)


@dataclass(frozen=True)
class Combo:
    policy: Axis
    environment: Axis
    settings: SettingKeys
    """the settings of the grid and of every matching override, in order"""
    overrides: tuple[int, ...] = ()

    @property
    def session(self) -> str:
        return session_name(self.environment.name, self.policy.name)

    @property
    def label(self) -> str:
        return f"{self.policy.name} in {self.environment.name}"

    def number(self, count: str | None) -> int:
        """A count, perhaps from an attribute; 0 without one. Raises UserError."""
        match = OWNED.fullmatch(count or "")
        if match is None:
            return parse_whole(count) if count else 0
        axis: Axis = getattr(self, match[1])
        if match[2] not in axis.attributes:
            hint = f"give it the attribute in `{AXIS_OF[match[1]]}`"
            raise UserError(f"{match[1]} `{axis.name}` has no value for {count}", hint)
        which = f"{count} of {match[1]} `{axis.name}`"
        try:
            found = parse_whole(axis.attributes[match[2]])
        except UserError as error:
            raise UserError(f"{which}: {error.message}", error.hint) from None
        if found < 1:
            raise UserError(f"{which} is {found}", "at least 1")
        return found


def names_of(file: GridFile) -> dict[str, set[str]]:
    return {kind: {entry.name for entry in getattr(file, axis)} for kind, axis in AXIS_OF.items()}


def some(names: Iterable[str]) -> str:
    return first_of((f"`{name}`" for name in names), _SHOWN)


def combos_of(file: GridFile) -> tuple[Combo, ...]:
    """All combos, policy by policy. `exclude` removes some; those of `include` come back, at the end."""
    if len(file.policies) * len(file.environments) > MOST_COMBOS:
        return ()
    product = [(policy, environment) for policy in file.policies for environment in file.environments]
    kept = [pair for pair in product if not any(match.meets(*pair) for match in file.exclude)]
    back = [pair for match in file.include for pair in product if match.meets(*pair)]
    pairs = {(policy.name, environment.name): (policy, environment) for policy, environment in [*kept, *back]}

    @cache
    def settings(overrides: tuple[int, ...]) -> SettingKeys:
        found: SettingKeys = file
        for index in overrides:
            found = merged(found, file.overrides[index], file.WHOLE)
        whole = f"{found.command} {found.arguments}"
        return found.model_copy(update={"command": whole}) if found.command and found.arguments else found

    def combo(policy: Axis, environment: Axis) -> Combo:
        matching = tuple(index for index, one in enumerate(file.overrides) if one.when.meets(policy, environment))
        return Combo(policy, environment, settings(matching), matching)

    return tuple(combo(*pair) for pair in pairs.values())


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


def _matches(file: GridFile) -> Iterator[tuple[Path, Match]]:
    yield from ((("include", index), match) for index, match in enumerate(file.include))
    yield from ((("exclude", index), match) for index, match in enumerate(file.exclude))
    yield from ((("overrides", index, "when"), entry.when) for index, entry in enumerate(file.overrides))


def _unknown_names(draft: Draft, path: Path, match: Match) -> Iterator[Problem]:
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


# `policies: {glob: ...}` is read first; then its files take its place


def glob_of(source: Source) -> tuple[PolicyGlob | None, tuple[Problem, ...]]:
    axis = source.root.get("policies")
    if not isinstance(axis, Map) or "glob" not in axis or isinstance(axis["glob"], Map):
        return None, ()
    problems = [
        source.problem(axis.written[key].place, f"`policies`: `{key}` beside `glob`", "either a glob or the policies")
        for key in axis
        if key not in _GLOB_KEYS
    ]
    read: dict[str, tuple[str, ...]] = {}
    for name in _GLOB_KEYS:
        try:
            read[name] = _patterns(axis[name], absolute=name == "glob") if name in axis else ()
        except UserError as error:
            problems.append(source.problem(axis[name].place, f"`policies.{name}`: {error.message}", error.hint))
    place = axis["glob"].place
    return PolicyGlob(read.get("glob", ()), read.get("exclude", ()), place.line, place.column), tuple(problems)


def _patterns(tree: Tree, *, absolute: bool) -> tuple[str, ...]:
    patterns = tuple(line_of(entry) for entry in tree) if isinstance(tree, Items) else (line_of(tree),)
    if not patterns:
        raise UserError("an empty list", "such as ~/ckpt/*.pt")
    for pattern in patterns if absolute else ():
        if not pattern.startswith(("/", "~/")):
            raise UserError(
                f"`{pattern}` is a relative path, and the host needs an absolute one", "write ~/... or /..."
            )
    return patterns


def with_policies(source: Source, found: Found | None) -> Source:
    """The grid with the files in place of their glob; with STAND_IN if they are unknown."""
    given = source.root["policies"]
    place = given["glob"].place if isinstance(given, Map) else given.place
    axis = Map(place)
    for name, path in found or ((STAND_IN, "/"),):
        axis[name] = attributes = Map(place)
        axis.written[name] = Scalar(name, place, Kind.TEXT, quoted=True)
        attributes[CHECKPOINT] = Scalar(path, place, Kind.TEXT, quoted=True)
        attributes.written[CHECKPOINT] = Scalar(CHECKPOINT, place)
    return replace(source, root=source.root.holding({**source.root, "policies": axis}))
