"""What stands in a program's log: its lines as a person would see them, and the values that Python programs print."""

from __future__ import annotations

import ast
import re
import warnings
from typing import TYPE_CHECKING, Any, BinaryIO

from comborun.rules.counting import escape

if TYPE_CHECKING:
    from collections.abc import Iterator

LINE_LIMIT = 4 << 20
"""bytes; the rest of a longer line is passed over without being held in memory"""
DEPTH_LIMIT = 50
"""of printed lists and objects"""
_END = re.compile(rb"[\r\n]")
_NAMES = {"True_": True, "False_": False, "nan": float("nan"), "inf": float("inf")}
_CONTAINERS = ("array", "tensor", "list", "tuple", "deque")
_NUMBERS = ("bool", "int", "float", "scalar")


def lines(stream: BinaryIO) -> Iterator[tuple[int, str]]:
    """Each piece between newlines and carriage returns with the number of the line that it stands on, from 1.

    Pieces that are blank are left out, and so is what steers a terminal.
    """
    number, steers = 1, escape()
    for piece, end in _pieces(stream):
        text = piece.decode("utf-8", "replace")
        text = steers.sub("", text) if "\x1b" in text else text
        if text and not text.isspace():
            yield number, text
        number += end == b"\n"


def _pieces(stream: BinaryIO) -> Iterator[tuple[bytes, bytes]]:
    """Bytes and what ended them; the last ones have no end."""
    rest = b""
    while chunk := stream.read(1 << 16):
        start = 0
        for end in _END.finditer(chunk):
            yield (rest + chunk[start : end.start()])[:LINE_LIMIT], end[0]
            rest, start = b"", end.end()
        if len(rest) < LINE_LIMIT:
            rest += chunk[start:]
    if rest:
        yield rest[:LINE_LIMIT], b""


def printed(text: str) -> Any:
    """The value that a Python program printed; nothing is ever run. Tuples become lists, and what can't be told None.

    Numpy and torch print numbers as calls (`np.True_`, `np.float64(0.5)`, `array([True, False])`): the value inside
    counts. Raises ValueError where the whole can't be read.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of odd escapes in somebody's text
            tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise ValueError("not a printed value") from error
    return _value(tree.body, 0)


def _value(node: ast.expr, depth: int) -> Any:
    if depth > DEPTH_LIMIT:
        raise ValueError("nested too deeply")
    match node:
        case ast.Constant(value=str() | int() | float() as value):
            return value
        case ast.Tuple(elts=entries) | ast.List(elts=entries) | ast.Set(elts=entries):
            return [_value(entry, depth + 1) for entry in entries]
        case ast.Dict(keys=keys, values=values):  # keys that are no text name nothing
            named = [(key.value, one) for key, one in zip(keys, values, strict=True) if isinstance(key, ast.Constant)]
            return {key: _value(one, depth + 1) for key, one in named if isinstance(key, str)}
        case ast.Call(func=function, args=[first, *_]):
            return _value(first, depth + 1) if _prints_its_argument(_last_name(function)) else None
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
            value = _value(operand, depth + 1)
            return (-value if isinstance(sign, ast.USub) else value) if isinstance(value, int | float) else None
    return _NAMES.get(_last_name(node))


def _prints_its_argument(name: str) -> bool:
    return name in _CONTAINERS or name.rstrip("_0123456789").startswith(_NUMBERS)


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
