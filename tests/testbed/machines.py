"""Machines that share a file system: each has its own host name, boot id and processes, as two boxes with one home."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from network import ORPHANS_DIE, await_that, end

_BEGIN = """
hostname "$1"
if [[ $2 ]]; then mount --bind "$2" /proc/sys/kernel/random/boot_id; fi
[[ ! $3 ]] || mount --bind "$3" "$4"
if [[ $5 ]]; then mount --bind "$5/machine-id" /etc/machine-id; mount --bind "$5/net" /sys/class/net; fi
echo up; exec sleep infinity >/dev/null
"""
POSSIBLE = os.geteuid() == 0
"""whether this user may make namespaces"""


@dataclass
class Machine:
    """`boot`: the id of its boot, or empty for that of the real machine. `mount`: a folder that is seen at another.
    `hardware`: a word from which its machine id and its network adapter are made; empty: those of the real machine.
    """

    name: str
    folder: Path
    boot: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    mount: tuple[str, str] = ("", "")
    hardware: str = ""
    process: subprocess.Popen[bytes] | None = None

    def power_on(self, boot: str = "") -> None:
        self.boot = boot or self.boot
        boot_id = self.folder / f"boot-{self.name}-{self.boot}"
        boot_id.write_text(f"{self.boot}\n")
        namespaces = ("unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc")
        words = (self.name, str(boot_id) if self.boot else "", *self.mount, self._hardware())
        command = [*ORPHANS_DIE, *namespaces, "bash", "-c", _BEGIN, "-", *words]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        assert self.process.stdout
        with self.process.stdout as out:
            assert out.readline() == b"up\n", f"{self.name} does not begin"

    def _hardware(self) -> str:
        if not self.hardware:
            return ""
        made = self.folder / f"hardware-{self.hardware}"
        (made / "net/eth0/device").mkdir(parents=True, exist_ok=True)
        for file in (made / "machine-id", made / "net/eth0/address"):
            file.write_text(f"{self.hardware}\n")
        return str(made)

    def power_off(self) -> None:
        """All its processes are gone at once."""
        if self.process:
            end(self.process)
            await_that("its processes are gone", lambda: not self.init())

    def run(self, *command: str, timeout: float = 60.0) -> subprocess.CompletedProcess[str]:
        inside = ["nsenter", f"--target={self.init()}", "--mount", "--uts", "--pid", "--", *command]
        environment = {**os.environ, **self.environment}
        return subprocess.run(inside, capture_output=True, text=True, env=environment, timeout=timeout, check=False)

    def init(self) -> int:
        """Its first process; 0 without one."""
        assert self.process
        with contextlib.suppress(OSError, ValueError):
            return int(Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()[0])
        return 0

    def __enter__(self) -> Machine:  # noqa: PYI034
        self.power_on()
        return self

    def __exit__(self, *_: object) -> None:
        self.power_off()


SFTP = "/usr/lib/openssh/sftp-server"
SSHFS = POSSIBLE and shutil.which("sshfs") is not None and Path(SFTP).exists() and Path("/dev/fuse").exists()


@contextlib.contextmanager
def sshfs(source: Path, at: Path) -> Iterator[None]:
    """A folder of this machine at another place, by sshfs: locks don't reach the other side, renames are weak."""
    at.mkdir(exist_ok=True)
    server = at.with_name(f"{at.name}.sh")
    server.write_text(f"#!/bin/sh\nexec {SFTP}\n")
    server.chmod(0o755)
    options = f"ssh_command={server},cache=no,auto_unmount"
    subprocess.run(["sshfs", "-o", options, f"here:{source}", str(at)], check=True, timeout=20)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(at)], check=False, timeout=20)
