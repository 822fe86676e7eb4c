"""The words that are exchanged with shell.sh, the loop on the host that runs scripts one after the other.

One shell is held for many scripts because a script then costs one round trip (a channel of its own costs two more) and
the user's .bashrc runs once. What start-up files print comes before the first mark and is passed over.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from importlib import resources

from comborun.errors import HostError
from comborun.transport import Completed

COMMAND = 'exec bash --noprofile --norc -c \'read -r -d ""; eval "$REPLY"\''
"""Means the same to sh, bash, zsh, fish and csh: the program itself follows on standard input."""

_LONGEST_TRAILER = 64
_NOISE_KEPT = 4096


def program() -> bytes:
    """What the shell reads first."""
    return resources.files("comborun.remote.ssh").joinpath("shell.sh").read_bytes() + b"\0"


@dataclass(frozen=True)
class Request:
    script: str
    args: tuple[str, ...]
    stdin: bytes
    timeout: float
    """seconds that the script may take on the host"""
    limit: int
    """bytes that each stream may hold"""

    def head(self, mark: bytes) -> bytes:
        """All that goes before standard input."""
        text = f"unset -v REPLY; set -- {shlex.join(self.args)}; {self.script}"
        body = text.encode("utf-8", "surrogateescape")
        if b"\0" in body:
            raise ValueError("a script can hold no NUL")
        seconds = max(self.timeout, 0.001)
        return mark + b" %.3f %d\n" % (seconds, len(body) + 1 + len(self.stdin)) + body + b"\0"


class Answer:
    """Both streams of one answer, found between their marks among whatever else comes."""

    def __init__(self, mark: bytes, limit: int) -> None:
        self._stdout = _Frame(mark, limit)
        self._stderr = _Frame(mark, limit)

    @property
    def begun(self) -> bool:
        """Whether the host has begun to work on the request."""
        return self._stdout.begun

    @property
    def complete(self) -> bool:
        return self._stdout.end is not None and self._stderr.end is not None

    @property
    def noise(self) -> str:
        """What came before the answer: start-up files, or why there is no shell."""
        text = (self._stderr.noise + b"\n" + self._stdout.noise).decode("utf-8", "replace")
        lines = ("".join(c for c in line if c.isprintable()).strip() for line in text.splitlines())
        return "\n".join(line for line in lines if line)

    def feed(self, stdout: bytes, stderr: bytes) -> None:
        """Take what has come. Raises HostError when a stream holds more than its limit."""
        self._stdout.feed(stdout)
        self._stderr.feed(stderr)

    def completed(self) -> Completed:
        return Completed(int(self._stdout.end or b"0"), bytes(self._stdout.body), bytes(self._stderr.body))


class _Frame:
    def __init__(self, mark: bytes, limit: int) -> None:
        self._head = mark + b"<\n"
        self._tail = mark + b">"
        self._limit = limit
        self._searched = 0
        self.begun = False
        self.noise = b""
        self.body = bytearray()
        self.end: bytes | None = None

    def feed(self, chunk: bytes) -> None:
        if self.end is not None or not chunk:
            return
        if self.begun:
            self.body += chunk
        else:
            before, head, after = (self.noise + chunk).partition(self._head)
            self.noise = before[-_NOISE_KEPT:]
            self.begun = bool(head)
            self.body += after
        self._find_tail()
        allowed = self._limit + (_LONGEST_TRAILER if self.end is None else 0)
        if len(self.body) > allowed:
            raise HostError(f"a command answered with more than {self._limit} bytes")

    def _find_tail(self) -> None:
        at = self.body.find(self._tail, self._searched)
        if at < 0:
            self._searched = max(0, len(self.body) - len(self._tail) + 1)
            return
        self._searched = at
        word, newline, _ = bytes(self.body[at + len(self._tail) :]).partition(b"\n")
        if newline:
            self.end = word
            del self.body[at:]
