"""Checks whether a session uses memory on GPUs that it was not granted.

It checks 1, 2, 4, 8, 16 and 32 minutes after the start, because programs load late. Memory elsewhere, beyond what a
context takes on every visible GPU, is reported in attempt-N/wrong_gpu and in the note of the end. It ends nothing.
"""

from __future__ import annotations

import math
import os
import time

from comborun.host import files, process
from comborun.host.process import setting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Sequence

    from comborun.host.attempt import Attempt
    from comborun.host.driver import Card, Question

_FIRST_S = 60.0
_LAST = 32
"""times the first look's moment"""
_MOST_MIB = 512.0
"""on a GPU that is not its own; Isaac Sim leaves some 200 there"""


class GpuMemoryCheck:
    """The checks of one session, if it has GPUs and nvidia-smi can be asked."""

    def __init__(self, of: Attempt) -> None:
        self._of = of
        first = setting("COMBORUN_SEAT_S", _FIRST_S) or _FIRST_S
        there = of.data.get("pin") != "none" and any(
            os.access(f"{folder}/nvidia-smi", os.X_OK) for folder in os.get_exec_path()
        )
        self._next = first if there and of.gpus else math.inf
        self._last = first * _LAST
        self.question: Question | None = None
        self._held: list[tuple[str, int]] = []
        """bus address and MiB of what its processes hold; its GPUs are asked for then"""

    def close(self) -> None:
        self._next = math.inf
        if self.question:
            self.question.close()
            self.question = None

    def look(self, awake: float) -> None:
        """Go on with it, `awake` seconds after the start. The processes are asked for first."""
        if self.question is None and awake < self._next:
            return
        from comborun.host import driver

        if self.question is None:
            self._next = self._next * 2 if self._next < self._last else math.inf
            self.question = driver.Question(driver.PROCESSES)
        elif self.question.look() and not self._held:
            ours = set(process.marked(self._of.marker))
            rows = driver.Processes(self.question.lines).held
            self._held = [(bus, mib) for bus, pid, mib in rows if pid in ours]
            self.question = driver.Question(driver.CARDS) if self._held else None
        elif self.question.over:
            self._tell(on_gpus(self._held, driver.cards(self.question.lines)))
            self.question, self._held = None, []

    def _tell(self, found: dict[str, int]) -> None:
        own, planned, most = self._of.granted, self._of.gpus, setting("COMBORUN_FOREIGN_MIB", _MOST_MIB)
        wrong = [f"{mib} MiB on GPU {gpu}" for gpu, mib in found.items() if gpu not in own and mib > most]
        if not wrong:
            return
        here = sum(mib for gpu, mib in found.items() if gpu in own)
        why = f"WRONG_GPU: {', '.join(wrong)}, and {here} MiB on GPU {planned}, which it was granted"
        text = ",".join(f"{gpu}:{mib}" for gpu, mib in found.items())
        files.write(self._of.at.wrong_gpu, [("since", int(time.time())), ("found", text), ("why", why)])
        self._next = math.inf


def on_gpus(held: Sequence[tuple[str, int]], cards: Sequence[Card]) -> dict[str, int]:
    """GPU -> MiB."""
    found = {str(card.index): sum(mib for bus, mib in held if bus == card.bus) for card in cards}
    return {gpu: mib for gpu, mib in found.items() if mib}
