"""The value of `shards`: into how many sessions a combo is cut."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import PlainValidator, WithJsonSchema

from comborun.errors import UserError
from comborun.grid.keys.quantity import parse_whole
from comborun.grid.keys.values import guarded, scalar_of

AUTO: Literal["auto"] = "auto"
"""as many as the host, the predicted times and the program's start-up call for"""
MOST_SHARDS = 1000

ShardCount = int | Literal["auto"]


def _shards(tree: object) -> ShardCount:
    scalar = scalar_of(tree)
    if scalar.text == AUTO:
        return AUTO
    if scalar.quoted or not scalar.text.isdecimal():
        raise UserError(f"`{scalar.text}` is no number of shards", "a whole number such as 4, or auto")
    value = parse_whole(scalar.text)
    if not 1 <= value <= MOST_SHARDS:
        raise UserError(f"{value} shards of a combo", f"from 1 to {MOST_SHARDS}, or auto")
    return value


Shards = Annotated[
    ShardCount,
    PlainValidator(guarded(_shards)),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1, "maximum": MOST_SHARDS}, {"const": AUTO}]}),
]
