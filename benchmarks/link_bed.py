"""The bed of benchmarks/link.py: a host behind a relay that delays and counts, and what one action on it costs."""

from __future__ import annotations

import contextlib
import io
import os
import socket
import statistics
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "testbed"))

import click
from delaynet import enter
from hosts import Site, site
from network import HOST_ADDRESS, await_that

from comborun.api.launching import start_run
from comborun.api.named import GridChoice, HostChoice
from comborun.remote.launching import Launched
from comborun.remote.preparing import LaunchRequest
from comborun.remote.ssh.config import Options
from comborun.remote.ssh.openssh import OpensshTransport
from comborun.remote.ssh.shell import ShellTransport
from comborun.remote.ssh.transport import SshTransport
from comborun.remote.transport import Completed
from comborun.rules import records
from comborun.text import MIB

ACCOUNTS = Path("/sys/fs/cgroup/cpuacct")
ALIAS, EPISODES = "testbox", 2
TRANSPORTS: dict[str, type[SshTransport | OpensshTransport]] = {"ssh": SshTransport, "openssh": OpensshTransport}
SHAPES = {8: (2, 4), 500: (20, 25)}
"""sessions: environments x policies"""
LOG_BYTES = 10_000_000
WORK = """\
#!/bin/bash
# a session: NAME EPISODES OUT; one that is named in ~/long has a log of 10 MB and goes on for ever
if [[ -e ~/long/$1 ]]; then
  printf '{"episode": 0, "seed": 0, "success": true}\\n' >"$3/episodes.jsonl"
  cat ~/ten_megabytes
  exec sleep 100000
fi
printf '{"episode": %d, "seed": 0, "success": true}\\n' $(seq 0 $(($2 - 1))) >"$3/episodes.jsonl"
echo "episode $2 of $2: success"
"""


@dataclass(frozen=True)
class Cost:
    """What an action cost; of several rounds the mean of each, but the median of the seconds."""

    seconds: float
    connections: float
    up: float
    """bytes of IP packets towards the host"""
    down: float
    cpu: float
    """seconds of CPU that the host's processes used"""


@dataclass
class Bed:
    site: Site
    account: Path | None
    """the CPU account of all processes of the host"""

    @property
    def home(self) -> Path:
        return self.site.host.home

    @property
    def options(self) -> Options:
        return Options(config=self.site.host.config)

    def delay(self, milliseconds: float) -> None:
        self.site.network.link.delay(milliseconds)

    def cpu(self) -> float:
        return int((self.account / "cpuacct.usage").read_text()) / 1e9 if self.account else float("nan")

    def measure(self, action: Callable[[], object], rounds: int = 1) -> Cost:
        counted, cpu, taken = self.site.network.link.counted(), self.cpu(), []
        for _ in range(rounds):
            begun = time.monotonic()
            action()
            taken.append(time.monotonic() - begun)
        after = self.site.network.link.counted()
        return Cost(
            seconds=statistics.median(taken),
            connections=(after.connections - counted.connections) / rounds,
            up=(after.bytes_up - counted.bytes_up) / rounds,
            down=(after.bytes_down - counted.bytes_down) / rounds,
            cpu=(self.cpu() - cpu) / rounds,
        )

    def settle(self) -> None:
        """Wait until the host does nothing: what has just been logged is still being shown in its windows."""
        if self.account:
            await_that("the host is at rest", self._rests, 60)

    def _rests(self) -> bool:
        before = self.cpu()
        time.sleep(0.5)
        return self.cpu() - before < 0.02

    def ssh(self, command: str, stdin: bytes = b"") -> None:
        """The user's own ssh program."""
        words = ["ssh", "-q", "-F", str(self.site.host.config), ALIAS, command]
        subprocess.run(words, input=stdin, capture_output=True, check=False)

    def bare_round_trip(self) -> float:
        """Milliseconds that a TCP connection takes to be made: the best of five."""
        taken = []
        for _ in range(5):
            begun = time.monotonic()
            socket.create_connection((HOST_ADDRESS, 22), timeout=5).close()
            taken.append(1000 * (time.monotonic() - begun))
        return min(taken)


