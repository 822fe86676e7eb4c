"""The windows of sessions and their supervisors, some of them forked before there is a slot.

A window runs lib/window.sh, which reports itself and waits. Then the dispatcher forks the supervisor, which prepares
and waits for a byte in a pipe. The dispatcher sends it when the session gets a slot, so a free slot waits for no
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
from collections.abc import Callable, Sequence

from comborun.host.dispatch.run_state import LocalState
from comborun.host.dispatch.sessions import Session, Starting
from comborun.host.supervise import supervisor as supervision
from comborun.host.supervise import watch as _shared  # noqa: F401 # each supervisor uses it, and would hold a copy
from comborun.host.system import children, files, process
from comborun.host.system.children import Child
from comborun.rules.endings.evidence import Evidence, fact
from comborun.rules.facts import Fact
from comborun.rules.names import RunLayout
from comborun.rules.names import window as named
from comborun.rules.patterns import compile_late

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Tuple

    Refused = Tuple[Session, Fact, int]
else:
    Refused = tuple
"""a session whose window or supervisor can't be started, why, and the error's number or 0"""

MOST = 4
_PAUSE_S, _LACK_PAUSE_S = 1.0, 60.0
"""seconds before another window is opened ahead, after one was given up, and after the machine started no more"""
_AFTER_GO_S = 0.02
"""seconds in which a session that just started has the processors for itself"""


class Window:
    """A window, and its supervisor, of a session that has not been started."""

    __slots__ = ("attempt", "fd", "fifo", "grant", "path", "pid", "session", "supervisor")

    def __init__(self, fifo: str, session: Session, attempt: int) -> None:
        """Raises OSError."""
        self.path = fifo
        self.fifo = files.make_fifo(fifo)
        """where it is"""
        self.session, self.attempt = session, attempt
        self.fd = os.open(self.fifo, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
        self.pid = ""
        """the pid of the process that waits there, once it has reported"""
        self.supervisor: Child | None = None
        self.grant = -1
        """the pipe on which its supervisor waits"""

    @property
    def left(self) -> bool:
        """Whether its supervisor has ended."""
        return self.supervisor is not None and self.supervisor.code is not None

    def close(self) -> None:
        """End both, unless the supervisor was told to begin. A window that is still opening finds no FIFO."""
        files.remove_fifos(self.path)
        for fd in filter(lambda fd: fd >= 0, (self.fd, self.grant)):
            os.close(fd)


class Windows:
    def __init__(self, run: LocalState) -> None:
        compile_late()
        self._run = run
        self._open: dict[str, Window] = {}
        self._begun: dict[str, Window] = {}
        """session -> window of its latest attempt, whose supervisor was told to begin"""
        self._openings: dict[str, tuple[Session, Child]] = {}
        """sessions whose window is not known to be open, and what opens it"""
        self._closed: dict[str, float] = {}
        """session -> when a window of it was closed: for a moment the multiplexer refuses another one of its name"""
        self._made = 0
        self._not_before = 0.0
        self.due = math.inf
        """the time when there is something to fill"""

    def fill(self, slots: int, ahead: Callable[[int], Sequence[Session]]) -> Sequence[Refused]:
        """Fork one supervisor, or open windows for the first sessions of the queue, as many as there are slots.

        `ahead` gives the first sessions that wait only for their turn. Returns what could not be started.
        """
        self.due = math.inf
        now = time.monotonic()
        come = [one for one in self._open.values() if one.pid and not one.supervisor]
        granted = [one for one in come if isinstance(one.session.state, Starting)]
        if granted or (come and now >= self._not_before):
            self.due = 0.0  # the next one follows if no slot has become free meanwhile
            return self._fork((granted or come)[0])
        if now < self._not_before:
            self.due = self._not_before
            return ()
        most = min(slots, MOST)
        if len(self._open) < 2 * most:
            next_ones = ahead(most)
            missing = [(one, one.attempt + 1) for one in next_ones if one.name not in self._open]
            if not self._run.engine.opens_several or len(next_ones) - len(missing) <= most // 2:
                self.open(missing)
        return ()

    def open(self, attempts: Sequence[tuple[Session, int]]) -> bool:
        """Open windows for attempts; False if not all can be opened now."""
        layout, commands = self._run.layout, []
        for session, attempt in attempts:
            self.forget(session.name)
            self._end_former(session, attempt)
            self._made += 1  # its FIFO may be left over if it can't be opened
            try:
                window = Window(layout.window_fifo(os.getpid(), self._made), session, attempt)
            except OSError:
                break
            self._open[session.name] = window
            words = ["bash", "-p", layout.window, window.fifo, files.fifo_at(layout.fifo), session.name, str(attempt)]
            commands.append((named(session.name, attempt, self._run.attempts.id), words))
        openings = self._run.engine.start(commands) if commands else []
        self._run.children += openings
        for (session, _), opening in zip(attempts, openings):
            self._openings[session.name] = session, opening
        return len(openings) == len(attempts)

    def refusals(self) -> tuple[list[Refused], list[Session]]:
        """The windows that are known since the last call not to open, and the sessions whose former one is there."""
        refused, again = [], []
        for name, (session, opening) in list(self._openings.items()):
            code = opening.poll()
            if code is None:
                continue
            del self._openings[name]
            if code and name not in self._begun:  # that of another window may have failed
                closed = self._closed.get(name, -math.inf)
                self.forget(name)
                self._closed[name] = closed  # what did not open keeps no name
                if time.monotonic() < closed + _PAUSE_S:
                    again.append(session)
                else:
                    why = fact(Evidence.WINDOW_REFUSED, engine=self._run.engine.kind, exit=code)
                    refused.append((session, why, 0))
        return refused, again

    def _end_former(self, session: Session, attempt: int) -> None:
        """End a supervisor of this attempt that has not claimed it in time: its window has the name of the next one."""
        former, claim = self._begun.pop(session.name, None), self._run.attempts.at(session.path, attempt).claim
        if former and former.supervisor and former.attempt == attempt and not os.path.exists(claim):
            former.supervisor.kill()

    def here(self, name: str, attempt: int, pid: str) -> None:
        """Note that a window is open and waits for its supervisor."""
        window = self._open.get(name)
        if window and window.attempt == attempt:
            window.pid = pid

    def _fork(self, window: Window) -> Sequence[Refused]:
        """Start its supervisor, which waits until the attempt is granted. Returns what could not be started."""
        session = window.session
        variables = self._run.engine.handed_on
        words = [self._run.layout.directory, session.path, str(window.attempt), self._run.engine.kind]
        try:
            grant, window.grant = os.pipe()
            try:
                child = children.fork(lambda: _supervise(words, window.pid, grant, variables), keep=(window.fd, grant))
            finally:
                os.close(grant)
            window.supervisor = child
            self._run.children.append(child)
            os.write(window.fd, f"{child.pid}\n".encode())
        except OSError as error:  # no process can be started
            self.forget(session.name)
            return [(session, fact(Evidence.SUPERVISOR_LEFT, error=error.strerror), error.errno or 0)]
        if isinstance(session.state, Starting) and not self.go(session):
            return [(session, fact(Evidence.SUPERVISOR_LEFT), 0)]
        return ()

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

    def forget(self, name: str) -> None:
        if window := self._open.pop(name, None):
            window.close()
            self._closed[name] = time.monotonic()
            self._not_before = max(self._not_before, time.monotonic() + _PAUSE_S)

    def give_up(self, name: str) -> None:
        """Forget a window that takes too long to open."""
        _, opening = self._openings.pop(name, (None, None))
        if opening:
            opening.kill()
        self.forget(name)

    def make_room(self) -> None:
        """Close the windows that wait for a slot, since this machine starts no more processes."""
        for session in [one.session for one in self._open.values() if not isinstance(one.session.state, Starting)]:
            self.forget(session.name)
        self._not_before = time.monotonic() + _LACK_PAUSE_S

    def reaped(self) -> list[Refused]:
        """Handle ended children. Returns the sessions whose supervisor was killed before its claim."""
        for window in [one for one in self._open.values() if one.left]:
            self.forget(window.session.name)
        refused = []
        for session in [one.session for one in self._begun.values() if one.left]:
            del self._begun[session.name]
            claim = self._run.attempts.at(session.path, session.attempt).claim
            if isinstance(session.state, Starting) and not os.path.exists(claim):
                refused.append((session, fact(Evidence.SUPERVISOR_LEFT), 0))
        return refused

    def close(self) -> list[Session]:
        """Close all windows, since their messages may have been lost. Returns the sessions that must start again."""
        sessions = [one.session for one in self._open.values()]
        for session in sessions:
            self.forget(session.name)
        return [session for session in sessions if isinstance(session.state, Starting)]


def _supervise(words: list[str], window: str, grant: int, variables: Sequence[str]) -> None:
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
    for name in ("TERM", *variables):
        if value := process.variable(window, name):
            os.environ[name] = value
    supervision.supervise(words, grant)


def dismiss(run: RunLayout) -> None:
    """Remove the FIFOs of windows: those of a dispatcher that is gone have closed."""
    files.remove_fifos(*run.window_fifos(files.entries(run.dispatch)))
