"""A printed success rate of n episodes -> how many succeeded. Pure."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

SINGLE_PRECISION = 2.0**-23
"""relative; rates are often means of float32"""

_DECIMALS = re.compile(r"\.(\d*)(?:[eE]([+-]?\d{1,4}))?$")


class RateError(Exception):
    """The text is no rate of these episodes."""


@dataclass(frozen=True)
class Count:
    successes: int
    episodes: int
    complaint: str
    """empty when the rate fits one whole number of successes and no other"""


def count(rate: str, episodes: int, scale: int = 1) -> Count:
    """`scale` is 100 for percent. Raises RateError for what is no rate, or one of no episodes."""
    if episodes <= 0:
        raise RateError(f"a rate of {rate} over {episodes} episodes is no rate")
    try:
        value = float(rate) / scale
    except ValueError:
        raise RateError(f"{rate!r} is no number") from None
    if not 0 <= value <= 1:
        raise RateError(f"{rate} is no rate between 0 and {scale}")
    successes = min(episodes, round(value * episodes))
    distance = abs(value * episodes - successes)
    return Count(successes, episodes, _complaint(rate, distance, episodes, _rounding(rate) / scale))


def agrees(rate: str, successes: int, episodes: int, scale: int = 1) -> bool:
    """Whether a printed rate says the same as counting, as far as its digits go."""
    try:
        value = float(rate) / scale
    except ValueError:
        return False
    return abs(value - successes / episodes) <= _rounding(rate) / scale + SINGLE_PRECISION if episodes else False


def _complaint(rate: str, distance: float, episodes: int, rounding: float) -> str:
    if distance > rounding * episodes + SINGLE_PRECISION * episodes:
        return f"a rate of {rate} over {episodes} episodes is no whole number of successes: the nearest one counts"
    if rounding * episodes >= 1 - distance:
        return (
            f"the rate {rate} over {episodes} episodes fits more than one number of successes: the nearest one counts"
        )
    return ""


def _rounding(rate: str) -> float:
    """How far the number can be from what was printed: half a unit of its last digit."""
    found = _DECIMALS.search(rate.strip())
    if not found:
        return 0.0
    digits = len(found[1]) - int(found[2] or 0)
    return 0.5 * math.pow(10, -min(digits, 30)) if digits < 17 else 0.0
