"""How full the machine is: memory, disk, load, cores. None means unknown, never 0."""

from __future__ import annotations

import os

from comborun.host import process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Collection, Sequence


def memory_kib() -> tuple[int | None, int | None]:
    """Main memory: total and available."""
    rows = (line.partition(b":") for line in process.read("meminfo").splitlines())
    found = {key: int(rest.split()[0]) for key, _, rest in rows if key in {b"MemTotal", b"MemAvailable"}}
    return found.get(b"MemTotal"), found.get(b"MemAvailable")


def disk_kib(path: str) -> tuple[int | None, int | None]:
    """The file system of `path`: its size, and what this user may still write."""
    try:
        found = os.statvfs(path)
    except OSError:
        return None, None
    return found.f_blocks * found.f_frsize // 1024, found.f_bavail * found.f_frsize // 1024


def load() -> str:
    """The load of the last minute; empty: unknown."""
    try:
        return f"{os.getloadavg()[0]:.2f}"
    except OSError:
        return ""


def cores() -> list[int]:
    """The cores that this process may run on."""
    return sorted(os.sched_getaffinity(0))


def binds() -> bool:
    """Whether processes can be bound to cores."""
    try:
        os.sched_setaffinity(0, os.sched_getaffinity(0))
    except OSError:
        return False
    return True


def allocate_cores(cores: Sequence[int], taken: Collection[int], wanted: int) -> tuple[int, ...]:
    """The lowest free cores, adjacent ones if possible; none if too few are free."""
    free = [core for core in cores if core not in taken]
    if not wanted or len(free) < wanted:
        return ()
    rows = (free[at : at + wanted] for at in range(len(free) - wanted + 1))
    return tuple(next((row for row in rows if row[-1] - row[0] == wanted - 1), free[:wanted]))


def inner_pids() -> bool:
    """Whether we are in a container with pids of its own, so that those of the driver mean nothing here."""
    try:
        return os.readlink("/proc/self/ns/pid") != "pid:[4026531836]"  # of the first namespace of any Linux
    except OSError:
        return True


class Use:
    """The resources that the processes of one attempt hold together."""

    __slots__ = ("kib", "pids", "ticks")

    def __init__(self) -> None:
        self.kib = 0
        """of main memory for themselves; what files and others share is not in it"""
        self.ticks = 0
        """of CPU time so far"""
        self.pids: list[int] = []


def uses() -> dict[str, Use]:
    """By marker, what each attempt of this user's runs holds."""
    found: dict[str, Use] = {}
    for pid in process.pids():
        marker, seen = process.marker_of(pid), process.look(pid)
        if marker and seen:
            use = found.setdefault(marker, Use())
            use.kib += process.own_kib(pid)
            use.ticks += seen.cpu
            use.pids.append(pid)
    return found
