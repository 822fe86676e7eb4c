"""A check of a program that listens on this machine: an HTTP request, or a TCP connection."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import time

from comborun.host import process

_MOST = 1 << 20
"""bytes of an answer that are kept"""


class Answer:
    """What a program answered; `status` is 0 where that was not HTTP, or nothing in time."""

    def __init__(self) -> None:
        self.connected = False
        self.status = 0
        self.reason = ""
        self.body = b""


def request(
    port: int, within: float, path: str = "", method: str = "GET", content: tuple[str, str] = ("", "")
) -> Answer:
    """Ask for a path, or only connect without one. Returns when it has answered, refused, or `within` seconds later.

    `content`: a media type and a body.
    """
    answer, deadline = Answer(), time.monotonic() + within
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=within)
    media, body = content
    headers = {"Connection": "close", **({"Content-Type": media or "application/json"} if body else {})}
    with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException, ValueError):
        connection.connect()
        answer.connected = True
        if not path:
            return answer
        connection.request(method, path, body.encode("utf-8", "surrogateescape") or None, headers)
        response = connection.getresponse()
        answer.status, answer.reason = response.status, response.reason
        while len(answer.body) < _MOST and time.monotonic() < deadline and (data := response.read1(65536)):
            answer.body += data
    return answer


def healthy(port: int, path: str, within: float) -> bool:
    """Whether it answers, and not with an error; without a path, whether it takes the connection."""
    answer = request(port, within, path)
    return 200 <= answer.status < 400 if path else answer.connected


def port_of(text: str) -> int:
    """The number of a port; 0 where it is none."""
    return int(text) if re.fullmatch("[1-9][0-9]{0,4}", text) and int(text) < 65536 else 0


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
