"""A host over ssh, with paramiko: one connection, directly or through a ProxyCommand, one channel, one held shell.

Jump hosts are the work of ssh itself.
"""

from __future__ import annotations

import logging
import re
import shlex
import socket
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING

from paramiko import AuthenticationException, BadAuthenticationType, SSHException, Transport
from paramiko.ssh_exception import ChannelException, IncompatiblePeer

from comborun.errors import HostError
from comborun.remote.ssh.config import Address, Options, resolve, ssh_arguments
from comborun.remote.ssh.keys import Agent, KeyFiles, candidates
from comborun.remote.ssh.known_hosts import keys_of, verify
from comborun.remote.ssh.relay import shell_of
from comborun.remote.ssh.shell import COMMAND, ShellTransport, fault
from comborun.text import several

if TYPE_CHECKING:
    from pathlib import Path

    from paramiko import Channel, PKey

    from comborun.remote.ssh.config import SshTarget
    from comborun.remote.ssh.streams import SocketShell


def explain(error: Exception, target: SshTarget, complaint: str = "") -> HostError:
    """The error for the user about a failed way to `target`; `complaint` is a ProxyCommand's."""
    where = f"{target.name} ({target.hostname}:{target.port})"
    if isinstance(error, OSError) and (
        known := fault("timed out" if isinstance(error, TimeoutError) else str(error), where)
    ):
        return HostError(*known)
    if isinstance(error, IncompatiblePeer):
        return HostError(f"{where} shares no algorithm with paramiko: {error}", "try --transport openssh")
    if complaint and target.jumps:
        unknown = "ssh could not connect", f"check with  ssh {target.name} true"
        message, hint = fault(complaint, target.jumps[-1]) or unknown
        jumps = ", ".join(target.jumps)
        return HostError(f"the way to {target.name} over {jumps} failed: {message}\n  {complaint}", hint)
    if complaint:
        return HostError(
            f"the ProxyCommand of {target.name} failed: {complaint}", "see ProxyCommand in your ssh config"
        )
    if isinstance(error, SSHException) and re.search("banner|No existing session", str(error)):
        return HostError(
            f"{where} accepts connections but does not speak ssh in time",
            "sshd hangs or has too many logins at once (MaxStartups); or another program listens there",
        )
    if isinstance(error, ChannelException):
        return HostError(f"{where} opens no session: {error.text}", "it limits sessions (MaxSessions); close others")
    text = str(error) or "the connection was closed"
    return HostError(f"the connection to {where} was lost: {text}", "the next try connects again")


AUTH_S = 30.0
_RSA = ("rsa-sha2-512", "rsa-sha2-256")


def handshake(transport: Transport, target: SshTarget, *, accept_new: bool) -> tuple[str, ...]:
    """Encrypt the connection and check the host's key; returns warnings."""
    known = keys_of(target)
    # ask for the known kinds of keys, so that a host with several shows one that can be checked
    types = {key.type for key in known if not key.marker}
    types |= set(_RSA) if "ssh-rsa" in types else set()
    options = transport.get_security_options()
    options.key_types = sorted(options.key_types, key=lambda name: name not in types)
    # paramiko raises no error at this deadline, so its own ones for the banner and the keys must come earlier
    transport.start_client(timeout=2 * target.connect_timeout + 1)
    blob = transport.get_remote_server_key().asbytes()
    return verify(target, known, blob, accept_new=accept_new)


def login(transport: Transport, target: SshTarget, files: KeyFiles) -> None:
    """Offer keys until one is accepted. Raises HostError that names all that were tried."""
    agent, remark = _open_agent(target)
    try:
        _offer_all(transport, target, agent.get_keys() if agent else (), files, remark)
    finally:
        if agent:
            agent.close()


def _open_agent(target: SshTarget) -> tuple[Agent | None, str]:
    if not target.agent:
        return None, "no ssh agent"
    try:
        agent = Agent(target.agent)
    except (OSError, SSHException) as error:
        return None, f"the ssh agent at {target.agent} does not answer: {error}"
    count = len(agent.get_keys())
    return agent, f"an ssh agent with {several(count, 'key')}"


