"""A held shell whose streams do not block: the pipes of an ssh, or the sockets of whoever has the connection."""

from __future__ import annotations

import contextlib
import os
import select
import socket
from abc import ABC, abstractmethod

_CHUNK = 1 << 16


class StreamShell(ABC):
    """A running shell.sh and the way to it. Raises OSError. The input and the output may be one descriptor."""

    started = False
    """whether it has got the program"""

    def __init__(self, stdin: int, stdout: int, stderr: int) -> None:
        self._stdin, self._stdout, self._stderr = stdin, stdout, stderr
        self._open = {stdout, stderr}
        for one in (stdin, stdout, stderr):
            os.set_blocking(one, False)

    @property
    def ended(self) -> bool:
        """True if the shell is known to be gone. False proves nothing."""
        return self._stdout not in self._open

    @abstractmethod
    def interrupt(self) -> None:
        """Make an exchange in another thread fail."""

    @abstractmethod
    def close(self) -> None: ...

    def receive(self) -> tuple[bytes, bytes] | None:
        """The bytes received on both streams, without waiting; None: no more will come."""
        chunks = self._read(self._stdout), self._read(self._stderr)
        return None if self._stdout not in self._open and not any(chunks) else chunks

    def _read(self, stream: int) -> bytes:
        if stream not in self._open:
            return b""
        try:
            chunk = os.read(stream, _CHUNK)
        except BlockingIOError:
            return b""
        except OSError:
            chunk = b""
        if not chunk:
            self._open.discard(stream)
        return chunk

    def send(self, data: memoryview) -> int:
        """Send bytes; returns how many were taken, 0 if there is no room now."""
        try:
            return os.write(self._stdin, data[:_CHUNK])
        except BlockingIOError:
            return 0

    def wait(self, seconds: float, *, sending: bool) -> None:
        """Wait until there may be something to receive, or room to send."""
        poll = select.poll()
        for stream in {*self._open, *([self._stdin] if sending else [])}:
            events = select.POLLIN if stream in self._open else 0
            poll.register(stream, events | (select.POLLOUT if sending and stream == self._stdin else 0))
        poll.poll(1000 * seconds)


class SocketShell(StreamShell):
    """One socket for its input and output, another one for its errors."""

    def __init__(self, stream: socket.socket, errors: socket.socket) -> None:
        for one in (stream, errors):
            one.setblocking(False)  # what a timeout of its own would undo
        super().__init__(stream.fileno(), stream.fileno(), errors.fileno())
        self._stream, self._errors = stream, errors

    @property
    def ended(self) -> bool:
        if super().ended:
            return True
        try:
            return not self._stream.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def interrupt(self) -> None:
        with contextlib.suppress(OSError):
            self._stream.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        for one in (self._stream, self._errors):
            one.close()
