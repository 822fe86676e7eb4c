"""A whole host in a network namespace of its own: it can lose its power and come back with a new boot id."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from network import CLIENT_ADDRESS, HERE, HOST_ADDRESS, ORPHANS_DIE, Namespace, Network, await_that, end, network

USER = "robot"
UID = 54321
ALIAS = "testbox"


@dataclass
class Host:
    """`folder` is its disk; `client` holds the key, the known hosts and the ssh config of somebody who may log in."""

    folder: Path
    namespace: Namespace
    process: subprocess.Popen[bytes] | None = None
    boots: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.client = self.folder / "client"
        self.config = self.client / "config"
        # a file that somebody replaces meanwhile may be missed: then it is one that no host needs
        subprocess.run(["cp", "-a", "/etc", str(self.folder / "etc")], stderr=subprocess.DEVNULL, check=False)
        for place in (self.client, self.folder / "etc/testbed", self.home):
            place.mkdir(parents=True)
        os.chown(self.home, UID, UID)
        for name, extra in {
            "passwd": f"{USER}:x:{UID}:{UID}::/home/{USER}:/bin/bash\n",
            "group": f"{USER}:x:{UID}:\n",
            "shadow": f"{USER}:*:19000:0:99999:7:::\n",
        }.items():
            with (self.folder / "etc" / name).open("a") as file:
                file.write(extra)
        key, host_key = self.client / "id_ed25519", self.folder / "etc/testbed/hostkey"
        for path in (key, host_key):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
        (self.folder / "etc/testbed/authorized_keys").write_text(key.with_suffix(".pub").read_text())
        known = self.client / "known_hosts"
        known.write_text(f"{HOST_ADDRESS} {host_key.with_suffix('.pub').read_text()}")
        lines = (f"HostName {HOST_ADDRESS}", f"User {USER}", f"IdentityFile {key}", f"UserKnownHostsFile {known}")
        more = ("IdentitiesOnly yes", "IdentityAgent none", "GlobalKnownHostsFile /dev/null")
        self.config.write_text("\n  ".join([f"Host {ALIAS}", *lines, *more]) + "\n")

    @property
    def home(self) -> Path:
        """The user's home, seen from outside."""
        return self.folder / "home" / USER

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def power_on(self) -> None:
        """Boot; returns when sshd listens."""
        command = ["bash", str(HERE / "host.sh"), ALIAS, HOST_ADDRESS, str(self.folder)]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [*ORPHANS_DIE, *self.namespace.inside(*command)], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        listening = self.log.count("Server listening")
        await_that("sshd listens", lambda: self._ended() or self.log.count("Server listening") > listening)
        assert not self._ended(), self.log
        self.boots.append((self.folder / "boot_id").read_text().strip())

    def _ended(self) -> bool:
        return self.process is None or self.process.poll() is not None

    @property
    def init(self) -> int:
        """The host's process 1, as it is called outside."""
        assert self.process
        return int(Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()[0])

    def lose_power(self) -> None:
        """Every process of the host is gone at once; its disk stays."""
        if self.process and not self._ended():
            init = self.init
            end(self.process)
            await_that("the host's processes are gone", lambda: not lives(init))

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self.lose_power()
        if self.process:
            end(self.process)
        shutil.rmtree(self.folder, ignore_errors=True)


def lives(pid: int) -> bool:
    """Whether a process lives; one that only waits to be buried does not."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0] not in "ZX"
    return False


@dataclass(frozen=True)
class Site:
    """A network, and a host on it that is switched on."""

    network: Network
    host: Host


@contextlib.contextmanager
def site(round_trip_ms: float = 0.0) -> Iterator[Site]:
    with network(round_trip_ms) as net:
        host = Host(Path(tempfile.mkdtemp(prefix="combo-host-")), net.host)
        try:
            host.folder.chmod(0o755)
            host.power_on()
            yield Site(net, host)
        finally:
            host.close()


__all__ = ["ALIAS", "CLIENT_ADDRESS", "UID", "USER", "Host", "Site", "site"]