def _offer_all(
    transport: Transport, target: SshTarget, agent_keys: tuple[PKey, ...], files: KeyFiles, agent: str
) -> None:
    tried: list[str] = []
    allowed: tuple[str, ...] = ()
    for candidate in candidates(target, agent_keys, files, tried):
        try:
            if further := transport.auth_publickey(target.user, candidate.key):
                raise HostError(
                    f"{target.name} accepted {candidate.name} and wants a second factor: {', '.join(further)}",
                    "--transport openssh can give it",
                )
            if transport.is_authenticated():
                return
        except BadAuthenticationType as error:
            allowed = tuple(error.allowed_types)
            break
        except AuthenticationException as error:
            if "timeout" in str(error).lower():
                raise TimeoutError("timed out") from error  # the link was cut meanwhile: no key was refused
            if not transport.is_active():
                tried.append(f"{candidate.name}: the host hung up, perhaps for too many keys; see IdentitiesOnly")
                break
            tried.append(f"{candidate.name}: refused")
        except (SSHException, ValueError) as error:
            if not transport.is_active():
                raise
            tried.append(f"{candidate.name}: {error}")
    offered = "".join(f"\n  {line}" for line in tried) or "\n  nothing: there is no key file and no agent key"
    methods = f"; it accepts {', '.join(allowed)}" if allowed else ""
    raise HostError(
        f"{target.user}@{target.name} accepted none of the keys{methods}\n  {agent}{offered}",
        f"check with  ssh {target.name} true ; passwords, hardware keys and second factors need --transport openssh",
    )


KEEPALIVE_S = 20
LOST_AFTER_S = 30
"""seconds for which bytes may stay unacknowledged"""
_NEVER = 1 << 40

# without a handler, logging would print paramiko's messages
logging.getLogger("paramiko").addHandler(logging.NullHandler())


@dataclass
class Connection:
    target: SshTarget
    transport: Transport | None = None
    sock: socket.socket | None = None
    warnings: tuple[str, ...] = ()
    proxy: subprocess.Popen[bytes] | None = None
    proxy_complaints: IO[bytes] = field(default_factory=tempfile.TemporaryFile)

    @property
    def lost(self) -> bool:
        """True if the connection is known to be gone. False proves nothing."""
        return not (self.transport and self.transport.is_active())

    @property
    def complaint(self) -> str:
        """The standard error of the ProxyCommand."""
        if self.proxy_complaints.closed:
            return ""
        self.proxy_complaints.seek(0)
        return self.proxy_complaints.read(4096).decode("utf-8", "replace").strip()

    def close(self) -> None:
        if self.transport:
            self.transport.close()
        if self.sock:
            self.sock.close()
        if self.proxy:
            self.proxy.kill()
            self.proxy.wait()
        self.proxy_complaints.close()


def connect(name: str, options: Options, files: KeyFiles) -> Connection:
    """Log in at `name`. Raises HostError after closing everything that was opened."""
    target = resolve(name, options.config)
    _check_jumps(target, options.config, ())
    connection = Connection(target)
    try:
        _enter(connection, options, files)
    except (OSError, EOFError, SSHException) as error:
        shown = explain(error, target, connection.complaint)
        connection.close()
        raise shown from error
    except BaseException:
        connection.close()
        raise
    return connection


def _check_jumps(target: SshTarget, config: Path | None, beyond: tuple[str, ...]) -> None:
    """Raise HostError if the jump hosts go in a circle: ssh would start a process for each of them, without an end."""
    if target.name in beyond:
        raise HostError(f"the way to {target.name} goes in a circle", "see ProxyJump in your ssh config")
    if target.jumps:
        _check_jumps(resolve(target.jumps[0], config), config, (*beyond, target.name))