@contextlib.contextmanager
def bed() -> Iterator[Bed]:
    """A host; this process moves into the laptop's network and stays there."""
    with site() as made, account() as group:
        if group:
            for pid in (made.host.process.pid if made.host.process else 0, made.host.init):
                (group / "cgroup.procs").write_text(str(pid))
        enter(os.open(made.network.client.path, os.O_RDONLY))
        furnish(made.host.home)
        try:
            yield Bed(made, group)
        finally:
            made.host.close()  # before its account


@contextlib.contextmanager
def account() -> Iterator[Path | None]:
    """A group that counts the CPU time of its processes; None where there is no such thing."""
    group = ACCOUNTS / f"comborun-link-{os.getpid()}"
    try:
        group.mkdir()
    except OSError:
        yield None
        return
    try:
        yield group
    finally:
        with contextlib.suppress(OSError, TimeoutError):
            await_that("the group is empty", lambda: not (group / "cgroup.procs").read_text())
            group.rmdir()


def furnish(home: Path) -> None:
    (home / "work.sh").write_text(WORK)
    (home / "long").mkdir()
    line = b"episode %07d: reward 12.375, success, 14.2 s, a line as evaluation programs print them\n"
    lines = b"".join(line % number for number in range(LOG_BYTES // len(line % 0) + 1))
    (home / "ten_megabytes").write_bytes(lines[:LOG_BYTES])


# comborun, over one of its transports


@dataclass
class Counting:
    """A transport that counts what it is asked; each request waits for its answer, which is a round trip at least."""

    inner: ShellTransport
    requests: int = 0
    host: str = ALIAS

    def run(
        self, script: str, *args: str, stdin: bytes = b"", timeout: float = 60.0, limit: int = 64 * MIB
    ) -> Completed:
        self.requests += 1
        return self.inner.run(script, *args, stdin=stdin, timeout=timeout, limit=limit)


@dataclass(frozen=True, kw_only=True)
class Through(HostChoice):
    """Launches go through a transport that is there already."""

    counting: Counting

    def connect(self, otherwise: str | None = None) -> Counting:  # noqa: ARG002 - it is connected
        return self.counting


def write_grid(folder: Path, sessions: int, parallel: int) -> Path:
    environments, policies = SHAPES[sessions]
    path = folder / f"grid-{sessions}.yaml"
    path.write_text(
        f"name: bench{sessions}\nhost: {ALIAS}\nepisodes: {EPISODES}\n"
        f"environments: [{', '.join(f'env{number:02}' for number in range(environments))}]\n"
        f"policies: [{', '.join(f'policy{number:02}' for number in range(policies))}]\n"
        "command: bash ~/work.sh {environment}_{policy} {episodes} {output_dir}\n"
        f"limits: {{parallel: {parallel}}}\n"
    )
    return path


@dataclass
class Comborun:
    """comborun over one of its transports, from connecting on."""

    bed: Bed
    kind: str
    folder: Path

    @contextlib.contextmanager
    def connected(self) -> Iterator[Counting]:
        with TRANSPORTS[self.kind](ALIAS, self.bed.options) as inner:
            yield Counting(inner)

    def launch(self, transport: Counting, grid: Path) -> Launched:
        """All that `combo launch` does."""
        where = Through(ALIAS, self.kind, accept_new=False, counting=transport)
        with click.Context(click.Command("launch")):
            return start_run(GridChoice(grid), where, LaunchRequest(multiplexer="screen", new=True)).launched

    def dispatcher(self, directory: str) -> str:
        """Its pid: the host is a folder of this machine."""
        record = self.bed.site.host.folder / directory.removeprefix("/") / "dispatch/dispatcher"
        return str(records.parse(record.read_text())["pid"])

    def stop(self, directory: str) -> None:
        with self.connected() as transport:
            transport.run(f"kill -CONT {self.dispatcher(directory)}")
            script = 'COMBORUN_STOP_INT_S=1 COMBORUN_STOP_TERM_S=1 bash "$1/run_parallel.sh" stop; rm -rf -- "$1"'
            transport.run(script, directory, timeout=120)


def packed(files: list[tuple[str, bytes]]) -> bytes:
    """A tar archive of some files."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, content in files:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return stream.getvalue()
