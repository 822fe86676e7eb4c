"""A YAML 1.2 file as a tree. Every key and value knows its place and its text as written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError
from ruamel.yaml.resolver import VersionedResolver

from comborun.errors import GridError, Problem, UserError
from comborun.text import printable


class Place(NamedTuple):
    """Line and column, counted from 1."""

    line: int
    column: int
    file: str = ""
    """the file of a lower layer, such as a preset; empty: the file itself"""


class ScalarKind(StrEnum):
    """The type of a scalar in YAML 1.2."""

    TEXT = "text"
    NULL = "nothing"
    BOOLEAN = "a boolean"
    NUMBER = "a number"


_RESOLVER = VersionedResolver()
_KINDS = {"null": ScalarKind.NULL, "bool": ScalarKind.BOOLEAN, "int": ScalarKind.NUMBER, "float": ScalarKind.NUMBER}


def plain_kind(text: str) -> ScalarKind:
    tag = str(_RESOLVER.resolve(ScalarNode, text, (True, False)))
    return _KINDS.get(tag.rpartition(":")[2], ScalarKind.TEXT)


@dataclass(frozen=True)
class Scalar:
    text: str
    """as written, without quotes"""
    place: Place
    kind: ScalarKind = ScalarKind.TEXT
    quoted: bool = False
    """whether it is quoted, or a block (`|`, `>`)"""
    start: int = 0
    end: int = 0


class Map(dict[str, "Tree"]):
    """A mapping; `written` has its keys with their places. (A dict, because pydantic reads nothing else as one.)"""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.place = place
        self.written: dict[str, Scalar] = {}

    def holding(self, entries: Mapping[Any, Tree]) -> Map:
        """A map at the same place with only these entries."""
        kept = Map(self.place)
        kept.update({key: value for key, value in entries.items() if isinstance(key, str)})
        kept.written = {key: self.written[key] for key in kept}
        return kept


class Items(list["Tree"]):
    def __init__(self, place: Place) -> None:
        super().__init__()
        self.place = place

    def holding(self, entries: Mapping[Any, Tree]) -> Items:
        """A sequence at the same place with only these entries."""
        kept = Items(self.place)
        kept.extend(entries.values())
        return kept


Tree = Scalar | Map | Items


@dataclass(frozen=True)
class YamlSource:
    """A file that is valid YAML, and its mistakes, such as a key that occurs twice."""

    file: str
    text: str
    root: Map
    problems: tuple[Problem, ...]
    layers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """file's name -> text, of other files from which values of the tree come"""

    def problem(self, place: Place | None, message: str, hint: str = "") -> Problem:
        """A problem at `place`; None means the file as a whole."""
        place = place or Place(0, 0)
        return Problem(place.file or self.file, place.line, place.column, printable(message), printable(hint))

    def at(self, *path: str | int) -> Tree:
        """The value at the end of `path`, or the nearest one above; a number counts entries, from 0."""
        tree: Tree = self.root
        for step in path:
            if isinstance(tree, Map):
                tree = tree.get(_name_of(tree, step), tree)
            elif isinstance(tree, Items) and isinstance(step, int):
                tree = tree[step]
        return tree

    def key_place(self, *path: str | int) -> Place:
        """The place of the key at the end of `path`, not of its value."""
        parent = self.at(*path[:-1])
        if isinstance(parent, Map) and (key := _name_of(parent, path[-1])) in parent:
            return parent.written[key].place
        return self.at(*path).place

    def locate(self, scalar: Scalar, piece: str) -> Place:
        """The place of `piece` in a scalar; the scalar's place if escapes or line folding hide it."""
        text = self.layers.get(scalar.place.file, self.text)
        index = text.find(piece, scalar.start, scalar.end) if piece else -1
        if index < 0:
            return scalar.place
        before = re.split(r"\r\n|[\n\r\x85\u2028\u2029]", text[:index])
        return Place(len(before), len(before[-1]) + 1, scalar.place.file)


def _name_of(tree: Map, step: str | int) -> str:
    return step if isinstance(step, str) else list(tree)[step]


DIRECTIVE = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n)*(?=%)")
TOO_DEEP = ("lists and maps are nested too deeply", "a grid needs four levels")


MAX_CHARACTERS = 1 << 20
MAX_NODES = 100_000
"""nodes, each alias counted: a few lines of nested aliases can make billions"""

_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
"""a character as JSON may escape it: "\\ud83d\\ude00" """