def _enter(connection: Connection, options: Options, files: KeyFiles) -> None:
    """Connect and log in; each step has its deadline."""
    target, command = connection.target, _proxy_command(connection.target, options)
    connection.sock = _start_proxy(command, connection, options) if command else _connect_tcp(target)
    connection.transport = transport = Transport(connection.sock)
    transport.banner_timeout = transport.handshake_timeout = transport.channel_timeout = target.connect_timeout
    transport.auth_timeout = AUTH_S
    # a CLOSE that arrives during a rekey that we began hangs for 30 s and then kills the connection (paramiko #822)
    transport.packetizer.REKEY_BYTES = transport.packetizer.REKEY_PACKETS = _NEVER
    connection.warnings = handshake(transport, target, accept_new=options.accept_new)
    login(transport, target, files)
    transport.set_keepalive(KEEPALIVE_S)


def _proxy_command(target: SshTarget, options: Options) -> str | None:
    """The user's ProxyCommand, or what ssh itself runs for jump hosts: ssh to the last one, over those before it."""
    if not target.jumps:
        return target.proxy_command
    *before, last = target.jumps
    settings = [f"BatchMode={'no' if options.ask else 'yes'}", "ServerAliveInterval=10", "ServerAliveCountMax=3"]
    settings += ["StrictHostKeyChecking=accept-new"] if options.accept_new else []
    words = ["ssh", *(word for one in settings for word in ("-o", one)), *(["-J", ",".join(before)] if before else [])]
    words += ["-W", f"[{target.hostname}]:{target.port}", *ssh_arguments(Address.parse(last), options.config)]
    return shlex.join(words)


def _connect_tcp(target: SshTarget) -> socket.socket:
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
    """Send small packets at once (44 ms -> 2 ms for a command), and notice a dead link even when nothing is sent."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", KEEPALIVE_S),
        ("TCP_KEEPINTVL", 5),
        ("TCP_KEEPCNT", 2),
        ("TCP_USER_TIMEOUT", LOST_AFTER_S * 1000),
    ):
        if hasattr(socket, name):  # macOS has other names
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _start_proxy(command: str, connection: Connection, options: Options) -> socket.socket:
    ours, theirs = socket.socketpair()
    # it stays in the session of the terminal, where it may ask, but outlives the command that logs in
    lasting = "trap '' INT HUP; " if options.keep_s and options.ask else ""
    with theirs:
        try:
            connection.proxy = subprocess.Popen(
                ["sh", "-c", f"{lasting}exec {command}"],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=connection.proxy_complaints,
                start_new_session=options.ask is None,  # otherwise ssh may ask for a passphrase at the terminal
            )
        except BaseException:
            ours.close()
            raise
    return ours


_OPEN_S = 5.0
"""seconds for which a channel blocks its relay: then it asks whether anybody still uses it"""
_PLACE_S = 3.0
"""seconds to wait for a channel if MaxSessions is small: a shell that we left may take a moment to end"""


class SshTransport(ShellTransport):
    """Runs scripts on the host that the user's own `ssh NAME` would reach."""

    def __init__(self, host: str, options: Options | None = None) -> None:
        super().__init__(host)
        self._options = options or Options()
        self._files = KeyFiles(self._options.ask)
        self._connection: Connection | None = None

    def open_shell(self) -> SocketShell:
        if self._connection and self._connection.lost:
            self.disconnect()
        if self._connection is None:
            self._connection = connect(self.host, self._options, self._files)
            self.warnings = self._connection.warnings
        try:
            return shell_of(_open_channel(self._connection))
        except (OSError, EOFError, SSHException) as error:
            raise explain(error, self._connection.target) from error

    def disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection:
            connection.close()


def _open_channel(connection: Connection) -> Channel:
    """A channel with the held shell."""
    channel, seconds = _open_session(connection), connection.target.connect_timeout
    channel.settimeout(_OPEN_S)
    too_late = threading.Timer(seconds, connection.close)  # paramiko has no deadline in exec_command
    too_late.daemon = True
    too_late.start()
    try:
        channel.exec_command(COMMAND)
    finally:
        too_late.cancel()
    return channel


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
