"""Processes of this machine: their identity, whether they live, and which ones belong to a session.

Pids are reused, so boot id, pid and start time identify a process. A zombie does not live. Every process of a
session carries COMBORUN_SESSION=<run>/<session>/<attempt> in its environment. The marker reaches what has left its
process group, its parent and its terminal.
"""

from __future__ import annotations

import os
import signal
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache

from comborun.host.system import files
from comborun.rules import records
from comborun.rules.machines import BOOT, HOST, MARKS, NAMESPACE, elsewhere

_PR_SET_PDEATHSIG, _PR_SET_NAME, _PR_SET_CHILD_SUBREAPER = 1, 15, 36
_PAUSE_S = 0.05
_STUCK = {
    "D": " (waits for a device or a disk in the kernel: no signal reaches it until that answers)",
    "Z": " (it is dead, and its parent has not taken notice)",
}
"""states in which a process does not end"""
NAME = "comborun"
"""the name of our processes in the process table: `pkill python` does not end them"""


def setting(name: str, default: float) -> float:
    """A number of seconds from the environment; anything else counts as absent."""
    found = records.seconds(os.environ, name)
    return default if found is None else found


class Look:
    """A process, as /proc shows it. `start` is in clock ticks since boot, as text, as in records."""

    __slots__ = ("cpu", "group", "name", "pages", "parent", "session", "start", "state")

    def __init__(self, name: str, fields: list[str]) -> None:
        self.name = name
        self.state = fields[0]
        self.parent = int(fields[1])
        self.group = int(fields[2])
        self.session = int(fields[3])
        self.cpu = sum(map(int, fields[11:15]))
        """clock ticks of CPU time, including children that it has waited for"""
        self.start = fields[19]
        self.pages = int(fields[21])
        """pages of resident memory"""

    @property
    def lives(self) -> bool:
        return self.state not in "ZXx"


def look(pid: object) -> Look | None:
    """Look at a process, by its pid or the text of it; None if there is none."""
    text = str(pid)
    if not (text.isascii() and text.isdecimal()):
        return None
    line = read(f"{text}/stat").decode("utf-8", "replace")
    head, _, rest = line.rpartition(") ")  # the program's name may hold any character
    fields = rest.split()
    return Look(head.partition("(")[2], fields) if len(fields) > 21 else None


def own_kib(pid: int) -> int:
    """KiB of main memory of a process, without shared pages."""
    pages = read(f"{pid}/statm").split()
    return (int(pages[1]) - int(pages[2])) * os.sysconf("SC_PAGE_SIZE") // 1024 if len(pages) > 2 else 0


def read(path: str) -> bytes:
    """A file below /proc; empty if it is gone or unreadable."""
    return files.read_bytes(f"/proc/{path}", files.TABLE_MOST)


def pids() -> Iterator[int]:
    """All processes but this one."""
    own = os.getpid()
    return (int(name) for name in os.listdir("/proc") if name.isdecimal() and int(name) != own)


def table() -> dict[int, Look]:
    """All live processes."""
    looks = {pid: look(pid) for pid in (*pids(), os.getpid())}
    return {pid: seen for pid, seen in looks.items() if seen and seen.lives}


def descendants(roots: Iterable[int], seen: Mapping[int, Look]) -> set[int]:
    """These processes and everything that descends from them."""
    children: dict[int, list[int]] = {}
    for pid, one in seen.items():
        children.setdefault(one.parent, []).append(pid)
    queue, found = list(roots), set()
    while queue:
        pid = queue.pop()
        if pid not in found:
            found.add(pid)
            queue += children.get(pid, [])
    return found


def boot_id() -> str:
    """The id of this boot, or `unknown`."""
    return read("sys/kernel/random/boot_id").decode().strip() or "unknown"


def machine() -> dict[str, str]:
    """The fields of a record that name this machine; see rules/machines.py."""
    try:
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        namespace = ""
    own = {BOOT: boot_id(), HOST: os.uname().nodename, NAMESPACE: namespace.strip("pid:[]")}
    return {**own, **dict(zip(MARKS, _marks()))}


@lru_cache(maxsize=None)
def _marks() -> tuple[str, ...]:
    """See MARKS. An adapter without a device is made by software, such as the one of a container."""
    name = files.read_text("/etc/machine-id", files.TABLE_MOST).strip()
    folder = "/sys/class/net"
    adapters = [f"{folder}/{one}" for one in files.entries(folder) if os.path.exists(f"{folder}/{one}/device")]
    addresses = sorted(files.read_text(f"{one}/address", files.TABLE_MOST).strip() for one in adapters)
    texts = ("" if name == "uninitialized" else name, " ".join(filter(None, addresses)))
    return tuple(f"{zlib.crc32(text.encode('utf-8', 'replace')):08x}" if text else "" for text in texts)


def alive(pid: str, start: str, boot: str) -> bool:
    """Whether a process of a record lives: the same pid, start time and boot."""
    if boot != boot_id():
        return False
    seen = look(pid)
    return seen is not None and seen.start == start and seen.lives


