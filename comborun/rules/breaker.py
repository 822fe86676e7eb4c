"""The same failure of the machine several times in a row, on a GPU or on the host, stops new starts there.

State is rows of text, as files keep them: dispatch/breaker and dispatch/quarantine. What is in no file was forgiven.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, Sequence

HOST = "host"
_HOST_WIDE = frozenset(("host_memory", "disk_full", "launch_failed"))
"""failures that speak of the host, whichever GPU the session was to use"""
_LOCAL = frozenset(("gpu_memory", "gpu_fault", "stalled", "killed", "crashed", "lost", "server_lost"))
_ROW = re.compile(r"(host|[0-9]{1,4})\t([a-z_]+)\t([0-9]{1,6})")
_QUARANTINE = re.compile(r"([0-9]{1,4})\t([a-z_]+)(\t.*)?")


class Trip:
    """A row of failures that is long enough. `where` is a GPU's index as text, or HOST."""

    __slots__ = ("failure", "times", "where")

    def __init__(self, where: str, failure: str, times: int) -> None:
        self.where = where
        self.failure = failure
        self.times = times


class Breaker:
    """What failed last on each GPU and on the host, how often in a row, and which GPUs get no new sessions."""

    def __init__(self, limit: int, rows: str = "", quarantine: str = "") -> None:
        self.limit = limit
        self.counts: dict[str, tuple[str, int]] = {}
        self.quarantine: dict[str, str] = {}
        for line in rows.split("\n"):
            found = _ROW.fullmatch(line)
            if found:
                self.counts[found[1]] = (found[2], int(found[3]))
        for line in quarantine.split("\n"):
            found = _QUARANTINE.fullmatch(line)
            if found:
                self.quarantine[found[1]] = found[2]

    def heed(self, failure: str, gpus: Sequence[int]) -> list[Trip]:
        """Count the end of a session that was started there; the rows that are full now, each told once."""
        if not self.limit or failure not in _HOST_WIDE | _LOCAL:
            return []
        places = [HOST] if failure in _HOST_WIDE or not gpus else [str(gpu) for gpu in gpus]
        return [trip for trip in (self._count(where, failure) for where in places) if trip]

    def succeeded(self, gpus: Iterable[int]) -> bool:
        """A success begins new rows there; whether any was under way."""
        ended = [self.counts.pop(where, None) for where in (HOST, *map(str, gpus))]
        return any(ended)

    def rows(self) -> str:
        return "".join(f"{where}\t{failure}\t{times}\n" for where, (failure, times) in self.counts.items())

    def quarantined(self, at: str) -> str:
        """The text of dispatch/quarantine."""
        return "".join(f"{gpu}\t{failure}\t{at}\n" for gpu, failure in self.quarantine.items())

    def _count(self, where: str, failure: str) -> Trip | None:
        before, times = self.counts.get(where, ("", 0))
        times = times + 1 if before == failure else 1
        self.counts[where] = (failure, times)
        if times < self.limit or where in self.quarantine:
            return None
        if where != HOST:
            self.quarantine[where] = failure
        return Trip(where, failure, times)
