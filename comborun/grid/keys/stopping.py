"""The keys `block`, `shards` and `stop_early`: combos cut into sessions, and comparisons that end early."""

from __future__ import annotations

from typing import Annotated, Literal

from annotated_types import Ge, Gt, Le, Lt

from comborun.errors import UserError
from comborun.grid.keys.shapes import ONE_OR_MANY, Keys, OrJust, key
from comborun.grid.keys.values import TEXT, Name, Positive, Reads, Schema, line_of, number_of, parse_whole, scalar_of
from comborun.grid.yaml_tree import Items, Scalar
from comborun.model.stopping import StopRequest
from comborun.text import did_you_mean

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

    @property
    def request(self) -> StopRequest:
        return StopRequest(**dict(self))


StopOr = Annotated[StopKeys, OrJust("comparisons")]
