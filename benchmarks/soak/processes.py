"""Processes, as comborun's records name them: a pid alone comes again."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Process:
    pid: int
    """0 when a record names none"""
    start: str
    """start time in ticks since boot"""

    @property
    def lives(self) -> bool:
        state, start = fields(self.pid)
        return start == self.start and state not in "ZX"

    def signal(self, number: int) -> None:
        if self.lives:
            send(self.pid, number)


def process_of(record: Mapping[str, str], pid: str, start: str) -> Process:
    """The process that two fields of a record name."""
    return Process(int(record[pid]) if record.get(pid, "").isdecimal() else 0, record.get(start, ""))


def fields(pid: int) -> tuple[str, str]:
    """State and start time of a process; X and nothing when there is none."""
    try:
        told = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return "X", ""
    return told[0], told[19]


def command_line(pid: int) -> str:
    """Its words, each with a zero byte behind it."""
    return _text(Path(f"/proc/{pid}/cmdline"))


def send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def carrying(entry: str, *, whole: bool = True) -> list[Process]:
    """Live processes whose environment holds an entry, or one that begins with it."""
    wanted, found = entry.encode(), []
    for file in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            entries = file.read_bytes().split(b"\0")
            if wanted in entries or (not whole and any(each.startswith(wanted) for each in entries)):
                found.append(Process(int(file.parent.name), fields(int(file.parent.name))[1]))
    return [process for process in found if process.lives]


def holding(folder: Path) -> list[str]:
    """Who has a file below a folder open: pid, program, and the file."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        for file in _open_files(process):
            if file.is_relative_to(folder):
                program = _text(process / "cmdline").replace("\0", " ")
                found.append(f"{process.name} {program}: {file.relative_to(folder)}")
    return sorted(found)


def _open_files(process: Path) -> list[Path]:
    """What it has open; nothing once it has ended: one pattern over /proc would raise where a process ends under it."""
    files = []
    with contextlib.suppress(OSError):
        for link in (process / "fd").iterdir():
            with contextlib.suppress(OSError):
                files.append(link.readlink())
    return files


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return "(ended)"


def kill_all(which: Callable[[], list[Process]], rounds: int = 20) -> None:
    """KILL to all of them at once, and to what they had started just then."""
    for _ in range(rounds):
        found = which()
        if not found:
            return
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for process in found:
                process.signal(number)
        time.sleep(0.01)
