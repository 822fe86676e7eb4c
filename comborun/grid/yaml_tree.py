"""A YAML file as a tree in which every key and every value knows its place and its text as it was written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from comborun.errors import Problem
from comborun.text import printable


class Place(NamedTuple):
    """Line and column, counted from 1."""

    line: int
    column: int
    file: str = ""
    """of a layer below the file, such as a preset; empty: the file itself"""


class Kind(StrEnum):
    """What YAML 1.2 (core schema) reads a scalar as."""

    TEXT = "text"
    NULL = "nothing"
    BOOLEAN = "a boolean"
    NUMBER = "a number"


_PLAIN = (
    (Kind.NULL, re.compile(r"~|null|Null|NULL|")),
    (Kind.BOOLEAN, re.compile(r"true|True|TRUE|false|False|FALSE")),
    (
        Kind.NUMBER,
        re.compile(
            r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"
            r"|[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"
            r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
        ),
    ),
)


def plain_kind(text: str) -> Kind:
    """What a scalar without quotes is."""
    return next((kind for kind, pattern in _PLAIN if pattern.fullmatch(text)), Kind.TEXT)


@dataclass(frozen=True)
class Scalar:
    text: str
    """as written, without the quotes around it"""
    place: Place
    kind: Kind = Kind.TEXT
    quoted: bool = False
    """or a block (`|`, `>`)"""
    start: int = 0
    end: int = 0


class Map(dict[str, "Tree"]):
    """A mapping; `written` has its keys with their places. (A dict, because pydantic reads nothing else as one.)"""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.place = place
        self.written: dict[str, Scalar] = {}

    def holding(self, entries: Mapping[str | int, Tree]) -> Map:
        """A map at the same place with these of its entries."""
        kept = Map(self.place)
        kept.update({key: value for key, value in entries.items() if isinstance(key, str)})
        kept.written = {key: self.written[key] for key in kept}
        return kept


class Items(list["Tree"]):
    """A sequence with its place."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.place = place

    def holding(self, entries: Mapping[str | int, Tree]) -> Items:
        """A sequence at the same place with these of its entries."""
        kept = Items(self.place)
        kept.extend(entries.values())
        return kept


Tree = Scalar | Map | Items


@dataclass(frozen=True)
class Source:
    """A file that is good YAML, and what is wrong with it all the same, such as a key that stands there twice."""

    file: str
    text: str
    root: Map
    problems: tuple[Problem, ...]
    layers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """the texts of other files that values of the tree come from, by the file's name"""

    def problem(self, place: Place | None, message: str, hint: str = "") -> Problem:
        """A problem at `place`; None means the file as a whole."""
        place = place or Place(0, 0)
        return Problem(place.file or self.file, place.line, place.column, printable(message), printable(hint))

    def at(self, *path: str | int) -> Tree:
        """What stands at the end of `path`, or as near to it as the file goes; a number counts entries, from 0."""
        tree: Tree = self.root
        for step in path:
            if isinstance(tree, Map):
                tree = tree.get(_name_of(tree, step), tree)
            elif isinstance(tree, Items) and isinstance(step, int):
                tree = tree[step]
        return tree

    def place(self, *path: str | int) -> Place:
        return self.at(*path).place

    def key_place(self, *path: str | int) -> Place:
        """The place of the key that ends `path`, not of its value."""
        parent = self.at(*path[:-1])
        if isinstance(parent, Map) and (key := _name_of(parent, path[-1])) in parent:
            return parent.written[key].place
        return self.place(*path)

    def locate(self, scalar: Scalar, piece: str) -> Place:
        """Where `piece` stands within a scalar; the scalar's own place when escapes or line folding hide it."""
        text = self.layers.get(scalar.place.file, self.text)
        index = text.find(piece, scalar.start, scalar.end) if piece else -1
        if index < 0:
            return scalar.place
        before = re.split(r"\r\n|[\n\r\x85\u2028\u2029]", text[:index])
        return Place(len(before), len(before[-1]) + 1, scalar.place.file)


def _name_of(tree: Map, step: str | int) -> str:
    return step if isinstance(step, str) else list(tree)[step]
