"""The keys `sync` and `secrets`: what happens on the host before the first session starts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import ConfigDict

from comborun.errors import Problem
from comborun.grid.shapes import ONE_OR_MANY, Keys, key
from comborun.grid.values import Pattern, Root, Size, Workdir
from comborun.text import GIB

if TYPE_CHECKING:
    from comborun.grid.draft import Draft

_EVERYBODYS = {"PATH", "HOME", "USER", "SHELL", "LANG", "TERM", "TMPDIR", "SCREENDIR", "TMUX_TMPDIR"}
"""names that can't be secrets, since a secret is removed from the environment of all other processes"""


class SyncKeys(Keys):
    """Files of this machine that are put on the host before the first session starts."""

    model_config = ConfigDict(json_schema_extra={"required": ["from", "to"]})

    source: Workdir | None = key("a folder or a file of this machine; relative to the grid file", alias="from")
    to: Root | None = key("what it becomes on the host")
    exclude: Annotated[tuple[Pattern, ...], ONE_OR_MANY] = key(
        "patterns of what stays here, besides .git, __pycache__, .venv, node_modules, *.pyc", ()
    )
    max_size: Size = key("refuse to ship more than this, in all", GIB)


@dataclass(frozen=True)
class Shipped:
    source: str
    """as written: absolute, below ~/ of this machine, or relative to the grid file's folder"""
    to: str
    """on the host: absolute or below ~/"""
    exclude: tuple[str, ...] = ()
    max_size: int = GIB
    """bytes"""


def launch_problems(draft: Draft) -> Iterator[Problem]:
    """Entries that are incomplete, overlap, or contradict another key."""
    first: dict[str, int] = {}
    for index, entry in enumerate(draft.file.sync):
        for name, value, example in (("from", entry.source, "./scripts"), ("to", entry.to, "~/my_project/scripts")):
            if value is None and "sync" not in draft.broken:
                message = f"an entry of `sync` without `{name}`"
                yield draft.at_value(("sync", index), message, f"such as `{name}: {example}`")
        target = (entry.to or "").rstrip("/")
        if entry.to and not entry.to.endswith("/") and first.setdefault(target, index) != index:
            hint = "give each a place of its own; a `/` at the end puts a file into that folder"
            yield draft.at_value(("sync", index, "to"), f"two entries of `sync` go to `{entry.to}`", hint)
    for name in _EVERYBODYS & draft.file.secrets.keys():
        message = f"{name} is no secret: sessions could not start without it"
        yield draft.at_key(("secrets", name), message, "remove it")
    for path, layer in draft.layers:
        for name in draft.file.secrets.keys() & layer.variables.keys():
            message = f"`{name}` stands under `secrets` too"
            yield draft.at_key((*path, "variables", name), message, "leave it in one of the two")
