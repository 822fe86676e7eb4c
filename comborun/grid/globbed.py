"""`policies: {glob: ...}` in a grid file: read first, and from then on as if its files stood there."""

from __future__ import annotations

from dataclasses import replace

from comborun.errors import Problem, UserError
from comborun.grid.keys.values import line_of
from comborun.grid.yaml_tree import Items, Kind, Map, Place, Scalar, Source, Tree
from comborun.policy_files import CHECKPOINT, PolicyGlob

STAND_IN = "each-file"
"""the one policy of a grid that no host was asked about"""
_KEYS = ("glob", "exclude")

Found = tuple[tuple[str, str], ...]
"""name and path of each policy"""


def glob_of(source: Source) -> tuple[PolicyGlob | None, tuple[Problem, ...]]:
    """What `policies` asks the host for, if it does, and what is wrong with how it asks."""
    axis = source.root.get("policies")
    if not isinstance(axis, Map) or "glob" not in axis or isinstance(axis["glob"], Map):
        return None, ()
    tree = axis["glob"]
    problems = [
        source.problem(axis.written[key].place, f"`policies`: `{key}` beside `glob`", "either a glob or the policies")
        for key in axis
        if key not in _KEYS
    ]
    read: dict[str, tuple[str, ...]] = {}
    for key in _KEYS:
        try:
            read[key] = _lines(axis[key]) if key in axis else ()
            for pattern in read[key] if key == "glob" else ():
                _check(pattern)
        except UserError as error:
            problems.append(source.problem(axis[key].place, f"`policies.{key}`: {error.message}", error.hint))
    place = tree.place
    return PolicyGlob(read.get("glob", ()), read.get("exclude", ()), place.line, place.column), tuple(problems)


def with_policies(source: Source, found: Found | None) -> Source:
    """The grid with the files in the place of their glob; one stands for all of them when none are known."""
    axis = source.root["policies"]
    place = axis["glob"].place if isinstance(axis, Map) else axis.place
    root = Map(source.root.place)
    root.update({**source.root, "policies": _axis(found or ((STAND_IN, "/"),), place)})
    root.written = source.root.written
    return replace(source, root=root)


def found_by_glob(axis: Tree | None) -> bool:
    """Whether its entries are files that stand in for a glob: all of them have its place."""
    return isinstance(axis, Map) and bool(axis) and all(entry.place == axis.place for entry in axis.values())


def _axis(found: Found, place: Place) -> Map:
    axis = Map(place)
    for name, path in found:
        attributes = Map(place)
        attributes[CHECKPOINT] = Scalar(path, place, Kind.TEXT, quoted=True)
        attributes.written[CHECKPOINT] = Scalar(CHECKPOINT, place)
        axis[name] = attributes
        axis.written[name] = Scalar(name, place, Kind.TEXT, quoted=True)
    return axis


def _lines(tree: Tree) -> tuple[str, ...]:
    lines = tuple(line_of(entry) for entry in tree) if isinstance(tree, Items) else (line_of(tree),)
    if not lines:
        raise UserError("an empty list", "such as ~/ckpt/*.pt")
    return lines


def _check(pattern: str) -> None:
    if not pattern.startswith(("/", "~/")):
        raise UserError(f"`{pattern}` is relative, and the host would not know to what", "write ~/... or /...")
