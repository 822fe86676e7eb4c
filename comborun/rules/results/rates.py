"""Reads what programs print: success rates over a number of episodes, and Python values. Pure."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Mapping

from comborun.rules.facts import Fact
from comborun.rules.results.fields import FORMAT, NO_RECORD, TEXT_MOST, RefusedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ast
    from typing import Any, Sequence

SHOWN = 6
"""parts of a document that a refusal names"""
EPISODES_MOST = 1_000_000
"""of one rate; more cannot be an evaluation"""
SINGLE_PRECISION = 2.0**-23
"""relative; rates are often means of float32"""
HALF_PRECISION = 2.0**-8
"""relative; the least exact type of a rate is bfloat16"""
_DECIMALS = re.compile(r"\.(\d*)(?:[eE]([+-]?\d{1,4}))?$")


class Count:
    """A number of successes and of episodes. Which ones succeeded is unknown, so nothing can be paired."""

    def __init__(self, successes: int, episodes: int, complaint: Fact | None = None) -> None:
        self.successes = successes
        self.episodes = episodes
        self.complaint = complaint
        """None if the printed rate fits exactly one whole number of successes"""
        self.metrics: Mapping[str, float] = {}
        self.environment: str | None = None
        """where the file names one"""
        self.sure = True
        """whether a known format says so. Another count is believed only if so many episodes are planned"""
        self.parts: tuple[str, ...] = ()
        """what it was found as, for a message"""

    def of(self, environment: str | None, metrics: Mapping[str, float]) -> Count:
        """The same count, with the environment and the metrics of its file."""
        self.environment, self.metrics = environment, metrics
        return self


def total(counts: Sequence[Count]) -> Count:
    """All of them together; of the metrics that all have, the means weighted by episodes."""
    episodes = sum(one.episodes for one in counts)
    whole = Count(sum(one.successes for one in counts), episodes)
    whole.complaint = next((one.complaint for one in counts if one.complaint), None)
    shared = set.intersection(*(set(one.metrics) for one in counts)) if counts else set()
    whole.metrics = {key: sum(one.metrics[key] * one.episodes for one in counts) / episodes for key in sorted(shared)}
    whole.parts = tuple(part for one in counts for part in one.parts)
    return whole


def goes_on(counts: Sequence[Count]) -> bool:
    """Whether each count holds the one before it, as a program that counts on says it anew after each episode."""
    steps = [(after.successes - one.successes, after.episodes - one.episodes) for one, after in zip(counts, counts[1:])]
    return bool(steps) and all(0 <= good <= of for good, of in steps)


def settled(counts: Sequence[Count], planned: int) -> Count | None:
    """What the counts of an attempt say together: the one with as many episodes as planned, else all of them, if these
    are so many, else the largest of a known format. None if nothing is decided.
    """
    fitting = {(one.successes, one.episodes): one for one in counts if one.episodes == planned}
    if len(fitting) == 1:
        return next(iter(fitting.values()))
    if not fitting and len(counts) > 1 and sum(one.episodes for one in counts) == planned:
        return total(counts)
    return max((one for one in counts if one.sure), key=lambda one: one.episodes, default=None)


def not_settled(counts: Sequence[Count], planned: int) -> RefusedError:
    """The refusal if several counts were found and nothing says which one is right."""
    found = [part for one in counts for part in one.parts][:SHOWN]
    return RefusedError(FORMAT, "several_counts", found=found, planned=planned)


def count(rate: str, episodes: int, scale: int = 1) -> Count:
    """How many succeeded, from a printed rate. `scale` is 100 for percent. Raises RefusedError for what is not a rate,
    for one of no episodes, and for one that no number of successes gives, rounded or cut off."""
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
    if distance > max(_last_digit(rate) / scale, value * HALF_PRECISION) * episodes + SINGLE_PRECISION:
        raise RefusedError(NO_RECORD, "rate_of_no_count", rate=rate[:TEXT_MOST], episodes=episodes)
    return Count(successes, episodes, _complaint(rate, distance, episodes, _rounding(rate) / scale))


def agrees(rate: str, successes: int, episodes: int, scale: int = 1) -> bool:
    """Whether a printed rate agrees with the count, as far as its digits go."""
    try:
        value = float(rate) / scale
    except ValueError:
        return False
    return abs(value - successes / episodes) <= _rounding(rate) / scale + SINGLE_PRECISION if episodes else False


def _complaint(rate: str, distance: float, episodes: int, rounding: float) -> Fact | None:
    if distance > (rounding + SINGLE_PRECISION) * episodes:
        return Fact("rate_no_whole_number", rate=rate, episodes=episodes)
    if rounding * episodes >= 1 - distance:
        return Fact("rate_fits_several", rate=rate, episodes=episodes)
    return None


def _rounding(rate: str) -> float:
    """The largest rounding error of a printed number: half a unit of its last digit."""
    return 0.5 * _last_digit(rate) if _DECIMALS.search(rate.strip()) else 0.0


def _last_digit(rate: str) -> float:
    """A unit of the last digit of a printed number: 1 without a point, 0 with all digits of a double."""
    found = _DECIMALS.search(rate.strip())
    if not found:
        return 1.0
    digits = len(found.group(1)) - int(found.group(2) or 0)
    return math.pow(10, -max(-300, min(digits, 30))) if digits < 17 else 0.0


# Values that Python programs print, read without running code

DEPTH_LIMIT = 50
"""of nested printed lists and objects"""
_NAMES: dict[str, bool | float] = {"True_": True, "False_": False, "true": True, "false": False}
_NAMES.update(dict.fromkeys(("nan", "NaN"), float("nan")), inf=float("inf"), Infinity=float("inf"))
_CONTAINERS = ("array", "tensor", "list", "tuple", "deque")
_NUMBERS = ("bool", "int", "float", "scalar")


def printed(text: str) -> Any:
    """The value that a Python program printed. Tuples become lists; parts that can't be read become None.

    Numpy and torch print numbers as calls (`np.True_`, `np.float64(0.5)`, `array([True, False])`): the value inside
    counts. Raises ValueError if the whole can't be read.
    """
    import ast  # slow to load, and few files hold such values

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about odd escapes in the text
            tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise ValueError("not a printed value") from error
    return _value(tree.body, 0)


def _value(node: ast.expr, depth: int) -> Any:
    import ast

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
    import ast

    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
