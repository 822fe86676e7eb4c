"""A check of a program that listens on this machine, which never blocks: an HTTP request or a TCP connection."""

from __future__ import annotations

import os
import re
import select
import socket
import time

from comborun.host import process

_STEP_S = 0.05
"""how often it is looked at while a connection is made or a long request is sent"""
_MOST = 1 << 20
"""bytes of an answer that are kept"""


class Ask:
    """One HTTP or TCP check that never blocks.

    The constructor starts it. Call `look` at `due`, or when one of `descriptors` is readable, until it returns True.
    """

    def __init__(
        self, port: int, within: float, *, path: str = "", method: str = "GET", media: str = "", body: str = ""
    ) -> None:
        self.path = path
        self.answer = b""
        self.connected = False
        """the connection was accepted"""
        self._left = _request(method, path, media or "application/json", body) if path else b""
        self._again = time.monotonic()
        self._deadline = self._again + within
        self._port = port
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        self._over = False

    @property
    def due(self) -> float:
        return self._deadline if self.connected and not self._left else min(self._deadline, self._again)

    def descriptors(self) -> list[int]:
        return [self._socket.fileno()] if self.connected and not self._over else []

    @property
    def well(self) -> bool:
        """It answered, and not with an error; without a path, it took the connection."""
        return 200 <= self.status < 400 if self.path else self.connected

    @property
    def status(self) -> int:
        match = re.match(rb"HTTP/[0-9.]+ ([0-9]{3})\b", self.answer)
        return int(match[1]) if match else 0

    def look(self) -> bool:
        """Whether it is over: answered, refused, or too late."""
        self._again = time.monotonic() + _STEP_S
        try:
            if not self._over and (self._connect() or self._exchange() or time.monotonic() >= self._deadline):
                self.close()
        except OSError:
            self.close()
        return self._over

    def close(self) -> None:
        self._over = True
        self._socket.close()

    def _connect(self) -> bool:
        """Whether that is all: refused, or connected and nothing is asked."""
        if not self.connected:
            code = self._socket.connect_ex(("127.0.0.1", self._port))
            self.connected = code in (0, 106)  # EISCONN
            if not self.connected:
                return code not in (11, 114, 115)  # EAGAIN, EALREADY, EINPROGRESS
        return not self.path

    def _exchange(self) -> bool:
        """Send the rest, receive what has arrived; return whether the answer is complete."""
        try:
            while self.connected and self._left:
                self._left = self._left[self._socket.send(self._left) :]
            while self.connected and len(self.answer) < _MOST:
                data = self._socket.recv(65536)
                if not data:
                    return True
                self.answer += data
                if _whole(self.answer):
                    return True
        except BlockingIOError:
            return False
        return self.connected


def wait(ask: Ask) -> Ask:
    """The same question, answered. Blocks."""
    while not ask.look():
        select.select(ask.descriptors(), [], [], max(0.0, ask.due - time.monotonic()))
    return ask


def port_of(text: str) -> int:
    """The number of a port; 0 where it is none."""
    return int(text) if re.fullmatch("[1-9][0-9]{0,4}", text) and int(text) < 65536 else 0


def _request(method: str, path: str, media: str, body: str) -> bytes:
    data = body.encode("utf-8", "surrogateescape")
    content = f"Content-Type: {media}\r\nContent-Length: {len(data)}\r\n" if data else ""
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n{content}\r\n"
    return head.encode("utf-8", "surrogateescape") + data


def _whole(answer: bytes) -> bool:
    """Whether the announced length has arrived: a server may keep the connection open."""
    head, end, body = answer.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)\r\ncontent-length: *([0-9]{1,15})", head)
    return bool(end and length and len(body) >= int(length[1]))


def taken_by_another(port: int, ours: list[int]) -> bool:
    """Whether a process that is not one of `ours` listens there; a hidden process counts as ours."""
    sockets = {f"socket:[{inode.decode()}]" for inode in _listeners(port)}
    if not sockets or any(_holds(pid, sockets) for pid in ours):
        return False
    return any(_holds(pid, sockets) for pid in process.pids())


def _listeners(port: int) -> list[bytes]:
    """The inodes of the sockets that listen on a port."""
    rows = [line.split() for table in ("tcp", "tcp6") for line in process.read(f"net/{table}").splitlines()[1:]]
    return [row[9] for row in rows if row[3] == b"0A" and int(row[1].rpartition(b":")[2], 16) == port]


def _holds(pid: int, sockets: set[str]) -> bool:
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)
    except OSError:
        return False
    for name in names:
        try:
            if os.readlink(f"{folder}/{name}") in sockets:
                return True
        except OSError:
            continue
    return False
