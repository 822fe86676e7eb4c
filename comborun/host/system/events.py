"""The event loop of a supervisor: signals, ends of children, and descriptors, with one deadline."""

from __future__ import annotations

import math
import os
import select
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

_IGNORED = (signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP)
_HEARD = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGCHLD)
_OF_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
"""signals that Python ignores"""
_RECHECK_S = 0.2


class Events:
    """Turns signals into readable descriptors, and reaps children."""

    def __init__(self, term: bool = True) -> None:
        self.received: list[int] = []
        """INT, TERM and USR1, in the order in which they came"""
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
            self.received.append(number)

    def wait(self, deadline: float, descriptors: Iterable[int] = ()) -> None:
        """Wait for a signal, a readable descriptor, or the deadline of time.monotonic()."""
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
        """Wait until `over()` is true; it is asked after each end of a child. False after `seconds`."""
        deadline = time.monotonic() + seconds
        while not over():
            now = time.monotonic()
            if now >= deadline:
                return False
            self.wait(min(deadline, now + _RECHECK_S))
        return True

    def wait_for_byte(self, pipe: int) -> bool:
        """False if the writer has gone, or a signal comes first."""
        while not select.select([pipe], [], [], 0)[0]:
            if self.received:
                return False
            self.wait(math.inf, [pipe])
        word = os.read(pipe, 1)
        os.close(pipe)
        return bool(word)

    def reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            self.status[pid] = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


def spawn(words: list[str], environment: Mapping[str, str], actions: Sequence[tuple[object, ...]]) -> int:
    """Start a program as the leader of a process session; returns its pid. Raises OSError.

    It has the default signals. This process is not copied, as a fork would do. `actions`: those of posix_spawn, which
    open or copy a descriptor.
    """
    default = (*_IGNORED, *_HEARD, *_OF_PYTHON)

    def start(words: list[str], setsid: bool) -> int:
        return os.posix_spawnp(
            words[0], words, environment, file_actions=actions, setsid=setsid, setsigmask=(), setsigdef=default
        )

    try:
        return start(words, setsid=True)
    except NotImplementedError:  # a Python that was built for an old libc
        return start(["setsid", *words], setsid=False)
