"""The values of a grid file for a session's surroundings: `display` and `threads`."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import PlainValidator, WithJsonSchema

from comborun.errors import UserError
from comborun.grid.keys.quantity import parse_whole
from comborun.grid.keys.values import guarded, line_of, scalar_of
from comborun.grid.yaml_tree import Map
from comborun.resources import XVFB, Display

_SHAPES = '`xvfb` for one of its own, ":1" for one that is there, or a map of them: {0: ":1", 1: ":2"}'
UNCAPPED = 0
"""threads: as many as a program likes"""
_GEOMETRY = re.compile(r"([1-9][0-9]{1,4})x([1-9][0-9]{1,4})(?:x(8|16|24|30|32))?")
_NUMBER = re.compile(r":([0-9]{1,5})(\.0)?")
_DISPLAY: dict[str, Any] = {"type": "string", "pattern": r"^:[0-9]{1,5}(\.0)?$"}
_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"enum": [XVFB, "none"]},
        _DISPLAY,
        {
            "type": "object",
            "properties": {XVFB: {"type": "string", "pattern": r"^[1-9][0-9]+x[1-9][0-9]+(x(8|16|24|30|32))?$"}},
            "required": [XVFB],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "minProperties": 1,
            "patternProperties": {"^[0-9]+$": _DISPLAY},
            "additionalProperties": False,
        },
    ]
}


def _display(tree: object) -> Display | None:
    if isinstance(tree, Map):
        return _own(tree) if XVFB in tree else _by_gpu(tree)
    word = line_of(tree)
    if word == "none":
        return None
    return Display(XVFB) if word == XVFB else Display(str(_number(word)))


def _own(tree: Map) -> Display:
    if len(tree) > 1:
        raise UserError("`display` names an own X server and others", _SHAPES)
    text = line_of(tree[XVFB])
    match = _GEOMETRY.fullmatch(text)
    if not match:
        raise UserError(f"`{text}` is no size of a screen", "such as 1280x1024, or 1280x1024x24 with its depth")
    return Display(XVFB, geometry=f"{match[1]}x{match[2]}x{match[3] or 24}")


def _by_gpu(tree: Map) -> Display:
    found = {parse_whole(gpu): _number(line_of(display)) for gpu, display in tree.items()}
    if not found or min(found) < 0:
        raise UserError("`display` is a map from a GPU's index to its X server", _SHAPES)
    return Display(by_gpu=tuple(sorted(found.items())))


def _number(word: str) -> int:
    match = _NUMBER.fullmatch(word)
    if not match:
        raise UserError(f"`{word}` is no display", _SHAPES)
    return int(match[1])


def _threads(tree: object) -> int:
    if scalar_of(tree).text == "none":
        return UNCAPPED
    number = parse_whole(scalar_of(tree).text)
    if number < 1:
        raise UserError(f"{number} threads could do nothing", "at least 1; `none` for as many as a program likes")
    return number


DisplayOr = Annotated[Display | None, PlainValidator(guarded(_display)), WithJsonSchema(_SCHEMA)]
Threads = Annotated[
    int,
    PlainValidator(guarded(_threads)),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, {"const": "none"}]}),
]
