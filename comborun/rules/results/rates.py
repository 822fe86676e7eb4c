"""Reads what programs print: success rates over a number of episodes, and Python values. Pure."""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections.abc import Mapping

from comborun.rules.facts import Fact
from comborun.rules.results.fields import NO_RECORD, TEXT_MOST, RefusedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

EPISODES_MOST = 1_000_000
"""of one rate; more cannot be an evaluation"""
SINGLE_PRECISION = 2.0**-23
"""relative; rates are often means of float32"""
_DECIMALS = re.compile(r"\.(\d*)(?:[eE]([+-]?\d{1,4}))?$")


class Count:
    """A number of successes and of episodes. Which ones succeeded is unknown, so nothing can be paired."""

    __slots__ = ("complaint", "environment", "episodes", "metrics", "successes")

    def __init__(self, successes: int, episodes: int, complaint: Fact | None = None) -> None:
        self.successes = successes
        self.episodes = episodes
        self.complaint = complaint
        """None if the printed rate fits exactly one whole number of successes"""
        self.metrics: Mapping[str, float] = {}
        self.environment: str | None = None
        """where the file names one"""

    def of(self, environment: str | None, metrics: Mapping[str, float]) -> Count:
        """The same count, with the environment and the metrics of its file."""
        self.environment, self.metrics = environment, metrics
        return self


def count(rate: str, episodes: int, scale: int = 1) -> Count:
    """How many succeeded, from a printed rate. `scale` is 100 for percent. Raises RefusedError for what is not a rate,
    or one of no episodes."""
    if not 0 < episodes <= EPISODES_MOST:
        raise RefusedError(NO_RECORD, "rate_of_no_episodes", rate=rate[:TEXT_MOST], episodes=episodes)
    try:
        value = float(rate) / scale
    except ValueError:
        raise RefusedError(NO_RECORD, "rate_no_number", rate=rate[:TEXT_MOST]) from None
    if not 0 <= value <= 1:
        raise RefusedError(NO_RECORD, "rate_out_of_range", rate=rate[:TEXT_MOST], most=scale)
    successes = min(episodes, round(value * episodes))
    distance = abs(value * episodes - successes)
    return Count(successes, episodes, _complaint(rate, distance, episodes, _rounding(rate) / scale))


def agrees(rate: str, successes: int, episodes: int, scale: int = 1) -> bool:
    """Whether a printed rate agrees with the count, as far as its digits go."""
    try:
        value = float(rate) / scale
    except ValueError:
        return False
    return abs(value - successes / episodes) <= _rounding(rate) / scale + SINGLE_PRECISION if episodes else False


def whole(number: object) -> int:
    """A number of episodes; tables print 16.0 too. Raises RefusedError."""
    try:
        value = float(str(number))
    except ValueError:
        value = 0.5
    if not value.is_integer():
        raise RefusedError(NO_RECORD, "no_number_of_episodes", said=str(number)[:TEXT_MOST])
    return int(value)


def _complaint(rate: str, distance: float, episodes: int, rounding: float) -> Fact | None:
    if distance > (rounding + SINGLE_PRECISION) * episodes:
        return Fact("rate_no_whole_number", rate=rate, episodes=episodes)
    if rounding * episodes >= 1 - distance:
        return Fact("rate_fits_several", rate=rate, episodes=episodes)
    return None


def _rounding(rate: str) -> float:
    """The largest rounding error of a printed number: half a unit of its last digit."""
    found = _DECIMALS.search(rate.strip())
    if not found:
        return 0.0
    digits = len(found.group(1)) - int(found.group(2) or 0)
    return 0.5 * math.pow(10, -max(-300, min(digits, 30))) if digits < 17 else 0.0


# Values that Python programs print, read without running code

DEPTH_LIMIT = 50
"""of nested printed lists and objects"""
_NAMES = {"True_": True, "False_": False, "nan": float("nan"), "inf": float("inf")}
_CONTAINERS = ("array", "tensor", "list", "tuple", "deque")
_NUMBERS = ("bool", "int", "float", "scalar")


def printed(text: str) -> Any:
    """The value that a Python program printed. Tuples become lists; parts that can't be read become None.

    Numpy and torch print numbers as calls (`np.True_`, `np.float64(0.5)`, `array([True, False])`): the value inside
    counts. Raises ValueError if the whole can't be read.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about odd escapes in the text
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
    if isinstance(node, ast.Dict):  # keys that are not text are left out
        named = [(key.value, one) for key, one in zip(node.keys, node.values) if isinstance(key, ast.Constant)]
        return {key: _value(one, depth + 1) for key, one in named if isinstance(key, str)}
    if isinstance(node, ast.Call) and node.args:
        name = _last_name(node.func)
        prints_its_argument = name in _CONTAINERS or name.rstrip("_0123456789").startswith(_NUMBERS)
        return _value(node.args[0], depth + 1) if prints_its_argument else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        value = _value(node.operand, depth + 1)
        return (-value if isinstance(node.op, ast.USub) else value) if isinstance(value, (int, float)) else None
    return _NAMES.get(_last_name(node))


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
