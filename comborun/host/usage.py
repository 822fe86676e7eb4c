"""dispatch/usage.tsv: how busy the machine was while the run lasted.

A line is TIME LOAD CPUS MEMORY_KIB AVAILABLE_KIB, then INDEX:USED_MIB:TOTAL_MIB:UTILIZATION of each GPU that the run
may use, separated by tabs. Unknown values are empty. Nothing waits for nvidia-smi. The time between two lines doubles
with every 500 lines: 27 hours are 2,100 lines, two weeks 4,000.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from comborun.host import driver, files, machine
from comborun.host.process import setting
from comborun.rules.names import RunLayout

_FIRST_MS = 10000
_DOUBLES_EVERY = 500
_DOUBLES_MOST = 16
_FILE_MOST = 1 << 26


class Usage:
    """Writes the lines, one at a time."""

    def __init__(self, run: RunLayout) -> None:
        self._file, self._lock = run.usage, run.policy
        self.gpus: Sequence[int] = ()
        self._first_s = setting("COMBORUN_USAGE_MS", _FIRST_MS) / 1000
        text = files.read_text(self._file, _FILE_MOST)
        self._lines = text.count("\n")
        if text and not text.endswith("\n"):  # an earlier dispatcher stopped in the middle of a line
            self._lines += 1
            files.append(self._file, "\n")
        self._next = 0.0
        self._values = ""
        self._question: driver.Question | None = None

    def due(self) -> float:
        return min(self._next, self._question.due()) if self._question else self._next

    def descriptors(self) -> list[int]:
        return self._question.descriptors() if self._question else []

    def serve(self) -> None:
        """Write a line if it is time; end the one that waits for its answer."""
        if self._question and self._question.look():
            self._write(self._values + self._answer(self._question))
            self._question = None
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + self._first_s * (1 << min(self._lines // _DOUBLES_EVERY, _DOUBLES_MOST))
        self._lines += 1
        values = [*map(_told, (machine.load(), len(machine.cores()), *machine.memory_kib()))]
        if not self.gpus or self._question:
            self._write("\t".join(values))  # the last answer has yet to come
        else:
            self._values = "\t".join(values)
            self._question = driver.Question(driver.CARDS, self._lock)

    def _answer(self, question: driver.Question) -> str:
        rows = {card.index: card for card in driver.cards(question.lines, self.gpus)}
        gpus = [(rows[index].used, rows[index].total, rows[index].utilization) for index in self.gpus]
        return "".join(f"\t{index}:" + ":".join(map(_told, values)) for index, values in zip(self.gpus, gpus))

    def _write(self, values: str) -> None:
        """The time is that of the writing, so that lines stand in the order of their times."""
        files.append(self._file, f"{time.time():.6f}\t{values}\n")


def _told(number: float | None) -> str:
    return "" if number is None else str(number)
