"""The windows of sessions and their supervisors, some of them forked before there is a slot.

A window runs lib/window.sh, which reports itself and waits. Then the dispatcher forks the supervisor, which prepares
and waits for a word in a pipe. The dispatcher sends the word when the session gets a slot, so a free slot waits for no
fork. Until then the supervisor claims nothing and makes only empty files, and it leaves with the dispatcher. Both hold
the window's FIFO open; the window closes when neither does.
"""

from __future__ import annotations

import contextlib
import gc
import math
import os
import sys
import time

from comborun.host.record.queue import STARTING
from comborun.host.supervise import supervisor as supervision
from comborun.host.system import children, files, process
from comborun.rules.names import RunLayout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Sequence

    from comborun.host.dispatch.dispatcher import Dispatcher
    from comborun.host.record.queue import Session
    from comborun.host.system.children import Child

MOST = 4
_PAUSE_S, _LACK_PAUSE_S = 1.0, 60.0
"""seconds before another window is opened ahead, after one was given up, and after the machine started no more"""
_AFTER_GO_S = 0.02
"""seconds in which a session that just started has the processors for itself"""
_OF_WINDOW = ("TERM", "STY")
"""variables that the window's multiplexer sets and the supervisor takes over"""


class Window:
    """A window, and its supervisor, of a session that has not been started."""

    __slots__ = ("attempt", "fd", "fifo", "grant", "pid", "session", "supervisor")

    def __init__(self, fifo: str, session: Session, attempt: int) -> None:
        """Raises OSError."""
        os.mkfifo(fifo)
        self.fifo = fifo
        self.session, self.attempt = session, attempt
        self.fd = os.open(fifo, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
        self.pid = ""
        """the pid of the process that waits there, once it has reported"""
        self.supervisor: Child | None = None
        self.grant = -1
        """the pipe on which its supervisor waits for a word"""

    @property
    def left(self) -> bool:
        """Whether its supervisor has ended."""
        return self.supervisor is not None and self.supervisor.code is not None

    def close(self) -> None:
        """End both, unless the supervisor has its word. A window that is still opening finds no FIFO."""
        files.remove(self.fifo)
        for fd in filter(lambda fd: fd >= 0, (self.fd, self.grant)):
            os.close(fd)


class Windows:
    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._open: dict[str, Window] = {}
        self._begun: dict[str, Window] = {}
        """session -> window of its latest attempt, whose supervisor has its word"""
        self._made = 0
        self._not_before = 0.0
        self.due = math.inf
        """the time when there is something to fill"""

    def fill(self) -> None:
        """Fork one supervisor, or open windows for the first sessions of the queue, as many as there are slots."""
        self.due = math.inf
        now = time.monotonic()
        come = [one for one in self._open.values() if one.pid and not one.supervisor]
        granted = [one for one in come if one.session.life == STARTING]
        if granted or (come and now >= self._not_before):
            self._fork((granted or come)[0])
            self.due = 0.0  # the next one follows if no slot has become free meanwhile
        elif now < self._not_before:
            self.due = self._not_before
        else:
            self._open_ahead(now)

    def _open_ahead(self, now: float) -> None:
        dispatcher = self._dispatcher
        most = min(dispatcher.launcher.slots, MOST)
        if dispatcher.hold.kind or dispatcher.launcher.nobody or len(self._open) >= 2 * most:
            return
        next_ones = [session for _, session in zip(range(most), dispatcher.launcher.eligible(now))]
        missing = [(one, one.attempt + 1) for one in next_ones if one.name not in self._open]
        if not dispatcher.engine.opens_several or len(next_ones) - len(missing) <= most // 2:
            self.open(missing)

    def open(self, attempts: Sequence[tuple[Session, int]]) -> bool:
        """Open windows for attempts; False if not all can be opened now."""
        layout, commands = self._dispatcher.layout, []
        for session, attempt in attempts:
            self.forget(session.name)
            self._end_former(session.name, attempt)
            self._made += 1  # its FIFO may be left over if it can't be opened
            try:
                window = Window(f"{layout.dispatch}/window-{os.getpid()}-{self._made}", session, attempt)
            except OSError:
                break
            self._open[session.name] = window
            words = ["bash", "-p", layout.window, window.fifo, layout.fifo, session.name, str(attempt)]
            commands.append((session.name, attempt, words))
        openings = self._dispatcher.open_windows(commands) if commands else []
        for (session, _), opening in zip(attempts, openings):
            session.opening = opening
            self._dispatcher.launcher.opening.add(session.name)
        return len(openings) == len(attempts)

    def _end_former(self, name: str, attempt: int) -> None:
        """End a supervisor of this attempt that has not claimed it in time: its window has the name of the next one."""
        former, claim = self._begun.pop(name, None), self._dispatcher.attempts.at(name, attempt).claim
        if former and former.supervisor and former.attempt == attempt and not os.path.exists(claim):
            former.supervisor.kill()

    def here(self, name: str, attempt: int, pid: str) -> None:
        """Note that a window is open and waits for its supervisor."""
        window = self._open.get(name)
        if window and window.attempt == attempt:
            window.pid = pid

    def _fork(self, window: Window) -> None:
        """Start its supervisor, which waits for its word unless the attempt has been granted."""
        session = window.session
        words = [self._dispatcher.layout.directory, session.name, str(window.attempt), self._dispatcher.engine.kind]
        try:
            grant, window.grant = os.pipe()
            try:
                child = children.fork(lambda: _supervise(words, window.pid, grant), keep=(window.fd, grant))
            finally:
                os.close(grant)
            window.supervisor = child
            self._dispatcher.children.append(child)
            os.write(window.fd, f"{child.pid}\n".encode())
        except OSError as error:  # no process can be started
            self.forget(session.name)
            if session.life == STARTING:
                self._dispatcher.launcher.refused(session, f"its supervisor could not be started: {error.strerror}")
            return
        if session.life == STARTING and not self.go(session):
            self._dispatcher.launcher.refused(session, "its supervisor left")

    def go(self, session: Session) -> bool:
        """Let its supervisor begin, now or when its window is open; False if it has no window."""
        window = self._open.get(session.name)
        if window is None or window.attempt != session.attempt:
            return False
        if not window.supervisor:
            return True
        seen = process.look(window.pid)
        try:
            granted = seen is not None and seen.lives and os.write(window.grant, b"\n") > 0
        except OSError:  # the supervisor is gone
            granted = False
        if not granted:
            self.forget(session.name)
            return False
        del self._open[session.name]
        self._begun[session.name] = window
        window.close()
        if time.monotonic() >= self._not_before:
            self._not_before = time.monotonic() + _AFTER_GO_S
        return True

    def begun(self, name: str) -> bool:
        """Whether its supervisor has its word, so that it needs no other window."""
        return name in self._begun

    def forget(self, name: str) -> None:
        if window := self._open.pop(name, None):
            window.close()
            self._not_before = max(self._not_before, time.monotonic() + _PAUSE_S)

    def make_room(self) -> None:
        """Give up what waits for a slot, since this machine starts no more processes."""
        for session in [one.session for one in self._open.values() if one.session.life != STARTING]:
            self.forget(session.name)
        self._not_before = time.monotonic() + _LACK_PAUSE_S

    def reaped(self) -> None:
        """Handle ended children: a supervisor that was killed before its claim is replaced at once."""
        for window in [one for one in self._open.values() if one.left]:
            self.forget(window.session.name)
        for session in [one.session for one in self._begun.values() if one.left]:
            del self._begun[session.name]
            claim = self._dispatcher.attempts.at(session.name, session.attempt).claim
            if session.life == STARTING and not os.path.exists(claim):
                self._dispatcher.launcher.refused(session, "its supervisor left before it claimed the attempt")

    def again(self) -> None:
        """Look at windows whose messages may have been lost."""
        for session in [one.session for one in self._open.values()]:
            self.forget(session.name)
            if session.life == STARTING:
                self._dispatcher.launcher.later(session)


def _supervise(words: list[str], window: str, grant: int) -> None:
    """In the forked process: leave the dispatcher's process session, and show the log in the window."""
    process.end_with_parent(yes=True)  # until it claims the attempt
    gc.freeze()
    os.setsid()
    run, *of_session, _ = words
    process.set_words((sys.executable, RunLayout(run).program, "session", *of_session))  # `ps` shows the session
    os.dup2(0, 1)  # that is /dev/null
    with contextlib.suppress(OSError):
        fd = os.open(f"/proc/{window}/fd/2", os.O_WRONLY | os.O_NOCTTY)  # its fd 1 may still lead to our FIFO
        os.dup2(fd, 1)
        os.close(fd)
    for name in _OF_WINDOW:
        if value := process.variable(window, name):
            os.environ[name] = value
    supervision.supervise(words, grant)


def dismiss(folder: str) -> None:
    """Remove the FIFOs of windows: those of a dispatcher that is gone have closed."""
    for name in files.entries(folder):
        if name.startswith("window-"):
            files.remove(f"{folder}/{name}")
