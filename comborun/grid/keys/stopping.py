"""The key `stop_early` of a grid file."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, PlainValidator, WithJsonSchema

from comborun.errors import UserError
from comborun.grid.keys.shapes import Keys, OneOrMany, OrJust
from comborun.grid.keys.values import Name, Positive, guarded, line_of, scalar_of
from comborun.grid.yaml_tree import Items, Scalar
from comborun.text import did_you_mean

ALL = "all"
DEFAULT_ALPHA = 0.05


def _alpha(tree: object) -> float:
    text = scalar_of(tree).text
    try:
        value = float(text)
    except ValueError:
        raise UserError(f"`{text}` is no number", "the chance of any wrong claim, such as 0.05") from None
    if not 0 < value <= 0.5:
        raise UserError(f"`{text}` is no chance of error to accept", "above 0 and at most 0.5, mostly 0.05")
    return value


def _comparisons(tree: object) -> tuple[tuple[str, str], ...] | None:
    """None for `all`."""
    if isinstance(tree, Scalar):
        if line_of(tree) == ALL:
            return None
        hint = did_you_mean(tree.text, (ALL,)) or "`all`, or pairs such as [[rough, flat]]"
        raise UserError(f"`{tree.text}` is neither `all` nor a list of pairs", hint)
    if not isinstance(tree, Items) or not tree:
        raise UserError("no pairs of policies", "`all`, or pairs such as [[rough, flat]]")
    return tuple(_pair(entry) for entry in tree)


def _pair(tree: object) -> tuple[str, str]:
    if not isinstance(tree, Items) or len(tree) != 2:
        raise UserError("a comparison is a pair of policies", "such as [[rough, flat], [rough, blind]]")
    a, b = (line_of(entry) for entry in tree)
    return a, b


_PAIRS_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"const": ALL},
        {
            "type": "array",
            "minItems": 1,
            "items": {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "string", "minLength": 1}},
        },
    ]
}
_ALPHA_SCHEMA = {"type": "number", "exclusiveMinimum": 0, "maximum": 0.5}
PolicyPairs = Annotated[
    tuple[tuple[str, str], ...] | None, PlainValidator(guarded(_comparisons)), WithJsonSchema(_PAIRS_SCHEMA)
]
Alpha = Annotated[float, PlainValidator(guarded(_alpha)), WithJsonSchema(_ALPHA_SCHEMA)]


class StopKeys(Keys):
    """Comparisons that are tested after every pair of episodes; what is decided starts nothing new."""

    comparisons: PolicyPairs = Field(default=None, description="`all`, or pairs of policies: [[A, B], ...]")
    alpha: Alpha = Field(default=DEFAULT_ALPHA, description="chance of any wrong claim, over all comparisons")
    n_max: Positive | None = Field(default=None, description="pairs of a comparison, at most; else all episodes")
    environments: Annotated[tuple[Name, ...], OneOrMany()] | None = Field(
        default=None, description="where it holds; else everywhere"
    )


StopOr = Annotated[StopKeys, OrJust("comparisons", _PAIRS_SCHEMA)]
