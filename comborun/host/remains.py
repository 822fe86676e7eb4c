"""The processes that a command leaves behind, and their end.

The supervisor is a child subreaper, so whatever descends from the command stays its descendant, whoever started it and
whatever it did to its environment. The marker finds what came there in another way.
"""

from __future__ import annotations

import os
import signal

from comborun.host import process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

    Wait = Callable[[float, Callable[[], bool]], bool]

_OUR_QUESTIONS = ("nvidia-smi", "dmesg")
"""one that hangs in the driver can't be ended"""
_PASSES = 1000
_LOOKS = 3
"""in a row that find nothing"""


class Remains:
    """Those of one attempt. `wait(seconds, over)` lets time pass until `over()`, and tells whether it is."""

    def __init__(self, marker: str, wait: Wait) -> None:
        self._marker = marker
        self._wait = wait

    @staticmethod
    def alone() -> bool:
        """Whether this process has no child at all, and so no descendant of its command."""
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return True
        return False

    def of_group(self, group: int) -> int:
        """How many of a process group live."""
        if not process.send_group(group, 0):
            return 0
        looks = (process.look(pid) for pid in _pids())
        return sum(look.group == group and look.lives for look in looks if look)

    def find(self) -> list[int]:
        """All that live."""
        if self.alone():
            return []
        found = set(process.marked(self._marker))
        found.update(_descendants())
        return sorted(found)

    def end(self, grace_s: float, term_s: float) -> tuple[int, list[int]]:
        """How many did not end by themselves within their grace, and those that survived even KILL."""
        if self._wait(grace_s, self._gone):
            return 0, []
        left = self.find()
        for pid in left:
            process.send(pid, signal.SIGTERM)
            process.send(pid, signal.SIGCONT)  # what was stopped hears nothing else
        if not self._wait(term_s, self._gone):
            self._kill()
        return len(left), [] if self._wait(5.0, self._gone) else self.find()

    def _gone(self) -> bool:
        """One look can miss a process that leaves a child and ends just then; that there is no child is certain."""
        return self.alone() or not any(self.find() for _ in range(_LOOKS))

    def _kill(self) -> None:
        """Stop all before any is killed, until none is new: so those that fork quickly can't run away."""
        stopped: set[int] = set()
        missed = 0
        for _ in range(_PASSES):
            # The children that the kernel lists are known at once; by the marker is slower than some programs fork.
            fresh = set(_descendants()) - stopped or set(self.find()) - stopped
            missed = 0 if fresh else missed + 1
            if missed == _LOOKS:
                break
            for pid in fresh:
                process.send(pid, signal.SIGSTOP)
            stopped |= fresh
        for pid in self.find():
            process.send(pid, signal.SIGKILL)


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def _descendants() -> list[int]:
    """Those of this process that live, without its own questions to the driver."""
    found: list[int] = []
    pids = [pid for pid in _children(os.getpid()) if _name(pid) not in _OUR_QUESTIONS]
    while pids:
        found += pids
        pids = [child for pid in pids for child in _children(pid)]
    return [pid for pid in found if _lives(pid)]


def _children(pid: int) -> list[int]:
    """Of all threads of a process."""
    folder, found = f"/proc/{pid}/task", []
    try:
        for thread in os.listdir(folder):
            with open(f"{folder}/{thread}/children", "rb") as file:
                found += [int(child) for child in file.read().split()]
    except OSError:  # it is gone, or the kernel keeps no such list
        if not os.path.exists(f"/proc/self/task/{os.getpid()}/children"):
            return [one for one in _pids() if _parent(one) == pid]
    return found


def _parent(pid: int) -> int:
    look = process.look(pid)
    return look.parent if look else 0


def _lives(pid: int) -> bool:
    look = process.look(pid)
    return look is not None and look.lives


def _name(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm") as file:
            return file.read().strip()
    except OSError:
        return ""
