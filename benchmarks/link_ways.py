"""Ways to put a run on a host and to look at it: comborun's, and those that people write by hand."""

from __future__ import annotations

import contextlib
import io
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import click
from link_bed import EPISODES, Bed

from comborun.api.launching import start_run
from comborun.api.named import GridChoice, HostChoice
from comborun.monitor.observe import History, load_run
from comborun.monitor.watch import Source
from comborun.remote.launching import Launched
from comborun.remote.preparing import LaunchRequest
from comborun.remote.ssh.openssh import OpensshTransport
from comborun.remote.ssh.shell import ShellTransport
from comborun.remote.ssh.transport import SshTransport
from comborun.remote.transport import Completed
from comborun.rules import records
from comborun.text import MIB

ALIAS = "testbox"
TRANSPORTS: dict[str, type[SshTransport | OpensshTransport]] = {"ssh": SshTransport, "openssh": OpensshTransport}
SHAPES = {8: (2, 4), 64: (8, 8), 500: (20, 25), 800: (20, 40)}
"""sessions: environments x policies"""


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
    held: list[ShellTransport] = field(default_factory=list)

    @contextlib.contextmanager
    def connected(self) -> Iterator[Counting]:
        with TRANSPORTS[self.kind](ALIAS, self.bed.options) as inner:
            yield Counting(inner)

    def greet(self) -> None:
        """Connect, run a script that does nothing, and leave."""
        with self.connected() as transport:
            transport.run("true")

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


class Looking:
    """A monitor's looks at a run."""

    def __init__(self, transport: Counting, directory: str) -> None:
        self.source = Source(transport, load_run(transport, directory))
        self.history = History()

    def look(self) -> None:
        self.history = self.source.fold(self.history)


@dataclass
class ByHand:
    """The user's own ssh program; with `master` over one connection that stays open (ControlMaster)."""

    bed: Bed
    master: Path | None = None

    def _words(self, program: str) -> list[str]:
        words = [program, "-q", "-F", str(self.bed.site.host.config)]
        return [*words, "-o", f"ControlPath={self.master}"] if self.master else words

    def ssh(self, command: str, stdin: bytes = b"") -> None:
        subprocess.run([*self._words("ssh"), ALIAS, command], input=stdin, capture_output=True, check=False)

    def scp(self, source: Path, target: str) -> None:
        subprocess.run([*self._words("scp"), str(source), f"{ALIAS}:{target}"], capture_output=True, check=True)

    @contextlib.contextmanager
    def open_master(self) -> Iterator[ByHand]:
        with tempfile.TemporaryDirectory(prefix="cm") as folder:
            path = Path(folder, "m")
            words = [*self._words("ssh"), "-M", "-S", str(path), "-N", "-f", ALIAS]
            subprocess.run(words, check=True, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                yield ByHand(self.bed, path)
            finally:
                leave = [*self._words("ssh"), "-S", str(path), "-O", "exit", ALIAS]
                subprocess.run(leave, check=False, capture_output=True)


def packed(files: list[tuple[str, bytes]]) -> bytes:
    """A tar archive of some files."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, content in files:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return stream.getvalue()
