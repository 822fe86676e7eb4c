"""The X display of a session: an existing one (for all sessions or for one GPU), or an Xvfb of its own.

Xvfb chooses its number itself (-displayfd), so two that start at once never clash, and no lock file is ever removed. It
ends with its last client (-terminate). The first client is a connection that the supervisor opens and the command
inherits, so the server ends when both are gone.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Collection, Mapping

from comborun.host.supervise.attempt import Attempt
from comborun.host.system import files, process
from comborun.host.system.events import spawn
from comborun.rules.endings.evidence import Evidence, MissingResource

_GEOMETRY = "1280x1024x24"
_HELLO = b"l\0\x0b\0\0\0\0\0\0\0\0\0"
"""the first message of an X client: little endian, protocol 11.0, no authorization"""
_LEAVES_WITHIN_S = 3.0


class Display:
    """The display of one attempt. Raises MissingResource if there is none."""

    def __init__(self, asked: Mapping[str, str], gpus: str, attempt: Attempt) -> None:
        self.number = ""
        self.held: list[int] = []
        """descriptors that the command inherits"""
        self.server = 0
        """the pid of its Xvfb; 0 without one"""
        word = asked["word"]
        if word == "xvfb":
            self._serve(attempt, asked.get("geometry", _GEOMETRY))
        elif word.startswith(":"):
            self.number = word
        else:
            gpu = gpus.partition(",")[0]
            self.number = dict(pair.split("=", 1) for pair in word.split()).get(gpu, "")
            if not self.number:
                raise MissingResource(Evidence.NO_DISPLAY, gpu=gpu)

    def _serve(self, attempt: Attempt, geometry: str) -> None:
        """Start an Xvfb and wait for its number."""
        if not any(os.access(f"{folder}/Xvfb", os.X_OK) for folder in os.get_exec_path()):
            raise MissingResource(Evidence.NO_XVFB)
        complaints = f"{attempt.at.directory}/xvfb"
        read, write = os.pipe()
        try:
            self.server = _xvfb(write, complaints, attempt.marker, geometry)
        finally:
            os.close(write)
        number = _hear(read, attempt.timing.display_s)
        os.close(read)
        if not number:
            self.close()
            said = [line for line in files.read_text(complaints).splitlines() if line.strip()]
            raise MissingResource(Evidence.XVFB_FAILED, said=said[-1] if said else None)
        self.number = f":{number}"
        self._connect(number)

    def _connect(self, number: str) -> None:
        client = socket.socket(socket.AF_UNIX)
        try:
            client.connect(f"/tmp/.X11-unix/X{number}")  # noqa: S108
            client.sendall(_HELLO)
        except OSError:  # then it lives until it is told to end
            client.close()
            return
        self.held.append(files.inheritable(client.detach()))

    def close(self) -> None:
        """End the server after its command; it takes some seconds."""
        for fd in self.held:
            os.close(fd)
        self.held = []
        if not self.server:
            return
        process.send(self.server, signal.SIGTERM)
        if not process.wait(_LEAVES_WITHIN_S, self._gone):
            process.send(self.server, signal.SIGKILL)
            process.wait(3600, self._gone)
        self.server = 0

    def reaped(self, pids: Collection[int]) -> None:
        """Note children that have ended and were waited for: other processes may have their pids by now."""
        if self.server in pids:
            self.server = 0

    def _gone(self) -> bool:
        try:
            return os.waitpid(self.server, os.WNOHANG)[0] != 0
        except ChildProcessError:
            return True


def _xvfb(number: int, complaints: str, marker: str, geometry: str) -> int:
    words = ["Xvfb", "-displayfd", "1", "-screen", "0", geometry, "-nolisten", "tcp", "-terminate"]
    actions: list[tuple[object, ...]] = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDWR, 0),
        (os.POSIX_SPAWN_DUP2, number, 1),
        (os.POSIX_SPAWN_OPEN, 2, complaints, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666),
    ]
    return spawn(words, {**os.environ, "COMBORUN_SESSION": marker}, actions)


def _hear(fd: int, seconds: float) -> str:
    import select

    said, deadline = b"", time.monotonic() + seconds
    while b"\n" not in said:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([fd], [], [], left)[0]:
            return ""
        more = os.read(fd, 100)
        if not more:
            return ""
        said += more
    word = said.split(b"\n")[0].decode("ascii", "replace")
    return word if word.isdecimal() and len(word) <= 5 else ""
