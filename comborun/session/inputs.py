"""The files that a session reads: text with placeholders, or a map or a list that is written as JSON. Pure.

The text of a file is one bash word, expanded when the session starts: a shard and a retry get their own episodes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from comborun.session.command import placeholders, word
from comborun.session.word import BashWord

FILES = "COMBORUN_FILES"
"""the variable that holds the folder of the files"""
NUMBERS = {"episodes", "first_episode", "last_episode", "end_episode", "episodes_per_rank"} | {
    *("attempt", "gpu", "gpu_count", "port", "egl_device")
}
"""start-time placeholders that are numbers in JSON where a value is nothing else"""

_ALONE = re.compile(r"\{([a-z][a-z0-9_]*(?:\.[A-Za-z0-9_-]+)*)\}")
_NO_TEXT = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?|true|false|null")
_HOME = "~/"


@dataclass(frozen=True)
class Number:
    """A number, true, false or null of a JSON file, as it is written there."""

    text: str


JsonTree = str | Number | tuple["JsonTree", ...] | Mapping[str, "JsonTree"]


@dataclass(frozen=True)
class FileText:
    """What a file holds: `text` as it is, or `tree` as JSON; in both, placeholders."""

    text: str = ""
    tree: JsonTree | None = None

    @property
    def asks(self) -> tuple[str, ...]:
        """The names of its placeholders."""
        pieces = (self.text,) if self.tree is None else _strings(self.tree)
        return tuple(name for piece in pieces for name in placeholders(piece))


def file_word(content: FileText, values: Mapping[str, str]) -> BashWord:
    """The bash word of a file's text; `values` holds the plan-time placeholders."""
    if content.tree is None:
        return word(content.text, values, home=False)
    escaped = {name: json.dumps(value, ensure_ascii=False)[1:-1] for name, value in values.items()}
    return word(_json(content.tree, escaped) + "\n", {**escaped, "home": _HOME}, home=False)


def _json(tree: JsonTree, values: Mapping[str, str], indent: str = "\n") -> str:
    """JSON whose strings still hold their placeholders; its own braces are none, since a name never follows them."""
    deeper = indent + " "
    match tree:
        case Number():
            return tree.text
        case str():
            return _string(tree, values)
        case Mapping():
            entries = [
                f"{json.dumps(key, ensure_ascii=False)}: {_json(value, values, deeper)}" for key, value in tree.items()
            ]
            return "{" + deeper + f",{deeper}".join(entries) + indent + "}" if entries else "{}"
        case _:
            items = [_json(value, values, deeper) for value in tree]
            return "[" + deeper + f",{deeper}".join(items) + indent + "]" if items else "[]"


def _string(text: str, values: Mapping[str, str]) -> str:
    """A value that is one placeholder and nothing else is what the placeholder is, were it written there itself."""
    alone = _ALONE.fullmatch(text)
    if alone and (alone[1] in NUMBERS or _NO_TEXT.fullmatch(values.get(alone[1], ""))):
        return text
    written = json.dumps(text, ensure_ascii=False)
    return f'"{{home}}{written[3:]}' if text.startswith(_HOME) else written


def _strings(tree: JsonTree) -> Iterator[str]:
    match tree:
        case str():
            yield tree
        case Mapping():
            for value in tree.values():
                yield from _strings(value)
        case tuple():
            for value in tree:
                yield from _strings(value)
        case _:
            return
