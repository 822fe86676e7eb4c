"""Decides when a run starts no more work: failures in a row, too many failures, a server that keeps ending. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from comborun.rules.facts import Fact
from comborun.rules.holds import HoldReason

HOST = "host"
_HOST_WIDE = frozenset(("host_memory", "disk_full", "launch_failed"))
"""failures of the host as a whole, whatever GPU the session had"""
_LOCAL = frozenset(("gpu_memory", "gpu_fault", "stalled", "killed", "crashed", "lost", "server_lost"))
_ROW = re.compile(r"(host|[0-9]{1,4})\t([a-z_]+)\t([0-9]{1,6})")
_QUARANTINE = re.compile(r"([0-9]{1,4})\t([a-z_]+)(\t.*)?")


class Breaker:
    """The last failure on each GPU and on the host, how often it came in a row, and which GPUs get no new sessions.

    State is rows of text, as in dispatch/breaker and dispatch/quarantine. A failure that stands in no file is forgiven.
    """

    def __init__(self, limit: int, rows: str = "", quarantine: str = "") -> None:
        self.limit = limit
        found = filter(None, map(_ROW.fullmatch, rows.split("\n")))
        self.counts = {row[1]: (row[2], int(row[3])) for row in found}
        closed = filter(None, map(_QUARANTINE.fullmatch, quarantine.split("\n")))
        self.quarantine = {row[1]: row[2] for row in closed}

    def record(self, failure: str, gpus: Sequence[int]) -> dict[str, int]:
        """Count a failed session on its GPUs or its host. Returns the places where this completes a streak, with its
        length.

        A place is the index of a GPU as text, or HOST.
        """
        if not self.limit or failure not in _HOST_WIDE | _LOCAL:
            return {}
        places = [HOST] if failure in _HOST_WIDE or not gpus else [str(gpu) for gpu in gpus]
        return {where: times for where in places if (times := self._count(where, failure))}

    def succeeded(self, gpus: Iterable[int]) -> bool:
        """Forget the failures on these GPUs and on the host. Returns whether there were any."""
        ended = [self.counts.pop(where, None) for where in (HOST, *map(str, gpus))]
        return any(ended)

    def rows(self) -> str:
        return "".join(f"{where}\t{failure}\t{times}\n" for where, (failure, times) in self.counts.items())

    def quarantined(self, at: str) -> str:
        return "".join(f"{gpu}\t{failure}\t{at}\n" for gpu, failure in self.quarantine.items())

    def _count(self, where: str, failure: str) -> int:
        """The length of a streak that is complete now, else 0."""
        before, times = self.counts.get(where, ("", 0))
        times = times + 1 if before == failure else 1
        self.counts[where] = (failure, times)
        if times < self.limit or where in self.quarantine:
            return 0
        if where != HOST:
            self.quarantine[where] = failure
        return times


FAILED = frozenset(("failed", "partial", "lost"))
"""outcomes that fail-fast counts"""


def too_many(count: int, total: int, limit: int, percent: int) -> Fact | None:
    """Why to halt the run: too many sessions ended for good without success. A limit of 0 means none."""
    limit = limit if count >= limit else 0
    percent = percent if total and count * 100 >= percent * total else 0
    if not count or not (limit or percent):
        return None
    return Fact(HoldReason.TOO_MANY_FAILED, failed=count, sessions=total, limit=limit, percent=percent)


PROVEN_S = 1800.0
"""after so long a service, earlier failures of a server no longer count"""
_DOUBLINGS = 7


def failures(attempts: Iterable[tuple[float | None, float | None]]) -> tuple[int, float]:
    """How often in a row a server has failed, and when it did so last.

    `attempts`, newest first: when each failed (None: it did not, or a user has forgiven it) and when it became ready
    (None: never), in seconds since 1970.
    """
    count, last = 0, 0.0
    for failed, ready in attempts:
        if failed is None or (count and ready is not None and failed - ready >= PROVEN_S):
            break
        count += 1
        last = last or failed
    return count, last


def restart_wait_s(count: int, first: float) -> float:
    """Seconds from a server's end to its next start. They double with each failure in a row."""
    return first * 2 ** (min(count, _DOUBLINGS + 1) - 1) if count else 0.0
