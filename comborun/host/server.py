"""One model server, and what its files say of its past."""

from __future__ import annotations

import os
import re
import time

from comborun.host import files
from comborun.host.attempts import LOST
from comborun.rules import records, restarts
from comborun.rules.restarts import Past

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Iterable, Mapping, Protocol, Sequence

    from comborun.host.attempts import RunDirectory
    from comborun.rules.names import AttemptLayout
    from comborun.rules.placement import Lack

    class Opening(Protocol):
        """Something under way."""

        def poll(self) -> int | None: ...  # None while it is under way, then its code

    class Hold(Protocol):
        @property
        def kind(self) -> str: ...  # empty while the run is free to go on

    class Holds(Protocol):
        def forgiven(self, ended: str) -> bool: ...  # ended before a person said that the run may go on

    class Desk(Protocol):
        """What the dispatcher lends."""

        @property
        def attempts(self) -> RunDirectory: ...

        @property
        def hold(self) -> Hold: ...

        @property
        def holds(self) -> Holds: ...

        @property
        def busy(self) -> int: ...  # sessions that have a slot

        def journal(self, words: str) -> None: ...

        def notify(self, kind: str, who: str, text: str) -> None: ...

        def halt(self, why: str) -> None: ...

        def lives(self) -> Mapping[str, str]: ...

        def open_window(self, name: str, attempt: int) -> Opening: ...

        def watch(self, name: str, attempt: int, family: str) -> Opening: ...

        def in_child(self, work: Callable[[], object]) -> Opening: ...


FAMILY = "servers"
IDLE, STARTING, LOADING, READY, ENDING = "idle", "starting", "loading", "ready", "ending"
_RESTARTS = 3
_TOLD = {
    "gpu_memory": "out of GPU memory",
    "host_memory": "out of memory",
    "gpu_fault": "a GPU fault",
    "disk_full": "the disk is full",
}


class Server:
    """Where it is in its life: idle starting loading ready ending."""

    def __init__(self, name: str, desk: Desk) -> None:
        self.name = name
        self._desk = desk
        self.kind = ""
        self.gpu: int | None = None
        """whose sessions it serves; None: it is the only one of its kind"""
        self.restarts = _RESTARTS
        """how often in a row it is started again"""
        self.life = IDLE
        self.attempt = 0
        self.complained = 0
        """the attempt whose trouble has been told"""
        self.refused: Lack | None = None
        """what it waits for, before it can start"""
        self.due = 0.0
        """when its begin is overdue"""
        self.opening: Opening | None = None
        self.watcher: Opening | None = None
        self.ender: Opening | None = None
        """what ends it, or buries it"""

    def read(self, row: Sequence[str]) -> None:
        """A line of servers.tsv."""
        self.kind = row[1]
        self.gpu = int(row[2]) if row[2].isdecimal() else None
        self.restarts = int(row[9]) if re.fullmatch("[0-9]{1,6}", row[9]) else _RESTARTS

    def at(self, number: int = 0) -> AttemptLayout:
        """The files of an attempt, of its latest one unless another is named."""
        return self._desk.attempts.at(self.name, number or self.attempt, FAMILY)

    def failures(self) -> tuple[int, float]:
        """How often in a row it has failed, and how many seconds are left until it may start again."""
        count, last = restarts.failures(self._past())
        wait = restarts.wait_s(count, int(os.environ.get("COMBORUN_SERVER_WAIT_MS") or 2000) / 1000)
        return count, min(max(0.0, last + wait - time.time()), wait)  # however the clock was set

    def _past(self) -> Iterable[Past]:
        """From files alone, like retries."""
        for number in range(self.attempt, 0, -1):
            end = files.read(self.at(number).end)
            ended = None if end.get("cause") in ("stopped", "not_needed") else records.seconds(end, "ended")
            ready = records.seconds(files.read(self.at(number).ready), "at")
            yield Past(ended, ready, self._desk.holds.forgiven(end.get("ended", "")))

    def how(self) -> str:
        """What its last attempt came to."""
        end = files.read(self.at().end)
        code = f"exit code {end['code']}" if end.get("code") else ""
        known = _TOLD.get(end.get("class") or end.get("cause", ""), "")
        return known or end.get("note") or code or end.get("cause") or LOST

    def expect(self) -> None:
        """To begin within the deadline."""
        self.due = time.monotonic() + launch_s()

    def busy_ending(self) -> bool:
        """Whether what ends it, or buries it, is under way."""
        return self.ender is not None and self.ender.poll() is None


def launch_s() -> float:
    """Seconds in which a window begins."""
    return float(os.environ.get("COMBORUN_LAUNCH_S") or 20)
