"""One script through a held shell: everything that goes to a host over ssh passes here."""

from __future__ import annotations

import re
import secrets
import threading
import time
from abc import ABC, abstractmethod
from typing import Protocol, Self

from comborun.amounts import MIB
from comborun.errors import HostError
from comborun.remote.ssh.shell import Answer, Request, program
from comborun.transport import Completed

ANSWER_S = 20.0
"""How long a host may take to begin with a script: more than any start-up file, less than anybody waits."""
GRACE_S = 3.0
"""How much later than the host we give up on a script: the host ends it, and its word needs time to travel."""
_OTHER_SHELL = re.compile(r".*(can't change option: -m|^(zsh|fish|t?csh|ksh|dash|sh)(:|\[)).*", re.MULTILINE)
"""what others than bash say to shell.sh"""
LEAVE_S = 1.0
"""How long the last words of a shell that is gone may take."""


class Shell(Protocol):
    """A running shell.sh and the way to it. Raises OSError, EOFError or the library's own errors."""

    def receive(self) -> tuple[bytes, bytes] | None:
        """What has come on both streams, without waiting; None: nothing more will come."""
        ...

    def send(self, data: memoryview, deadline: float) -> int:
        """How many bytes were taken; 0 when there is no room now."""
        ...

    def wait(self, seconds: float, *, sending: bool) -> None:
        """Return when there may be something to receive, or room to send."""
        ...

    @property
    def ended(self) -> bool:
        """True when the shell is known to be gone. False proves nothing."""
        ...

    def close(self) -> None: ...


class ShellTransport(ABC):
    """A transport whose scripts run one after the other in one held shell.

    A run that fails drops the connection, and the next run connects anew. There is no waiting between the two: who
    polls in a loop knows best how long to back off. Connecting has deadlines of its own, and does not count against
    a script's.
    """

    foreign: tuple[type[Exception], ...] = (OSError, EOFError)
    """what may be raised on the way, to be explained"""
    warnings: tuple[str, ...] = ()
    """sentences for people: what of the ssh config and of the known hosts was passed over, whose key was trusted"""

    def __init__(self, host: str) -> None:
        self.host = host
        self._lock = threading.Lock()
        self._shell: Shell | None = None

    @abstractmethod
    def _open_shell(self) -> Shell:
        """Connect where needed, and start shell.COMMAND there."""

    @abstractmethod
    def _interrupt(self) -> None:
        """Make a run that is under way in another thread fail."""

    @abstractmethod
    def _disconnect(self) -> None:
        """End the connection. Never raises, may be called twice."""

    @abstractmethod
    def _explain(self, error: Exception) -> HostError:
        """What to tell a person about a library's error."""

    def run(
        self, script: str, *args: str, stdin: bytes = b"", timeout: float = 60.0, limit: int = 64 * MIB
    ) -> Completed:
        request = Request(script, args, stdin, timeout, limit)
        with self._lock:
            try:
                return self._run(request)
            except self.foreign as error:
                told = self._explain(error)
                self._drop()
                raise told from error
            except BaseException:
                self._drop()
                raise

    def close(self) -> None:
        """End the connection; a run that is under way raises HostError. A later run connects anew."""
        self._interrupt()
        with self._lock:
            self._drop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _run(self, request: Request) -> Completed:
        shell, fresh = self._shell, False
        if shell is None or shell.ended:
            self._forget_shell()
            shell, fresh = self._open_shell(), True
            self._shell = shell
        exchange = _Exchange(shell, request, self.host, fresh=fresh)
        done = exchange.finish()
        if exchange.pending:  # nobody read all of standard input: what is left would be taken for a request
            self._forget_shell()
        if done.code == -9 and exchange.elapsed >= request.timeout:
            raise _late(self.host, request.timeout)
        return done

    def _forget_shell(self) -> None:
        if self._shell is not None:
            self._shell.close()
        self._shell = None

    def _drop(self) -> None:
        self._shell = None
        self._disconnect()


class _Exchange:
    """Sends a request and drains both streams at once, bounded in bytes and in time."""

    def __init__(self, shell: Shell, request: Request, host: str, *, fresh: bool) -> None:
        mark = secrets.token_hex(16).encode()
        head = request.head(mark)
        self.pending = [memoryview(part) for part in (program() + head if fresh else head, request.stdin) if part]
        self._shell = shell
        self._request = request
        self._host = host
        self._answer = Answer(mark, request.limit)
        self._begun = time.monotonic()
        self._deadline = self._begun + (ANSWER_S if fresh else min(ANSWER_S, request.timeout + GRACE_S))

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
            sent = self._shell.send(self.pending[0], self._deadline)
        except OSError:  # it may have left with a word, which is worth more than that it is closed
            if not self._answer.begun and self._left_already():
                raise self._ended() from None
            raise
        self.pending[0] = self.pending[0][sent:]
        if not self.pending[0]:
            del self.pending[0]
        return bool(sent)

    def _left_already(self) -> bool:
        """Whether the shell is gone, with all that it said taken in."""
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
