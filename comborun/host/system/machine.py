"""How full the machine is: memory, disk, load, cores. None means unknown, never 0."""

from __future__ import annotations

import errno
import glob
import os
import resource
from collections.abc import Collection, Sequence

from comborun.host.system import files, process
from comborun.rules.facts import Fact
from comborun.rules.host import Limit

_COUNT_MOST = 18
"""digits of the largest plausible count"""
_START_TAKES = 4
"""processes of a session, at least: its window, its supervisor, its script and its program"""
_LIMITS = {errno.EMFILE: Limit.OPEN_FILES, errno.ENFILE: Limit.MACHINE_FILES, errno.ENOMEM: Limit.MEMORY}


def limit_reached(error: int = 0) -> Fact | None:
    """Why nothing more can be started here now; None if it can be. `error`: the number of an error, or 0; for an error
    that is of no limit, an attempt shows it.
    """
    number = error if error == errno.EAGAIN or error in _LIMITS else _tried()
    return limit_of(number) if number else None


def _tried() -> int:
    """The error of starting as many processes as a session has; 0 where that works."""
    children: list[int] = []
    pipes: list[int] = []
    try:
        for _ in range(_START_TAKES):
            pipes += os.pipe()
            pid = os.fork()
            if not pid:
                os._exit(0)  # it counts until it is waited for
            children.append(pid)
    except OSError as error:
        return error.errno or errno.EAGAIN
    finally:
        for pid in children:
            os.waitpid(pid, 0)
        for fd in pipes:
            os.close(fd)
    return 0


def limit_of(number: int) -> Fact | None:
    """The limit behind an error of the system; None for an error that is of no limit."""
    if number != errno.EAGAIN:
        return Fact(_LIMITS[number]) if number in _LIMITS else None
    most = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    if most == resource.RLIM_INFINITY or threads() + 2 * _START_TAKES < most:
        return Fact(Limit.MACHINE_PROCESSES)
    return Fact(Limit.PROCESSES, most=most)


def threads() -> int:
    """Of all processes of this user."""
    return sum(map(_threads, glob.glob("/proc/[0-9]*/task")))


def _threads(folder: str) -> int:
    try:
        status = os.stat(folder)
    except OSError:
        return 0
    return status.st_nlink - 2 if status.st_uid == os.getuid() else 0


def memory_kib() -> tuple[int | None, int | None]:
    rows = (line.partition(b":") for line in process.read("meminfo").splitlines())
    found = {key: int(rest.split()[0]) for key, _, rest in rows if key in {b"MemTotal", b"MemAvailable"}}
    return found.get(b"MemTotal"), found.get(b"MemAvailable")


def disk_kib(path: str) -> tuple[int | None, int | None]:
    """The file system of `path`: its size, and the room for this user."""
    try:
        found = os.statvfs(path)
    except OSError:
        return None, None
    return found.f_blocks * found.f_frsize // 1024, found.f_bavail * found.f_frsize // 1024


def load() -> float | None:
    try:
        return round(os.getloadavg()[0], 2)
    except OSError:
        return None


def cores() -> list[int]:
    return sorted(os.sched_getaffinity(0))


def binds() -> bool:
    try:
        os.sched_setaffinity(0, os.sched_getaffinity(0))
    except OSError:
        return False
    return True


def allocate_cores(cores: Sequence[int], taken: Collection[int], amount: float) -> tuple[int, ...]:
    """The lowest free cores, adjacent ones if possible; none if too few are free, or a part of one is wanted."""
    free, wanted = [core for core in cores if core not in taken], int(amount)
    if not wanted or wanted != amount or len(free) < wanted:
        return ()
    rows = (free[at : at + wanted] for at in range(len(free) - wanted + 1))
    return tuple(next((row for row in rows if row[-1] - row[0] == wanted - 1), free[:wanted]))


def inner_pids() -> bool:
    """Whether this is a container with its own pids, where the driver's pids mean nothing."""
    try:
        return os.readlink("/proc/self/ns/pid") != "pid:[4026531836]"  # the first namespace of every Linux
    except OSError:
        return True


# Processes that the kernel killed for memory: counted when an attempt begins and when it has failed


def kills() -> str:
    """`GROUP,HOST`: processes killed for memory so far in our control group, and on this machine."""
    group, host = _events(files.read_text("/proc/self/cgroup")), os.environ.get("COMBORUN_VMSTAT", "/proc/vmstat")
    return f"{_count(group)},{_count(host)}"


def kills_since(before: str) -> tuple[int, str]:
    """The number of processes killed since these counts, and where; our control group comes before the machine."""
    group, _, host = before.partition(",")
    group_now, _, host_now = kills().partition(",")
    for first, last, where in ((group, group_now, "group"), (host, host_now, "machine")):
        if _is_count(first) and _is_count(last) and int(last) > int(first):
            return int(last) - int(first), where
    return 0, ""


def _events(groups: str) -> str:
    """The file of the kernel's counts for our control group, of either version."""
    unified = ""
    for entry in groups.splitlines():
        _, controllers, path = [*entry.split(":", 2), "", ""][:3]
        if "memory" in controllers.split(","):
            return f"/sys/fs/cgroup/memory{path}/memory.oom_control"
        if entry.startswith("0::/"):
            unified = f"/sys/fs/cgroup{path}/memory.events"
    return unified


def _count(path: str) -> str:
    for line in files.read_text(path).splitlines() if path else ():
        name, _, value = line.partition(" ")
        if name == "oom_kill" and _is_count(value):
            return value
    return ""


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _COUNT_MOST
