"""What wakes a dispatcher: lines in the FIFO of its run, and signals."""

from __future__ import annotations

import contextlib
import os
import re
import signal
from dataclasses import dataclass

from comborun.host.system import files
from comborun.rules.names import NAME

_MESSAGE = re.compile(f"([a-z]+) ({NAME}) ([0-9]{{1,9}})( ([0-9]*))?")
_LINE_MOST = 4096


@dataclass(frozen=True)
class Message:
    """WHAT SESSION ATTEMPT [NUMBER]"""

    what: str
    name: str
    attempt: int
    word: str


class Fifo:
    """The run's FIFO, open for reading and writing, so that it never reports end of file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.fd = -1
        self._text = b""

    def whole(self) -> bool:
        """Whether the path still leads to our FIFO; a user may have removed it."""
        return files.leads_to(files.fifo_at(self.path), self.fd)

    def listen(self) -> None:
        """Make it if it is missing, and open it. Raises OSError."""
        place = files.fifo_at(self.path)
        if not place:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.path)
            place = files.make_fifo(self.path)
        fd = os.open(place, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = fd

    def read(self) -> list[Message]:
        with contextlib.suppress(OSError):
            while data := os.read(self.fd, 65536):
                self._text += data
        *lines, rest = self._text.split(b"\n")
        self._text = rest if len(rest) <= _LINE_MOST else b""
        found = map(_MESSAGE.fullmatch, (line.decode("utf-8", "replace") for line in lines))
        return [Message(one[1], one[2], int(one[3]), one[5] or "") for one in found if one]


class Signals:
    """HUP, INT and QUIT have no effect on us, but children do not ignore them; TERM ends us; CHLD wakes us."""

    def __init__(self) -> None:
        self.fd, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        signal.signal(signal.SIGTERM, _end)

    def take(self) -> bool:
        try:
            return bool(os.read(self.fd, 4096))
        except BlockingIOError:
            return False


def _end(*_: object) -> None:
    raise SystemExit(143)
