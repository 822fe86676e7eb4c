"""The machine as the doctor's checks see it; tests can replace its programs and files."""

from __future__ import annotations

import glob
import os
import re
import sys

from comborun.host import commands, files, machine
from comborun.host.incoming import home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Sequence


class Box:
    def __init__(self, root: str, named: Sequence[str] = (), programs: Sequence[str] = (), grid: str = "") -> None:
        self.root = home(root)
        self.named, self.programs = named, programs
        """files and programs that the grid needs"""
        self.grid = grid
        """the grid's needs for preflight.py; empty without a grid"""
        self.temporary = os.environ.get("TMPDIR") or "/tmp"  # noqa: S108 - what is to be examined
        self.slow_s = float(os.environ.get("COMBORUN_DOCTOR_S") or 9)
        """seconds for the driver, which wakes up slowly"""
        self.uid = os.getuid()
        self.user = os.environ.get("USER") or str(self.uid)
        self._system = os.environ.get("COMBORUN_SYSTEM_ROOT", "")

    def ask(self, *command: str, slow: bool = False) -> tuple[int, str]:
        """Run a program that should answer at once, unless it is `slow`; see commands.run."""
        return commands.run(self.slow_s if slow else min(self.slow_s, 5.0), *command, errors=True)

    def has(self, program: str) -> bool:
        return not commands.lack(program)

    def read(self, path: str) -> str:
        return files.read_text(f"{self._system}{path}", 1 << 24)

    def find(self, pattern: str) -> list[str]:
        return sorted(path[len(self._system) :] for path in glob.glob(f"{glob.escape(self._system)}{pattern}"))

    def about(self) -> dict[str, object]:
        release = re.search(r'^PRETTY_NAME="?(.*?)"?$', self.read("/etc/os-release"), re.MULTILINE)
        return {
            "hostname": os.uname().nodename,
            "os": release[1] if release else "",
            "cpus": len(machine.cores()),
            "memory_kib": machine.memory_kib()[0],
            "python": f"{sys.version.split()[0]} {os.path.realpath(sys.executable)}",
            "root": self.root,
        }


def hangs(code: int) -> bool:
    """Whether a program was ended because it did not answer."""
    return code in (124, 137)


def integer(text: str) -> int | None:
    return int(text) if re.fullmatch(r"-?[0-9]{1,18}", text.strip()) else None


def version(text: str) -> tuple[int, ...]:
    """The first dotted number in a text: `tmux 3.3a` is (3, 3)."""
    match = re.search(r"[0-9]{1,9}(\.[0-9]{1,9})*", text)
    return tuple(map(int, match[0].split("."))) if match else ()
