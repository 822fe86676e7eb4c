"""The end of a command, step by step: INT, TERM and KILL to its group, each when the one before had its time."""

from __future__ import annotations

import signal
import time

from comborun.host import process
from comborun.host.attempt import setting

_NEVER = float("inf")


class Ladder:
    """Of one command."""

    def __init__(self, pid: int) -> None:
        self.due = _NEVER
        """when to climb, in time.monotonic()"""
        self.begun = False
        self._pid = pid
        self._steps: list[tuple[int, float]] = []

    def begin(self) -> None:
        gentle, firm = setting("COMBORUN_STOP_INT_S", 15.0), setting("COMBORUN_STOP_TERM_S", 10.0)
        self.begun = True
        self._steps = [(signal.SIGINT, gentle), (signal.SIGTERM, firm), (signal.SIGKILL, _NEVER)]
        self.due = 0.0

    def hurry(self) -> None:
        """TERM was sent: KILL is next."""
        self.begun = True
        self._steps = [(signal.SIGKILL, _NEVER)]
        self.due = time.monotonic() + setting("COMBORUN_STOP_TERM_S", 10.0)

    def climb(self) -> None:
        if time.monotonic() < self.due:
            return
        number, seconds = self._steps.pop(0)
        signal_all(self._pid, number)
        signal_all(self._pid, signal.SIGCONT)  # what was stopped hears nothing else
        self.due = time.monotonic() + seconds


def signal_all(pid: int, number: int) -> None:
    """To a command's group, or to itself while it leads none."""
    if not process.send_group(pid, number):
        process.send(pid, number)
