"""How maps and lists of a grid file may be written: without brackets, as the word `none`, as the value of one key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, ConfigDict
from pydantic_core import core_schema

from comborun.errors import UserError
from comborun.grid.keys.values import refusal
from comborun.grid.yaml_tree import Items, Kind, Scalar
from comborun.text import did_you_mean


class Keys(BaseModel):
    """A map of a grid file: nothing but the keys that are named."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)  # most are built as a part of others only


class OneOrMany:
    """Annotates a tuple: a single value may stand without its brackets."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return core_schema.no_info_before_validator_function(_bracketed, handler(source))

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        many = handler(schema)
        return {"anyOf": [many["items"], many]}


class OrNone:
    """Annotates a map: the word `none` may stand in its place; `just`: or another single value (see OrJust)."""

    def __init__(self, *, just: bool = False) -> None:
        self._just = just

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        read = _any_or_none if self._just else _map_or_none
        return core_schema.no_info_wrap_validator_function(read, handler(source))

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return {"anyOf": [{"const": "none"}, handler(schema["schema"])]}


class OrJust:
    """Annotates a map: the value of its most important key may stand in its place."""

    def __init__(self, key: str, schema: dict[str, Any]) -> None:
        self._key = key
        self._schema = schema

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return core_schema.no_info_before_validator_function(self._keyed, handler(source))

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return {"anyOf": [self._schema, handler(schema)]}

    def _keyed(self, tree: object) -> object:
        return {self._key: tree} if isinstance(tree, Scalar) else tree


def _bracketed(tree: object) -> object:
    if not isinstance(tree, Scalar):
        return tree
    items = Items(tree.place)
    items.append(tree)
    return items


def _any_or_none(tree: object, handler: Callable[[object], Any]) -> Any:
    none = isinstance(tree, Scalar) and tree.kind is Kind.TEXT and tree.text == "none"
    return None if none else handler(tree)


def _map_or_none(tree: object, handler: Callable[[object], Any]) -> Any:
    if isinstance(tree, Scalar) and tree.kind is Kind.TEXT:
        if tree.text == "none":
            return None
        hint = did_you_mean(tree.text, ("none",))
        raise refusal(UserError(f"`{tree.text}` where a map or the word `none` belongs", hint))
    return handler(tree)
