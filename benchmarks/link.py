"""What deploying and watching costs over a slow link: comborun against what people write by hand, side by side.

    python benchmarks/link.py            about six minutes; needs root for its network namespaces
    python benchmarks/link.py --status   some minutes: single commands, with and without a kept connection

A real sshd on a host of its own, in a network namespace behind a relay that delays packets and counts them: round trips
of 0, 50 and 200 ms, in one run. Seconds are wall clock. Round trips are what added delay costs: the time at 200 ms less
that at 0 ms, divided by 0.2 s; so they count what was waited for, connecting and TCP's slow start included. Requests
are questions that wait for their answer. Bytes are those of IP packets at the relay, at 200 ms. CPU is that of all
processes of the host (cpuacct), the median of the three delays; the dispatcher is stopped while looks are measured.
What has a ~ was extrapolated: so many equal steps, of which some were measured.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from link_bed import EPISODES, LOG_BYTES, Bed, Cost, bed
from link_tables import DELAYS, HEAD, Row, table, three
from link_ways import ALIAS, ByHand, Comborun, Counting, Looking, packed, write_grid
from network import await_that

from comborun.generate.bundle import bundle
from comborun.grid import load_grid
from comborun.model.plan import Plan
from comborun.planner.laying import lay_out
from comborun.remote.host import host_facts
from comborun.remote.library import library_files
from comborun.remote.ssh.config import Options
from comborun.remote.ssh.keeping import all_kept
from comborun.remote.ssh.kept import KeptTransport
from comborun.remote.ssh.openssh import OpensshTransport
from comborun.remote.ssh.transport import SshTransport

SIZES = (8, 64, 500)
STEPS = {0: 12, 50: 8, 200: 3}
"""how many of the same step are measured at which delay"""
LOOKS = 10
RUNS = ((8, 8), (64, 8), (64, 32), (500, 8), (500, 32))
"""sessions, and how many of them run"""
MOST_MS, MOST_KB = 100, 128


def connects(the_bed: Bed, folder: Path) -> list[Row]:
    """What every other way contains too: a connection, and one command on it."""
    rows = []
    for kind in ("ssh", "openssh"):
        row = Row(f"connecting, {kind}", 0)
        for delay in DELAYS:
            the_bed.delay(delay)
            row.costs[delay] = the_bed.measure(Comborun(the_bed, kind, folder).greet, 3)
        the_bed.delay(0)
        rows.append(row)
    return rows


COMMANDS = {
    "status": (),
    "logs": ("env00_policy00", "-n", "20", "--run"),
    "set": ("limits.parallel=2", "--run"),
    "retry": ("--failed", "--run"),
    "stop": ("--dry-run",),
}
"""words between a command and the run; each can be given again and again"""


def statuses(the_bed: Bed, folder: Path) -> list[Row]:
    """Commands, from the start of the program to its end: alone, and over a connection that is kept."""
    rows = []
    for kind in ("ssh", "openssh"):
        comborun = Comborun(the_bed, kind, folder)
        with comborun.connected() as transport:
            directory = comborun.launch(transport, write_grid(folder, 8, parallel=8)).publication.directory
        words = ["--host", ALIAS, "--transport", kind]
        for verb in COMMANDS if kind == "ssh" else ("status",):
            command = partial(combo, the_bed, folder, verb, *COMMANDS[verb], Path(directory).name, *words)
            for way, keep_s in (("alone", 0), ("kept", 600)):
                row = Row(f"`combo {verb}`, {kind}, {way}", 8)
                for delay in DELAYS:
                    combo(the_bed, folder, "disconnect")
                    the_bed.delay(delay)
                    if keep_s:
                        command(keep_s=keep_s)
                    row.costs[delay] = the_bed.measure(partial(command, keep_s=keep_s), 3)
                    the_bed.delay(0)
                rows.append(row)
        combo(the_bed, folder, "disconnect")
        comborun.stop(directory)
    return rows


def kept_connects(the_bed: Bed, folder: Path) -> list[Row]:
    """A connection and one script on it, as at the start of a command: alone, and over a kept connection."""
    os.environ["XDG_RUNTIME_DIR"] = str(folder)
    rows = []
    for kind, kept in (("ssh", KeptTransport), ("openssh", OpensshTransport)):
        alone = SshTransport if kind == "ssh" else OpensshTransport
        for way, transport, keep_s in (("alone", alone, 0.0), ("kept", kept, 600.0)):
            options = replace(the_bed.options, keep_s=keep_s)
            row = Row(f"connecting, {kind}, {way}", 0)
            greet = partial(_greet, transport, options)
            greet()
            for delay in DELAYS:
                the_bed.delay(delay)
                greet()
                costs = [the_bed.measure(greet) for _ in range(7)]
                row.costs[delay] = min(costs, key=lambda cost: cost.seconds)  # others use this machine, too
            the_bed.delay(0)
            rows.append(row)
    for one in all_kept():
        one.end()
    return rows


def _greet(transport: type[SshTransport | KeptTransport | OpensshTransport], options: Options) -> None:
    with transport(ALIAS, options) as opened:
        opened.run("true")


def combo(the_bed: Bed, folder: Path, *words: str, keep_s: int = 600) -> None:
    own = {"COMBORUN_SSH_CONFIG": str(the_bed.site.host.config), "COMBORUN_KEEP_S": str(keep_s)}
    environment = {**os.environ, **own, "XDG_RUNTIME_DIR": str(folder)}
    subprocess.run([sys.executable, "-m", "comborun", *words], env=environment, check=False, capture_output=True)


def deploys(the_bed: Bed, folder: Path) -> list[Row]:
    rows: list[Row] = []
    for sessions in SIZES:
        files: list[tuple[str, bytes]] = []
        for kind in ("ssh", "openssh"):
            row, files = deploy(Comborun(the_bed, kind, folder), sessions)
            rows.append(row)
        rows += copies(the_bed, sessions, files, folder)
    return rows


def deploy(comborun: Comborun, sessions: int) -> tuple[Row, list[tuple[str, bytes]]]:
    """`combo launch`, connecting included, up to the first session's begin record; and the files of the run."""
    row = Row(f"`combo launch`, {comborun.kind}", sessions)
    grid = write_grid(comborun.folder, sessions, parallel=1)
    (comborun.bed.home / "long/env00_policy00").touch()
    files: list[tuple[str, bytes]] = []
    for delay in DELAYS:
        comborun.bed.delay(delay)
        said: list[tuple[Counting, str, Plan]] = []

        def act(said: list[tuple[Counting, str, Plan]] = said) -> None:
            with comborun.connected() as transport:
                launched = comborun.launch(transport, grid)
                said.append((transport, launched.publication.directory, launched.plan))

        row.costs[delay] = comborun.bed.measure(act)
        transport, directory, plan = said[0]
        row.requests = transport.requests
        comborun.bed.delay(0)
        comborun.stop(directory)
        files = [(str(file.path), file.text.encode()) for file in bundle(plan, grid.read_text(), library_files(), {})]
    return row, files


