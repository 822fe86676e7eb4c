"""Numbers, times and names as people read them, the same in every format. Pure."""

from __future__ import annotations

import re

from comborun.reporter.json_types import instant
from comborun.reporter.statistics.proportion import Proportion
from comborun.text import several

NOTHING = "–"
WHOLE = (-1.0, 1.0)
"""every difference of two rates that there can be: an interval that says nothing"""
_JOINT = re.compile(r"(?<=\d) (?=(?:points|h|min|s)\b|[/%])|(?<=\d /) (?=s\b)|(?<=\bp) (?=[=<≤])|(?<=\bp [=<≤]) (?=\d)")
"""blanks between a number and its unit"""
ROUNDING = 1e-12
"""below it two rates are equal: it is what sums of floating-point numbers leave"""


def fraction(value: float) -> str:
    """A percentage without its sign. Only exactly 0 and 1 are rounded to 0 and 100."""
    if 0 < value < 0.0005:
        return "<0.1"
    if 0.9995 <= value < 1:
        return ">99.9"
    return f"{100 * value:.1f}"


def rate(proportion: Proportion | None) -> str:
    return NOTHING if proportion is None or proportion.rate is None else f"{fraction(proportion.rate)} %"


def per_cent(limits: tuple[float, float] | None) -> str:
    return f"[{fraction(limits[0])}, {fraction(limits[1])}]" if limits else NOTHING


def interval(proportion: Proportion | None) -> str:
    starts = (
        f" of {several(proportion.starts, 'start')}" if proportion and proportion.starts and proportion.interval else ""
    )
    runs = within(proportion.runs) if proportion and proportion.interval else ""
    return per_cent(proportion.interval if proportion else None) + starts + runs


def within(runs: int | None) -> str:
    """` within 3 runs`, behind an interval without the spread between them; empty without several."""
    return f" within {runs} runs" if runs else ""


def of(proportion: Proportion | None) -> str:
    return NOTHING if proportion is None else f"{proportion.successes}/{proportion.n}"


def claim(proportion: Proportion) -> str:
    """A rate with its counts and its interval: `97/100 = 97.0 % [91.5, 99.4]`."""
    if proportion.rate is None:
        return of(proportion)
    return f"{of(proportion)} = {rate(proportion)} {interval(proportion)}"


def number(value: float) -> str:
    """Four significant digits, without an exponent as long as that stays readable."""
    if value == 0:
        return "0"
    if 1e-4 <= abs(value) < 1e4:
        return f"{value:.4g}"
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.3e}"


def numbers(limits: tuple[float, float] | None) -> str:
    return f"[{number(limits[0])}, {number(limits[1])}]" if limits else NOTHING


def with_interval(value: float, interval: tuple[float, float] | None, runs: int | None = None) -> str:
    """`runs`: how many are joined, if several: the interval is without the spread between them."""
    return f"{number(value)} {numbers(interval)}{within(runs)}" if interval else number(value)


def duration(seconds: float | None) -> str:
    if seconds is None:
        return NOTHING
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def clock(timestamp: float | None) -> str:
    moment = instant(timestamp)
    return NOTHING if moment is None else f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def points(difference: float) -> str:
    """A difference of two rates in percentage points, with its sign: `+34.0`, `−0.5`, `0.0`."""
    if abs(difference) < ROUNDING:
        return fraction(0.0)
    return f"{'+' if difference > 0 else '−'}{fraction(abs(difference))}"


def points_interval(limits: tuple[float, float]) -> str:
    if limits == WHOLE:
        return NOTHING
    return f"[{points(limits[0])}, {points(limits[1])}]"


def rank(ranks: tuple[int, int] | None) -> str:
    """From the best rank to the worst: `2 to 5`."""
    if ranks is None:
        return NOTHING
    return f"{ranks[0]} to {ranks[1]}" if ranks[0] < ranks[1] else str(ranks[0])


def p_value(p: float, *, bound: bool = False) -> str:
    """`= 0.041`, `= 0.00052`, `< 0.0001`: two significant digits; `≤ 0.05` for a p of which only a bound is known."""
    return " ".join(_signed(p, bound=bound))


def p_number(p: float, *, bound: bool = False) -> str:
    """The same for a cell: `0.041`, `< 0.0001`, `≤ 0.05`."""
    sign, digits = _signed(p, bound=bound)
    return digits if sign == "=" else f"{sign} {digits}"


def _signed(p: float, *, bound: bool) -> tuple[str, str]:
    if p < 1e-4:
        return "<", "0.0001"
    return ("=", "1") if p > 0.995 else ("≤" if bound else "=", f"{p:.2g}")


def combo_name(policy: str, environment: str) -> str:
    return f"{policy} × {environment}"


def unbroken(sentence: str) -> str:
    """With no-break spaces between numbers and their units."""
    return _JOINT.sub("\u00a0", sentence)
