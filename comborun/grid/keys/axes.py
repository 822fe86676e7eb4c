"""The keys `policies` and `environments`, and what selects combos of them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema

from comborun.grid.keys.shapes import ONE_OR_MANY, Keys, key
from comborun.grid.keys.values import SCALAR, TEXT, AsWritten, AttributeName, Name
from comborun.grid.yaml_tree import Items, Map, Scalar, ScalarKind

AXIS_OF = {"policy": "policies", "environment": "environments"}
AXES = tuple(AXIS_OF.values())


def _entries(tree: object) -> object:
    """An axis, list or map, as a list of maps with `name` and `attributes`."""
    if isinstance(tree, Map):
        pairs: list[tuple[Any, Any]] = [(tree.written[name], value) for name, value in tree.items()]
    elif isinstance(tree, Items):
        pairs = [(entry, None) for entry in tree]
    else:
        return tree
    bare = [value is None or (isinstance(value, Scalar) and value.kind is ScalarKind.NULL) for _, value in pairs]
    return [
        {"name": name} if alone else {"name": name, "attributes": value}
        for (name, value), alone in zip(pairs, bare, strict=True)
    ]


class AxisEntry(Keys):
    name: Name
    attributes: dict[AttributeName, AsWritten] = Field(default={})
    """values as written, without quotes"""


_AXIS = {
    "anyOf": [
        {"type": "array", "minItems": 1, "items": TEXT},
        {
            "type": "object",
            "minProperties": 1,
            "additionalProperties": {"anyOf": [{"type": "object", "additionalProperties": SCALAR}, {"type": "null"}]},
        },
    ]
}
Axes = Annotated[tuple[AxisEntry, ...], BeforeValidator(_entries), WithJsonSchema(_AXIS)]
Names = Annotated[tuple[Name, ...], ONE_OR_MANY]


class ComboMatch(Keys):
    """Selects combos by policy, by environment, or by both."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    policy: Names = key("a policy of the grid, or a list of them", ())
    environment: Names = key("an environment of the grid, or a list of them", ())

    def meets(self, policy: AxisEntry, environment: AxisEntry) -> bool:
        named = bool(self.policy or self.environment)
        met = not self.policy or policy.name in self.policy
        return named and met and (not self.environment or environment.name in self.environment)


# `policies: {glob: ...}` is read first; then its files take its place
