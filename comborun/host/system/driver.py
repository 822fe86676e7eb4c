"""Calls of nvidia-smi that never block.

A broken driver makes nvidia-smi hang where no signal reaches it. So nothing waits for its end, and it holds none of our
descriptors but the run's lock. While one call hangs, that lock keeps the next call from starting.
"""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Collection, Iterable, Sequence

from comborun.host.system import files
from comborun.host.system.process import setting
from comborun.rules.room.capacity import Card

_LOCK_S, _LOCK_PAUSE_S = 2.0, 0.05
_KILLED_S = 0.2
"""seconds in which a killed process is gone, unless it hangs where no signal reaches it"""
_FREED_LOOK_S = 0.25
TABLE = "--format=csv,noheader,nounits"
CARDS = (TABLE, "--query-gpu=index,uuid,pci.bus_id,memory.used,memory.total,utilization.gpu,driver_version,name")
_HOLDERS = (TABLE, "--query-compute-apps=pid,used_memory")
PROCESSES = ("-q", "-d", "PIDS")
"""this list also has processes that only draw"""


class Question:
    """One call of nvidia-smi. Call `look` when a descriptor is readable, or at `due()`."""

    def __init__(self, arguments: Sequence[str], lock: str = "") -> None:
        self._arguments = tuple(arguments)
        self._lock = lock
        self._child: subprocess.Popen[bytes] | None = None
        self._pipe = -1
        self._text = b""
        self._until = time.monotonic() + _LOCK_S
        self.over = False
        self._ask()

    @property
    def lines(self) -> list[str]:
        """The complete lines so far."""
        return self._text.decode("utf-8", "replace").split("\n")[:-1]

    @property
    def whole(self) -> bool:
        """Whether nvidia-smi ended well, so that the lines are all that there is."""
        return self._child is not None and self._child.returncode == 0

    def descriptors(self) -> list[int]:
        return [self._pipe] if self._pipe >= 0 else []

    def due(self) -> float:
        """When to look again at the latest, by the monotonic clock."""
        return self._until if self._child else min(self._until, time.monotonic() + _LOCK_PAUSE_S)

    def look(self) -> bool:
        if not self.over and not self._child:
            self._ask()
        elif not self.over:
            self._read()
            if not self.over and time.monotonic() >= self._until:
                self._end()
        return self.over

    def close(self) -> None:
        if self._pipe >= 0:
            self._end()
        self.over = True

    def _ask(self) -> None:
        """Start nvidia-smi unless another call is running."""
        holder = -1
        try:
            if self._lock:
                holder = files.lock(self._lock)
                if holder < 0:
                    self.over = time.monotonic() >= self._until
                    return
            self._child = subprocess.Popen(
                ("nvidia-smi", *self._arguments),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                pass_fds=(holder,) if holder >= 0 else (),
                start_new_session=True,
            )
        except (OSError, ValueError):
            self.over = True
            return
        finally:
            if holder >= 0:
                os.close(holder)  # nvidia-smi holds the lock from now on, for as long as it lives
        assert self._child.stdout
        self._pipe = os.dup(self._child.stdout.fileno())
        self._child.stdout.close()
        os.set_blocking(self._pipe, False)
        self._until = time.monotonic() + setting("COMBORUN_GPU_S", 5.0)

    def _read(self) -> None:
        while not self.over:
            try:
                data = os.read(self._pipe, 65536)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            self._text += data
            if not data:
                self._end(closed=True)

    def _end(self, closed: bool = False) -> None:
        """Kill it if it still runs. If no signal reaches it, it is left alone, and holds the lock until it ends."""
        self.over = True
        os.close(self._pipe)
        self._pipe = -1
        child = self._child
        if child is None:
            return
        try:
            child.wait(_KILLED_S if closed else 0)
        except subprocess.TimeoutExpired:
            pass
        else:
            return
        try:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait(_KILLED_S)
        except (OSError, subprocess.TimeoutExpired):
            child.returncode = -signal.SIGKILL  # it will not be waited for


def hear(question: Question) -> list[str]:
    """Wait for an answer. For programs without an event loop."""
    while not question.look():
        select.select(question.descriptors(), [], [], max(0.0, question.due() - time.monotonic()))
    return question.lines


def cards(lines: Iterable[str], missed: Iterable[int] = ()) -> list[Card]:
    """The answer to CARDS. A GPU of `missed` without a row is added with unknown values.

    A GPU that fell off the bus has no row and makes the exit code an error, but the other rows count.
    """
    found = {}
    for line in lines:
        index, *words = (word.strip() for word in line.split(",", 7))
        if len(words) == 7 and re.fullmatch("[0-9]{1,4}", index):
            uuid, bus, *numbers, driver, name = words
            used, total, utilization = (int(word) if re.fullmatch("[0-9]{1,9}", word) else None for word in numbers)
            found[int(index)] = Card(int(index), uuid, name, total, used, driver, bus, utilization)
    return [*found.values(), *(Card(index) for index in missed if index not in found)]


class Processes:
    def __init__(self, lines: Iterable[str]) -> None:
        self.held: list[tuple[str, int, int]] = []
        """bus id of the GPU, pid, MiB"""
        self.listed: set[str] = set()
        """bus ids of the GPUs whose processes are all known"""
        bus = pid = ""
        for line in lines:
            key, _, value = (word.strip() for word in line.partition(" : "))
            number = re.fullmatch("([0-9]{1,9}) MiB", value)
            if match := re.fullmatch(r"GPU ([0-9A-Fa-f:.]+)\s*", line):
                bus = match.group(1)
                self.listed.add(bus)
            elif key == "Process ID":
                pid = value
            elif key == "Used GPU Memory" and number and re.fullmatch("[0-9]{1,9}", pid):
                self.held.append((bus, int(pid), int(number.group(1))))
            elif key == "Used GPU Memory":
                self.listed.discard(bus)


def holders(lock: str = "") -> list[tuple[str, int, int]]:
    """Index, pid and MiB of each process on a GPU, as far as the driver tells. Waits for the answers."""
    held = Processes(hear(Question(PROCESSES, lock))).held
    index_of = {card.bus: str(card.index) for card in cards(hear(Question(CARDS, lock)))} if held else {}
    return [(index_of[bus], pid, mib) for bus, pid, mib in held if bus in index_of]


def still_held(lock: str, pids: Collection[str]) -> list[tuple[str, str]] | None:
    """Which of these processes still hold memory of GPUs, and how many MiB; None without an answer.

    The driver frees the memory of dead ones a moment later, so this waits.
    """
    deadline = time.monotonic() + setting("COMBORUN_GPU_BACK_S", 5.0)
    while True:
        question = Question(_HOLDERS, lock)
        rows = [line.partition(",") for line in hear(question)]
        if not question.whole:
            return None
        held = [(pid, mib.strip()) for pid, _, mib in rows if pid in pids]
        if not held or time.monotonic() >= deadline:
            return held
        time.sleep(_FREED_LOOK_S)
