"""Reads values that Python programs print, without running anything. Pure."""

from __future__ import annotations

import ast
import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DEPTH_LIMIT = 50
"""of printed lists and objects"""
_NAMES = {"True_": True, "False_": False, "nan": float("nan"), "inf": float("inf")}
_CONTAINERS = ("array", "tensor", "list", "tuple", "deque")
_NUMBERS = ("bool", "int", "float", "scalar")


def printed(text: str) -> Any:
    """The value that a Python program printed. Tuples become lists, and what can't be read None.

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
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, (str, int, float)) else None
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return [_value(entry, depth + 1) for entry in node.elts]
    if isinstance(node, ast.Dict):  # keys that are no text name nothing
        named = [(key.value, one) for key, one in zip(node.keys, node.values) if isinstance(key, ast.Constant)]
        return {key: _value(one, depth + 1) for key, one in named if isinstance(key, str)}
    if isinstance(node, ast.Call) and node.args:
        return _value(node.args[0], depth + 1) if _prints_its_argument(_last_name(node.func)) else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        value = _value(node.operand, depth + 1)
        return (-value if isinstance(node.op, ast.USub) else value) if isinstance(value, (int, float)) else None
    return _NAMES.get(_last_name(node))


def _prints_its_argument(name: str) -> bool:
    return name in _CONTAINERS or name.rstrip("_0123456789").startswith(_NUMBERS)


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
