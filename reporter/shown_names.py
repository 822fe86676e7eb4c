"""Names as people are shown them: in quotes where two differ by blanks alone, which a table does not show. Pure.

JSON and CSV have the names as they were recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from types import MappingProxyType
from typing import Any, TypeVar

from comborun.model.work import grouped
from comborun.rules.facts import Fact

T = TypeVar("T")


def in_quotes(*axes: Iterable[str]) -> Mapping[str, str]:
    """Names that look like another one of the same axis, or have blanks that can't be seen, each with quotes."""
    groups = (found for names in axes for found in grouped(names, lambda name: " ".join(name.split())).values())
    return {
        name: f"'{name}'" for found in groups for name in found if len({*found}) > 1 or name != " ".join(name.split())
    }


def with_names(value: T, names: Mapping[str, str]) -> T:
    """With these names replaced where a text is one of them. What facts say is left: they quote names themselves."""
    return _renamed(value, names) if names else value


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, Fact):
        return value
    if isinstance(value, tuple | list):
        return getattr(value, "_make", type(value))(_renamed(one, names) for one in value)
    if isinstance(value, Mapping):
        return MappingProxyType({_renamed(key, names): _renamed(one, names) for key, one in value.items()})
    if is_dataclass(value) and not isinstance(value, type):
        changed = {one.name: _renamed(getattr(value, one.name), names) for one in fields(value) if one.init}
        return replace(value, **changed)
    return value
