"""Processes of this machine: which they are, whether they live, and those that carry a session's marker.

A pid comes again, so a process is known by boot id, pid and start time; a zombie does not live. Every process of a
session carries COMBORUN_SESSION=<run>/<session>/<attempt> in its environment. The marker reaches what has left its
process group, its parent and its terminal.
"""

from __future__ import annotations

import os
import signal
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable

_PR_SET_NAME, _PR_SET_CHILD_SUBREAPER = 15, 36
_LOOK_PAUSE_S = 0.05
NAME = "comborun"
"""what our processes are called in the process table, so that a `pkill python` does not end them"""


class Look:
    """What /proc says of a process. `start` is in clock ticks since boot, as text, as in records."""

    __slots__ = ("group", "parent", "session", "start", "state", "ticks")

    def __init__(self, fields: list[str]) -> None:
        self.state = fields[0]
        self.parent = int(fields[1])
        self.group = int(fields[2])
        self.session = int(fields[3])
        self.ticks = int(fields[11]) + int(fields[12])
        """of CPU time, user and system"""
        self.start = fields[19]

    @property
    def lives(self) -> bool:
        return self.state not in "ZXx"


def look(pid: object) -> Look | None:
    """What there is of a process (a number, or the text of one); None when there is no such process."""
    text = str(pid)
    if not (text.isascii() and text.isdecimal()):
        return None
    try:
        with open(f"/proc/{text}/stat", "rb") as file:
            line = file.read().decode("utf-8", "replace")
    except OSError:
        return None
    fields = line.rpartition(") ")[2].split()  # the program's name before them may hold anything, a `)` too
    return Look(fields) if len(fields) > 19 else None


def boot_id() -> str:
    """This boot's id; `unknown` where the kernel does not say."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return "unknown"


def alive(pid: str, start: str, boot: str) -> bool:
    """Whether a process of a record lives: the same pid, start time and boot."""
    if boot != boot_id():
        return False
    seen = look(pid)
    return seen is not None and seen.start == start and seen.lives


def identity() -> tuple[str, str, str]:
    """pid, start time and boot of this process, as records hold them."""
    seen = look(os.getpid())
    return str(os.getpid()), seen.start if seen else "", boot_id()


def uptime() -> float:
    """Seconds since this boot, which no clock that is set can move; what a sleeping machine missed does not count."""
    return time.monotonic()


def marked(marker: str) -> list[int]:
    """The processes of a session's attempt (`run/session/attempt`), or of all whose marker begins so (`run/`).

    This process is not among them; nor are those of other users, whose environment can't be read.
    """
    return [pid for pid in _pids() if carries(pid, marker)]


def carries(pid: int, marker: str) -> bool:
    """Whether a process carries a marker now."""
    wanted = b"COMBORUN_SESSION=" + os.fsencode(marker)
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            environment = file.read()
    except OSError:
        return False
    if wanted not in environment:
        return False
    if marker.endswith("/"):
        return environment.startswith(wanted) or b"\0" + wanted in environment
    return wanted in environment.split(b"\0")


def _pids() -> Iterable[int]:
    own = os.getpid()
    for name in os.listdir("/proc"):
        if name.isdecimal() and int(name) != own:
            yield int(name)


def send(pid: int, number: int) -> bool:
    """Send a signal; False when there is no such process or it is another's."""
    try:
        os.kill(pid, number)
    except (OSError, OverflowError):
        return False
    return True


def send_group(group: int, number: int) -> bool:
    """Send a signal to a process group; False when nothing of it is there."""
    try:
        os.killpg(group, number)
    except (OSError, OverflowError):
        return False
    return True


def gone(marker: str, seconds: float) -> list[int]:
    """Wait until nothing carries a marker; those that still do after `seconds`.

    Two looks in a row must find nothing: one can miss a process that becomes another program just then.
    """
    deadline, clean = time.monotonic() + seconds, 0
    while True:
        left = marked(marker)
        clean = 0 if left else clean + 1
        if clean == 2:
            return []
        if left and time.monotonic() >= deadline:
            return left
        time.sleep(_LOOK_PAUSE_S)


def sweep(marker: str, grace_s: float, term_s: float = 5.0) -> list[int]:
    """End what carries a marker: wait `grace_s`, TERM, wait `term_s`, then KILL; those that survive even that.

    Before KILL each is stopped, until a pass finds nothing that was not stopped: so what forks quickly can't run away.
    """
    if not gone(marker, grace_s):
        return []
    for pid in marked(marker):
        send(pid, signal.SIGTERM)
    if not gone(marker, term_s):
        return []
    stopped = set()
    for _ in range(100):
        fresh = [pid for pid in marked(marker) if pid not in stopped]
        if not fresh:
            break
        for pid in fresh:
            send(pid, signal.SIGSTOP)
        stopped.update(fresh)
    for pid in marked(marker):
        send(pid, signal.SIGKILL)
    return gone(marker, 5.0)


def set_name(name: str = NAME) -> None:
    """Give this process its own name in the process table."""
    _prctl(_PR_SET_NAME, name.encode()[:15])


def become_subreaper() -> None:
    """Become the parent of descendants whose parents end, so that double forks stay ours."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: object) -> None:
    """Best effort: without it the marker still finds every process."""
    try:
        import ctypes

        library = ctypes.CDLL(None, use_errno=True)
        if isinstance(value, bytes):
            library.prctl(option, ctypes.c_char_p(value), 0, 0, 0)
        else:
            library.prctl(option, ctypes.c_ulong(1), 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        return


def let_go(keep: Iterable[int] = (0, 1, 2)) -> None:
    """Close every inherited descriptor but these, in a process that is about to become another program."""
    kept = set(keep)
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in kept:
            try:
                os.close(int(name))
            except OSError:
                continue
