"""A host over ssh, with paramiko: one connection, one channel, one held shell."""

from __future__ import annotations

import select
import time
from typing import TYPE_CHECKING

from paramiko import ChannelException, SSHException

from comborun.errors import HostError
from comborun.remote.ssh.config import Options
from comborun.remote.ssh.connection import Connection, bounded, connect, explain
from comborun.remote.ssh.keys import KeyFiles
from comborun.remote.ssh.shell import COMMAND, ShellTransport

if TYPE_CHECKING:
    from paramiko import Channel

_CHUNK = 1 << 16
_SMALL = 8192
"""bytes that fit into the socket at once: everything sent before has been read, because the host has answered"""
_PLACE_S = 3.0
"""seconds to wait for a channel if MaxSessions is small: a shell that we left may take a moment to end"""
_ROOM_S = 0.005
"""seconds between two looks for room in the host's window: paramiko can't wait for room and for data at once"""


class SshTransport(ShellTransport):
    """Runs scripts on the host that the user's own `ssh NAME` would reach."""

    foreign = (OSError, EOFError, SSHException)

    def __init__(self, host: str, options: Options | None = None) -> None:
        super().__init__(host)
        self._options = options or Options()
        self._files = KeyFiles(self._options.ask)
        self._connection: Connection | None = None

    def _open_shell(self) -> ChannelShell:
        if self._connection and self._connection.lost:
            self._disconnect()
        if self._connection is None:
            self._connection = connect(self.host, self._options, self._files)
            self.warnings = self._connection.warnings
        try:
            return ChannelShell(self._connection)
        except (OSError, EOFError, SSHException) as error:
            raise explain(error, self._connection.target) from error

    def _interrupt(self) -> None:
        if self._connection:
            self._connection.close()

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection:
            connection.close()

    def _explain(self, error: Exception) -> HostError:
        assert self._connection
        return explain(error, self._connection.target)


class ChannelShell:
    """A channel that runs the held shell.

    It is never closed before the host has answered: paramiko's reader thread and ours would send EOF and CLOSE in the
    wrong order, and sshd would hang up.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._channel = _open_session(connection)
        with bounded(connection, connection.target.connect_timeout):
            self._channel.exec_command(COMMAND)
        self._channel.setblocking(0)
        self._poll = select.poll()
        self._poll.register(self._channel.fileno(), select.POLLIN)

    @property
    def ended(self) -> bool:
        return bool(self._channel.closed or self._channel.eof_received or self._connection.lost)

    def receive(self) -> tuple[bytes, bytes] | None:
        ended = self.ended
        stdout = self._channel.recv(_CHUNK) if self._channel.recv_ready() else b""
        stderr = self._channel.recv_stderr(_CHUNK) if self._channel.recv_stderr_ready() else b""
        return None if ended and not stdout and not stderr else (stdout, stderr)

    def send(self, data: memoryview, deadline: float) -> int:
        if not self._channel.send_ready():
            return 0
        if len(data) <= _SMALL:
            return self._channel.send(data)  # type: ignore[arg-type] # bytes would be copied
        with bounded(self._connection, deadline - time.monotonic()):
            return self._channel.send(data[:_CHUNK])  # type: ignore[arg-type]

    def wait(self, seconds: float, *, sending: bool) -> None:
        self._poll.poll(1000 * (min(seconds, _ROOM_S) if sending else seconds))

    def close(self) -> None:
        self._channel.close()


def _open_session(connection: Connection) -> Channel:
    deadline = time.monotonic() + _PLACE_S
    assert connection.transport
    while True:
        try:
            return connection.transport.open_session(timeout=connection.target.connect_timeout)
        except ChannelException:
            if time.monotonic() >= deadline:
                raise
            time.sleep(0.05)