def text_of(path: Path, hint: str) -> str:
    """The text of a file. Raises UserError if it can't be read, with the hint, or is not UTF-8."""
    try:
        with path.open("rb") as file:
            content = file.read(4 * MAX_CHARACTERS + 1)
    except (OSError, ValueError) as error:
        raise UserError(f"{path} can't be read: {getattr(error, 'strerror', '') or error}", hint) from None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"{path} is not UTF-8 text: byte {error.start} is 0x{content[error.start]:02x}"
        raise UserError(message, "save it as UTF-8") from None


_TAGS = {"str", "int", "float", "bool", "null", "timestamp", "map", "seq", "merge", "value"}


def read_source(text: str, file: str, layer: str = "") -> YamlSource:
    """Parse `text`. Raises GridError if it is not a YAML mapping. `layer` is the file's name if its values come below
    another file's.
    """
    text = text.removeprefix("\ufeff")
    node = _compose(text, file)
    if node is None:
        raise _refused(file, "is empty", "`combo init` writes a grid to start from")
    if not isinstance(node, MappingNode):
        message = "a grid is a map of keys: `policies: ...`, `environments: ...`, `command: ...`"
        raise _refused(file, message, "`combo init` writes a grid to start from", *_place(node))
    reader = _Reader(file, layer)
    try:
        root = reader.mapping(node)
    except RecursionError:
        raise _refused(file, *TOO_DEEP) from None
    if reader.nodes > MAX_NODES:
        message = f"has more than {MAX_NODES:,} values once its aliases are followed"
        raise _refused(file, message, "a grid needs a few hundred: write it without aliases")
    return YamlSource(file, text, root, tuple(reader.problems))


def _refused(file: str, message: str, hint: str, line: int = 0, column: int = 0) -> GridError:
    return GridError((Problem(file, line, column, message, hint),))


def _compose(text: str, file: str) -> Node | None:
    if len(text) > MAX_CHARACTERS:
        raise _refused(file, f"has {len(text):,} characters, too many for a grid", "is this the right file?")
    if directive := DIRECTIVE.match(text):
        message = "a line that begins with % is a YAML directive, which grids don't use"
        raise _refused(file, message, "remove it: grids are YAML 1.2", directive.group().count("\n") + 1, 1)
    yaml: Any = YAML(typ="safe", pure=True)
    yaml.composer.warn_double_anchors = False
    try:
        node: Node | None = yaml.compose(text)
    except YAMLError as error:
        raise GridError((syntax_problem(error, text, file),)) from None
    except RecursionError:
        raise _refused(file, *TOO_DEEP) from None
    return node


def _place(node: Node) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1


class _Reader:
    """Turns ruamel's nodes into a Tree. A node is read again for each alias of it."""

    def __init__(self, file: str, layer: str) -> None:
        self.file = file
        self.layer = layer
        self.problems: list[Problem] = []
        self.nodes = 0
        self._open: set[int] = set()

    def _place(self, node: Node) -> Place:
        return Place(*_place(node), self.layer)

    def mapping(self, node: MappingNode) -> Map:
        tree = Map(self._place(node))
        merged: list[Map] = []
        for key_node, value_node in node.value:
            key = self._key(key_node)
            if key is None:
                continue
            value = self._tree(value_node, key.place)
            if key.text == "<<" and not key.quoted:
                merged += self._merged(value)
            elif key.text in tree:
                hint = f"the first is in line {tree.written[key.text].place.line}: keep one of them"
                self._complain(key.place, f"the key `{key.text}` occurs a second time", hint)
            else:
                tree[key.text], tree.written[key.text] = value, key
        for other in merged:
            for name in other.keys() - tree.keys():
                tree[name], tree.written[name] = other[name], other.written[name]
        return tree

    def _tree(self, node: Node, key: Place) -> Tree:
        self.nodes += 1
        place = self._place(node)
        self._check_tag(node, place)
        if isinstance(node, ScalarNode):
            return self._scalar(node, place if node.value or node.style else key)
        if id(node) in self._open:
            self._complain(key, "an alias that contains itself", "write the value out")
            return Scalar("", key)
        if self.nodes > MAX_NODES:
            return Scalar("", place)
        self._open.add(id(node))
        if isinstance(node, MappingNode):
            tree: Tree = self.mapping(node)
        else:
            assert isinstance(node, SequenceNode)
            tree = Items(place)
            tree.extend(self._tree(entry, self._place(entry)) for entry in node.value)
        self._open.discard(id(node))
        return tree

    def _scalar(self, node: ScalarNode, place: Place) -> Scalar:
        quoted = node.style is not None
        text = quoted or node.tag == "tag:yaml.org,2002:str"
        kind = ScalarKind.TEXT if text else plain_kind(node.value)
        value = _PAIR.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), node.value)
        return Scalar(value, place, kind, quoted, node.start_mark.index, node.end_mark.index)

    def _key(self, node: Node) -> Scalar | None:
        place = self._place(node)
        self._check_tag(node, place)
        if isinstance(node, ScalarNode):
            return self._scalar(node, place)
        self._complain(place, "a key is a single word, not a list or a map")
        return None

    def _merged(self, value: Tree) -> list[Map]:
        maps = [value] if isinstance(value, Map) else value if isinstance(value, Items) else []
        found = [entry for entry in maps if isinstance(entry, Map)]
        if not found or len(found) < len(maps):
            self._complain(value.place, "`<<` merges a map, or a list of maps", "name the anchor of a map")
        return found

    def _check_tag(self, node: Node, place: Place) -> None:
        tag = str(node.tag or "")
        if (tag.startswith("!") and tag != "!") or tag.rpartition(":")[2] not in _TAGS:
            self._complain(place, f"the tag {tag} is not understood", "write the value without a tag")

    def _complain(self, place: Place, message: str, hint: str = "") -> None:
        self.problems.append(Problem(self.file, place.line, place.column, printable(message), printable(hint)))


