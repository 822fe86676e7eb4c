"""The kernel's counts of processes killed for memory, read when an attempt begins and when it has failed.

The difference shows what happened in between. A count that can't be read is empty, which is no evidence.
"""

from __future__ import annotations

import os

from comborun.host import files

_COUNTS = 18
"""digits of the largest plausible count"""


def kills() -> str:
    """`GROUP,HOST`: processes killed for memory so far in our control group, and on this machine."""
    group, host = _events(files.read_text("/proc/self/cgroup")), os.environ.get("COMBORUN_VMSTAT", "/proc/vmstat")
    return f"{_count(group)},{_count(host)}"


def since(before: str) -> tuple[int, str]:
    """How many were killed since these counts, and where: the own group before the whole machine."""
    group, _, host = before.partition(",")
    group_now, _, host_now = kills().partition(",")
    for first, last, where in ((group, group_now, "in its control group"), (host, host_now, "on this machine")):
        if _number(first) and _number(last) and int(last) > int(first):
            return int(last) - int(first), where
    return 0, ""


def _events(groups: str) -> str:
    """The file in which the kernel counts for our control group, of whichever version there is."""
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
        if name == "oom_kill" and _number(value):
            return value
    return ""


def _number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _COUNTS
