"""Which scripts a grid's commands name, so that the doctor can look at them on the host. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from comborun.grid import Grid

_SCRIPTS = (".sh", ".bash", ".py")
_MOST = 500


def named_files(grid: Grid, *, local: bool) -> tuple[str, ...]:
    """The scripts in commands and setups: absolute or below `~/`, each once. What holds a placeholder, and what is
    relative to a folder that is not known, is left out."""
    found: dict[str, None] = {}
    for settings in (grid.settings, *(combo.settings for combo in grid.combos)):
        folder = _folder(settings.workdir, grid, local=local)
        for text in (settings.command, *settings.setup.splitlines(), grid.after or ""):
            found.update(dict.fromkeys(_placed(_scripts(text), folder)))
    return tuple(found)[:_MOST]


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
