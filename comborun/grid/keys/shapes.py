"""Maps and lists of a grid file: how they may be written, and how a later one is merged into an earlier one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from comborun.errors import UserError
from comborun.grid.keys.values import Reads, Schema
from comborun.grid.yaml_tree import Items, Map, Scalar, ScalarKind
from comborun.text import did_you_mean


class Keys(BaseModel):
    """A map of a grid file. Other keys than its own are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)  # most are built only as parts of others


K = TypeVar("K", bound=Keys)


def key(description: str, default: Any = None, alias: str | None = None) -> Any:
    """A key of a map. Every key has a default, so that no mistake hides another. If it is a class, it is called."""
    if isinstance(default, type):
        return Field(default_factory=default, description=description, alias=alias)
    return Field(default=default, description=description, alias=alias)


def _bracketed(tree: object, kinds: tuple[type[Scalar | Map], ...] = (Scalar,)) -> object:
    if not isinstance(tree, kinds):
        return tree
    items = Items(tree.place)
    items.append(tree)
    return items


def _one_of_many(many: Schema) -> Schema:
    return {"anyOf": [many["items"], many]}


def _is_none(tree: object) -> bool:
    return isinstance(tree, Scalar) and tree.kind is ScalarKind.TEXT and tree.text == "none"


def _map_or_none(tree: object) -> object:
    if isinstance(tree, Scalar) and tree.kind is ScalarKind.TEXT and tree.text != "none":
        hint = did_you_mean(tree.text, ("none",))
        raise UserError(f"expected a map or `none`, found `{tree.text}`", hint)
    return None if _is_none(tree) else tree


def _none_schema(full: Schema) -> Schema:
    return {"anyOf": [{"const": "none"}, full]}


ONE_OR_MANY = Reads(_bracketed, _one_of_many)
"""a single value may be written without brackets"""
ONE_OR_MANY_MAPS = Reads(lambda tree: _bracketed(tree, (Scalar, Map)), _one_of_many)
"""the same where a value may be a map"""
OR_NONE = Reads(_map_or_none, _none_schema)
"""the word `none` may be written instead of a map"""
OR_JUST_NONE = Reads(lambda tree: None if _is_none(tree) else tree, _none_schema)
"""the same together with OrJust"""


class OrJust(Reads):
    """The value of the main key may be written instead of a map."""

    def __init__(self, name: str) -> None:
        super().__init__(lambda tree: {name: tree} if isinstance(tree, Scalar) else tree)
        self._name = name

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> Schema:
        full: Schema = handler(schema)
        main = handler.resolve_ref_schema(full)["properties"][self._name]
        alone = {name: value for name, value in main.items() if name not in {"description", "default"}}
        return {"anyOf": [alone, full]}


def merged(under: K, over: Keys, whole: frozenset[str] = frozenset()) -> K:
    """`under` with every key of `over`; maps are merged key by key, except those in `whole`."""
    changes: dict[str, Any] = {}
    for name in over.model_fields_set & type(under).model_fields.keys():
        below, above = getattr(under, name), getattr(over, name)
        changes[name] = above if name in whole else _both(below, above)
    return under.model_copy(update=changes)


def _both(below: object, above: object) -> object:
    if isinstance(below, Keys) and isinstance(above, Keys):
        return merged(below, above)
    if isinstance(below, Mapping) and isinstance(above, Mapping):
        return {**below, **{name: _both(below.get(name), value) for name, value in above.items()}}
    return above
