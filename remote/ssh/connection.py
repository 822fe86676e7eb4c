"""Connect with paramiko: directly, through jump hosts, or through a ProxyCommand."""

from __future__ import annotations

import logging
import socket
import subprocess
import tempfile
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import IO, TYPE_CHECKING

from paramiko import SSHException, Transport

from comborun.errors import HostError
from comborun.remote.ssh.config import resolve
from comborun.remote.ssh.errors import explain, hop_failed, no_way_on
from comborun.remote.ssh.keys import KeyFiles
from comborun.remote.ssh.login import AUTH_S, handshake, login

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from paramiko import Channel

    from comborun.remote.ssh.config import Options, Target

KEEPALIVE_S = 20
LOST_AFTER_S = 30
"""how long bytes may stay unacknowledged"""
_MOST_HOPS = 8
_NEVER = 1 << 40

# without a handler logging prints paramiko's complaints itself
logging.getLogger("paramiko").addHandler(logging.NullHandler())


@dataclass
class Connection:
    """All that one connection consists of, the nearest hop first."""

    targets: list[Target] = field(default_factory=list)
    transports: list[Transport] = field(default_factory=list)
    sockets: list[socket.socket | Channel] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    proxy: subprocess.Popen[bytes] | None = None
    proxy_complaints: IO[bytes] = field(default_factory=tempfile.TemporaryFile)

    @property
    def transport(self) -> Transport:
        return self.transports[-1]

    @property
    def target(self) -> Target:
        return self.targets[-1]

    @property
    def lost(self) -> bool:
        """True when the connection is known to be gone. False proves nothing."""
        return not all(transport.is_active() for transport in self.transports)

    @property
    def complaint(self) -> str:
        """What the ProxyCommand said on its standard error."""
        if self.proxy_complaints.closed:
            return ""
        self.proxy_complaints.seek(0)
        return self.proxy_complaints.read(4096).decode("utf-8", "replace").strip()

    def close(self) -> None:
        for transport in reversed(self.transports):
            transport.close()
        for sock in reversed(self.sockets):
            sock.close()
        if self.proxy:
            self.proxy.kill()
            self.proxy.wait()
        self.proxy_complaints.close()


def connect(name: str, options: Options, files: KeyFiles) -> Connection:
    """Log in at `name`. Raises HostError; what was opened until then is closed."""
    connection = Connection()
    try:
        _reach(resolve(name, options.config), connection, options, files, ())
    except BaseException:
        connection.close()
        raise
    return connection


def _reach(target: Target, connection: Connection, options: Options, files: KeyFiles, beyond: tuple[str, ...]) -> None:
    """Connect to `target`, and first to every host on the way; each step has its deadline."""
    if target.name in beyond or len(connection.targets) >= _MOST_HOPS:
        raise HostError(f"the way to {target.name} goes in a circle", "see ProxyJump in your ssh config")
    for hop in _hops(target, options.config):
        try:
            _reach(hop, connection, options, files, (*beyond, target.name))
        except HostError as error:
            raise hop_failed(error, hop, target) from error
    try:
        _enter(target, connection, options, files)
    except (OSError, EOFError, SSHException) as error:
        raise explain(error, target, connection.complaint) from error


def _hops(target: Target, config: Path | None) -> list[Target]:
    """The jump hosts. The first is reached as its own config says, each other one through the one before it."""
    hops = [resolve(jump, config) for jump in target.jumps]
    return [*hops[:1], *(replace(hop, jumps=(), proxy_command=None) for hop in hops[1:])]


def _enter(target: Target, connection: Connection, options: Options, files: KeyFiles) -> None:
    connection.warnings += target.warnings
    sock = _open_socket(target, connection)
    connection.sockets.append(sock)
    transport = Transport(sock)
    connection.transports.append(transport)
    connection.targets.append(target)
    transport.banner_timeout = transport.handshake_timeout = transport.channel_timeout = target.connect_timeout
    transport.auth_timeout = AUTH_S
    # a CLOSE that arrives during a rekey that we began hangs for 30 s and then kills the connection (paramiko #822)
    transport.packetizer.REKEY_BYTES = transport.packetizer.REKEY_PACKETS = _NEVER
    connection.warnings += handshake(transport, target, accept_new=options.accept_new)
    login(transport, target, files)
    transport.set_keepalive(KEEPALIVE_S)


def _open_socket(target: Target, connection: Connection) -> socket.socket | Channel:
    if not connection.transports:
        return _start_proxy(target.proxy_command, connection) if target.proxy_command else _connect_tcp(target)
    try:
        return connection.transport.open_channel(
            "direct-tcpip", (target.hostname, target.port), ("127.0.0.1", 0), timeout=target.connect_timeout
        )
    except (OSError, EOFError, SSHException) as error:
        raise no_way_on(error, connection.target, target) from error


def _connect_tcp(target: Target) -> socket.socket:
    error: OSError = OSError("the name has no address")
    for family, kind, protocol, _, address in socket.getaddrinfo(
        target.hostname, target.port, target.family, socket.SOCK_STREAM
    ):
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(target.connect_timeout)
            sock.connect(address)
            _tune(sock)
        except OSError as refused:
            sock.close()
            error = refused
        else:
            return sock
    raise error


def _tune(sock: socket.socket) -> None:
    """Small packets at once (44 ms -> 2 ms for a command), and a dead link is noticed even when nothing is sent."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", KEEPALIVE_S),
        ("TCP_KEEPINTVL", 5),
        ("TCP_KEEPCNT", 2),
        ("TCP_USER_TIMEOUT", LOST_AFTER_S * 1000),
    ):
        if hasattr(socket, name):  # macOS has other names for some
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _start_proxy(command: str, connection: Connection) -> socket.socket:
    ours, theirs = socket.socketpair()
    try:
        connection.proxy = subprocess.Popen(
            ["sh", "-c", f"exec {command}"],
            stdin=theirs.fileno(),
            stdout=theirs.fileno(),
            stderr=connection.proxy_complaints,
            start_new_session=True,
        )
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    return ours


@contextmanager
def bounded(connection: Connection, seconds: float) -> Iterator[None]:
    """Close the connection when the block takes longer: paramiko waits for ever in exec_command and in write."""
    timer = threading.Timer(max(0.0, seconds), connection.close)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
