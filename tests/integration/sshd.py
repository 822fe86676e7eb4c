"""A real OpenSSH server on loopback, for tests: own port, own keys, a fresh user who is not root.

Nothing of the real user's ~/.ssh is read or written: hand `Sshd.options()` to a transport, or `Sshd.config` to a
program through COMBORUN_SSH_CONFIG.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from network import await_that as until

from comborun.remote.ssh.config import Options
from comborun.remote.ssh.keeping import all_kept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SSHD = "/usr/sbin/sshd"

_CONFIG = """
ListenAddress 127.0.0.1
PidFile none
StrictModes no
UsePAM no
UseDNS no
PrintMotd no
PasswordAuthentication no
KbdInteractiveAuthentication no
Subsystem sftp internal-sftp
"""


@dataclass(frozen=True)
class User:
    name: str
    home: Path
    uid: int


@contextlib.contextmanager
def fresh_user(*, home: Path | None = None, shell: str = "/bin/bash") -> Iterator[User]:
    """A user who is not root and goes afterwards, with all that runs in their name."""
    name = f"combo{os.getpid()}n{time.monotonic_ns() % 1000000}"
    home = home or Path(f"/tmp/{name}")
    # the password is "*": useradd locks new users, and sshd refuses locked ones
    command = ["useradd", "--create-home", "--home-dir", str(home), "--shell", shell, "--password", "*", name]
    until(f"useradd {name}", lambda: subprocess.run(command, capture_output=True, check=False).returncode == 0)
    user = User(name, home, int(subprocess.check_output(["id", "-u", name])))
    try:
        yield user
    finally:
        _end_processes_of(user.uid)
        command = ["userdel", "--force", name]
        with contextlib.suppress(TimeoutError):
            until("userdel", lambda: subprocess.run(command, capture_output=True, check=False).returncode in {0, 6})
        shutil.rmtree(home, ignore_errors=True)


def _end_processes_of(uid: int) -> None:
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if entry.stat().st_uid == uid:
                os.kill(int(entry.name), signal.SIGKILL)


def make_key(path: Path, passphrase: str = "", kind: str = "ed25519") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-f", str(path)], check=True)
    return path


def public(path: Path) -> str:
    return path.with_name(path.name + ".pub").read_text(encoding="utf-8")


@dataclass
class Sshd:
    """One server, and the config, key and known_hosts of somebody who may log in there."""

    place: Path
    user: User
    lines: tuple[str, ...] = ()
    alias: str = "testbox"
    port: int = 0
    process: subprocess.Popen[bytes] | None = None
    seen: set[int] = field(default_factory=set)
    around: tuple[str, ...] = ()
    """the command that runs sshd"""

    def __post_init__(self) -> None:
        self.place.mkdir(parents=True, exist_ok=True)
        self.place.chmod(0o755)
        self.key = make_key(self.place / "client" / "id_ed25519")
        self.host_key = make_key(self.place / "host_key")
        self.authorized = self.place / "authorized"
        self.authorized.write_text(public(self.key))
        self.known_hosts = self.place / "client" / "known_hosts"
        self.config = self.place / "client" / "config"
        self.log = self.place / "log"
        self.port = self.port or free_port()
        self.start()
        self.known_hosts.write_text(f"[127.0.0.1]:{self.port} {public(self.host_key)}")
        self.config.write_text(self.stanza())

    def stanza(self, *lines: str, alias: str = "", key: Path | str = "") -> str:
        """The host in an ssh config; `lines` come first and therefore win."""
        defaults = (
            "HostName 127.0.0.1",
            f"Port {self.port}",
            f"User {self.user.name}",
            f"IdentityFile {key or self.key}",
            "IdentitiesOnly yes",
            "IdentityAgent none",
            f"UserKnownHostsFile {self.known_hosts}",
            "GlobalKnownHostsFile /dev/null",
        )
        return "\n  ".join([f"Host {alias or self.alias}", *lines, *defaults]) + "\n"

    def options(self, **changes: Any) -> Options:
        return Options(**{"config": self.config, **changes})

    def start(self) -> None:
        file = self.place / "sshd_config"
        own = (f"Port {self.port}", f"HostKey {self.host_key}", f"AuthorizedKeysFile {self.authorized}")
        file.write_text("\n".join([*self.lines, *own]) + _CONFIG)
        self.process = subprocess.Popen([*self.around, SSHD, "-D", "-f", str(file), "-E", str(self.log)])
        until("sshd listens", lambda: self.process.poll() is not None or _listens(self.port))
        assert self.process.poll() is None, self.log.read_text(encoding="utf-8")

    def serving(self) -> list[int]:
        """The processes that serve connections; they outlive their listener."""
        if self.process and self.process.poll() is None:
            self.seen |= set(_descendants(self.process.pid))
        return [pid for pid in self.seen if _name(pid) == "sshd"]

    def stop(self) -> None:
        """End the listener only."""
        self.serving()
        if self.process:
            self.process.kill()
            self.process.wait()

    def stop_all(self) -> None:
        """End the listener and every connection."""
        self.stop()
        self.signal_serving(signal.SIGKILL)
        until("the connections end", lambda: not self.serving())

    def signal_serving(self, number: int) -> None:
        for pid in self.serving():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def _name(pid: int) -> str:
    with contextlib.suppress(OSError):
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
        return "" if status.rpartition(")")[2].split()[0] in "ZX" else status.partition("(")[2].rpartition(")")[0]
    return ""


def _descendants(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, task.read_text().split()):
                found += [child, *_descendants(child)]
    return found


@pytest.fixture(scope="session")
def ssh_place() -> Iterator[Path]:
    """A folder that every user can enter; skips the test where there can be no server."""
    if os.geteuid():
        pytest.skip("only root can start an sshd that lets another user log in")
    missing = [program for program in (SSHD, "ssh", "ssh-keygen", "useradd") if not shutil.which(program)]
    if missing:
        pytest.skip(f"no {', '.join(missing)} here (Debian: openssh-server openssh-client)")
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    place = Path(tempfile.mkdtemp(prefix="combo-sshd-"))
    place.chmod(0o755)
    yield place
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture(scope="session")
def ssh_user(ssh_place: Path) -> Iterator[User]:
    with fresh_user() as user:
        yield user


@contextlib.contextmanager
def running_sshd(place: Path, user: User, *lines: str, alias: str = "testbox") -> Iterator[Sshd]:
    """A server of one's own, with further lines for its config."""
    server = Sshd(place, user, lines, alias)
    try:
        yield server
    finally:
        server.signal_serving(signal.SIGCONT)
        server.stop_all()


