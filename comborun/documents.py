"""JSON documents of values, for `--json` and for programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import PurePath
from typing import Any

from comborun.rules.facts import Fact
from comborun.rules.results.fields import Field, ResultRules


def as_data(value: Any) -> Any:
    """A value as JSON data: a dataclass or a named tuple is an object with a key for each field."""
    if isinstance(value, Fact):
        return value.as_data()
    if isinstance(value, ResultRules):  # with what is as by default, too
        return {key: as_data(getattr(value, key)) for key in value.__slots__}
    if isinstance(value, Field):
        return value.as_data()
    if is_dataclass(value):
        return {field.name: as_data(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple) and (names := getattr(value, "_fields", ())):
        return {name: as_data(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {str(key): as_data(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, frozenset)):
        return [as_data(one) for one in value]
    return str(value) if isinstance(value, (str, PurePath)) else value


def chosen(value: object, *names: str, **renamed: str) -> dict[str, Any]:
    """The object of some attributes of a value; `renamed`: attribute -> its key, where that has another name."""
    keys = {**{name: name for name in names}, **renamed}
    return {key: as_data(getattr(value, name)) for name, key in keys.items()}
