"""Windows of the sessions that come next, opened before there is a slot, so that a free slot is taken at once.

A window that was opened ahead has started nothing and claimed nothing. It waits at a FIFO of its own for the one word
`go`, which follows the grant and the journal like any launch, and it leaves when its dispatcher does.
"""

from __future__ import annotations

import math
import os
import time

from comborun.host import files, process
from comborun.host.queue import STARTING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from comborun.host.dispatch import Dispatcher
    from comborun.host.queue import Session

MOST = 4
_PAUSE_S = 1.0
"""before the next window, when one was given up"""
_AFTER_GO_S = 0.02
"""the session that was just told to go has the processors for itself"""


class Windows:
    """Those that this dispatcher has opened ahead."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._fifos: dict[str, str] = {}
        """session -> the FIFO of its window, which is open or on its way"""
        self._pids: dict[str, str] = {}
        """session -> pid of what waits there, once it has said so"""
        self._told: dict[str, str] = {}
        """session that was told to go -> its FIFO, until it surely has heard it"""
        self._made = 0
        self._not_before = 0.0
        self.due = math.inf
        """when there is something to fill"""

    def fill(self) -> None:
        """Open windows for the first sessions of the queue, as many as there are slots."""
        dispatcher, now = self._dispatcher, time.monotonic()
        most = min(dispatcher.launcher.slots, MOST)
        self.due = math.inf
        if dispatcher.hold.kind or dispatcher.launcher.nobody or len(self._fifos) >= most:
            return
        if now < self._not_before:
            self.due = self._not_before
            return
        for _, session in zip(range(most), dispatcher.launcher.eligible(now)):
            if session.name not in self._fifos and not self._open(session):
                return

    def _open(self, session: Session) -> bool:
        # It carries the dispatcher's pid: what waits for a dead one can't hear this one.
        fifo = f"{self._dispatcher.layout.dispatch}/ahead-{os.getpid()}-{self._made}"
        try:
            os.mkfifo(fifo)
        except OSError:
            return False
        self._made += 1
        self._fifos[session.name] = fifo
        self._dispatcher.launcher.open_window(session, session.attempt + 1, fifo)
        return True

    def go(self, session: Session) -> bool:
        """Tell its window to go; False when none is open for it. One that is still on its way is told when it comes."""
        name = session.name
        if name not in self._pids:
            return name in self._fifos
        if process.look(self._pids[name]) is None or not files.tell(self._fifos[name], "go"):
            self.forget(name)
            return False
        del self._pids[name]
        self._told[name] = self._fifos.pop(name)
        self._not_before = max(self._not_before, time.monotonic() + _AFTER_GO_S)
        return True

    def heard(self, what: str, session: Session, attempt: int, word: str) -> None:
        """`ahead`: its window waits; `gone` or `refused`: it does not."""
        if session.name not in self._fifos:
            return
        if what != "ahead":
            self.forget(session.name)
            self._dispatcher.launcher.refused(session, "its window was closed")
            return
        self._pids[session.name] = word
        if session.life == STARTING and attempt == session.attempt and not self.go(session):
            self._dispatcher.launcher.start(session)

    def heeded(self, name: str) -> None:
        """It has run, so nobody waits at its FIFO any more."""
        if fifo := self._told.pop(name, ""):
            files.remove(fifo)

    def forget(self, name: str) -> None:
        """Its window leaves, if it is there; one that is still on its way finds no FIFO."""
        self._pids.pop(name, None)
        if fifo := self._fifos.pop(name, "") or self._told.pop(name, ""):
            files.tell(fifo, "leave")
            files.remove(fifo)
            self._not_before = time.monotonic() + _PAUSE_S

    def again(self) -> None:
        """Windows that may have spoken while nobody could hear them."""
        for name in list(self._fifos):
            self.forget(name)
            session = self._dispatcher.queue[name]
            if session.life == STARTING:
                self._dispatcher.launcher.later(session)


def dismiss(folder: str) -> None:
    """Send away everything that waits in dispatch/, whoever opened it."""
    for name in files.entries(folder):
        if name.startswith("ahead-"):
            files.tell(f"{folder}/{name}", "leave")
            files.remove(f"{folder}/{name}")
