"""Success rates over a number of episodes, from programs that do not report single episodes. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

EPISODES_MOST = 1_000_000
"""of one rate; more is no evaluation but a program gone wrong"""
SINGLE_PRECISION = 2.0**-23
"""relative; rates are often means of float32"""
_DECIMALS = re.compile(r"\.(\d*)(?:[eE]([+-]?\d{1,4}))?$")


class Count:
    """A number of successes and of episodes. Which ones succeeded is unknown, so nothing can be paired."""

    __slots__ = ("complaint", "environment", "episodes", "metrics", "successes")

    def __init__(self, successes: int, episodes: int, complaint: str = "") -> None:
        self.successes = successes
        self.episodes = episodes
        self.complaint = complaint
        """empty when the rate that was printed fits one whole number of successes and no other"""
        self.metrics: Mapping[str, float] = {}
        self.environment: str | None = None
        """where the file names one"""

    def of(self, environment: str | None, metrics: Mapping[str, float]) -> Count:
        """The same, with what its file says besides."""
        self.environment, self.metrics = environment, metrics
        return self


def count(rate: str, episodes: int, scale: int = 1) -> Count:
    """How many succeeded, from a printed rate. `scale` is 100 for percent. Raises ValueError for what is no rate, or
    one of no episodes."""
    if not 0 < episodes <= EPISODES_MOST:
        raise ValueError(f"a rate of {rate} over {episodes} episodes is no rate")
    try:
        value = float(rate) / scale
    except ValueError:
        raise ValueError(f"{rate!r} is no number") from None
    if not 0 <= value <= 1:
        raise ValueError(f"{rate} is no rate between 0 and {scale}")
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


def whole(number: object) -> int:
    """A number of episodes; tables print 16.0 too. Raises ValueError."""
    try:
        value = float(str(number))
    except ValueError:
        raise ValueError(f"{number!r} is no number of episodes") from None
    if not value.is_integer():
        raise ValueError(f"{number} is no number of episodes")
    return int(value)


def _complaint(rate: str, distance: float, episodes: int, rounding: float) -> str:
    claim = f"a rate of {rate} over {episodes} episodes"
    if distance > (rounding + SINGLE_PRECISION) * episodes:
        return f"{claim} is no whole number of successes: the nearest one counts"
    if rounding * episodes >= 1 - distance:
        return f"{claim} fits more than one number of successes: the nearest one counts"
    return ""


def _rounding(rate: str) -> float:
    """How far the number can be from what was printed: half a unit of its last digit."""
    found = _DECIMALS.search(rate.strip())
    if not found:
        return 0.0
    digits = len(found.group(1)) - int(found.group(2) or 0)
    return 0.5 * math.pow(10, -max(-300, min(digits, 30))) if digits < 17 else 0.0
