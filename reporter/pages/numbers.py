"""Numbers as programs read them, in JSON and CSV alike. Pure.

Ten digits are more than anybody needs, and fewer than versions of scipy may differ in.
"""

from __future__ import annotations

from math import floor, log10

DIGITS = 10


def significant(value: float) -> float:
    """Ten significant digits, so that no p is rounded to 0."""
    return float(f"{value:.{DIGITS}g}")


def limits(interval: tuple[float, float]) -> tuple[float, float]:
    """Of rates and of differences between rates, whose scale is 1: ten decimals."""
    return round(interval[0], DIGITS), round(interval[1], DIGITS)


def scaled(interval: tuple[float, float]) -> tuple[float, float]:
    """Of what has any unit: ten decimals, and where both are small ten digits of the larger one."""
    size = max(map(abs, interval))
    decimals = DIGITS + max(0, -1 - floor(log10(size))) if size else DIGITS
    return round(interval[0], decimals), round(interval[1], decimals)


def rounded(value: float | None, decimals: int) -> float | None:
    return None if value is None else round(value, decimals)
