"""The combos of a grid, policies times environments, and the files on the host that a glob of policies stands for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from comborun.errors import Problem, UserError
from comborun.grid.keys.amounts import parse_size, parse_whole
from comborun.grid.keys.axes import AXIS_OF, AxisEntry
from comborun.grid.keys.grid_file import GridFile, SettingKeys
from comborun.grid.keys.results import naming
from comborun.grid.keys.shapes import merged
from comborun.grid.keys.values import OWNED, line_of, scalar_of, whole_of
from comborun.grid.yaml_tree import Items, Map, Scalar, ScalarKind, Tree, YamlSource
from comborun.model.plan import FollowRule
from comborun.rules.following import STABLE
from comborun.rules.results.fields import ResultRules
from comborun.text import SESSION_NAME, clean, natural, session_name

MOST_COMBOS = 10_000
"""each is a session with a directory on the host"""
STAND_IN = "each-file"
"""stands for all policies of a glob while its files on the host are unknown"""

CHECKPOINT = "checkpoint"
"""the attribute that holds the path of a policy from a glob"""
_WILD = re.compile(r"[*?\[]")
Found = tuple[tuple[str, str], ...]
"""name and path of each policy"""


@dataclass(frozen=True)
class Combo:
    policy: AxisEntry
    environment: AxisEntry
    settings: SettingKeys
    """the settings of the grid and of every matching override, in order"""
    overrides: tuple[int, ...] = ()
    named: str = SESSION_NAME

    @property
    def session(self) -> str:
        return session_name(self.environment.name, self.policy.name, self.named)

    @property
    def key(self) -> tuple[str, str]:
        return self.policy.name, self.environment.name

    @property
    def rules(self) -> ResultRules:
        """For its records, with its attributes filled in. Raises UserError."""
        given = self.settings.rules
        return given.replace(
            policy=naming(given.policy, self.policy), environment=naming(given.environment, self.environment)
        )

    @property
    def label(self) -> str:
        return " in ".join(self.key)

    def number(self, count: str | None) -> int:
        """A count, perhaps from an attribute; 0 without one. Raises UserError."""
        match = OWNED.fullmatch(count or "")
        if match is None:
            return parse_whole(count) if count else 0
        axis: AxisEntry = getattr(self, match[1])
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


def names_of(file: GridFile) -> dict[str, list[str]]:
    return {kind: [entry.name for entry in getattr(file, axis)] for kind, axis in AXIS_OF.items()}


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

    def combo(policy: AxisEntry, environment: AxisEntry) -> Combo:
        matching = tuple(index for index, one in enumerate(file.overrides) if one.when.meets(policy, environment))
        return Combo(policy, environment, settings(matching), matching, file.session_name)

    return tuple(combo(*pair) for pair in pairs.values())


# Policies that are files on the host: `policies: {glob: ~/ckpt/*.pt}`


@dataclass(frozen=True)
class PolicyGlob:
    patterns: tuple[str, ...]
    """absolute or below ~/ of the host, as in bash; `**` goes through folders"""
    exclude: tuple[str, ...] = ()
    """patterns of names that are not policies"""
    line: int = 0
    column: int = 0
    """its place in the grid file"""

    def __str__(self) -> str:
        return ", ".join(self.patterns)


class MatchedFile(NamedTuple):
    pattern: str
    path: str
    """below ~/ or absolute, as the pattern"""
    folder: bool = False


def glob_of(source: YamlSource) -> tuple[PolicyGlob | None, tuple[Problem, ...]]:
    axis = source.root.get("policies")
    if not isinstance(axis, Map) or "glob" not in axis or isinstance(axis["glob"], Map):
        return None, ()
    read, problems = _read(source, axis, _GLOB_KEYS, "either a glob or the policies")
    place = axis["glob"].place
    return PolicyGlob(read.get("glob", ()), read.get("exclude", ()), place.line, place.column), tuple(problems)


def _read(
    source: YamlSource, axis: Map, readers: Mapping[str, Callable[[Tree], Any]], beside: str
) -> tuple[dict[str, Any], list[Problem]]:
    """The keys of `policies` where they are files, and what is wrong; `beside` is the hint for other keys."""
    first = next(iter(readers))
    problems = [
        source.problem(axis.written[key].place, f"`policies`: `{key}` beside `{first}`", beside)
        for key in axis
        if key not in readers
    ]
    read: dict[str, Any] = {}
    for name, reader in readers.items():
        try:
            read |= {name: reader(axis[name])} if name in axis else {}
        except UserError as error:
            problems.append(source.problem(axis[name].place, f"`policies.{name}`: {error.message}", error.hint))
    return read, problems


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


def follow_of(source: YamlSource) -> tuple[FollowRule | None, tuple[Problem, ...]]:
    """`policies: {follow: ~/runs/x/ckpt_*.pt, done: STABLE, every: 5}`; None for other policies."""
    axis = source.root.get("policies")
    pattern = axis.get("follow") if isinstance(axis, Map) else None
    if not isinstance(axis, Map) or not isinstance(pattern, Scalar) or pattern.kind is ScalarKind.NULL:
        return None, ()  # a policy may have that name
    read, problems = _read(source, axis, _FOLLOW_KEYS, f"known here: {', '.join(_FOLLOW_KEYS)}")
    if "done" not in axis:
        hint = "done: ~/runs/x/ckpt_*.done, the pattern of a marker; or STABLE: the training renames them"
        problems.append(source.problem(pattern.place, "`policies`: no `done` says when one is complete", hint))
    rule = FollowRule(
        read.get("follow", "/*"), read.get("done", STABLE), read.get("every", 1), read.get("keep_free", 0)
    )
    return rule, tuple(problems)


def refused_with_follow(source: YamlSource) -> tuple[Problem, ...]:
    """What a run that follows a training can't do."""
    said = {
        "hosts": ("a training is followed on its own host", "`host: NAME` instead of `hosts`"),
        "stop_early": ("`stop_early` needs policies that are known before the run", "leave it out"),
    }
    found = source.root.written
    return tuple(source.problem(found[key].place, *words) for key, words in said.items() if key in found)


