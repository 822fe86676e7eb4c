"""What of `files`, `workdir`, `launcher` and `container` holds for a combo, layer by layer."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from comborun.command import Launcher
from comborun.grid.settings import Contained, Linked

if TYPE_CHECKING:
    from collections.abc import Callable

    from comborun.grid.keys.shapes import Keys
    from comborun.grid.model import SettingKeys
    from comborun.grid.settings import Settings


def around_changes(settings: Settings, layer: SettingKeys) -> dict[str, Any]:
    """The settings that a layer sets, merged key by key; `none` takes a launcher or a container away."""
    changes: dict[str, Any] = {}
    if layer.files:
        changes["files"] = MappingProxyType({**settings.files, **layer.files})
    if "workdir" in layer.model_fields_set:
        changes |= _workdir(layer)
    if "launcher" in layer.model_fields_set:
        changes["launcher"] = _merged(
            settings.launcher, layer.launcher, Launcher, ("processes", "arguments", "program")
        )
    if "container" in layer.model_fields_set:
        keys = ("image", "runtime", "mounts", "options")
        changes["container"] = _merged(settings.container, layer.container, Contained, keys)
    return changes


def _workdir(layer: SettingKeys) -> dict[str, Any]:
    keys = layer.workdir
    links = Linked(keys.link_from, keys.exclude) if keys.link_from else None
    return {"workdir": None if links else keys.folder, "links": links}


def _merged(below: Any, keys: Keys | None, made: Callable[..., Any], names: tuple[str, ...]) -> Any:
    if keys is None:
        return None
    base = vars(below) if below else {}
    return made(**{**base, **{name: getattr(keys, name) for name in names if name in keys.model_fields_set}})
