"""Which scripts a grid's commands name, so that the doctor can look at them on the host. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from comborun.remote.doctor.rendering import XVFB

if TYPE_CHECKING:
    from comborun.grid import Grid
    from comborun.session.display import Display

_SCRIPTS = (".sh", ".bash", ".py")
_MOST = 500
_X_SERVERS = "/tmp/.X11-unix"  # noqa: S108  (of the X protocol, wherever TMPDIR is)


def named_files(grid: Grid, *, local: bool) -> tuple[str, ...]:
    """The scripts in commands and setups, and the sockets of X servers: absolute or below `~/`, each once. What holds a
    placeholder, and what is relative to a folder that is not known, is left out."""
    found: dict[str, None] = {}
    for settings in (grid.settings, *(combo.settings for combo in grid.combos)):
        folder = _folder(settings.workdir, grid, local=local)
        for text in (settings.command, *settings.setup.splitlines(), grid.after or ""):
            found.update(dict.fromkeys(_placed(_scripts(text), folder)))
    found.update(dict.fromkeys(_sockets(grid)))
    return tuple(found)[:_MOST]


def needed_programs(grid: Grid) -> tuple[str, ...]:
    """Programs that its sessions need on the host beside those that comborun itself does."""
    return (XVFB,) if any(display.own for display in _displays(grid)) else ()


def _displays(grid: Grid) -> tuple[Display, ...]:
    return tuple(combo.settings.display for combo in grid.combos if combo.settings.display)


def _sockets(grid: Grid) -> Iterator[str]:
    """Of X servers that have to be there."""
    for display in _displays(grid):
        numbers = [number for _, number in display.by_gpu] or ([] if display.own else [int(display.server)])
        yield from (f"{_X_SERVERS}/X{number}" for number in numbers)


def _folder(workdir: str | None, grid: Grid, *, local: bool) -> str | None:
    if workdir is None or "{" in workdir:
        return None
    if workdir.startswith(("/", "~")):
        return workdir
    return str((grid.path.parent / workdir).resolve()) if local else None


def _scripts(text: str) -> Iterator[str]:
    try:
        words = shlex.split(text, comments=True)
    except ValueError:  # an open quote: text of several lines
        return
    for word in words:
        if word.endswith(_SCRIPTS) and not word.startswith("-") and not set(word) & set("{}$`*?=;|&<>"):
            yield word


def _placed(words: Iterator[str], folder: str | None) -> Iterator[str]:
    for word in words:
        if word.startswith(("/", "~/")):
            yield word
        elif folder is not None:
            yield str(PurePosixPath(folder, word))
