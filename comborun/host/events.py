"""What a supervisor waits for: signals, its children's ends, and descriptors, with one deadline."""

from __future__ import annotations

import os
import select
import signal
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Iterable

_IGNORED = (signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP)
_HEARD = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGCHLD)
_RECHECK_S = 0.2


class Events:
    """Signals of this process become something to select; what its children leave is reaped here."""

    def __init__(self, term: bool = True) -> None:
        self.heard: list[int] = []
        """INT, TERM and USR1, in their order"""
        self.status: dict[int, int] = {}
        """exit codes of children that have ended, 128 + N for signal N"""
        self._read, write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        for number in _HEARD if term else (signal.SIGCHLD,):
            signal.signal(number, self._hear)
        for number in _IGNORED:
            signal.signal(number, signal.SIG_IGN)

    def _hear(self, number: int, _: object) -> None:
        if number != signal.SIGCHLD:
            self.heard.append(number)

    def wait(self, deadline: float, descriptors: Iterable[int] = ()) -> None:
        """Until a signal, a readable descriptor, or the deadline of time.monotonic()."""
        poll = select.poll()
        for fd in (self._read, *descriptors):
            poll.register(fd, select.POLLIN)
        seconds = min(max(0.0, deadline - time.monotonic()), 3600.0)
        poll.poll(int(seconds * 1000) + 1 if seconds else 0)
        try:
            while os.read(self._read, 512):
                pass
        except OSError:
            pass
        self.reap()

    def until(self, seconds: float, over: Callable[[], bool]) -> bool:
        """Wait for something that children's ends bring about; False when it did not come in time."""
        deadline = time.monotonic() + seconds
        while not over():
            now = time.monotonic()
            if now >= deadline:
                return False
            self.wait(min(deadline, now + _RECHECK_S))
        return True

    def reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            self.status[pid] = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


class Held:
    """Hold back what `Events` hears."""

    def __enter__(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, _HEARD)

    def __exit__(self, *_: object) -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HEARD)


def reset_signals() -> None:
    """In a forked process: what its parent ignores, hears or holds back is as a program expects it."""
    signal.set_wakeup_fd(-1)
    for number in (*_IGNORED, *_HEARD, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HEARD)
