"""How full the machine is: memory, disk, load, cores. What can't be found out is None, which means unknown, never 0."""

from __future__ import annotations

import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Collection, Sequence


def memory_kib() -> tuple[int | None, int | None]:
    """Main memory in all, and what of it can be had."""
    found: dict[str, int] = {}
    try:
        with open("/proc/meminfo") as file:
            for line in file:
                key, _, rest = line.partition(":")
                if key in {"MemTotal", "MemAvailable"}:
                    found[key] = int(rest.split()[0])
    except (OSError, ValueError, IndexError):
        pass
    return found.get("MemTotal"), found.get("MemAvailable")


def disk_kib(path: str) -> tuple[int | None, int | None]:
    """The file system of `path` in all, and what of it this user may fill."""
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
    """Those that this process may run on."""
    return sorted(os.sched_getaffinity(0))


def binds() -> bool:
    """Whether processes can be bound to cores."""
    try:
        os.sched_setaffinity(0, os.sched_getaffinity(0))
    except OSError:
        return False
    return True


def hand_out(cores: Sequence[int], taken: Collection[int], wanted: int) -> tuple[int, ...]:
    """The lowest free cores, neighbours where there are so many; none where too few are free."""
    free = [core for core in cores if core not in taken]
    if not wanted or len(free) < wanted:
        return ()
    rows = (free[at : at + wanted] for at in range(len(free) - wanted + 1))
    return tuple(next((row for row in rows if row[-1] - row[0] == wanted - 1), free[:wanted]))


def inner_pids() -> bool:
    """Whether our pids are not those of the machine, which the driver tells (in a container)."""
    try:
        return os.readlink("/proc/self/ns/pid") != "pid:[4026531836]"  # of the first namespace of any Linux
    except OSError:
        return True


_MARKER = re.compile(rb"(?:^|\0)COMBORUN_SESSION=([A-Za-z0-9_./@-]+)(?:\0|$)")


def marker_of(pid: int) -> str | None:
    """`run/session/attempt` of a process; empty: it is nobody's of ours. None: there is no such process."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            match = _MARKER.search(file.read())
    except PermissionError:
        return ""
    except OSError:
        return "" if os.path.exists(f"/proc/{pid}") else None
    return match.group(1).decode() if match else ""


def resident_mib() -> dict[str, int]:
    """Marker -> what its processes hold of main memory for themselves; what files and others share is not in it."""
    pages: dict[str, int] = {}
    for name in os.listdir("/proc"):
        if not name.isdecimal():
            continue
        marker = marker_of(int(name))
        if not marker:
            continue
        try:
            with open(f"/proc/{name}/statm") as file:
                _, held, shared, *_ = map(int, file.read().split())
        except (OSError, ValueError):
            continue
        pages[marker] = pages.get(marker, 0) + held - shared
    size = os.sysconf("SC_PAGE_SIZE")
    return {marker: count * size >> 20 for marker, count in pages.items()}
