"""What the processes of a session do: CPU time that they take, memory that they hold, files that they write."""

from __future__ import annotations

import math
import os
import stat
import time

from comborun.host import process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_SHARE = 1000
"""a search may take one part in so many of the time"""


class Pace:
    """When a search that may take long (many processes, many files) is made again."""

    def __init__(self) -> None:
        self._next = 0.0

    def due(self) -> bool:
        return time.monotonic() >= self._next

    def took(self, began: float) -> None:
        """It began at this time.process_time(): on a machine that is busy it waits more than it works."""
        self._next = time.monotonic() + (time.process_time() - began) * _SHARE


class Activity:
    """The processes that carry a session's marker, from look to look."""

    def __init__(self, marker: str) -> None:
        self._marker = marker
        self._pace = Pace()
        self._ticks: dict[int, int] = {}
        self._per_second = os.sysconf("SC_CLK_TCK")
        self._page_kib = os.sysconf("SC_PAGE_SIZE") // 1024
        self._found_at = math.inf
        """ticks since boot at which they were looked for"""
        self.pids: list[int] = []
        self.peak_kib = 0
        self.stopped = 0
        """how many are held by a signal"""

    def find(self, *, now: bool = False) -> None:
        """Look for new ones: all of /proc, so not in every look."""
        if now or self._pace.due():
            began, ticks = time.process_time(), time.clock_gettime(time.CLOCK_BOOTTIME) * self._per_second
            self.pids = process.marked(self._marker)
            self._pace.took(began)
            self._ticks.update((pid, 0) for pid in self.pids if _started(pid) >= self._found_at)
            self._found_at = ticks

    def look(self) -> float:
        """Seconds of CPU time that they and their dead children took, or waited for, since the last look."""
        before, self._ticks = self._ticks, {}
        ticks = resident = self.stopped = 0
        for pid in self.pids:
            fields = _fields(pid)
            if not fields:
                continue
            total = sum(map(int, fields[11:15])) + int(_waited(pid) * self._per_second)
            self._ticks[pid] = total
            ticks += max(0, total - before.get(pid, total))
            resident += int(fields[21]) * self._page_kib
            self.stopped += fields[0] == b"T"
        self.peak_kib = max(self.peak_kib, resident)
        return ticks / self._per_second


def _waited(pid: int) -> float:
    """Seconds that a process waited for a core: on a machine that is busy, to want one is to work."""
    try:
        with open(f"/proc/{pid}/schedstat", "rb") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


def _started(pid: int) -> int:
    """Ticks since boot."""
    fields = _fields(pid)
    return int(fields[19]) if fields else 0


def _fields(pid: int) -> list[bytes]:
    """A process's line in /proc from its state on; the name before it may hold anything."""
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return []
    try:
        return os.read(fd, 4096).rpartition(b") ")[2].split()
    except OSError:  # it ended just now
        return []
    finally:
        os.close(fd)


def fingerprint(paths: Iterable[str]) -> tuple[int, int, int]:
    """How many files there are, the newest change, and their size: changes when any of them does."""
    count = newest = size = 0
    for path in paths:
        try:
            status = os.stat(path)
        except OSError:
            continue
        count, newest, size = count + 1, max(newest, status.st_mtime_ns), size + status.st_size
    return count, newest, size


def below(folder: str) -> Iterator[str]:
    """Everything in a folder, hidden files and folders too."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        yield entry.path
        if entry.is_dir(follow_symlinks=False):
            yield from below(entry.path)


def tail(path: str, most: int) -> tuple[bytes, bool]:
    """The last bytes of a file, and whether there is more in front of them; nothing where it can't be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return b"", False
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            return b"", False
        start = max(0, status.st_size - most)
        return os.pread(fd, most, start), start > 0
    except OSError:
        return b"", False
    finally:
        os.close(fd)
