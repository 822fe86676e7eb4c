"""Keys of the report's JSON documents. Pure.

A key has its shape, what it means, and where its value is, all in one place. A document and its schema are both made
from the keys, so they can't differ. Numbers have ten digits, since versions of scipy may differ in more.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from math import floor, log10
from typing import TYPE_CHECKING, Any

from comborun.reporter.text import instant
from comborun.rules.vocabulary import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

DIGITS = 10
_encoded = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode

Pair = tuple[float, float]


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


def as_json(document: Mapping[str, Any]) -> str:
    """A line for each key, and for each item of a list."""
    lines = (f" {_encoded(key)}: {_listed(value)}" for key, value in document.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _listed(value: object) -> str:
    if not isinstance(value, list | tuple) or not value:
        return _encoded(value)
    return "[\n  " + ",\n  ".join(map(_encoded, value)) + "\n ]"


# -- shapes and keys --------------------------------------------------------------------------------------------------


def _unchanged(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Shape:
    schema: Mapping[str, Any]
    write: Callable[[Any], Any] = _unchanged
    """from the report's value to that of the document; None stays None"""


@dataclass(frozen=True)
class Key:
    name: str
    shape: Shape
    about: str = ""
    of: str | Callable[[Any], Any] = ""
    """where its value is: `rate_a.n`; empty: the attribute of its name"""
    left_out: Callable[[Any], bool] | None = None
    """for which values the document has no such key; None: it always has"""

    def value(self, source: Any) -> Any:
        if callable(self.of):
            return self.of(source)
        for name in (self.of or self.name).split("."):
            source = None if source is None else getattr(source, name)
        return source


def row(keys: Iterable[Key], source: Any) -> dict[str, Any]:
    values = ((key, key.value(source)) for key in keys)
    return {
        key.name: None if value is None else key.shape.write(value)
        for key, value in values
        if not (key.left_out and key.left_out(value))
    }


def table(*keys: Key) -> Shape:
    schema = {
        "type": "object",
        "required": [key.name for key in keys if not key.left_out],
        "properties": {
            key.name: {**({"description": key.about} if key.about else {}), **key.shape.schema} for key in keys
        },
    }
    return Shape(schema, lambda source: row(keys, source))


def list_of(shape: Shape) -> Shape:
    return Shape({"type": "array", "items": shape.schema}, lambda found: [shape.write(one) for one in found])


def by_name(shape: Shape) -> Shape:
    schema = {"type": "object", "additionalProperties": shape.schema}
    return Shape(schema, lambda found: {name: shape.write(value) for name, value in dict(found).items()})


def or_null(shape: Shape) -> Shape:
    schema = dict(shape.schema)
    if "enum" in schema:
        return replace(shape, schema={**schema, "enum": [*schema["enum"], None]})
    return replace(shape, schema={**schema, "type": [schema["type"], "null"]})


def is_none(value: object) -> bool:
    return value is None


def _moment(timestamp: float) -> str | None:
    moment = instant(timestamp)
    return None if moment is None else moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def pair_of(schema: Mapping[str, Any], write: Callable[[Any], Any] = _unchanged) -> Shape:
    return Shape({"type": "array", "items": schema, "minItems": 2, "maxItems": 2}, write)


TEXT = Shape({"type": "string"})
FLAG = Shape({"type": "boolean"})
COUNT = Shape({"type": "integer", "minimum": 0})
SOME = Shape({"type": "integer", "minimum": 1})
NUMBER = Shape({"type": "number"})
NAMES = list_of(TEXT)
SHARE = Shape({"type": "number", "minimum": 0, "maximum": 1})
ROUNDED = replace(SHARE, write=significant)
TEN_DECIMALS = replace(SHARE, write=lambda share: round(share, DIGITS))
GAP = or_null(replace(SHARE, write=lambda gap: round(gap, 4)))
DIFFERENCE = Shape({"type": "number", "minimum": -1, "maximum": 1}, significant)
LIMITS = pair_of({"type": "number"}, limits)
SCALED = pair_of({"type": "number"}, scaled)
FOUR_DECIMALS = pair_of({"type": "number"}, lambda interval: (round(interval[0], 4), round(interval[1], 4)))
COUNTS = pair_of(COUNT.schema)
SECONDS = or_null(Shape({"type": "number", "minimum": 0}, lambda seconds: round(seconds, 3)))
KIB = or_null(replace(COUNT, write=lambda memory: memory // 1024))
MOMENT = or_null(Shape({"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z$"}, _moment))
OUTCOME = or_null(Shape({"enum": [str(outcome) for outcome in Outcome]}))