def named(record: Mapping[str, str], of: str = "") -> bool:
    """Whether the process that a record names lives: `pid` and `start`, or `OF` and `OF_start`."""
    pid, start = (of, f"{of}_start") if of else ("pid", "start")
    if elsewhere(record, machine()):
        return False  # the pid is another process here
    return alive(record.get(pid, ""), record.get(start, ""), record.get("boot", ""))


def is_held(pid: object) -> bool:
    """Whether a signal (STOP) holds a process: it lives, and does nothing."""
    seen = look(pid)
    return seen is not None and seen.state == "T"


def identity() -> dict[str, str]:
    """pid, start time and machine of this process, as records hold them."""
    seen = look(os.getpid())
    return {"pid": str(os.getpid()), "start": seen.start if seen else "", **machine()}


def owner(path: str) -> str:
    """The name of the user to whom a process (`/proc/PID`) or a file belongs."""
    try:
        return user(os.stat(path).st_uid)
    except OSError:
        return "?"


def user(uid: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


# Markers


def marker_of(pid: int) -> str | None:
    """`run/session/attempt` of a process; empty if it has none or is another user's, None if it is gone."""
    return variable(pid, "COMBORUN_SESSION")


def variable(pid: object, name: str) -> str | None:
    """The value of a variable with which a process was started; see `marker_of`."""
    environment = read(f"{pid}/environ")
    if not environment and not os.path.exists(f"/proc/{pid}"):
        return None
    _, found, rest = (b"\0" + environment).partition(f"\0{name}=".encode())
    return os.fsdecode(rest.partition(b"\0")[0]) if found else ""


def carries(pid: int, marker: str) -> bool:
    """Whether a process has a marker now. A marker that ends in `/` matches all that begin with it."""
    own = marker_of(pid) or ""
    return own.startswith(marker) if marker.endswith("/") else own == marker


def marked(marker: str) -> list[int]:
    """The processes with a marker: of an attempt (`run/session/attempt`), or of all that begin with it (`run/`); never
    this one.

    The newest are checked first: in a chain of forks, each process lives only for milliseconds.
    """
    return [pid for pid in reversed([*pids()]) if carries(pid, marker)]


# Signals

STOP_STEPS = ((signal.SIGINT, "INT", 15.0), (signal.SIGTERM, "TERM", 10.0), (signal.SIGKILL, "KILL", 20.0))
"""signals that end a command, and the seconds after each"""


def stop_s(word: str, seconds: float) -> float:
    """The seconds after one of these signals."""
    return setting(f"COMBORUN_STOP_{word}_S", seconds)


def send(pid: int, number: int) -> bool:
    """Send a signal; False if the process is gone or another user's."""
    try:
        os.kill(pid, number)
    except (OSError, OverflowError):
        return False
    return True


def send_group(group: int, number: int) -> bool:
    """Send a signal to a process group; False if it is gone."""
    try:
        os.killpg(group, number)
    except (OSError, OverflowError):
        return False
    return True


def send_all(pid: int, number: int) -> None:
    """Send a signal to a command's group, or to the command if it leads no group."""
    if not send_group(pid, number):
        send(pid, number)


def described(pid: int) -> str:
    """Its pid and program, and why no signal ends it, if that shows."""
    seen = look(pid)
    comm = read(f"{pid}/comm").decode("utf-8", "replace").strip()
    return f"{pid} {comm}{_STUCK.get(seen.state, '') if seen else ''}"


def wait(seconds: float, over: Callable[[], bool]) -> bool:
    """Poll until `over()` is true; False after `seconds`."""
    deadline = time.monotonic() + seconds
    while not over():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_PAUSE_S)
    return True


# This process


def set_name() -> None:
    _prctl(_PR_SET_NAME, NAME.encode())


def set_words(words: Iterable[str]) -> None:
    """Show other words as the command line of this process, cut to the length of its own."""
    fields = read("self/stat").rpartition(b") ")[2].split()
    try:
        start, end = int(fields[45]), int(fields[46])
        text = b"\0".join(map(os.fsencode, words))[: end - start - 1]
        memory = os.open("/proc/self/mem", os.O_RDWR | os.O_CLOEXEC)
        os.pwrite(memory, text.ljust(end - start, b"\0"), start)
        os.close(memory)
    except (OSError, ValueError, IndexError):  # best effort
        return


def become_subreaper() -> None:
    """Adopt descendants whose parents end, so that a double fork stays in our process tree."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def end_with_parent(*, yes: bool) -> None:
    """Let the kernel kill this process when its parent ends, also while a signal holds it; or no longer."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL if yes else 0)


def _prctl(option: int, value: bytes | int) -> None:
    """Best effort: without it the marker still finds every process."""
    try:
        import ctypes

        library = ctypes.pythonapi  # already loaded, with all of libc
        argument = ctypes.c_char_p(value) if isinstance(value, bytes) else ctypes.c_ulong(value)
        library.prctl(option, argument, 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        return