def _one_star(tree: Tree) -> str:
    (pattern,) = _patterns(tree, absolute=True)
    if pattern.count("*") != 1 or _WILD.search(pattern.replace("*", "")):
        raise UserError(f"`{pattern}` needs one `*`, for the step, and no other wildcard", "~/runs/x/ckpt_*.pt")
    return pattern


_GLOB_KEYS: Mapping[str, Callable[[Tree], Any]] = {
    "glob": partial(_patterns, absolute=True),
    "exclude": partial(_patterns, absolute=False),
}
_FOLLOW_KEYS: Mapping[str, Callable[[Tree], Any]] = {
    "follow": _one_star,
    "done": lambda tree: STABLE if line_of(tree) == STABLE else _one_star(tree),
    "every": lambda tree: whole_of(tree, 1),
    "keep_free": lambda tree: parse_size(scalar_of(tree).text),
}


def with_policies(source: YamlSource, found: Found | None) -> YamlSource:
    """The grid with the files in place of their glob; with STAND_IN if they are unknown."""
    given = source.root["policies"]
    named = [given[key].place for key in ("glob", "follow") if isinstance(given, Map) and key in given]
    place = named[0] if named else given.place
    axis = Map(place)
    for name, path in found or ((STAND_IN, "/"),):
        axis[name] = attributes = Map(place)
        axis.written[name] = Scalar(name, place, ScalarKind.TEXT, quoted=True)
        attributes[CHECKPOINT] = Scalar(path, place, ScalarKind.TEXT, quoted=True)
        attributes.written[CHECKPOINT] = Scalar(CHECKPOINT, place)
    return replace(source, root=source.root.holding({**source.root, "policies": axis}))


def named_policies(matches: tuple[MatchedFile, ...]) -> Found:
    """Name and path of each file, sorted with step_9 before step_10.

    The name is what the pattern's wildcards match, without the suffix: `~/ckpt/*.pt` gives `step_9`, and
    `~/runs/*/model.pt` the folder's name. Files with the same name keep their suffix. Raises UserError for a name
    without a letter or digit, or if two are still the same.
    """
    files = {match.path: match for match in reversed(matches)}  # two patterns may find the same file
    ordered = sorted(files.values(), key=lambda match: natural(match.path))
    short = [_policy_name(match, whole=False) for match in ordered]
    often = Counter(short)
    names = [
        _policy_name(match, whole=True) if often[name] > 1 else name for match, name in zip(ordered, short, strict=True)
    ]
    shared = [match.path for match, name in zip(ordered, names, strict=True) if names.count(name) > 1]
    if shared:
        hint = "name the folders with a wildcard, as in ~/runs/*/model.pt, or exclude one of them"
        raise UserError(f"{' and '.join(shared[:2])} would be one policy", hint)
    return tuple((name, match.path) for name, match in zip(names, ordered, strict=True))


def _policy_name(match: MatchedFile, *, whole: bool) -> str:
    path, pattern = PurePosixPath(match.path), PurePosixPath(match.pattern)
    last = path.name if match.folder or whole else path.stem
    return "-".join(clean(part) for part in (*_wild(pattern, path), last) if part)


def _wild(pattern: PurePosixPath, path: PurePosixPath) -> tuple[str, ...]:
    """The folders of a path that match a wildcard."""
    fixed = next((index for index, part in enumerate(pattern.parts) if _WILD.search(part)), len(pattern.parts) - 1)
    if "**" in pattern.parts:
        return path.parts[fixed:-1]
    pairs = zip(pattern.parts[:-1], path.parts[:-1], strict=False)
    return tuple(part for wanted, part in pairs if _WILD.search(wanted))