# YAML's errors, in words for people who do not know how a scanner works

_INDENTATION = "give all entries of one map, or of one list, the same indentation"
_SENTENCES = (
    (r"character '\\t'", "a tab: only spaces may indent a line", "indent with spaces"),
    (r"character '(.)' that cannot start", "a value can't begin with `{0}`", "put the whole value in quotes"),
    (
        "quoted scalar, found unexpected",
        "a quote is opened here and never closed",
        'close it; within \'...\' a quote is written twice, within "..." as \\"',
    ),
    (
        "unknown escape character|expected escape sequence",
        "a backslash within double quotes that does not begin an escape",
        "use single quotes, where a backslash is a backslash",
    ),
    (
        "mapping values are not allowed",
        "a `:` that does not end a key: the line is indented too far, or a value contains `: `",
        "align the keys of a map; put a value with `: ` in quotes, or on lines of its own after `>-`",
    ),
    (
        r"flow (?:sequence|mapping), expected ',' or '(.)'",
        "the closing `{0}` for this is missing, or a comma between two entries",
        "a value that begins with a brace or bracket and is meant as text needs quotes",
    ),
    (
        "found '<scalar>'",
        "text after a value that has ended already",
        "a value that begins with a quote, a brace or a bracket ends at its partner: put all of it in quotes",
    ),
    (
        "expected <block end>|expected '<document start>'",
        "indented differently from the lines that it belongs to",
        _INDENTATION,
    ),
    (
        "found undefined alias '?([^']*)",
        "`*{0}` is read as an alias, but there is no anchor of that name",
        'a pattern that begins with `*` needs quotes: "*{0}"',
    ),
)
"""ruamel.yaml's error (`context, problem`), our message for it, and the hint"""
_OPENED = ("quoted scalar", r"flow (?:")
"""for these errors the place is where the quote or bracket opens, not where the scanner stopped"""


def syntax_problem(error: YAMLError, text: str, file: str) -> Problem:
    """The one mistake that makes the whole file unreadable."""
    if isinstance(error, ReaderError):
        before = text[: error.position]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        message = f"the character U+{ord(text[error.position]):04X} is not allowed in a text file"
        return Problem(file, line, column, message, "is this the right file? it looks like a binary one")
    if not isinstance(error, MarkedYAMLError):
        return Problem(file, 0, 0, f"is not valid YAML: {error}")
    words = ", ".join(part for part in (error.context, error.problem) if part)
    for pattern, message, hint in _SENTENCES:
        if match := re.search(pattern, words):
            mark = error.context_mark if pattern.startswith(_OPENED) else error.problem_mark
            return Problem(file, *_position(mark), message.format(*match.groups()), hint.format(*match.groups()))
    return Problem(file, *_position(error.problem_mark or error.context_mark), f"is not valid YAML: {words}")


def _position(mark: object) -> tuple[int, int]:
    line, column = getattr(mark, "line", None), getattr(mark, "column", None)
    return (0, 0) if line is None or column is None else (line + 1, column + 1)
