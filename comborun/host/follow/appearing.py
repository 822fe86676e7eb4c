"""How checkpoints appear: names that match a pattern, and what the kernel tells of their making (inotify)."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator

from comborun.host.follow.checkpoints import mark_of, same_file
from comborun.host.system import files
from comborun.host.system.changes import notified
from comborun.rules.following import step_of

_MOVED, _MODIFIED, _WRITTEN, _CREATED, _FOLDER = 0x80, 0x2, 0x8, 0x100, 0x40000000
_OVERFLOW = 0x4000
"""bits of an event of inotify"""
_HEAD = struct.Struct("iIII")


class Pattern:
    """A path with one `*`, which stands in one name."""

    def __init__(self, text: str) -> None:
        before, _, after = files.home(text).partition("*")
        self.folder, self._before = os.path.split(before)
        self._after, slash, rest = after.partition("/")
        self._rest = slash + rest

    def matched(self, name: str) -> str | None:
        """What the `*` matches in a name of the folder; None for another name."""
        long_enough = len(name) >= len(self._before) + len(self._after)
        if not (long_enough and name.startswith(self._before) and name.endswith(self._after)):
            return None
        return name[len(self._before) : len(name) - len(self._after)]

    def found(self) -> Iterator[tuple[str, str, str]]:
        """For each name in the folder: what the `*` matches, the name, the path."""
        for name in files.entries(self.folder):
            matched = self.matched(name)
            if matched is not None and os.path.lexists(self.path(name)):
                yield matched, name, self.path(name)

    def name(self, path: str) -> str:
        """The name in the folder of such a path; empty for another path."""
        name = path[len(self.folder) + 1 : len(path) - len(self._rest)]
        return name if self.path(name) == path else ""

    def path(self, name: str) -> str:
        return f"{self.folder}/{name}{self._rest}"


class Appearing:
    """Watches the folder of a pattern for names that get there by a rename, or are written in place."""

    def __init__(self, pattern: Pattern) -> None:
        self._pattern = pattern
        self._fd = -1
        self._folder = (0, 0)
        """device and inode of the folder that is watched"""
        self._missed = False
        self.renamed: dict[str, str] = {}
        """name: the mark of what was renamed to it"""
        self.in_place: set[str] = set()
        """names that were written or made where they are"""
        self.told: set[str] = set()
        """names of which something was heard; whoever writes that down empties it"""

    def recall(self, name: str, mark: str, *, renamed: bool) -> None:
        """Take over what an earlier follower of this run has heard of a name, as long as the same file is there."""
        if renamed:
            self.renamed[name] = mark
        elif same_file(mark, self._pattern.path(name)):
            self.in_place.add(name)

    @property
    def fd(self) -> int:
        if self._fd < 0 and os.path.isdir(self._pattern.folder):
            self._folder = _inode(self._pattern.folder)
            self._fd = notified((self._pattern.folder,))
        return self._fd

    def is_deaf(self) -> bool:
        """Whether something may have appeared unheard: the folder is another one, or the kernel told too much at once.
        From now on it is watched anew.
        """
        other = self._fd >= 0 and _inode(self._pattern.folder) != self._folder
        if not (self._missed or other):
            return False
        os.close(self._fd)
        self._fd, self._missed = -1, False
        if other:
            self.renamed.clear()
            self.in_place.clear()
        return True

    def hear(self) -> None:
        if self.fd < 0:
            return
        try:
            while data := os.read(self._fd, 65536):
                self._take(data)
        except BlockingIOError:
            return

    def _take(self, data: bytes) -> None:
        at = 0
        while at < len(data):
            _, mask, _, length = _HEAD.unpack_from(data, at)
            at += _HEAD.size + length
            self._missed = self._missed or bool(mask & _OVERFLOW)
            name = os.fsdecode(data[at - length : at].rstrip(b"\0"))
            matched = self._pattern.matched(name) if name else None
            if matched is None or step_of(matched) is None:
                continue
            in_place = bool(mask & _WRITTEN or (mask & _CREATED and mask & _FOLDER))
            if mask & (_MOVED | _MODIFIED) or in_place:
                self.told.add(name)
            if mask & _MOVED:
                self.renamed[name] = mark_of(self._pattern.path(name))
                self.in_place.discard(name)
            elif mask & _MODIFIED:
                self.renamed.pop(name, None)
            elif in_place:
                self.renamed.pop(name, None)
                self.in_place.add(name)


def _inode(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino
