"""Every error of paramiko, of sockets and of processes, as a HostError that says what to do."""

from __future__ import annotations

import errno
import re
import socket
from typing import TYPE_CHECKING

from paramiko import SSHException
from paramiko.ssh_exception import ChannelException, IncompatiblePeer

from comborun.errors import HostError

if TYPE_CHECKING:
    from comborun.remote.ssh.config import Target

_ROUTE = {errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETDOWN, errno.EHOSTDOWN}


def explain(error: Exception, target: Target, complaint: str = "") -> HostError:
    """What a person should know about an error on the way to `target`; `complaint` is a ProxyCommand's."""
    where = f"{target.name} ({target.hostname}:{target.port})"
    if isinstance(error, HostError):
        return error
    if isinstance(error, socket.gaierror):
        return HostError(f"{target.name}: there is no host {target.hostname}", "is the name right, and the VPN up?")
    if isinstance(error, ConnectionRefusedError):
        return HostError(f"{where} refuses connections", "is sshd running there, and the port right?")
    if isinstance(error, TimeoutError):
        return HostError(f"{where} does not answer", "is it switched on, and the VPN up? a firewall may drop packets")
    if isinstance(error, OSError) and error.errno in _ROUTE:
        return HostError(f"there is no route to {where}", "is the network or the VPN up?")
    if isinstance(error, IncompatiblePeer):
        return HostError(f"{where} shares no algorithm with paramiko: {error}", "try --transport openssh")
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
    return HostError(f"the connection to {where} was lost: {text}", "the next try connects anew")


def hop_failed(error: HostError, hop: Target, target: Target) -> HostError:
    """The same error, saying which host on the way it is about."""
    return HostError(f"the jump host {hop.name} on the way to {target.name} failed: {error.message}", error.hint)


def no_way_on(error: Exception, hop: Target, target: Target) -> HostError:
    """A jump host that is reached but does not lead on."""
    text = error.text if isinstance(error, ChannelException) else str(error) or "no answer in time"
    return HostError(
        f"the jump host {hop.name} does not reach {target.hostname}:{target.port}: {text}",
        "is the host behind it up, and AllowTcpForwarding on there?",
    )


def no_key(target: Target, tried: list[str], allowed: tuple[str, ...], agent: str) -> HostError:
    """Nothing that we offered was accepted."""
    offered = "".join(f"\n  {line}" for line in tried) or "\n  nothing: there is no key file and no agent key"
    methods = f"; it accepts {', '.join(allowed)}" if allowed else ""
    return HostError(
        f"{target.user}@{target.name} accepted none of the keys{methods}\n  {agent}{offered}",
        f"check with  ssh {target.name} true ; passwords, hardware keys and second factors need --transport openssh",
    )
