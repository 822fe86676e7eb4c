"""The keys of both axes, of what selects and cuts combos, and of comparisons that end early."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema

from comborun.errors import UserError
from comborun.grid.keys.amounts import parse_whole
from comborun.grid.keys.shapes import ONE_OR_MANY, Keys, OrJust, key
from comborun.grid.keys.values import (
    SCALAR,
    TEXT,
    AsWritten,
    AttributeName,
    Line,
    Name,
    Positive,
    Reads,
    Schema,
    line_of,
    number_of,
    scalar_of,
)
from comborun.grid.yaml_tree import Items, Map, Scalar, ScalarKind
from comborun.text import did_you_mean

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


ALL = "all"
AUTO: Literal["auto"] = "auto"
"""the number of shards with which the run ends soonest"""
MOST_SHARDS = 1000
_PAIRS_HINT = "`all`, or pairs such as [[rough, flat]]"


def _shards(tree: object) -> int | Literal["auto"]:
    scalar = scalar_of(tree)
    if scalar.text == AUTO:
        return AUTO
    if scalar.quoted or not scalar.text.isdecimal():
        raise UserError(f"`{scalar.text}` is not a number of shards", "a whole number such as 4, or auto")
    value = parse_whole(scalar.text)
    if not 1 <= value <= MOST_SHARDS:
        raise UserError(f"{value} shards are not possible", f"from 1 to {MOST_SHARDS}, or auto")
    return value


def _alpha(tree: object) -> float:
    value = number_of(tree, "the chance of any wrong claim, such as 0.05")
    if not 0 < value <= 0.5:
        raise UserError(f"`{value:g}` is not a valid chance of error", "above 0 and at most 0.5, usually 0.05")
    return value


def _gap(tree: object) -> float:
    value = number_of(tree, "a difference of success rates, such as 0.1")
    if not 0 < value < 1:
        raise UserError(f"`{value:g}` is not a valid difference of success rates", "above 0 and below 1, such as 0.1")
    return value


def _comparisons(tree: object) -> tuple[tuple[str, str], ...] | None:
    if isinstance(tree, Scalar):
        if line_of(tree) == ALL:
            return None
        hint = did_you_mean(tree.text, (ALL,)) or _PAIRS_HINT
        raise UserError(f"`{tree.text}` is neither `all` nor a list of pairs", hint)
    if not isinstance(tree, Items) or not tree:
        raise UserError("no pairs of policies", _PAIRS_HINT)
    return tuple(_pair(entry) for entry in tree)


def _pair(tree: object) -> tuple[str, str]:
    if not isinstance(tree, Items) or len(tree) != 2:
        raise UserError("a comparison is a pair of policies", "such as [[rough, flat], [rough, blind]]")
    a, b = (line_of(entry) for entry in tree)
    return a, b


Gap = Annotated[float, Gt(0), Lt(1), Reads(_gap)]
_PAIR: Schema = {"type": "array", "minItems": 2, "maxItems": 2, "items": TEXT}
_PAIRS: Schema = {"anyOf": [{"const": ALL}, {"type": "array", "minItems": 1, "items": _PAIR}]}
Shards = Annotated[Annotated[int, Ge(1), Le(MOST_SHARDS)] | Literal["auto"], Reads(_shards)]


class StopKeys(Keys):
    """Comparisons that are tested after every pair of episodes. A decided one starts no new sessions."""

    comparisons: Annotated[tuple[tuple[str, str], ...] | None, Reads(_comparisons, _PAIRS)] = key(
        "`all`, or pairs of policies: [[A, B], ...]"
    )
    alpha: Annotated[float, Gt(0), Le(0.5), Reads(_alpha)] = key(
        "chance of any wrong claim, over all comparisons", 0.05
    )
    n_max: Positive | None = key("most pairs of a comparison; else all episodes")
    environments: Annotated[tuple[Name, ...], ONE_OR_MANY] | None = key("environments in which it applies; else all")
    futility: Gap = key("give up when a difference this large is unlikely", 0.0)
    width: Gap = key("end when the difference's interval is this narrow", 0.0)
    metric: Line = key("compare by the mean of this metric, from 0 to 1, instead of the success rate", "")


StopOr = Annotated[StopKeys, OrJust("comparisons")]
