"""How full the host is: what each GPU has and uses, and what of it our sessions hold, of this run and of others.

The processes are asked for first: what grows between the two questions then counts as somebody else's, and nothing is
promised twice.
"""

from __future__ import annotations

import time

from comborun.host import driver, machine, process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from comborun.host.driver import Card


class Measured:
    """One answer, in MiB. What it doesn't have is unknown, and never 0."""

    def __init__(self, number: int = 0) -> None:
        self.number = number
        self.at = time.monotonic()
        """when it was measured"""
        self.cards: dict[int, Card] = {}
        self.listed: set[int] = set()
        """GPUs whose processes the driver names, each of which is known"""
        self.held: dict[tuple[str, int], int] = {}
        """marker and GPU -> MiB"""
        self.memory: tuple[int, int] | None = None
        """main memory: in all, and what can be had"""
        self.resident: dict[str, int] = {}
        """marker -> MiB of main memory that nobody else has"""


class Measuring:
    """A measurement under way. To be looked at like a driver's question."""

    def __init__(self, number: int, lock: str, *, gpus: bool, memory: bool) -> None:
        self._number = number
        self._lock = lock
        self._memory = memory
        self._processes: driver.Processes | None = None
        self._question = driver.Question(driver.PROCESSES, lock) if gpus else None

    def descriptors(self) -> list[int]:
        return self._question.descriptors() if self._question else []

    def due(self) -> float:
        return self._question.due() if self._question else 0.0

    def look(self) -> Measured | None:
        """The answer, once there is one."""
        if self._question and not self._question.look():
            return None
        if self._question and self._processes is None:
            self._processes = driver.Processes(self._question.lines)
            self._question = driver.Question(driver.CARDS, self._lock)
            return None
        return self._told()

    def _told(self) -> Measured:
        told = Measured(self._number)
        if self._question and self._processes:
            told.cards = {card.index: card for card in driver.cards(self._question.lines)}
            _share_out(told, self._processes)
        total, available = machine.memory_kib()
        if total is not None and available is not None:
            told.memory = total // 1024, available // 1024
        if self._memory:
            told.resident = {marker: use.kib >> 10 for marker, use in machine.uses().items()}
        return told


def _share_out(told: Measured, processes: driver.Processes) -> None:
    """Whose the GPUs' memory is: each process's marker says it."""
    index_of = {card.bus: index for index, card in told.cards.items()}
    told.listed = {index for bus, index in index_of.items() if bus in processes.listed}
    for bus, pid, mib in processes.held:
        marker, index = process.marker_of(pid), index_of.get(bus)
        if index is not None and marker is None:
            told.listed.discard(index)  # a pid that is not here: the list can't be trusted
        elif index is not None and marker:
            told.held[marker, index] = told.held.get((marker, index), 0) + mib
