"""The FIFO at which the dispatcher hears of what happens, a line a message: WHAT SESSION ATTEMPT [NUMBER]."""

from __future__ import annotations

import contextlib
import os
import re
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    pass

_MESSAGE = re.compile("([a-z]+) ([A-Za-z0-9_-]+) ([0-9]{1,9})( ([0-9]*))?")
_LINE_MOST = 4096


class Message:
    """What a supervisor, a window or a person's command said."""

    __slots__ = ("attempt", "name", "what", "word")

    def __init__(self, what: str, name: str, attempt: int, word: str) -> None:
        self.what = what
        self.name = name
        self.attempt = attempt
        self.word = word


def parse(line: str) -> Message | None:
    found = _MESSAGE.fullmatch(line)
    return Message(found[1], found[2], int(found[3]), found[5] or "") if found else None


class Fifo:
    """The run's FIFO, open for reading and writing, so that it never ends."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.fd = -1
        self._text = b""

    def whole(self) -> bool:
        """Whether the path still leads to what we listen at; somebody may have removed it."""
        if self.fd < 0:
            return False
        try:
            there, ours = os.stat(self.path), os.fstat(self.fd)
        except OSError:
            return False
        return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)

    def listen(self) -> None:
        """Make it where it is missing, and open it. Raises OSError."""
        try:
            fifo = stat.S_ISFIFO(os.lstat(self.path).st_mode)
        except OSError:
            fifo = False
        if not fifo:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.path)
            os.mkfifo(self.path)
        fd = os.open(self.path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = fd

    def read(self) -> list[Message]:
        """What has been said by now."""
        while True:
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                break
            self._text += data
            if len(data) < 65536:
                break
        *lines, rest = self._text.split(b"\n")
        self._text = rest if len(rest) <= _LINE_MOST else b""
        found = (parse(line.decode("utf-8", "replace")) for line in lines)
        return [message for message in found if message]
