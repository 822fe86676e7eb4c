"""Names as people are shown them: in quotes where two differ by blanks alone, which a table does not show. Pure.

JSON and CSV have the names as they were recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from types import MappingProxyType
from typing import Any, TypeVar, cast

from comborun.model.work import grouped

T = TypeVar("T")


def in_quotes(*axes: Iterable[str]) -> Mapping[str, str]:
    """Names that look like another one of the same axis, or have blanks that can't be seen, each with quotes."""
    groups = (found for names in axes for found in grouped(names, lambda name: " ".join(name.split())).values())
    return {
        name: f"'{name}'" for found in groups for name in found if len({*found}) > 1 or name != " ".join(name.split())
    }


def with_names(value: T, names: Mapping[str, str]) -> T:
    """With these names replaced where a text is one of them."""
    return with_texts(value, lambda text: names.get(text, text)) if names else value


def with_texts(value: T, changed: Callable[[str], str]) -> T:
    """With every text in it changed, in keys too. What facts say is left: they quote names themselves."""

    def own(value: Any) -> Any:
        if isinstance(value, str):
            return changed(value)
        if isinstance(value, tuple | list):
            return getattr(value, "_make", type(value))(map(own, value))
        if isinstance(value, Mapping):
            return MappingProxyType({own(key): own(one) for key, one in value.items()})
        if is_dataclass(value) and not isinstance(value, type):
            return replace(value, **{one.name: own(getattr(value, one.name)) for one in fields(value) if one.init})
        return value

    return cast("T", own(value))
