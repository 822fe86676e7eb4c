"""Start a session's script as a child of its supervisor."""

from __future__ import annotations

import os
import sys

from comborun.host import events
from comborun.host.surroundings import bind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Mapping, NoReturn, Sequence

REFUSED = 78
"""exit code of a command that was not started"""


class Command:
    """What is started, and where its output goes."""

    def __init__(self, script: str, log: str, environment: Mapping[str, str], inherited: Sequence[int]) -> None:
        self.script = script
        self.log = log
        self.environment = environment
        self.inherited = inherited
        """descriptors that live as long as the command does: its lock, its port, its display"""
        self.cores = ""
        self.refusal = ""
        """why it is not started after all; told in its log"""

    def start(self) -> int:
        """Its pid. It leads a process session and group of its own. Raises OSError where none can be had."""
        with events.Held():  # a signal that comes just now reaches the program, and not our handlers in its process
            pid = os.fork()
            if not pid:
                try:
                    self._become()
                finally:
                    os._exit(REFUSED)
        return pid

    def _become(self) -> NoReturn:
        """In the child. Its output goes straight to the log, which nothing has to read."""
        os.setsid()
        events.reset_signals()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(os.open(self.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666), 1)
        os.dup2(1, 2)
        for fd in self.inherited:
            os.set_inheritable(fd, True)
        flaw = bind(self.cores)
        if flaw:
            os.write(2, f"comborun: {flaw}\n".encode())
        if self.refusal:
            os.write(2, f"comborun: {self.refusal}\n".encode("utf-8", "surrogateescape"))
            os._exit(REFUSED)
        try:
            os.execvpe("bash", ["bash", self.script], dict(self.environment))
        except OSError as error:
            os.write(2, f"comborun: bash can't be started: {error}\n".encode())
            os._exit(REFUSED)
        sys.exit(REFUSED)
