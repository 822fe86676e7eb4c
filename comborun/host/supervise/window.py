"""Shows a session's log in its window. The command writes the log itself, with no pipe in between.

inotify reports that the log has grown; where it can't, the log is read twice a second. A blocked window (a frozen tmux,
a paused terminal) never blocks its session.
"""

from __future__ import annotations

import os
import select
import time

from comborun.host.system.changes import notified

_CHUNK = 65536
_BEHIND = 1 << 20
"""bytes; a window that is further behind skips to near the end"""
_LOOK_S = 0.5
_REST_S = 0.1
"""between two looks at a log that grows fast"""


class Window:
    def __init__(self, log: str, skips: bool) -> None:
        self._skips = skips
        """whether to skip most of a large backlog, since no one reads a megabyte in a window"""
        self._at = 0
        self._left = b""
        self._notify = self._log = self._out = -1
        self._rests = False
        self._shown_at = 0.0
        self.deadline = 0.0
        try:
            self._log = os.open(log, os.O_RDONLY | os.O_CLOEXEC)
            self._out = _own(1)
            self._notify = notified((log,))
        except OSError:
            return

    def descriptors(self) -> list[int]:
        """Descriptors that are readable when the log has grown; none for a moment after a large output."""
        return [self._notify] if self._notify >= 0 and self._out >= 0 and not self._rests else []

    @property
    def blocked(self) -> bool:
        return bool(self._left)

    def show(self) -> None:
        """Write the new part of the log."""
        if self._out < 0 or self._log < 0:
            self.deadline = float("inf")
            return
        self._heed()
        shown = 0
        try:
            while shown < 16 * _CHUNK and self._write():
                data = os.pread(self._log, _CHUNK, self._skipped())
                self._at += len(data)
                self._left = data
                shown += len(data)
                if not data:
                    break
        except OSError:  # the window is gone
            self._out = -1
        now = time.monotonic()
        self._rests = self.blocked or (shown > 0 and now < self._shown_at + _REST_S)
        self._shown_at = now if shown else self._shown_at
        self.deadline = now + (_REST_S if self._rests else _LOOK_S if self._notify < 0 else 3600.0)

    def _heed(self) -> None:
        try:
            if self._notify >= 0:
                os.read(self._notify, 4096)
        except OSError:
            return

    def _skipped(self) -> int:
        if self._skips:
            behind = os.fstat(self._log).st_size - self._at
            self._at += max(0, behind - _CHUNK) if behind > _BEHIND else 0
        return self._at

    def _write(self) -> bool:
        """Write the text that was read. Returns whether all of it could be written."""
        while self._left:
            try:
                self._left = self._left[os.write(self._out, self._left) :]
            except BlockingIOError:
                return False
        return True

    def close(self, seconds: float) -> None:
        """Show the rest of the log, unless the window is blocked."""
        deadline = time.monotonic() + seconds
        while self._out >= 0:
            before = self._at
            self.show()
            if not self.blocked and self._at == before:
                return
            left = deadline - time.monotonic()
            if left <= 0 or (self.blocked and not select.select([], [self._out], [], left)[1]):
                return


def _own(fd: int) -> int:
    """A new non-blocking descriptor for the file of `fd`, which other processes may share."""
    try:
        return os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_APPEND | os.O_CLOEXEC)
    except OSError:  # a socket
        own = os.dup(fd)
        os.set_blocking(own, False)
        return own
