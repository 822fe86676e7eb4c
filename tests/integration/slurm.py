"""A real Slurm on this machine: its own munge key, a controller, and nodes that are processes (testbed/slurm_setup.sh).

Nothing but `SLURM_CONF` in a command's environment leads to it. Its nodes share this machine's boot and disk; what is
of which node shows in SLURMD_NODENAME.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from box import carrying

SETUP = Path(__file__).parents[1] / "testbed/slurm_setup.sh"
PROGRAMS = {"slurmctld": "slurmctld", "slurmd": "slurmd", "sbatch": "slurm-client", "munged": "munge"}
PLACES = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
GPUS = 4
"""of each node; the nodes have 8 CPUs and 8 GB besides"""


@dataclass(frozen=True)
class Task:
    """A line of `squeue -r`."""

    id: str
    state: str
    reason: str
    node: str
    name: str


@dataclass
class Slurm:
    folder: Path
    port: int
    nodes: int

    @property
    def environment(self) -> dict[str, str]:
        """What a command needs besides to speak to this Slurm."""
        return {"SLURM_CONF": str(self.folder / "etc/slurm.conf"), "PATH": PLACES}

    def command(self, *words: object, seconds: float = 20) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(word) for word in words],
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    def tasks(self) -> list[Task]:
        """Everything that is waiting or running, newest answer."""
        told = self.command("squeue", "-h", "-r", "-o", "%i|%T|%r|%N|%j")
        assert told.returncode == 0, told.stderr
        return [Task(*line.split("|")) for line in told.stdout.splitlines()]

    def control(self, *words: object) -> None:
        told = self.command("scontrol", *words)
        assert told.returncode == 0, told.stderr

    def at_once(self, task: str) -> bool:
        """A task that was requeued waits for two minutes; let this one go, if it still waits.

        Not before the next second: a node refuses a start of the second in which it was told to end the last one, and
        Slurm gives the task up ("Job credential revoked").
        """
        return self.command("scontrol", "update", f"jobid={task}", "starttime=now+1").returncode == 0

    def kill(self, daemon: str) -> None:
        """`slurmctld`, or `slurmd-n1`: with SIGKILL. The jobs of a node live on."""
        with contextlib.suppress(OSError, ValueError):
            pid = int((self.folder / "run" / f"{daemon}.pid").read_text())
            if str(self.folder).encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)

    def start(self, daemon: str) -> None:
        """The same, again."""
        name, _, node = daemon.partition("-")
        words = [name, *(["-N", node] if node else []), "-f", self.environment["SLURM_CONF"]]
        told = self.command(*words)
        assert told.returncode == 0, told.stderr

    def log(self, daemon: str = "slurmctld") -> str:
        return (self.folder / "log" / f"{daemon}.log").read_text(errors="replace")

    def close(self) -> None:
        """End all daemons and whatever their jobs left; a finalizer never raises."""
        for daemon in ("slurmctld", *(f"slurmd-n{n}" for n in range(1, self.nodes + 1)), "munged"):
            self.kill(daemon)
        for _ in range(3):
            for pid in self.processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)

    def processes(self) -> list[int]:
        """Everything that was started with this Slurm's configuration: daemons, steps, jobs."""
        return carrying(f"SLURM_CONF={self.environment['SLURM_CONF']}")


def missing() -> str:
    """Why there can be no Slurm here; empty when there can."""
    absent = sorted({package for program, package in PROGRAMS.items() if not shutil.which(program, path=PLACES)})
    if absent:
        packages = " ".join(sorted(set(PROGRAMS.values())))
        return f"no {', '.join(absent)} here: apt-get install -y --no-install-recommends {packages}"
    return "" if os.geteuid() == 0 else "only root can start the daemons of Slurm"


def free_ports(number: int) -> int:
    """The first of so many neighbouring ports that nobody listens on now."""
    for _ in range(100):
        first = random.SystemRandom().randrange(20000, 30000)
        with contextlib.suppress(OSError), contextlib.ExitStack() as held:
            for port in range(first, first + number):
                held.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first
    pytest.fail(f"no {number} free ports in a row")


@contextlib.contextmanager
def slurm_at(nodes: int = 2) -> Iterator[Slurm]:
    """A Slurm of its own, which is gone afterwards."""
    why = missing()
    if why:
        pytest.skip(why)
    folder = Path(tempfile.mkdtemp(prefix="cb-slurm-"))  # short: munge's socket is in it
    made = Slurm(folder, free_ports(nodes + 1), nodes)
    try:
        folder.chmod(0o755)
        words = ["bash", SETUP, folder, nodes, GPUS, made.port]
        told = made.command(*words, seconds=60)
        assert told.returncode == 0, told.stderr + made.log()
        yield made
    finally:
        made.close()


@pytest.fixture
def slurm() -> Iterator[Slurm]:
    """A Slurm with two nodes of four GPUs each; the partition `urgent` preempts."""
    with slurm_at() as made:
        yield made


def requeued(slurm: Slurm, task: str, seconds: float = 20) -> None:
    """Wait until Slurm has put a task back into the queue, and let it start at once."""
    deadline = time.monotonic() + seconds
    while True:
        if any(each.id == task and each.state == "PENDING" for each in slurm.tasks()):
            assert slurm.at_once(task), f"{task} does not wait any more: {slurm.tasks()}"
            return
        assert time.monotonic() < deadline, f"{task} is not in the queue again: {slurm.tasks()}"
        time.sleep(0.1)
