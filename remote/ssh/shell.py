"""Scripts through a held shell: everything that goes to a host over ssh passes here.

On the host, shell.sh runs scripts one after the other. One shell is kept for many scripts, because then a script costs
one round trip (its own channel costs two more) and the user's .bashrc runs once. Output of start-up files comes before
the first mark and is skipped.
"""

from __future__ import annotations

import re
import secrets
import shlex
import threading
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from importlib import resources
from typing import Self

from comborun.errors import HostError
from comborun.remote.ssh.config import Options, close_alias
from comborun.remote.ssh.streams import StreamShell
from comborun.remote.transport import Completed
from comborun.text import MIB

COMMAND = 'exec bash --noprofile --norc -c \'read -r -d ""; eval "$REPLY"\''
"""has the same meaning in sh, bash, zsh, fish and csh; the program itself follows on standard input"""

_LONGEST_TRAILER = 64
_NOISE_KEPT = 4096


def program() -> bytes:
    return resources.files("comborun.remote.ssh").joinpath("shell.sh").read_bytes() + b"\0"


@dataclass(frozen=True)
class ShellRequest:
    script: str
    args: tuple[str, ...]
    stdin: bytes
    timeout: float
    """seconds that the script may take on the host"""
    limit: int
    """bytes that each stream may hold"""

    def head(self, mark: bytes) -> bytes:
        """Everything that is sent before standard input."""
        text = f"unset -v REPLY; set -- {shlex.join(self.args)}; {self.script}"
        body = text.encode("utf-8", "surrogateescape")
        if b"\0" in body:
            raise ValueError("a script can hold no NUL")
        seconds = max(self.timeout, 0.001)
        return mark + b" %.3f %d\n" % (seconds, len(body) + 1 + len(self.stdin)) + body + b"\0"


class FramedAnswer:
    """Both streams of one answer, extracted from between their marks."""

    def __init__(self, mark: bytes, limit: int) -> None:
        self._stdout = _Frame(mark, limit)
        self._stderr = _Frame(mark, limit)

    @property
    def begun(self) -> bool:
        return self._stdout.begun

    @property
    def complete(self) -> bool:
        return self._stdout.end is not None and self._stderr.end is not None

    @property
    def noise(self) -> str:
        """The text before the answer: output of start-up files, or why there is no shell."""
        text = (self._stderr.noise + b"\n" + self._stdout.noise).decode("utf-8", "replace")
        lines = ("".join(c for c in line if c.isprintable()).strip() for line in text.splitlines())
        return "\n".join(line for line in lines if line)

    def feed(self, stdout: bytes, stderr: bytes) -> None:
        """Take received bytes. Raises HostError if a stream holds more than its limit."""
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


ANSWER_S = 20.0
"""seconds in which a host must begin with a script: more than any start-up file takes"""
GRACE_S = 3.0
"""seconds that we wait longer than the host for a script: the host ends it, and its message needs time"""
_OTHER_SHELL = re.compile(r".*(can't change option: -m|^(zsh|fish|t?csh|ksh|dash|sh)(:|\[)).*", re.MULTILINE)
"""messages of other shells than bash about shell.sh"""
LEAVE_S = 1.0
"""seconds for the last output of a shell that is gone"""
_FAULTS = (
    (
        "REMOTE HOST IDENTIFICATION HAS CHANGED",
        "the host key of {host} has changed: it may be another machine",
        "only if you know why (the host was set up anew): remove the old line with ssh-keygen -R",
    ),
    (
        "Host key verification failed|host key is known for",
        "the host key of {host} is not known",
        "compare the fingerprint with the host's own, then run  ssh {host} true  and answer yes, or add --accept-new",
    ),
    (
        "Permission denied|Too many authentication failures",
        "{host} accepted none of the keys",
        "check with  ssh {host} true ; keys with a passphrase have to be in an agent (ssh-add)",
    ),
    (
        "Could not resolve hostname|Name or service not known|name resolution|nodename nor servname",
        "there is no host of the name {host}",
        "is the name right, and the VPN up?{close}",
    ),
    ("Connection refused", "{host} refuses connections", "is sshd running there, and the port right?"),
    (
        "timed out|Timeout|not responding",
        "{host} does not answer",
        "is it switched on, and the VPN up? a firewall may drop packets",
    ),
    (
        "No route to host|Network is (unreachable|down)|Host is down",
        "there is no route to {host}",
        "is the network or the VPN up?",
    ),
)
"""messages of ssh and the system's library about an unreachable host, our sentence, and a hint"""


def fault(complaint: str, host: str) -> tuple[str, str] | None:
    """A sentence and a hint for a message about the way to a host; None if the message is unknown."""
    for pattern, message, hint in _FAULTS:
        if re.search(pattern, complaint):
            alias = close_alias(host.partition(" ")[0], Options().config) if "{close}" in hint else ""
            close = f" Your ssh config has {alias}" if alias else ""
            return message.format(host=host), hint.format(host=host, close=close)
    return None


