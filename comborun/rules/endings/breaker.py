"""Decides when a run starts no more work: failures in a row, too many failures, a server that keeps ending. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from comborun.rules import records
from comborun.rules.endings.failures import GPU, HOST, Failure, named
from comborun.rules.facts import Fact
from comborun.rules.holds import HoldReason

_PLACE, _CLASS = re.compile("host|[0-9]{1,4}"), re.compile("[a-z_]+")


ENVIRONMENT = "environment"


class Barred:
    """A GPU or an environment that gets no new sessions. `since`: seconds since 1970, as text."""

    def __init__(self, name: str, failure: str, since: str) -> None:
        self.name = name
        self.failure = failure
        self.since = since


def barred(text: str, kind: str) -> list[Barred]:
    """The GPUs or the environments in dispatch/quarantine, as `kind` says."""
    rows = [row for row in _rows(text, (GPU, "class", "since")) if row.get(kind)]
    if kind == GPU:
        rows = [row for row in rows if _PLACE.fullmatch(row[GPU]) and row[GPU] != HOST]
    return [Barred(row[kind], row.get("class", ""), row.get("since", "")) for row in rows]


def _rows(text: str, keys: Sequence[str]) -> Iterator[Mapping[str, str]]:
    """One record a line. A run of the former version has lines of values, separated by tabs."""
    for line in text.split("\n"):
        yield records.parse(line) if line.startswith("{") else dict(zip(keys, line.split("\t")))


class Breaker:
    """The last failure on each GPU and on the host, how often it came in a row, and which GPUs and environments get no
    new sessions.

    State is lines of records, as in dispatch/breaker and dispatch/quarantine. A failure that stands in no file is
    forgiven.
    """

    def __init__(self, limit: int, rows: str = "", quarantine: str = "") -> None:
        self.limit = limit
        self.counts: dict[str, tuple[str, int]] = {}
        self._from: dict[str, list[str]] = {}
        """place -> the environments of the failures of its streak; absent if one is not known"""
        for row in _rows(rows, ("place", "class", "times")):
            place, times = row.get("place", ""), records.integer(row, "times")
            if _PLACE.fullmatch(place) and times is not None and _CLASS.fullmatch(row.get("class", "")):
                self.counts[place] = row["class"], times
                if row.get("environment"):
                    self._from[place] = [row["environment"]]
        gpus, environments = barred(quarantine, GPU), barred(quarantine, ENVIRONMENT)
        self.quarantine = {one.name: one.failure for one in gpus}
        self.closed = {one.name: one.failure for one in environments}
        self._since = {
            (kind, one.name): one.since for kind, ones in ((GPU, gpus), (ENVIRONMENT, environments)) for one in ones
        }

    def record(
        self,
        failure: str,
        gpus: Sequence[int],
        environment: str = "",
        others_progress: Callable[[], bool] = bool,
        untried: Callable[[], bool] = bool,
    ) -> dict[str, int]:
        """Count a failed session on its GPUs or its host. Returns the places where this completes a streak, with its
        length.

        A place is the index of a GPU as text, or HOST. A streak of one environment closes that environment instead,
        while sessions of others make progress: then it is not the place that fails. A streak of few environments says
        nothing of the place as long as there are others that nobody has tried (`untried`): they come next.
        """
        known = named(failure)
        if not self.limit or known is None or not known.row.breaker or environment in self.closed:
            return {}
        places = [HOST] if known.row.breaker == HOST or not gpus else [str(gpu) for gpu in gpus]
        tripped = {where: times for where in places if (times := self._count(where, failure, environment))}
        kinds = max((len(self._from[where]) if where in self._from else self.limit for where in tripped), default=0)
        of_machine = known.row.breaker == HOST or known is Failure.GPU_FAULT
        if tripped and kinds < self.limit and not of_machine and untried():
            return {}
        if tripped and kinds == 1 and others_progress():
            self.closed[environment] = failure
            for where in tripped:
                del self.counts[where], self._from[where]
            return {}
        self.quarantine.update((where, failure) for where in tripped if where != HOST)
        return tripped

    def succeeded(self, gpus: Iterable[int]) -> bool:
        """Forget the failures on these GPUs and on the host. Returns whether there were any."""
        places = (HOST, *map(str, gpus))
        for where in places:
            self._from.pop(where, None)
        ended = [self.counts.pop(where, None) for where in places]
        return any(ended)

    def rows(self) -> str:
        rows = []
        for place, (one, times) in self.counts.items():
            of = self._from.get(place, ())
            environment = {"environment": of[0]} if len(of) == 1 else {}
            rows.append({"place": place, "class": one, "times": times, **environment})
        return "".join(records.render(row.items()) for row in rows)

    def quarantined(self, at: str) -> str:
        """`at`: the time now, since which a GPU or an environment without an earlier time is closed."""
        rows = [
            {kind: name, "class": failure, "since": self._since.setdefault((kind, name), at)}
            for kind, places in ((GPU, self.quarantine), (ENVIRONMENT, self.closed))
            for name, failure in places.items()
        ]
        return "".join(records.render(row.items()) for row in rows)

    def _count(self, where: str, failure: str, environment: str) -> int:
        """The length of a streak that is complete now, else 0."""
        before, times = self.counts.get(where, ("", 0))
        times = times + 1 if before == failure else 1
        self.counts[where] = (failure, times)
        known = [] if times == 1 else self._from.pop(where, None)
        if environment and known is not None:
            self._from[where] = [*known, *([environment] if environment not in known else ())]
        return 0 if times < self.limit or where in self.quarantine else times


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
