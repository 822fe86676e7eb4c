"""The windows of sessions, some of them opened before there is a slot, and the supervisors that are forked for them.

In a window runs lib/window.sh, which says that it is there and waits. When its session is granted a slot, the
dispatcher forks: its child is the supervisor, and everything is imported already. A window without a supervisor has
started nothing and claimed nothing. It closes when the dispatcher ends, and later with its supervisor: each has the
window's FIFO open, and the window waits for its end.
"""

from __future__ import annotations

import contextlib
import gc
import math
import os
import time

from comborun.host import (
    children,
    files,
    process,
    watch,  # noqa: F401  every supervisor needs it a second after its start
)
from comborun.host import session as supervision
from comborun.host.queue import STARTING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from comborun.host.dispatch import Dispatcher
    from comborun.host.queue import Session

MOST = 4
_PAUSE_S = 1.0
"""before the next window is opened ahead, when one was given up"""
_AFTER_GO_S = 0.02
"""the session that was just started has the processors for itself"""
_OF_WINDOW = ("TERM", "STY")
"""variables that the window's multiplexer sets and the supervisor takes over"""


class Window:
    """A window that has no supervisor yet."""

    __slots__ = ("attempt", "fd", "fifo", "pid")

    def __init__(self, fifo: str, attempt: int) -> None:
        """Raises OSError."""
        os.mkfifo(fifo)
        self.fifo = fifo
        self.attempt = attempt
        self.fd = os.open(fifo, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
        self.pid = ""
        """of what waits there, once it has said so"""

    def close(self) -> None:
        """It ends, unless a supervisor holds it; one that is still on its way finds no FIFO."""
        files.remove(self.fifo)
        os.close(self.fd)


class Windows:
    """Those that wait for their supervisors."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._open: dict[str, Window] = {}
        self._made = 0
        self._not_before = 0.0
        self.due = math.inf
        """when there is something to fill"""

    def fill(self) -> None:
        """Open windows for the first sessions of the queue, as many as there are slots."""
        dispatcher, now = self._dispatcher, time.monotonic()
        most = min(dispatcher.launcher.slots, MOST)
        self.due = math.inf
        if dispatcher.hold.kind or dispatcher.launcher.nobody or len(self._open) >= most:
            return
        if now < self._not_before:
            self.due = self._not_before
            return
        for _, session in zip(range(most), dispatcher.launcher.eligible(now)):
            if session.name not in self._open and not self.open(session, session.attempt + 1):
                return

    def open(self, session: Session, attempt: int) -> bool:
        """Open a window for an attempt; False when there can be none now."""
        self.forget(session.name)
        try:
            window = Window(f"{self._dispatcher.layout.dispatch}/window-{os.getpid()}-{self._made}", attempt)
        except OSError:
            return False
        self._made += 1
        self._open[session.name] = window
        layout = self._dispatcher.layout
        words = ["bash", "-p", layout.window, window.fifo, layout.fifo, session.name, str(attempt)]
        self._dispatcher.launcher.open_window(session, attempt, words)
        return True

    def go(self, session: Session) -> bool:
        """Start its supervisor; False when no window is there. In one that is on its way it starts when that comes."""
        window = self._open.get(session.name)
        if window is None or window.attempt != session.attempt:
            return False
        if not window.pid:
            return True
        if process.look(window.pid) is None:
            self.forget(session.name)
            return False
        return self._start(session, window)

    def _start(self, session: Session, window: Window) -> bool:
        run, kind = self._dispatcher.layout.directory, self._dispatcher.engine.kind
        words = [run, session.name, str(session.attempt), kind]
        try:
            child = children.fork(lambda: _supervise(words, window.pid), keep=(window.fd,))
        except OSError:  # no process is to be had
            self.forget(session.name)
            return False
        self._dispatcher.children.append(child)
        with contextlib.suppress(OSError):
            os.write(window.fd, f"{child.pid}\n".encode())
        del self._open[session.name]
        window.close()
        self._not_before = max(self._not_before, time.monotonic() + _AFTER_GO_S)
        return True

    def here(self, session: Session, attempt: int, pid: str) -> None:
        """A window has come, and waits."""
        window = self._open.get(session.name)
        if window is None or window.attempt != attempt:
            return
        window.pid = pid
        if session.life == STARTING and attempt == session.attempt and not self.go(session):
            self._dispatcher.launcher.refused(session, "its supervisor could not be started")

    def forget(self, name: str) -> None:
        """Its window closes, if it is there."""
        if window := self._open.pop(name, None):
            window.close()
            self._not_before = time.monotonic() + _PAUSE_S

    def again(self) -> None:
        """Windows that may have spoken while nobody could hear them."""
        for name in list(self._open):
            self.forget(name)
            session = self._dispatcher.queue[name]
            if session.life == STARTING:
                self._dispatcher.launcher.later(session)


def _supervise(words: list[str], window: str) -> None:
    """In the forked process: leave the dispatcher's process session, and show the log in the window."""
    gc.freeze()
    os.setsid()
    os.dup2(0, 1)  # that is /dev/null
    with contextlib.suppress(OSError):
        fd = os.open(f"/proc/{window}/fd/1", os.O_WRONLY | os.O_NOCTTY)
        os.dup2(fd, 1)
        os.close(fd)
    for name in _OF_WINDOW:
        if value := process.variable(window, name):
            os.environ[name] = value
    supervision.supervise(words)


def dismiss(folder: str) -> None:
    """Remove the FIFOs of windows: those of a dispatcher that is gone have closed."""
    for name in files.entries(folder):
        if name.startswith("window-"):
            files.remove(f"{folder}/{name}")
