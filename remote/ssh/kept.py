"""A host over paramiko, through a keeper: a process that holds the connection, and outlives the command."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import tempfile
from typing import IO, TYPE_CHECKING

from comborun.errors import HostError
from comborun.remote.ssh.config import Options, resolve
from comborun.remote.ssh.keeping import Kept, connected, kept, messages, send, silent
from comborun.remote.ssh.shell import ShellTransport
from comborun.remote.ssh.streams import SocketShell

if TYPE_CHECKING:
    from comborun.remote.ssh.config import SshTarget
    from comborun.remote.ssh.transport import SshTransport

_OPENS_S = 15.0
"""seconds for a keeper to open a shell or to say why not"""
_LOGS_IN_S = 75.0
"""seconds for a keeper to log in where nobody is asked: more than the deadlines of all its steps"""


class _NoSessionError(Exception):
    """The host opens no further session on the kept connection."""


class _SilentError(OSError):
    """The host gives no answer on the kept connection."""


class KeptTransport(ShellTransport):
    """The contract of SshTransport, which it falls back to where no connection can be kept."""

    def __init__(self, host: str, options: Options | None = None) -> None:
        super().__init__(host)
        self._options = options or Options()
        self._own: SshTransport | None = None
        """a connection of this process, where none can be kept"""

    def open_shell(self) -> SocketShell:
        if self._own is None:
            if shell := self._of_keeper():
                return shell
            from comborun.remote.ssh.transport import SshTransport

            self._own = SshTransport(self.host, self._options)
        try:
            return self._own.open_shell()
        finally:
            self.warnings = (*self.warnings, *(one for one in self._own.warnings if one not in self.warnings))

    def _of_keeper(self) -> SocketShell | None:
        """A shell of the keeper, which is started if needed; None if no connection can be kept. Raises HostError."""
        target = resolve(self.host, self._options.config)
        try:
            place = kept("k", target)
        except HostError as error:
            self.warnings = (f"the connection to {self.host} is not kept: {error.message}",)
            return None
        if (stamp := place.stamp) and not place.may_be_used(target):
            place.end(stamp)
        for again in (False, True):
            try:
                return borrowed(place)
            except _NoSessionError:
                return None
            except (OSError, ValueError) as error:
                if again:
                    return None
                if isinstance(error, _SilentError):
                    self.warnings = (silent(self.host),)
            self._start(target, place)
        return None

    def _start(self, target: SshTarget, place: Kept) -> None:
        """Start a keeper, and wait until it has logged in. Raises HostError if it can't."""
        ours, theirs = socket.socketpair()
        with ours, tempfile.TemporaryFile() as complaints:
            with theirs:
                keeper = subprocess.Popen(
                    [sys.executable, "-P", "-m", "comborun.remote.ssh.keeper"],
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=complaints,
                )
            config = self._options.config
            ours.settimeout(None if self._options.ask else _LOGS_IN_S)
            try:
                send(
                    ours,
                    host=target.name,
                    config=str(config.absolute()) if config else "",
                    accept_new=self._options.accept_new,
                    asks=self._options.ask is not None,
                    socket=str(place.socket),
                    keep_s=self._options.keep_s,
                )
                self._talk(ours, complaints)
            except BaseException as error:
                keeper.kill()
                keeper.wait()
                if isinstance(error, TimeoutError):
                    raise HostError(f"{target.name} did not let us in within {_LOGS_IN_S:g} s") from None
                raise
        keeper.returncode = 0  # it is left alone: Python shall not complain that it still runs

    def _talk(self, keeper: socket.socket, complaints: IO[bytes]) -> None:
        """Answer its questions until it has logged in."""
        for said in messages(keeper):
            if "ask" in said and self._options.ask:
                self.asking = True
                send(keeper, answer=self._options.ask(str(said["ask"])))
                self.asking = False
            elif "error" in said:
                raise HostError(str(said["error"]), str(said["hint"]))
            elif isinstance(told := said.get("warnings"), list):
                self.warnings = (*self.warnings, *map(str, told))
                return
        complaints.seek(0)
        last = complaints.read(4096).decode("utf-8", "replace").strip().rpartition("\n")[2]
        message = f"the process that logs in at {self.host} has ended: {last}".rstrip(": ")
        raise HostError(message, "COMBORUN_KEEP_S=0 logs in without it")

    def disconnect(self) -> None:
        own, self._own = self._own, None
        if own:
            own.disconnect()


def borrowed(place: Kept) -> SocketShell:
    """A shell of a keeper."""
    errors, theirs = socket.socketpair()
    with contextlib.ExitStack() as stack, theirs:
        stack.callback(errors.close)
        with connected(place.socket) as keeper:
            keeper.settimeout(_OPENS_S)
            send(keeper, (theirs.fileno(),), verb="open")
            said = next(messages(keeper), {"refused": "it has left"})
            if "opened" not in said:
                answers: dict[object, type[Exception]] = {True: _NoSessionError, False: _SilentError}
                raise answers.get(said.get("alive"), ConnectionRefusedError)(said["refused"])
            stream = keeper.dup()
        stack.pop_all()
    return SocketShell(stream, errors)
