"""Long names shortened once, for all that people read; the JSON and the CSV files have them whole. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from comborun.reporter.figures.panel import shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from comborun.reporter.summary import Summary

LONGEST, KEPT = 120, 60
"""characters of a name, and of one that was longer"""
PRINTED = 400
"""characters of a long name where it is explained"""

T = TypeVar("T")


def shorten_names(summary: Summary) -> tuple[Summary, Mapping[str, str]]:
    """The summary with short names, and what they stand for."""
    metrics = (mean.name for combo in summary.combos for mean in combo.metrics)
    kinds = (kind for combo in summary.combos if combo.failures for kind, _ in combo.failures.counts)
    short = _short({*summary.policies, *summary.environments, *metrics, *kinds, summary.run, summary.grid or ""})
    if not short:
        return summary, {}
    long = re.compile("|".join(map(re.escape, sorted(short, key=len, reverse=True))))
    shown = _rewritten(summary, lambda text: long.sub(lambda match: short[match[0]], text))
    return shown, {name: shortened(full, PRINTED) if len(full) > PRINTED else full for full, name in short.items()}


def _short(names: Iterable[str]) -> dict[str, str]:
    """Each long name with a short one of its own."""
    found: dict[str, str] = {}
    for number, name in enumerate(sorted(name for name in names if len(name) > LONGEST), 1):
        found[name] = f"{shortened(name, KEPT)} (name {number})"
    return found


def _rewritten(value: T, rewrite: Callable[[str], str]) -> T:
    """With every long text in it rewritten, keys too."""
    return _any(value, rewrite)  # type: ignore[no-any-return]


def _any(value: Any, rewrite: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return rewrite(value) if len(value) > LONGEST else value
    if isinstance(value, tuple | list):
        return type(value)(_any(one, rewrite) for one in value)
    if isinstance(value, Mapping):
        return MappingProxyType({_any(key, rewrite): _any(one, rewrite) for key, one in value.items()})
    if is_dataclass(value) and not isinstance(value, type):
        changed = {field.name: _any(getattr(value, field.name), rewrite) for field in fields(value) if field.init}
        return replace(value, **changed)
    return value
