"""Presets of model servers, each laid below an entry of a grid's `servers`."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from comborun.errors import GridError, UserError
from comborun.grid.layering import Preset, merge, read_preset
from comborun.grid.yaml_tree import Kind, Map, Scalar, Source, Tree
from comborun.preset import find_preset

if TYPE_CHECKING:
    from pathlib import Path

_MERGED = frozenset({"variables", "resources", "attributes"})
"""maps that are merged key by key"""


def with_server_presets(source: Source, folder: Path) -> Source:
    """The grid with the keys of each server's preset below its own. Raises GridError where one can't be used."""
    servers = source.root.get("servers")
    if not isinstance(servers, Map):
        return source
    entries: dict[str | int, Tree] = {}
    layers = dict(source.layers)
    for name, entry in servers.items():
        wanted = entry.get("preset") if isinstance(entry, Map) else None
        if isinstance(entry, Map) and isinstance(wanted, Scalar) and wanted.kind is Kind.TEXT:
            entries[name], layers = _laid_below(source, name, entry, wanted, folder, layers)
        else:
            entries[name] = entry
    root = source.root.holding({**dict(source.root.items()), "servers": servers.holding(entries)})
    return replace(source, root=root, layers=MappingProxyType(layers))


def _laid_below(
    source: Source, name: str, entry: Map, wanted: Scalar, folder: Path, layers: dict[str, str]
) -> tuple[Map, dict[str, str]]:
    try:
        found = find_preset(wanted.text, folder)
        preset = read_preset(found)
        _check_kind(preset)
    except GridError:
        raise
    except UserError as error:
        message = f"`servers.{name}.preset`: {error.message}"
        raise GridError((source.problem(wanted.place, message, error.hint),)) from None
    return merge(entry, preset.source.root, _MERGED), {**layers, preset.file: found.text}


def _check_kind(preset: Preset) -> None:
    if preset.about.kind != "server":
        raise UserError(f"`{preset.name}` is no model server", "`preset` at the top level is for what evaluates")
