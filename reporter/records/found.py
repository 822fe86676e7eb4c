"""Which files below a directory hold results."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


def walk(directory: Path, wanted: Callable[[str], bool]) -> Iterator[Path]:
    """Files whose names are wanted, folder by folder; what is hidden is left out."""
    for folder, folders, names in os.walk(directory):
        folders[:] = sorted(folder for folder in folders if not folder.startswith("."))
        paths = (Path(folder, name) for name in sorted(names) if wanted(name))
        yield from (path for path in paths if _shown(Path(path.name)) and _readable(path))


def _shown(path: Path) -> bool:
    """As the shell's patterns have it: what is hidden is meant for nobody, such as a file being written."""
    return not any(part.startswith(".") for part in path.parts)


def _readable(path: Path) -> bool:
    """Files, and links that lead nowhere, so that they are named; no pipes, which would be waited for."""
    return path.is_file() or (path.is_symlink() and not path.exists())


def distinct(paths: Iterable[Path]) -> Iterator[Path]:
    """Each file once, whatever the number of links to it."""
    seen: set[tuple[int, int]] = set()
    for path in paths:
        status = path.stat() if path.exists() else path.lstat()
        if (status.st_dev, status.st_ino) not in seen:
            seen.add((status.st_dev, status.st_ino))
            yield path


def attempt_in(path: Path) -> int:
    numbers = (part.removeprefix("attempt-") for part in path.parts if part.startswith("attempt-"))
    return next((int(number) for number in numbers if number.isdecimal()), 0)


def broken(path: Path) -> str:
    return "a link that leads nowhere" if path.is_symlink() and not path.exists() else ""


def empty(path: Path) -> bool:
    """What holds nothing yet is no result."""
    return path.exists() and path.stat().st_size == 0
