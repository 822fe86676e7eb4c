"""What launching, watching and single commands cost over a slow link.

    python benchmarks/link.py            some minutes; needs root for its network namespaces
    python benchmarks/link.py --status   some minutes: single commands, with and without a kept connection

A real sshd on a host of its own, in a network namespace behind a relay that delays packets and counts them: round trips
of 0, 50 and 200 ms, in one run. Seconds are wall clock. Round trips are what added delay costs: the time at 200 ms less
that at 0 ms, divided by 0.2 s; so they count what was waited for, connecting and TCP's slow start included. Requests
are questions that wait for their answer. Bytes are those of IP packets at the relay, at 200 ms. CPU is that of all
processes of the host (cpuacct), the median of the three delays; the dispatcher is stopped while looks are measured.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from link_bed import ALIAS, LOG_BYTES, Bed, Comborun, Cost, Counting, bed, packed, write_grid
from network import await_that

from comborun.generate.bundle import bundle
from comborun.grid import load_grid
from comborun.model.plan import Plan
from comborun.monitor.observe import History, load_run
from comborun.monitor.watch import Source
from comborun.planner.laying import lay_out
from comborun.remote.host import host_facts
from comborun.remote.library import library_files
from comborun.remote.ssh.config import Options
from comborun.remote.ssh.keeping import all_kept
from comborun.remote.ssh.kept import KeptTransport
from comborun.remote.ssh.openssh import OpensshTransport
from comborun.remote.ssh.transport import SshTransport

DELAYS = (0, 50, 200)
"""round trips in milliseconds"""
LOOKS = 10
HEAD = ("sessions", "way", *(f"{delay} ms: s" for delay in DELAYS), "round trips", "requests", "connections")
HEAD = (*HEAD, "KB up", "KB down", "host CPU s")
COMMANDS = {
    "status": (),
    "logs": ("env00_policy00", "-n", "20", "--run"),
    "set": ("limits.parallel=2", "--run"),
    "retry": ("--failed", "--run"),
    "stop": ("--dry-run",),
}
"""words between a command and the run; each can be given again and again"""


@dataclass
class Row:
    """A way to do something, at each delay."""

    way: str
    sessions: int
    requests: int | None = None
    costs: dict[int, Cost] = field(default_factory=dict)

    def measured(self, the_bed: Bed, measure: Callable[[], Cost]) -> Row:
        for delay in DELAYS:
            the_bed.delay(delay)
            self.costs[delay] = measure()
        the_bed.delay(0)
        return self

    def cells(self) -> Iterator[str]:
        yield from (str(self.sessions or "-"), self.way)
        yield from (three(self.costs[delay].seconds) for delay in DELAYS)
        yield three((self.costs[200].seconds - self.costs[0].seconds) / 0.2)
        yield "-" if self.requests is None else str(self.requests)
        one = self.costs[200]
        yield from map(three, (one.connections, one.up / 1000, one.down / 1000))
        yield three(statistics.median(cost.cpu for cost in self.costs.values()))


def three(value: float) -> str:
    """Three digits."""
    return f"{value:.{0 if abs(value) >= 99.95 else 1 if abs(value) >= 9.995 else 2 if abs(value) >= 0.1 else 3}f}"


def table(rows: Iterable[Row]) -> None:
    print(f"\n| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}")
    for row in rows:
        print(f"| {' | '.join(row.cells())} |", flush=True)


# Single commands


def connects(the_bed: Bed, folder: Path) -> Iterator[Row]:
    """A connection and one script on it, as at the start of a command: alone, and over a kept connection."""
    os.environ["XDG_RUNTIME_DIR"] = str(folder)
    for kind, way, transport in (
        ("ssh", "alone", SshTransport),
        ("ssh", "kept", KeptTransport),
        ("openssh", "alone", OpensshTransport),
        ("openssh", "kept", OpensshTransport),
    ):
        options = replace(the_bed.options, keep_s=600.0 if way == "kept" else 0.0)
        greet = partial(_greet, transport, options)
        greet()
        yield Row(f"connecting, {kind}, {way}", 0).measured(the_bed, partial(_least_of_seven, the_bed, greet))
    for one in all_kept():
        one.end()


def _greet(transport: type[SshTransport | KeptTransport | OpensshTransport], options: Options) -> None:
    with transport(ALIAS, options) as opened:
        opened.run("true")


def _least_of_seven(the_bed: Bed, action: Callable[[], object]) -> Cost:
    """Others use this machine, too."""
    return min((the_bed.measure(action) for _ in range(7)), key=lambda cost: cost.seconds)


def commands(the_bed: Bed, folder: Path) -> Iterator[Row]:
    """Commands, from the start of the program to its end: alone, and over a connection that is kept."""
    for kind in ("ssh", "openssh"):
        comborun = Comborun(the_bed, kind, folder)
        with comborun.connected() as transport:
            directory = comborun.launch(transport, write_grid(folder, 8, parallel=8)).publication.directory
        words = ["--host", ALIAS, "--transport", kind]
        for verb in COMMANDS if kind == "ssh" else ("status",):
            command = partial(combo, the_bed, folder, verb, *COMMANDS[verb], Path(directory).name, *words)
            for way, keep_s in (("alone", 0), ("kept", 600)):
                combo(the_bed, folder, "disconnect")
                once = partial(command, keep_s=keep_s)
                once()
                yield Row(f"`combo {verb}`, {kind}, {way}", 8).measured(the_bed, partial(the_bed.measure, once, 3))
        combo(the_bed, folder, "disconnect")
        comborun.stop(directory)


def combo(the_bed: Bed, folder: Path, *words: str, keep_s: int = 600) -> None:
    own = {"COMBORUN_SSH_CONFIG": str(the_bed.site.host.config), "COMBORUN_KEEP_S": str(keep_s)}
    environment = {**os.environ, **own, "XDG_RUNTIME_DIR": str(folder)}
    subprocess.run([sys.executable, "-m", "comborun", *words], env=environment, check=False, capture_output=True)


# Launches, and beside them the same files as one archive: nothing is checked, and nothing is started


def launches(the_bed: Bed, folder: Path) -> Iterator[Row]:
    comborun, files = Comborun(the_bed, "ssh", folder), list[tuple[str, bytes]]()
    for sessions in (8, 500):
        row, files = launch(comborun, sessions)
        yield row
    archive, unpack = packed(files), "rm -rf put; mkdir put && tar xzf - -C put"
    copy = partial(the_bed.measure, partial(the_bed.ssh, unpack, archive))
    yield Row("tar.gz through ssh", 500).measured(the_bed, copy)


def launch(comborun: Comborun, sessions: int) -> tuple[Row, list[tuple[str, bytes]]]:
    """`combo launch`, connecting included, up to the first session's begin record; and the files of the run."""
    row = Row("`combo launch`", sessions)
    grid = write_grid(comborun.folder, sessions, parallel=1)
    (comborun.bed.home / "long/env00_policy00").touch()
    said: list[tuple[Counting, str, Plan]] = []

    def act() -> None:
        with comborun.connected() as transport:
            launched = comborun.launch(transport, grid)
            said.append((transport, launched.publication.directory, launched.plan))

    def measure() -> Cost:
        cost = comborun.bed.measure(act)
        comborun.bed.delay(0)
        comborun.stop(said[-1][1])
        return cost

    row.measured(comborun.bed, measure)
    transport, _, plan = said[-1]
    row.requests = transport.requests
    return row, [(str(file.path), file.text.encode()) for file in bundle(plan, grid.read_text(), library_files(), {})]


# Looks


def looks(the_bed: Bed, folder: Path) -> Iterator[Row]:
    """Looks of a monitor at real runs of which the last sessions go on, and what people write: `tail` on every log."""
    comborun = Comborun(the_bed, "ssh", folder)
    for sessions, running in ((8, 8), (500, 32)):
        with comborun.connected() as transport:
            directory = watched(transport, comborun, write_grid(folder, sessions, parallel=32), running)
        the_bed.settle()
        with comborun.connected() as transport:
            start = partial(load_run, transport, directory)
            looking = Looking(Source(transport, start()))
            looking.look()
            row = Row(f"a look, {running} running", sessions, requests=1)
            yield row.measured(the_bed, partial(the_bed.measure, looking.look, LOOKS))
            yield Row("the plan, as a monitor starts", sessions).measured(the_bed, partial(the_bed.measure, start))
        tail = partial(the_bed.ssh, f"screen -ls; tail -qn1 {directory}/sessions/*/attempt-1/log")
        yield Row("one ssh over all logs", sessions).measured(the_bed, partial(the_bed.measure, tail))
        comborun.stop(directory)


class Looking:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.history = History()

    def look(self) -> None:
        self.history = self.source.fold(self.history)


def watched(transport: Counting, comborun: Comborun, grid: Path, running: int) -> str:
    """Launch, and wait until nothing but the last sessions of the plan runs, with their logs written; the run."""
    long = comborun.bed.home / "long"
    for file in long.iterdir():
        file.unlink()
    names = [session.name for session in lay_out(load_grid(grid), host_facts(transport)).sessions]
    for name in names[-running:]:
        (long / name).touch()
    directory = comborun.launch(transport, grid).publication.directory
    run = comborun.bed.site.host.folder / directory.removeprefix("/")
    logs = [run / f"sessions/{name}/attempt-1/log" for name in names[-running:]]
    await_that(
        f"all but {running} of {len(names)} sessions have ended",
        lambda: (
            len(list(run.glob("sessions/*/attempt-1/end"))) == len(names) - running
            and all(log.exists() and log.stat().st_size >= LOG_BYTES for log in logs)
        ),
        120,
    )
    # nothing else uses the host's CPU now; its dispatcher does not live any the less for the monitors
    transport.run(f"kill -STOP {comborun.dispatcher(directory)}")
    return directory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--status", action="store_true")
    tables = (connects, commands) if parser.parse_args().status else (launches, looks)
    print(f"{os.cpu_count()} cores, {platform.system()} {platform.release()}, load {os.getloadavg()[0]:.1f}")
    with bed() as the_bed, tempfile.TemporaryDirectory() as name:
        os.environ["XDG_STATE_HOME"] = name  # what is launched here is nothing to remember
        for delay in DELAYS:
            the_bed.delay(delay)
            print(f"a round trip of the bare link: {the_bed.bare_round_trip():.1f} ms")
        the_bed.delay(0)
        for rows in tables:
            table(rows(the_bed, Path(name)))


if __name__ == "__main__":
    main()