def copies(the_bed: Bed, sessions: int, files: list[tuple[str, bytes]], folder: Path) -> list[Row]:
    """The same files with scp, one by one, and as one archive. Nothing is checked, and nothing is started."""
    rows = [
        Row("scp per file", sessions, guessed=True),
        Row("scp per file, ControlMaster", sessions, guessed=True),
        Row("tar.gz through ssh", sessions),
    ]
    source = folder / "session.sh"
    source.write_bytes(next(content for name, content in files if name.endswith("session.sh")))
    archive = packed(files)
    for delay in DELAYS:
        the_bed.delay(0)
        plain = ByHand(the_bed)
        with plain.open_master() as mastered:
            the_bed.delay(delay)
            for row, way in zip(rows, (plain, mastered), strict=False):
                copy = steps(the_bed, delay, partial(way.scp, source, "copied"))
                row.costs[delay] = copy.times(len(files))
            unpack = "rm -rf put; mkdir put && tar xzf - -C put"
            rows[2].costs[delay] = the_bed.measure(partial(plain.ssh, unpack, archive))
            the_bed.delay(0)
    return rows


def steps(the_bed: Bed, delay: int, action: Callable[[], object]) -> Cost:
    """One of many equal steps."""
    return the_bed.measure(action, STEPS[delay])