@pytest.fixture(scope="session")
def sshd(ssh_place: Path, ssh_user: User) -> Iterator[Sshd]:
    """A server that tests share: log in as `ssh -F sshd.config sshd.alias` would."""
    with running_sshd(ssh_place / "shared", ssh_user) as server:
        yield server


@pytest.fixture
def own_sshd(ssh_place: Path, ssh_user: User) -> Iterator[Callable[..., Sshd]]:
    """Starts servers that a test may break: own_sshd("MaxSessions 1")."""
    with contextlib.ExitStack() as stack:
        made: list[Sshd] = []

        def start(*lines: str, user: User = ssh_user, alias: str = "") -> Sshd:
            place = Path(tempfile.mkdtemp(dir=ssh_place))
            made.append(stack.enter_context(running_sshd(place, user, *lines, alias=alias or "testbox")))
            return made[-1]

        yield start


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder in which connections are kept."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    shm = "/dev/shm" if Path("/dev/shm").is_dir() else None  # another file system than that of /tmp, as on a desktop
    with tempfile.TemporaryDirectory(prefix="ck-", dir=shm) as short:  # the folder of a test is too long for a socket
        monkeypatch.setenv("XDG_RUNTIME_DIR", short)
        yield Path(short, f"combo-ssh-{os.getuid()}")
        for one in all_kept():
            one.end()


def logins(server: Sshd) -> int:
    return server.log.read_text().count("Accepted publickey")
