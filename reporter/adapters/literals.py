"""What Python programs print of their values -> these values. Nothing is ever run.

Numpy and torch print numbers as calls (`np.True_`, `np.float64(0.5)`, `array([True, False])`): the value inside counts.
"""

from __future__ import annotations

import ast
import warnings
from typing import Any

DEPTH_LIMIT = 50

_NAMES = {"True_": True, "False_": False, "nan": float("nan"), "inf": float("inf")}
_CONTAINERS = ("array", "tensor", "list", "tuple", "deque")
_NUMBERS = ("bool", "int", "float", "scalar")


class LiteralError(Exception):
    """The text is no printed value."""


def parse(text: str) -> Any:
    """Tuples become lists. What can't be told is None; raises LiteralError where the whole can't be read."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of odd escapes in somebody's text
            tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise LiteralError("not a printed value") from error
    return _value(tree.body, 0)


def _value(node: ast.expr, depth: int) -> Any:
    if depth > DEPTH_LIMIT:
        raise LiteralError("nested too deeply")
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str | int | float | bool) else None
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return [_value(entry, depth + 1) for entry in node.elts]
    if isinstance(node, ast.Dict):
        return _mapping(node, depth)
    if isinstance(node, ast.Call) and node.args:
        return _printed_call(node, depth)
    if isinstance(node, ast.UnaryOp):
        return _signed(node, depth)
    return _NAMES.get(_last_name(node))


def _mapping(node: ast.Dict, depth: int) -> dict[str, Any]:
    """With the keys that are text: others name nothing."""
    pairs = zip(node.keys, node.values, strict=True)
    return {
        key.value: _value(value, depth + 1)
        for key, value in pairs
        if isinstance(key, ast.Constant) and isinstance(key.value, str)
    }


def _printed_call(node: ast.Call, depth: int) -> Any:
    """`array([1, 2], dtype=float32)`, `np.float64(0.5)`: any other call is nobody's value."""
    name = _last_name(node.func)
    known = name in _CONTAINERS or name.rstrip("_0123456789").startswith(_NUMBERS)
    return _value(node.args[0], depth + 1) if known else None


def _signed(node: ast.UnaryOp, depth: int) -> Any:
    value = _value(node.operand, depth + 1)
    if not isinstance(node.op, ast.USub | ast.UAdd) or not isinstance(value, int | float):
        return None
    return -value if isinstance(node.op, ast.USub) else value


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
