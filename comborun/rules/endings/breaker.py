"""Decides when a run starts no more work: failures in a row, too many failures, a server that keeps ending. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from comborun.rules import records
from comborun.rules.endings.failures import HOST, named

_PLACE, _CLASS = re.compile("host|[0-9]{1,4}"), re.compile("[a-z_]+")


class Quarantined:
    """A GPU that gets no new sessions. `since`: seconds since 1970, as text."""

    __slots__ = ("failure", "gpu", "since")

    def __init__(self, gpu: str, failure: str, since: str) -> None:
        self.gpu = gpu
        self.failure = failure
        self.since = since


def quarantined(text: str) -> list[Quarantined]:
    """The rows of dispatch/quarantine."""
    found = ((row, row.get("gpu", "")) for row in _rows(text, ("gpu", "class", "since")))
    return [
        Quarantined(gpu, row.get("class", ""), row.get("since", ""))
        for row, gpu in found
        if _PLACE.fullmatch(gpu) and gpu != HOST
    ]


def _rows(text: str, keys: Sequence[str]) -> Iterator[Mapping[str, str]]:
    """One record a line. A run of the former version has lines of values, separated by tabs."""
    for line in text.split("\n"):
        yield records.parse(line) if line.startswith("{") else dict(zip(keys, line.split("\t")))


class Breaker:
    """The last failure on each GPU and on the host, how often it came in a row, and which GPUs get no new sessions.

    State is lines of records, as in dispatch/breaker and dispatch/quarantine. A failure that stands in no file is
    forgiven.
    """

    def __init__(self, limit: int, rows: str = "", quarantine: str = "") -> None:
        self.limit = limit
        self.counts: dict[str, tuple[str, int]] = {}
        for row in _rows(rows, ("place", "class", "times")):
            place, times = row.get("place", ""), records.integer(row, "times")
            if _PLACE.fullmatch(place) and times is not None and _CLASS.fullmatch(row.get("class", "")):
                self.counts[place] = row["class"], times
        closed = quarantined(quarantine)
        self.quarantine = {one.gpu: one.failure for one in closed}
        self._since = {one.gpu: one.since for one in closed}

    def record(self, failure: str, gpus: Sequence[int]) -> dict[str, int]:
        """Count a failed session on its GPUs or its host. Returns the places where this completes a streak, with its
        length.

        A place is the index of a GPU as text, or HOST.
        """
        known = named(failure)
        if not self.limit or known is None or not known.row.breaker:
            return {}
        places = [HOST] if known.row.breaker == HOST or not gpus else [str(gpu) for gpu in gpus]
        return {where: times for where in places if (times := self._count(where, failure))}

    def succeeded(self, gpus: Iterable[int]) -> bool:
        """Forget the failures on these GPUs and on the host. Returns whether there were any."""
        ended = [self.counts.pop(where, None) for where in (HOST, *map(str, gpus))]
        return any(ended)

    def rows(self) -> str:
        fields = ({"place": place, "class": one, "times": times} for place, (one, times) in self.counts.items())
        return "".join(records.render(row.items()) for row in fields)

    def quarantined(self, at: str) -> str:
        """`at`: the time now, since which a GPU without an earlier time is in quarantine."""
        closed = self.quarantine.items()
        fields = ({"gpu": gpu, "class": one, "since": self._since.setdefault(gpu, at)} for gpu, one in closed)
        return "".join(records.render(row.items()) for row in fields)

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


def too_many(count: int, total: int, limit: int, percent: int) -> str:
    """Why to halt the run: too many sessions ended for good without success. A limit of 0 means none."""
    why = ""
    if limit and count >= limit:
        why = f"the limit is {limit}"
    if percent and total and count * 100 >= percent * total:
        why = f"the limit is {percent} %"
    return f"{count} of {total} sessions ended without success; {why}" if why and count else ""


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