@dataclass(frozen=True)
class Watched:
    """A real run of which the last `running` sessions go on, while all others have ended."""

    sessions: int
    running: int
    directory: str
    logs: list[str]


@dataclass(frozen=True)
class Polled:
    """What looks at one run cost."""

    sessions: int
    running: int
    rows: list[Row]
    start: Cost
    """of a monitor: reading the plan"""
    first: Cost
    """of its first look"""


def poll(the_bed: Bed, folder: Path, sessions: int, running: int) -> Polled:
    the_bed.delay(0)
    comborun = Comborun(the_bed, "ssh", folder)
    with comborun.connected() as transport:
        watched = watch(transport, comborun, write_grid(folder, sessions, parallel=32), running)
    try:
        the_bed.settle()
        polled = monitors(the_bed, folder, watched)
        return (
            replace(polled, rows=[*polled.rows, *loops(the_bed, watched)]) if running == min(sessions, 32) else polled
        )
    finally:
        the_bed.delay(0)
        comborun.stop(watched.directory)


def watch(transport: Counting, comborun: Comborun, grid: Path, running: int) -> Watched:
    """Launch, and wait until nothing but the last sessions of the plan runs, with their logs written."""
    long = comborun.bed.home / "long"
    for file in long.iterdir():
        file.unlink()
    names = [session.name for session in lay_out(load_grid(grid), host_facts(transport)).sessions]
    for name in names[len(names) - running :]:
        (long / name).touch()
    directory = comborun.launch(transport, grid).publication.directory
    run = comborun.bed.site.host.folder / directory.removeprefix("/")
    logs = [f"sessions/{name}/attempt-1/log" for name in names]
    await_that(
        f"all but {running} of {len(names)} sessions have ended",
        lambda: (
            len(list(run.glob("sessions/*/attempt-1/end"))) == len(names) - running
            and all((run / log).exists() and (run / log).stat().st_size >= LOG_BYTES for log in logs[-running:])
        ),
        120,
    )
    # nothing else uses the host's CPU now; its dispatcher does not live any the less for the monitors
    transport.run(f"kill -STOP {comborun.dispatcher(directory)}")
    return Watched(len(names), running, directory, [f"{directory}/{log}" for log in logs])


def begin(looking: list[Looking], transport: Counting, directory: str) -> None:
    looking.append(Looking(transport, directory))


def monitors(the_bed: Bed, folder: Path, watched: Watched) -> Polled:
    """One monitor over each transport: its start, its first look, and later ones at each delay."""
    rows, beginnings = [], []
    for kind in ("ssh", "openssh"):
        row = Row(f"`combo monitor`, {kind}", watched.sessions, requests=1)
        with Comborun(the_bed, kind, folder).connected() as transport:
            transport.run("true")
            looking: list[Looking] = []
            start = the_bed.measure(partial(begin, looking, transport, watched.directory))
            beginnings.append((start, the_bed.measure(looking[0].look)))
            for delay in DELAYS:
                the_bed.delay(delay)
                row.costs[delay] = the_bed.measure(looking[0].look, LOOKS)
            the_bed.delay(0)
        rows.append(row)
    return Polled(watched.sessions, watched.running, rows, *beginnings[0])


def loops(the_bed: Bed, watched: Watched) -> list[Row]:
    """What people write: `screen -ls`, and the last line of every session's log."""
    rows = [
        Row("a loop: ssh per session", watched.sessions, guessed=True),
        Row("the loop, ControlMaster", watched.sessions, guessed=True),
        Row("one ssh over all logs", watched.sessions),
    ]
    at_once = f"screen -ls; tail -qn1 {watched.directory}/sessions/*/attempt-1/log"
    for delay in DELAYS:
        the_bed.delay(0)
        plain = ByHand(the_bed)
        with plain.open_master() as mastered:
            the_bed.delay(delay)
            for row, way in zip(rows, (plain, mastered), strict=False):
                listed = the_bed.measure(partial(way.ssh, "screen -ls"))
                tail = steps(the_bed, delay, partial(way.ssh, f"tail -1 {watched.logs[0]}"))
                row.costs[delay] = listed.plus(tail.times(watched.sessions))
            rows[2].costs[delay] = the_bed.measure(partial(plain.ssh, at_once))
            the_bed.delay(0)
    return rows


