"""Waits until something changes in folders, without polling."""

from __future__ import annotations

import contextlib
import os
import select
import time

_CHANGES = 0x2 | 0x8 | 0x80 | 0x100 | 0x200  # modify, close after writing, moved to, create, delete
_CLOEXEC_NONBLOCK = 0o2000000 | 0o4000
_LARGEST_EVENT = 4096
_BLIND_S = 0.05
"""seconds between two looks if the kernel can't notify: it has too few watches, or the file system is remote"""


class Changes:
    """Waits until files in these folders are made, written, moved or removed, or until a process ends."""

    def __init__(self, *folders: str, end_of: int = 0) -> None:
        self._fd = notified(folders)
        self._end = process_end(end_of) if end_of else -1
        self._blind = self._fd < 0 or (end_of > 0 and self._end < 0)

    def __enter__(self) -> Changes:  # noqa: PYI034 - Python 3.8 has no Self
        return self

    def __exit__(self, *_: object) -> None:
        for fd in (self._fd, self._end):
            if fd >= 0:
                os.close(fd)

    def wait(self, seconds: float) -> bool:
        """Return after a change or after `seconds`. True: something may have changed, look again."""
        if self._blind:
            time.sleep(max(0.0, min(seconds, _BLIND_S)))
            return True
        watched = [fd for fd in (self._fd, self._end) if fd >= 0]
        ready, _, _ = select.select(watched, [], [], max(0.0, seconds))
        if self._fd in ready:
            with contextlib.suppress(BlockingIOError):
                while len(os.read(self._fd, 65536)) > _LARGEST_EVENT:
                    pass
        return bool(ready)


def notified(folders: tuple[str, ...]) -> int:
    """A descriptor that is readable when something in the folders changes; -1 if the kernel can't notify."""
    try:
        import ctypes

        library = ctypes.pythonapi  # already loaded, with all of libc
        fd: int = library.inotify_init1(_CLOEXEC_NONBLOCK)
        added = [library.inotify_add_watch(fd, os.fsencode(folder), _CHANGES) for folder in folders]
    except (ImportError, OSError, AttributeError):
        return -1
    if fd >= 0 and min(added, default=0) < 0:
        os.close(fd)
        return -1
    return fd


def process_end(pid: int) -> int:
    """A descriptor that is readable when a process has ended; -1 without one: Python 3.8, an old kernel."""
    opened = getattr(os, "pidfd_open", None)
    try:
        return int(opened(pid)) if opened else -1
    except OSError:
        return -1
