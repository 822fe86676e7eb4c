"""Ends the processes that a session has left behind."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence

from comborun.host.system import ownership, process

_LOOKS = 3
"""searches in a row that must find nothing: one can miss a process that is just forking or starting another program"""
_PASSES = 1000
_KILLED_S = 5.0
_CONTAINER_S = 20.0


def end_container(runtime: str, marker: str) -> None:
    """End the container of an attempt. A missing one is not an error.

    A container of docker belongs to its daemon: its processes are not our children, and they outlive the client, as
    those of podman do. So it has the name of its attempt, and is removed by that name. The processes of apptainer are
    our children.
    """
    if runtime in ("docker", "podman"):
        from comborun.host.system import commands

        name = f"comborun-{marker.replace('/', '-')}"
        commands.run(_CONTAINER_S, runtime, "rm", "--force", name)


def sweep(marker: str, grace_s: float, known: Sequence[ownership.Root] = ()) -> list[int]:
    """End all processes of a marker; returns the pids that survive. `known`: see ownership.py."""
    return end(lambda: ownership.members(marker, known), process.wait, grace_s, 5.0)[1]


def end(
    find: Callable[[], Iterable[int]],
    wait: Callable[[float, Callable[[], bool]], bool],
    grace_s: float,
    term_s: float,
    quick: Callable[[], Iterable[int]] = tuple,
) -> tuple[int, list[int]]:
    """End what `find` finds: wait `grace_s`, TERM, wait `term_s`, KILL. `wait` waits some seconds for a condition, and
    returns whether it came true.

    Returns how many did not end by themselves, and the pids that survive even KILL. `quick` is a faster search that
    finds most of them, the newest first, and gives each as it finds it.
    """

    def gone() -> bool:
        return not any(list(find()) for _ in range(_LOOKS))

    if wait(grace_s, gone):
        return 0, []
    left = list(find())
    for pid in left:
        process.send(pid, signal.SIGTERM)
        process.send(pid, signal.SIGCONT)  # a stopped process reacts to no other signal
    if not wait(term_s, gone):
        _kill(find, quick)
    return len(left), [] if wait(_KILLED_S, gone) else list(find())


def _kill(find: Callable[[], Iterable[int]], quick: Callable[[], Iterable[int]]) -> None:
    """SIGSTOP all, until a scan finds no new process, then SIGKILL all: else programs that fork fast would escape.

    Each process is stopped where it is found. At the end of a scan it may have been replaced by its child.
    """
    stopped: set[int] = set()

    def stop(found: Iterable[int]) -> bool:
        before = len(stopped)
        for pid in found:
            if pid not in stopped:
                process.send(pid, signal.SIGSTOP)
                stopped.add(pid)
        return len(stopped) > before

    missed = 0
    for _ in range(_PASSES):
        missed = 0 if stop(quick()) or stop(find()) else missed + 1
        if missed == _LOOKS:
            break
    for pid in find():
        process.send(pid, signal.SIGKILL)


class Leftovers:
    """The processes that a command leaves behind. Its supervisor is a child subreaper, so descendants of the command
    stay its descendants; the marker finds other processes of the session.
    """

    def __init__(
        self, marker: str, wait: Callable[[float, Callable[[], bool]], bool], known: Sequence[ownership.Root] = ()
    ) -> None:
        self._marker = marker
        self._known = known
        self._wait = wait

    @staticmethod
    def alone() -> bool:
        """Whether this process has no child at all, and so no descendant of its command."""
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return True
        return False

    @staticmethod
    def of_group(group: int) -> int:
        """The number of live processes in a group."""
        return sum(one.group == group for one in process.table().values()) if process.send_group(group, 0) else 0

    def find(self) -> list[int]:
        return [] if self.alone() else sorted({*ownership.members(self._marker, self._known), *of_this_process()})

    def end(self, grace_s: float, term_s: float) -> tuple[int, list[int]]:
        """The number of processes that did not end by themselves in their grace period, and the pids that survived
        KILL.
        """
        return end(self.find, self._wait, grace_s, term_s, _newest_first)


def of_this_process() -> set[int]:
    """The live descendants of this process, without its own calls of the driver."""
    return set(_newest_first())


def _newest_first() -> Iterator[int]:
    queue = _children(os.getpid())
    own = set(queue)
    while queue:
        pid = queue.pop()  # the kernel lists the newest child last
        one = process.look(pid)
        if pid in own and one and one.name in ownership.OUR_QUESTIONS:
            continue
        queue += _children(pid)
        if one and one.lives:
            yield pid


def _children(pid: int) -> list[int]:
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    return [int(child) for thread in threads for child in process.read(f"{pid}/task/{thread}/children").split()]