def growth(polled: list[Polled]) -> list[tuple[str, ...]]:
    """What a later look costs by how many sessions there are and how many run."""
    return [
        (
            *(str(number) for number in (one.sessions, one.running)),
            three(1000 * one.rows[0].costs[0].seconds),
            three(one.rows[0].costs[0].down / 1000),
            three(1000 * one.rows[0].costs[0].cpu),
            three(one.first.down / 1000),
            three(one.start.down / 1000),
        )
        for one in polled
    ]


def facts(rows: list[Row], polled: list[Polled], bare: dict[int, float]) -> Iterator[str]:
    """The promises, each with what was measured."""
    most = max(row.requests or 0 for row in rows)
    yield f"deploying asks {most} times, for 8 sessions as for 800 (promised: at most 4): {kept(most <= 4)}"
    for row in polled[-1].rows[:2]:
        over = max(1000 * row.costs[delay].seconds - bare[delay] for delay in DELAYS)
        size = max(cost.up + cost.down for cost in row.costs.values()) / 1000
        yield (
            f"{row.way}, 500 sessions, 32 running with logs of 10 MB: a look takes one round trip and {over:.0f} ms "
            f"(promised: under {MOST_MS} ms) and {size:.1f} KB (promised: under {MOST_KB} KB): "
            f"{kept(over < MOST_MS and size < MOST_KB)}"
        )
    by_size = {(one.sessions, one.running): one.rows[0].costs[0] for one in polled}
    more_running = by_size[500, 32].down / by_size[500, 8].down
    more_sessions = by_size[500, 32].down / by_size[64, 32].down
    yield (
        f"bytes of a look grow x{more_running:.1f} from 8 to 32 running of 500, and x{more_sessions:.1f} from "
        f"64 to 500 sessions with 32 running: {kept(more_running > 2 > 1.5 > more_sessions)}"
    )


def kept(promise: bool) -> str:
    return "kept" if promise else "NOT KEPT"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--status", action="store_true")
    only_status = parser.parse_args().status
    begun = time.monotonic()
    load = os.getloadavg()[0]
    with bed() as the_bed, tempfile.TemporaryDirectory() as name:
        os.environ["XDG_STATE_HOME"] = name  # what is launched here is nothing to remember
        bare = {}
        for delay in DELAYS:
            the_bed.delay(delay)
            bare[delay] = the_bed.bare_round_trip()
        folder = Path(name)
        if only_status:
            print("round trips of the bare link: " + ", ".join(f"{value:.1f} ms" for value in bare.values()))
            the_bed.delay(0)
            for rows in (kept_connects, statuses):
                table(HEAD, [tuple(row.cells()) for row in rows(the_bed, folder)])
            return
        most, _ = deploy(Comborun(the_bed, "ssh", folder), 800)
        deployed = [*connects(the_bed, folder), *deploys(the_bed, folder), most]
        polled = [poll(the_bed, folder, *size) for size in RUNS]
        print(
            f"{os.cpu_count()} cores, {platform.system()} {platform.release()}, load {load:.1f} before the first step;"
        )
        print("round trips of the bare link: " + ", ".join(f"{value:.1f} ms" for value in bare.values()))
        print("\n### Deploying")
        table(HEAD, [tuple(row.cells()) for row in deployed])
        print(f"### Looking, {EPISODES} episodes planned, up to 32 sessions running with logs of 10 MB")
        table(HEAD, [tuple(row.cells()) for one in polled if len(one.rows) > 2 for row in one.rows])
        print("### What a look grows with (`combo monitor`, ssh, 0 ms)")
        head = ("sessions", "running", "ms", "KB down", "host CPU ms", "first look: KB", "monitor's start: KB")
        table(head, growth(polled))
        for fact in facts(deployed, polled, bare):
            print(f"- {fact}")
    print(f"\ntook {time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()
