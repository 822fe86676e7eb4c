"""The keeper: a process of this user that logs in at a host, and opens shells there for later commands.

    python -m comborun.remote.ssh.keeper        started by kept.py, with a socket as standard input

It ends ten minutes after its last use, when the connection is lost, when it is told to, or when its socket is gone. It
keeps no key and no passphrase: when the connection is lost, the next command logs in again.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from paramiko import SSHException
from paramiko.ssh_exception import ChannelException

from comborun.clock import elapsed
from comborun.errors import HostError
from comborun.remote.ssh.config import Options
from comborun.remote.ssh.keeping import Kept, messages, peer_uid, send
from comborun.remote.ssh.keys import KeyFiles
from comborun.remote.ssh.known_hosts import fingerprint
from comborun.remote.ssh.relay import relay
from comborun.remote.ssh.shell import COMMAND
from comborun.remote.ssh.transport import Connection, connect

if TYPE_CHECKING:
    from paramiko import Channel

_LOOK_S = 2.0
"""seconds between two checks whether this process is still needed"""
_OPEN_S = 5.0
"""seconds for a new channel; after them the connection counts as dead, and the command logs in anew"""
_HELLO_S = 5.0
"""seconds for a client to say what it wants"""


def main() -> int:
    with socket.socket(fileno=os.dup(0)) as starter:
        said = messages(starter)
        asked = next(said)

        def ask(question: str) -> str:
            send(starter, ask=question)
            answer = next(said, None)
            return str(answer["answer"]) if answer else sys.exit("who started this is gone")

        config = Path(str(asked["config"])) if asked["config"] else None
        keep_s = float(str(asked["keep_s"]))
        options = Options(config, bool(asked["accept_new"]), ask if asked["asks"] else None, keep_s=keep_s)
        try:
            connection = connect(str(asked["host"]), options, KeyFiles(options.ask))
        except HostError as error:
            send(starter, error=error.message, hint=error.hint)
            return 1
        with contextlib.closing(connection):
            os.setsid()  # Ctrl-C and the end of the terminal are not meant for this process
            os.chdir("/")
            keeper = Keeper(connection, Kept(Path(str(asked["socket"]))), keep_s)
            keeper.listen()
            send(starter, warnings=connection.warnings)
            for stream in (0, 2):
                os.dup2(os.open(os.devnull, os.O_RDWR), stream)
            starter.close()
            keeper.serve()
    return 0


class Keeper:
    def __init__(self, connection: Connection, kept: Kept, keep_s: float) -> None:
        self._connection, self._kept, self._keep_s = connection, kept, keep_s
        self._listener = socket.socket(socket.AF_UNIX)
        self._stamp: tuple[int, int] | None = None
        self._used = elapsed()
        self._clients = 0
        self._lock = threading.Lock()
        self._leaving = False

    def listen(self) -> None:
        """Take the place of an earlier keeper, which then serves its clients and ends."""
        draft = self._kept.socket.with_suffix(f".{os.getpid() % 100000}")
        self._listener.bind(str(draft))
        draft.chmod(0o600)
        self._listener.listen(16)
        assert self._connection.transport
        shown = fingerprint(self._connection.transport.get_remote_server_key().asbytes())
        with self._kept.locked():
            self._kept.write(self._connection.target.name, [shown])
            draft.replace(self._kept.socket)
            self._stamp = self._kept.stamp

    def serve(self) -> None:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        try:
            while self._needed():
                self._accept(_LOOK_S)
        finally:
            self._step_aside()

    def _needed(self) -> bool:
        if self._leaving or self._connection.lost:
            return False
        with self._lock:
            unused = not self._clients and elapsed() - self._used > self._keep_s
        if not unused and self._kept.stamp == self._stamp:
            return True
        self._step_aside()
        while self._accept(0):  # clients that found this process before
            pass
        with self._lock:
            return self._clients > 0

    def _accept(self, seconds: float) -> bool:
        if not select.select([self._listener], [], [], seconds)[0]:
            return False
        client = self._listener.accept()[0]
        with self._lock:  # its own thread would count it too late for _needed
            self._clients += 1
        threading.Thread(target=self._answer, args=(client,), daemon=True).start()
        return True

    def _step_aside(self) -> None:
        """Let no new client find this process; those that it has are served."""
        self._kept.remove(self._stamp)

    def _answer(self, client: socket.socket) -> None:
        try:
            self._serve_client(client)
        finally:
            with self._lock:
                self._clients -= 1
                self._used = elapsed()

    def _serve_client(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError, ValueError, StopIteration):
            client.settimeout(_HELLO_S)
            if peer_uid(client) != os.getuid():
                return
            line, descriptors, _, _ = socket.recv_fds(client, 64, 1)
            with contextlib.ExitStack() as stack:
                errors = [stack.enter_context(socket.socket(fileno=one)) for one in descriptors]
                if line == b'{"verb": "leave"}\n':
                    send(client, left=True)
                    self._leaving = True
                    self._connection.close()
                elif errors:
                    self._lend(client, errors[0])

    def _lend(self, client: socket.socket, errors: socket.socket) -> None:
        try:
            channel = self._open()
        except (SSHException, OSError, EOFError) as error:
            alive = isinstance(error, ChannelException)  # a host that says no is not dead
            if not alive:
                self._step_aside()
            send(client, refused=str(error) or type(error).__name__, alive=alive)
            return
        send(client, opened=True)
        client.settimeout(None)
        relay(channel, client, errors)

    def _open(self) -> Channel:
        """A channel with the held shell."""
        assert self._connection.transport
        channel = self._connection.transport.open_session(timeout=_OPEN_S)
        channel.settimeout(_OPEN_S)
        channel.exec_command(COMMAND)
        return channel


if __name__ == "__main__":
    sys.exit(main())
