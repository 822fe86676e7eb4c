"""What it costs to supervise sessions: CPU and memory of everything but the programs themselves.

    python benchmarks/supervision.py [--sessions 32] [--seconds 30] [--short 100]

Three figures, each for tmux and for screen: the share of one core that goes to `--sessions` running sessions that print
a line a second; the memory of each (its proportional set size, so that shared pages count once); and the CPU that a
session costs from its start to its end beside its program, over `--short` sessions of `true`. A program is what carries
a session's marker. Prints a markdown table; asserts nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dispatch import Work, begin, platform_line, run_directory, until, workspace

from comborun.rules import records

TALK = 'while :; do printf "step %s\\n" "$SECONDS"; sleep 1; done'


@dataclass
class Bench:
    """A run directory whose sessions are started in windows of their own server."""

    directory: Path
    environment: dict[str, str]
    multiplexer: str

    @property
    def dispatcher(self) -> int:
        return int(records.parse((self.directory / "dispatch/dispatcher").read_text())["pid"])

    @property
    def servers(self) -> list[int]:
        """The processes that keep the windows."""
        if self.multiplexer == "screen":
            return [int(file.name.partition(".")[0]) for file in Path(self.environment["SCREENDIR"]).iterdir()]
        ask = ["tmux", "-L", self.environment["COMBORUN_TMUX_SOCKET"], "display-message", "-p", "#{pid}"]
        return [int(word) for word in subprocess.run(ask, capture_output=True, text=True, check=False).stdout.split()]

    def overhead(self) -> list[int]:
        """Every process of ours that is no program: the windows' servers, the dispatcher, and what they started."""
        children: dict[int, list[int]] = {}
        for pid in (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()):
            with contextlib.suppress(OSError):
                parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(pid)
        found: list[int] = []
        waiting = [*self.servers, self.dispatcher]
        while waiting:
            pid = waiting.pop()
            with contextlib.suppress(OSError):
                if b"COMBORUN_SESSION=" not in Path(f"/proc/{pid}/environ").read_bytes():
                    found.append(pid)
                    waiting += children.get(pid, [])
        return found

    def end(self) -> None:
        with contextlib.suppress(Exception):
            subprocess.run(
                ["bash", "-c", END, "end", str(self.directory)], env=self.environment, timeout=60, check=False
            )
        for pid in [*self.servers]:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGTERM)


END = '"$(<"$1/dispatch/python")" -I -S "$1/lib/comborun_host" stop "$1" >/dev/null 2>&1'


@contextlib.contextmanager
def bench(multiplexer: str, command: tuple[str, ...], sessions: int, slots: int) -> Iterator[Bench]:
    made = Bench(*run_directory(Work(command, sessions, slots, workspace()), stamped=False), multiplexer)
    try:
        yield made
    finally:
        made.end()


def cpu_ns(pids: list[int]) -> int:
    """CPU time of processes that live, of all their threads, in nanoseconds."""
    spent = 0
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").glob("*/schedstat"):
            with contextlib.suppress(OSError):
                spent += int(task.read_text().split()[0])
    return spent


def memory_kib(pid: int) -> int:
    """The proportional set size."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1])
    return 0


def running(multiplexer: str, sessions: int, seconds: int) -> tuple[float, float]:
    """Per cent of one core while they run, and MiB of each session's supervision."""
    with bench(multiplexer, ("bash", "-c", TALK), sessions, sessions) as made:
        begin(made.directory, made.environment, made.multiplexer)
        until(lambda: len(list(made.directory.glob("sessions/*/attempt-1/begin"))) == sessions, 60)
        time.sleep(10)  # what a start costs is the other figure
        processes = made.overhead()
        before, began = cpu_ns(processes), time.monotonic()
        time.sleep(seconds)
        share = 100 * (cpu_ns(processes) - before) / 1e9 / (time.monotonic() - began)
        windows = {*made.servers, made.dispatcher} if multiplexer == "tmux" else {made.dispatcher}
        held = sum(memory_kib(pid) for pid in processes if pid not in windows)
        return share, held / 1024 / sessions


def short(multiplexer: str, sessions: int) -> float:
    """Milliseconds of CPU for each session beside its script and program, which are measured alone."""
    with bench(multiplexer, ("true",), sessions + 1, 4) as made:
        alone = program_ms(made, 50)
        before = machine_s()
        begin(made.directory, made.environment, made.multiplexer)
        until((made.directory / "dispatch/done").exists)
        return (machine_s() - before) * 1000 / sessions - alone


def machine_s() -> float:
    """CPU time of the whole machine: nothing else may use it meanwhile."""
    user, nice, system, _idle, _wait, irq, soft = map(int, Path("/proc/stat").read_text().split()[1:8])
    return (user + nice + system + irq + soft) / os.sysconf("SC_CLK_TCK")


def program_ms(made: Bench, rounds: int) -> float:
    """CPU of the script and its program, run by hand."""
    script = next(made.directory.glob("sessions/*/session.sh"))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for _ in range(rounds):
        subprocess.run(["bash", str(script)], env=made.environment, stdout=subprocess.DEVNULL, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return 1000 * spent / rounds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=32)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--short", type=int, default=100)
    given = parser.parse_args()
    print(platform_line())
    print(f"\n| | {given.sessions} that print a line a second | memory of each | CPU of one from start to end |")
    print("|---|---|---|---|")
    for multiplexer in ("tmux", "screen"):
        share, held = running(multiplexer, given.sessions, given.seconds)
        each = short(multiplexer, given.short)
        print(f"| {multiplexer} | {share:.1f} % of a core | {held:.1f} MiB | {each:.0f} ms |", flush=True)


if __name__ == "__main__":
    main()
