"""Single values from the command line, `--set limits.parallel=4`, which replace values of a grid file."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from comborun.errors import GridError
from comborun.grid.yaml_tree import Kind, Map, Place, Scalar, plain_kind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from comborun.grid.yaml_tree import Source, Tree

OPTION = "--set"
IN_FILE = "--set takes single values, such as limits.parallel=4; change this in the grid file"
_LISTS = ("policies", "environments", "include", "exclude", "overrides", "sync")


def with_single_values(source: Source, settings: Iterable[str]) -> Source:
    """The grid with each `KEY=VALUE`. Raises GridError for anything else.

    A value is read as it is: it needs only the quotes of the shell.
    """
    root = source.root
    for setting in settings:
        key, equals, text = setting.partition("=")
        words = key.strip().split(".")
        place = Place(0, 0, f"{OPTION} {key.strip()}")
        if not equals or not all(words):
            raise GridError((source.problem(place, "a key and a value are wanted", "limits.parallel=4, say"),))
        if flaw := _flaw(root, words, text):
            raise GridError((source.problem(place, flaw, IN_FILE),))
        root = _laid(root, words, _scalar(text, place))
    return replace(source, root=root)


def _scalar(text: str, place: Place) -> Scalar:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return Scalar(text[1:-1], place, Kind.TEXT, quoted=True)
    return Scalar(text, place, plain_kind(text))


def _flaw(root: Map, words: list[str], text: str) -> str:
    """Why this can't be a single value of the grid; empty if it can."""
    if words[0] in _LISTS or text.startswith("["):
        return f"`{words[0]}` holds more than a single value" if words[0] in _LISTS else "a list is no single value"
    tree: Tree = root
    for place, word in enumerate(words):
        if not isinstance(tree, Map):
            return f"`{'.'.join(words[:place])}` is no map in this grid"
        if word not in tree:
            return ""
        tree = tree[word]
    return "" if isinstance(tree, Scalar) else f"`{'.'.join(words)}` holds more than a single value"


def _laid(tree: Map, words: list[str], value: Scalar) -> Map:
    """A copy of `tree` with `value` at the end of `words`. Missing maps are made."""
    word, *rest = words
    below = tree.get(word)
    laid = tree.holding(tree)
    laid[word] = _laid(below if isinstance(below, Map) else Map(value.place), rest, value) if rest else value
    if rest and word in laid.written:
        return laid
    laid.written[word] = Scalar(word, value.place)
    return laid
