"""Types of values that the report's JSON document shows in a form of their own. Pure.

Numbers have ten digits, since versions of scipy may differ in more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from math import floor, log10
from typing import Annotated, Any

from comborun.rules.facts import Fact, data_of

DIGITS = 10

Pair = tuple[float, float]


def as_it_is(value: Any) -> Any:
    return value


@dataclass(frozen=True, eq=False)
class Shape:
    schema: Mapping[str, Any]
    write: Callable[[Any], Any] = as_it_is
    """from a value that is not None to that of the document"""


def significant(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def limits(interval: Pair) -> Pair:
    """Of rates and of differences between rates: ten decimals."""
    return round(interval[0], DIGITS), round(interval[1], DIGITS)


def scaled(interval: Pair) -> Pair:
    """Of numbers with any unit: ten decimals or, for small numbers, ten digits."""
    size = max(map(abs, interval))
    decimals = DIGITS + max(0, -1 - floor(log10(size))) if size else DIGITS
    return round(interval[0], decimals), round(interval[1], decimals)


def decimals(count: int) -> Shape:
    return Shape({"type": "number"}, lambda value: round(value, count))


def pair_of(shape: Shape, write: Callable[[Any], Any] | None = None) -> Shape:
    schema = {"type": "array", "items": shape.schema, "minItems": 2, "maxItems": 2}
    return Shape(schema, write or (lambda pair: [*map(shape.write, pair)]))


def instant(timestamp: float | None) -> datetime | None:
    """Seconds since 1970 as UTC; None for what no calendar holds."""
    if timestamp is None:
        return None
    try:
        return datetime.fromtimestamp(timestamp, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _moment(timestamp: float) -> str | None:
    moment = instant(timestamp)
    return None if moment is None else moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


_MOMENT = {"type": ["string", "null"], "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z$"}

Share = Annotated[float, Shape({"type": "number", "minimum": 0, "maximum": 1})]
Rounded = Annotated[float, Shape({"type": "number", "minimum": -1, "maximum": 1}, significant)]
"""a p-value, a rate, or a difference of rates"""
FourDecimals = Annotated[float, decimals(4)]
TenDecimals = Annotated[float, decimals(DIGITS)]
Range = Annotated[Pair, pair_of(Shape({"type": "number"}), scaled)]
"""two values of a metric"""
Seconds = Annotated[float, decimals(3)]
Moment = Annotated[float, Shape(_MOMENT, _moment)]
"""seconds since 1970 on the host's clock; in the document UTC"""
Memory = Annotated[int, Shape({"type": "integer", "minimum": 0}, lambda size: size // 1024)]
"""bytes; in the document KiB"""
TextOrNull = Annotated[str, Shape({"type": ["string", "null"]}, lambda text: text or None)]
"""null where it is empty"""
_FACTS = {
    "type": "array",
    "items": {"type": "object", "required": ["code"], "properties": {"code": {"type": "string"}}},
}
Facts = Annotated[tuple[Fact, ...], Shape(_FACTS, data_of)]
"""codes and fields"""
