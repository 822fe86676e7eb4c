"""Carries bytes between a channel of paramiko and the sockets of whoever uses the shell in it."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from typing import TYPE_CHECKING

from paramiko import SSHException

from comborun.remote.ssh.streams import SocketShell

if TYPE_CHECKING:
    from collections.abc import Callable

    from paramiko import Channel

_CHUNK = 1 << 16
_CLOSE_S = 3.0
"""seconds for a shell to end after its input has ended"""


def shell_of(channel: Channel) -> SocketShell:
    """The shell in a channel, for this process."""
    (stream, its_end), (errors, its_errors) = socket.socketpair(), socket.socketpair()

    def carry() -> None:
        with its_end, its_errors:
            relay(channel, its_end, its_errors)

    threading.Thread(target=carry, daemon=True).start()
    return SocketShell(stream, errors)


def relay(channel: Channel, client: socket.socket, errors: socket.socket) -> None:
    """Carry bytes between the shell and a client until one of them ends."""
    others = [
        threading.Thread(target=_feed, args=(channel, client), daemon=True),
        threading.Thread(target=_drain, args=(channel.recv_stderr, errors, channel), daemon=True),
    ]
    for one in others:
        one.start()
    _drain(channel.recv, client, channel)
    others[1].join()
    for end in (client, errors):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
    others[0].join()


def _feed(channel: Channel, client: socket.socket) -> None:
    """What the client writes, to the shell; at its end the shell ends."""
    with contextlib.suppress(OSError, EOFError, SSHException):
        while data := client.recv(_CHUNK):
            left = memoryview(data)
            while left:
                try:
                    left = left[channel.send(left) :]  # type: ignore[arg-type] # bytes would be copied
                except TimeoutError:  # the host takes nothing now: does anybody still want it to?
                    if _hung_up(client):
                        channel.close()
                        return
        if not channel.closed:
            channel.shutdown_write()
            if not channel.status_event.wait(_CLOSE_S):
                channel.close()


def _drain(receive: Callable[[int], bytes], sink: socket.socket, channel: Channel) -> None:
    """What the shell writes, to the client, or to nobody once the client is gone."""
    gone = False
    with contextlib.suppress(OSError, EOFError, SSHException):
        while True:
            try:
                data = receive(_CHUNK)
            except TimeoutError:
                if channel.closed:
                    return
                continue
            if not data:
                return
            try:
                if not gone:
                    sink.sendall(data)
            except OSError:
                gone = True


def _hung_up(client: socket.socket) -> bool:
    poll = select.poll()
    poll.register(client, select.POLLHUP)
    return any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll(0))