class ShellTransport(ABC):
    """A transport whose scripts run one after the other in one held shell.

    A failed run drops the connection, and the next run connects again, without waiting: a caller that polls knows best
    how long to wait. Connecting has its own deadlines, which do not count for the script.
    """

    warnings: tuple[str, ...] = ()
    """sentences for the user: skipped lines of the ssh config and of known hosts, keys that were trusted"""

    asking = False
    """whether the user is asked something at the terminal now, for a login"""

    def __init__(self, host: str) -> None:
        self.host = host
        self._lock = threading.Lock()
        self._shell: StreamShell | None = None

    @property
    def lost(self) -> bool:
        """Whether the connection is known to be gone, though nothing was asked since. False proves nothing."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            return self._shell is not None and self._shell.ended
        finally:
            self._lock.release()

    @abstractmethod
    def open_shell(self) -> StreamShell:
        """Connect if needed, and start shell.COMMAND there."""

    @abstractmethod
    def disconnect(self) -> None:
        """End the connection. Never raises; may be called twice."""

    def run(
        self, script: str, *args: str, stdin: bytes = b"", timeout: float = 60.0, limit: int = 64 * MIB
    ) -> Completed:
        request = ShellRequest(script, args, stdin, timeout, limit)
        with self._lock:
            try:
                return self._run(request)
            except OSError as error:
                self._drop()
                lost = f"the connection to {self.host} was lost: {error}"
                raise HostError(lost, "the next try connects again") from error
            except BaseException:
                self._drop()
                raise

    def close(self) -> None:
        """End the connection; a run in progress raises HostError. A later run connects again."""
        if shell := self._shell:
            shell.interrupt()
        with self._lock:
            self._drop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _run(self, request: ShellRequest) -> Completed:
        shell = self._shell
        if shell is None or shell.ended:
            self._forget_shell()
            shell = self._shell = self.open_shell()
        exchange = Exchange(shell, request, self.host)
        done = exchange.finish()
        if exchange.pending:  # unread standard input would be taken for a request
            self._forget_shell()
        if done.code == -9 and exchange.elapsed >= request.timeout:
            raise _late(self.host, request.timeout)
        return done

    def _forget_shell(self) -> None:
        if self._shell is not None:
            self._shell.close()
        self._shell = None

    def _drop(self) -> None:
        self._forget_shell()
        self.disconnect()


class Exchange:
    """One request and its answer; `begins_s`: seconds in which a new shell must begin with it."""

    def __init__(self, shell: StreamShell, request: ShellRequest, host: str, begins_s: float = ANSWER_S) -> None:
        fresh, shell.started = not shell.started, True
        mark = secrets.token_hex(16).encode()
        head = request.head(mark)
        self.pending = [memoryview(part) for part in (program() + head if fresh else head, request.stdin) if part]
        self._shell = shell
        self._request = request
        self._host = host
        self._answer = FramedAnswer(mark, request.limit)
        self._begun = time.monotonic()
        self._deadline = self._begun + (begins_s if fresh else min(ANSWER_S, request.timeout + GRACE_S))

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._begun

    def finish(self) -> Completed:
        while True:
            received = self._receive()
            if self._answer.complete:
                return self._answer.completed()
            sent = self._send()
            if received or sent:
                continue
            left = self._deadline - time.monotonic()
            if left <= 0:
                raise self._late()
            self._shell.wait(left, sending=bool(self.pending))

    def _receive(self) -> bool:
        chunks = self._shell.receive()
        if chunks is None:
            raise self._ended()
        waiting = not self._answer.begun
        self._answer.feed(*chunks)
        if waiting and self._answer.begun:
            self._deadline = time.monotonic() + self._request.timeout + GRACE_S
        return any(chunks)

    def _send(self) -> bool:
        if not self.pending:
            return False
        try:
            sent = self._shell.send(self.pending[0])
        except OSError:  # its last message is worth more than the fact that it is closed
            if not self._answer.begun and self._left_already():
                raise self._ended() from None
            raise
        self.pending[0] = self.pending[0][sent:]
        if not self.pending[0]:
            del self.pending[0]
        return bool(sent)

    def _left_already(self) -> bool:
        """Whether the shell is gone and all its output was read."""
        until = time.monotonic() + LEAVE_S
        while (chunks := self._shell.receive()) is not None:
            self._answer.feed(*chunks)
            if (left := until - time.monotonic()) <= 0:
                return False
            self._shell.wait(left, sending=False)
        return True

    def _late(self) -> HostError:
        if self._answer.begun:
            return _late(self._host, self._request.timeout)
        return HostError(
            f"{self._host} did not answer in time", self._answer.noise or "the link is cut, or the host hangs"
        )

    def _ended(self) -> HostError:
        if self._answer.begun:
            return HostError(
                f"the connection to {self._host} was lost during a command", "it may still be running there"
            )
        noise = self._answer.noise
        if found := _OTHER_SHELL.search(noise):
            return HostError(
                f"on {self._host} another shell than bash took our commands: {found[0].strip()}",
                "a start-up file, ~/.bashrc say, starts it: put  [[ $- == *i* ]] || return  above the line `exec zsh`",
            )
        return HostError(
            f"{self._host} gave no shell",
            f"it said: {noise}" if noise else "the connection was lost, or bash is missing there",
        )


def _late(host: str, seconds: float) -> HostError:
    return HostError(f"the command on {host} did not finish in time ({seconds:g} s)", "is the host overloaded?")
