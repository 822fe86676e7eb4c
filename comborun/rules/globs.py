"""Finds the files below a folder that match a pattern of the grid, as bash does with globstar. Reads names only.

Hidden files, such as a file that is being written, do not match. `**` does not enter links to folders, so a link such
as `latest` does not give files twice.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from fnmatch import translate
from itertools import islice

_MAGIC = re.compile(r"[*?[]")


def found(directory: str, patterns: Iterable[str]) -> list[str]:
    """Paths below `directory`, each once, in the order of their folders; links that lead nowhere are among them."""
    paths = {path for pattern in patterns for path in matching(directory, pattern)}
    return sorted(paths, key=lambda path: path.split("/"))


def are_more(directory: str, patterns: Iterable[str], most: int) -> bool:
    """Whether the patterns match more paths than a limit; a path that matches twice counts twice."""
    paths = (path for pattern in patterns for path in matching(directory, pattern))
    return sum(1 for _ in islice(paths, most + 1)) > most


def holds_more(directory: str, most: int) -> bool:
    """Whether there are more files and folders below a folder than a limit, so that a search there takes long."""
    return sum(1 for _ in islice(below(directory), most + 1)) > most


def below(directory: str) -> Iterator[str]:
    """A folder, and all files and folders below it, the outer ones first; links are not entered."""
    folders = [] if leads_up(directory) else [directory]
    for folder in folders:  # grows
        yield folder
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    yield entry.path


def matching(directory: str, pattern: str) -> Iterator[str]:
    """Paths below `directory` that match a pattern, some perhaps twice."""
    parts = [part for part in pattern.split("/") if part not in {"", "."}]
    if not parts or ".." in parts:
        return
    if parts[-1] == "**":
        parts.append("*")
    if leads_up(directory):
        return
    parts = [part if part == "**" else re.sub(r"\*\*+", "*", part.replace("[^", "[!")) for part in parts]
    yield from _Search(directory, deep="**" in parts).below("", parts)


def leads_up(directory: str) -> bool:
    """Whether a folder is a link to one that it is in, such as to `/`: a search would go through all of that."""
    if not os.path.islink(directory):
        return False
    target, parent = os.path.realpath(directory), os.path.realpath(os.path.dirname(directory) or ".")
    return os.path.commonpath([target, parent]) == target


def is_file(path: str) -> bool:
    """Whether this is a file, or a link that leads nowhere. A pipe is not: reading it could block."""
    return os.path.isfile(path) or (os.path.islink(path) and not os.path.exists(path))


class _Search:
    def __init__(self, directory: str, deep: bool) -> None:
        self._directory = directory
        self._deep = deep

    def below(self, folder: str, parts: list[str]) -> Iterator[str]:
        part, rest = parts[0], parts[1:]
        if part == "**":
            yield from self.below(folder, rest)
            for name in self._names(folder):
                if self._enters(folder + name):
                    yield from self.below(f"{folder}{name}/", parts)
            return
        for name in self._matches(folder, part):
            if rest:
                if self._enters(folder + name):
                    yield from self.below(f"{folder}{name}/", rest)
            elif is_file(f"{self._directory}/{folder}{name}"):
                yield folder + name

    def _matches(self, folder: str, part: str) -> list[str]:
        if not _MAGIC.search(part):
            return [] if part.startswith(".") else [part]
        fits = re.compile(translate(part)).match
        return [name for name in self._names(folder) if fits(name)]

    def _names(self, folder: str) -> list[str]:
        try:
            return [name for name in os.listdir(f"{self._directory}/{folder}") if not name.startswith(".")]
        except OSError:
            return []

    def _enters(self, path: str) -> bool:
        full = f"{self._directory}/{path}"
        return os.path.isdir(full) and not (self._deep and os.path.islink(full))
