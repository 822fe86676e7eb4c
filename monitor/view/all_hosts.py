"""The runs of all hosts for the page: they are looked at while a page shows them, and for half a minute after that."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from comborun.monitor.fleet import Fleet, FleetRow

_UNUSED_S = 30.0


class AllHosts:
    def __init__(self, start: Callable[[], Fleet]) -> None:
        """`start` begins to look at all hosts; it may take a while."""
        self._start = start
        self._lock = Lock()
        self._asked, self._going = 0.0, False
        self._rows: tuple[FleetRow, ...] = ()
        self._silent: dict[str, str] = {}
        self._answered = False
        self.number = 0
        """grows with each change"""

    def need(self) -> int:
        """A page shows them. Returns the number of what is known."""
        with self._lock:
            self._asked = monotonic()
            if not self._going:
                self._going = True
                Thread(target=self._work, daemon=True).start()
        return self.number

    def values(self) -> dict[str, Any]:
        rows = sorted(self._rows, key=lambda row: row.run.finished)
        return {"runs": rows, "silent": self._silent, "busy": not self._answered}

    def _work(self) -> None:
        fleet = self._start()
        try:
            while True:
                with self._lock:
                    if monotonic() > self._asked + _UNUSED_S:
                        self._going = False
                        return
                if fleet.wait(1.0) or not self.number:
                    self._rows, self._answered = fleet.rows(), fleet.answered
                    self._silent = {one.host: one.complaint for one in fleet.listings() if one.complaint}
                    self.number += 1
        finally:
            fleet.close()
            fleet.disconnect()
