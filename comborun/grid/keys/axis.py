"""The keys of a grid file for its two axes, and for which of their products are meant."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema

from comborun.grid.keys.shapes import Keys, OneOrMany
from comborun.grid.keys.values import AsWritten, AttributeName, Name
from comborun.grid.yaml_tree import Items, Kind, Map, Scalar


def _entries(tree: object) -> object:
    """An axis, list or map, as a list of maps with `name` and `attributes`."""
    if isinstance(tree, Map):
        pairs: list[tuple[Any, Any]] = [(tree.written[name], value) for name, value in tree.items()]
    elif isinstance(tree, Items):
        pairs = [(entry, Scalar("", tree.place, Kind.NULL)) for entry in tree]
    else:
        return tree
    return [
        {"name": name} if isinstance(value, Scalar) and value.kind is Kind.NULL else _entry(name, value)
        for name, value in pairs
    ]


def _entry(name: Scalar, value: object) -> dict[str, object]:
    return {"name": name, "attributes": value}


class AxisEntry(Keys):
    name: Name
    attributes: dict[AttributeName, AsWritten] = Field(default={})


_ATTRIBUTES = {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}
_AXIS = {
    "anyOf": [
        {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}},
        {
            "type": "object",
            "minProperties": 1,
            "additionalProperties": {"anyOf": [_ATTRIBUTES, {"type": "null"}]},
        },
    ]
}
AxisEntries = Annotated[tuple[AxisEntry, ...], BeforeValidator(_entries), WithJsonSchema(_AXIS)]
Names = Annotated[tuple[Name, ...], OneOrMany()]


class Match(Keys):
    """Combos: those of a policy (or several), of an environment (or several), or where both meet."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    policy: Names = Field(default=(), description="a policy of the grid, or a list of them")
    environment: Names = Field(default=(), description="an environment of the grid, or a list of them")
