"""Connections that outlive a command: the folder of their sockets, and what is known of each.

Whoever may connect to such a socket may run commands on the host. So the folder belongs to this user and to nobody
else, no link is followed, and both ends of a connection check whose process the other one is.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import socket
import stat
import struct
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from comborun.errors import HostError

if TYPE_CHECKING:
    from comborun.remote.ssh.config import SshTarget

KEEP_S = 600.0
LONGEST_SOCKET = 103
"""bytes that the path of a socket may have on macOS; Linux has 4 more"""
_SSH_ADDS = 17
"""bytes that ssh adds to a ControlPath for a moment"""
_NAME = 14
"""bytes of a socket's name, with its slash"""
_LAST = "/tmp"  # noqa: S108 - the folder in it is made safely
_CONTROL_S = 5.0


def keep_seconds() -> float:
    """For how long connections are kept: ten minutes, or as COMBORUN_KEEP_S says; 0: not at all."""
    try:
        return max(0.0, float(os.environ.get("COMBORUN_KEEP_S", KEEP_S)))
    except ValueError:
        return KEEP_S


def folder(places: tuple[str, ...] = ()) -> Path:
    """The folder of the sockets, made if needed. Raises HostError if others may use it, or if its path is too long."""
    places = places or (os.environ.get("XDG_RUNTIME_DIR") or "", tempfile.gettempdir(), _LAST)
    name = f"combo-ssh-{os.getuid()}"
    most = LONGEST_SOCKET - len(name) - 1 - _NAME - _SSH_ADDS
    fitting = [place for place in places if place and Path(place).is_dir() and len(os.fsencode(place)) <= most]
    if not fitting:
        raise HostError(f"the path of a socket in {places[0]} would be too long", "set TMPDIR to a shorter path")
    made = Path(fitting[0], name)
    try:
        with contextlib.suppress(FileExistsError):
            made.mkdir(mode=0o700)
        found = made.lstat()
    except OSError as error:
        raise HostError(f"{made} can't be used: {error.strerror}") from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise HostError(f"{made} is not a folder of yours alone", "remove it, or set TMPDIR to a folder of your own")
    return made


@dataclass(frozen=True)
class Kept:
    """A kept connection: `KIND-DIGEST` is its socket, and `.json` beside it says whose it is. It holds no secret."""

    socket: Path

    @property
    def record(self) -> Path:
        return self.socket.with_suffix(".json")

    @property
    def by_openssh(self) -> bool:
        return self.socket.name.startswith("m-")

    @property
    def host(self) -> str:
        return str(self._read().get("host", ""))

    def write(self, host: str, fingerprints: list[str]) -> None:
        """`fingerprints`: the keys that the host, or its authority, showed at the login."""
        draft = self.socket.with_suffix(f".{os.getpid()}-json")
        draft.unlink(missing_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump({"host": host, "keys": fingerprints}, file)
        draft.replace(self.record)

    def may_be_used(self, target: SshTarget) -> bool:
        """Whether the host's key is still the one that was checked at the login."""
        from comborun.remote.ssh.known_hosts import still_known

        keys = self._read().get("keys")
        return isinstance(keys, list) and (not keys or still_known(target, keys))

    @property
    def stamp(self) -> tuple[int, int] | None:
        """Tells it from a later connection in its place; None if there is none."""
        try:
            found = self.socket.lstat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns  # the number of a removed file may be used again

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Held by whoever puts a connection in its place, or takes it away."""
        descriptor = os.open(self.socket.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def remove(self, stamp: tuple[int, int] | None) -> None:
        """Take the connection away from later commands, unless another one has taken its place."""
        with self.locked():
            if self.stamp == stamp:
                for path in (self.socket, self.record):
                    path.unlink(missing_ok=True)

    def end(self, stamp: tuple[int, int] | None = None) -> bool:
        """End the connection, if it is still that of `stamp`; returns whether it ended. Others who use it lose it."""
        taken = Kept(self.socket.with_suffix(f".{os.getpid()}-end"))
        with self.locked():
            if not (now := self.stamp) or stamp not in {None, now}:
                return False
            self.socket.replace(taken.socket)
            self.record.unlink(missing_ok=True)
        try:
            return taken._end_master() if self.by_openssh else taken._end_keeper()
        finally:
            taken.socket.unlink(missing_ok=True)

    def _end_master(self) -> bool:
        command = ["ssh", "-F", "/dev/null", "-O", "exit", "-o", f"ControlPath={self.socket}", "comborun"]
        try:
            return not subprocess.run(command, capture_output=True, timeout=_CONTROL_S, check=False).returncode
        except (OSError, subprocess.TimeoutExpired):
            return False

    def _end_keeper(self) -> bool:
        try:
            with connected(self.socket) as keeper:
                send(keeper, verb="leave")
                return next(messages(keeper), None) is not None
        except OSError:
            return False

    def _read(self) -> dict[str, object]:
        try:
            found = json.loads(self.record.read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}


def kept(kind: str, target: SshTarget) -> Kept:
    """The place of a connection to this target with these settings. Raises HostError if there is no safe one."""
    digest = hashlib.sha256(f"{target.name}\0{target.settings}".encode("utf-8", "surrogateescape")).hexdigest()
    return Kept(folder() / f"{kind}-{digest[: _NAME - 3]}")


def all_kept() -> list[Kept]:
    try:
        found = [Kept(path) for path in sorted(folder().glob("[km]-*")) if not path.suffix]
    except (OSError, HostError):
        return []
    return [one for one in found if one.socket.is_socket()]


def silent(host: str) -> str:
    """The warning after a login that took the place of a dead connection."""
    return f"the connection that was kept to {host} gave no answer; logged in anew"


# Whether a login with a second factor is kept: the user is asked once for each host


def consent(host: str, ask: Callable[[str], bool] | None) -> bool:
    """Whether the user wants a login with a second factor to be kept; without a terminal and an earlier answer, no."""
    path = Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser() / "comborun" / "keep.json"
    try:
        answers = dict(json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        answers = {}
    if host not in answers and ask:
        answers[host] = ask(f"Keep this login to {host} open for ten minutes after its last use, also next time?")
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(answers), "utf-8")
    return answers.get(host) is True


# The socket of a keeper


def peer_uid(peer: socket.socket) -> int:
    """The user of the process at the other end; -1 if the system does not tell."""
    try:
        if hasattr(socket, "SO_PEERCRED"):
            return int(struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1])
        return int(struct.unpack_from("2I", peer.getsockopt(0, 1, 76))[1])  # LOCAL_PEERCRED of macOS and BSD
    except OSError:
        return -1


@contextlib.contextmanager
def connected(path: Path) -> Iterator[socket.socket]:
    """A connection to a keeper of this user. Raises OSError if there is none."""
    with socket.socket(socket.AF_UNIX) as keeper:
        keeper.settimeout(_CONTROL_S)
        keeper.connect(str(path))
        if peer_uid(keeper) != os.getuid():
            raise PermissionError(f"{path} is another user's")
        yield keeper


def send(peer: socket.socket, descriptors: tuple[int, ...] = (), **message: object) -> None:
    socket.send_fds(peer, [json.dumps(message).encode() + b"\n"], descriptors)


def messages(peer: socket.socket) -> Iterator[dict[str, object]]:
    """The messages of the other end, a line each, read byte by byte: what follows the last one is not ours."""
    line = b""
    while byte := peer.recv(1):
        line += byte
        if byte == b"\n":
            yield json.loads(line)
            line = b""
