"""A laptop on the way to a host, and the monitors that run on it."""

from __future__ import annotations

import contextlib
import csv
import json
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from box import until
from desk import EVALUATOR, Desk, reported
from happened import events

from comborun.model.attempt import Begin

MONITOR = """
import sys
import comborun.monitor.observe as observe
import comborun.remote.ssh.shell as link
from comborun.__main__ import main
observe.ANSWER_S = link.ANSWER_S = float(sys.argv.pop(1))
main()
"""
"""the monitor, with a patience of its own"""
ANSWER_S = 20.0
"""the monitor's own patience"""


@dataclass
class Watcher:
    """A monitor that runs; what it says goes to a file."""

    process: subprocess.Popen[bytes]
    said: Path
    read: list[dict[str, Any]] = field(default_factory=list)
    """the records that have been read, up to the place"""
    place: int = 0

    @property
    def text(self) -> str:
        return self.said.read_text(errors="replace")

    @property
    def documents(self) -> list[dict[str, Any]]:
        """What a monitor with --json has said, whole lines only. Each is read once."""
        with self.said.open("rb") as file:
            file.seek(self.place)
            whole = file.read().rpartition(b"\n")[0]
        self.place += len(whole)
        found = [json.loads(line) for line in whole.splitlines() if line.endswith(b"}")]
        self.read += [one for one in found if one["record"] == "status"]
        return self.read

    def await_exit(self, seconds: float = 60) -> int:
        until(lambda: self.process.poll() is not None, f"the monitor ends; it says\n{self.text[-3000:]}", seconds)
        return self.process.returncode

    @property
    def report(self) -> Path:
        return reported(self.text)


@dataclass
class Laptop:
    """`way` stands in front of every command: it may lead into a network namespace."""

    desk: Desk
    far_home: Path
    """the home on the host, as it can be seen from here"""
    way: tuple[str, ...] = ()
    watchers: list[Watcher] = field(default_factory=list)

    def __post_init__(self) -> None:
        shutil.copy(EVALUATOR, self.far_home / "evaluator.py")
        self.gates.mkdir()

    @property
    def gates(self) -> Path:
        return self.far_home / "gates"

    def open_gates(self, *sessions: str) -> None:
        """Let sessions do their last episode; all of them when none is named."""
        for session in sessions or ("maze_good", "maze_poor", "field_good", "field_poor"):
            (self.gates / session).touch()

    def grid(self, *, pace: float, episodes: int, **keys: str) -> Path:
        program = f"/usr/bin/python3 ~/evaluator.py --pace {pace} --gate ~/gates/{{environment}}_{{policy}}"
        asked = "--policy {policy} --env {environment} --seed {seed} --output-dir {output_dir}"
        asked += " --episodes {episodes} --first-episode {first_episode}"
        keys = {"host": "testbox", "poll": "1", **keys}
        return self.desk.grid(command=f"{program} {asked}", episodes=str(episodes), **keys)

    def combo(self, *arguments: object, timeout: float = 90) -> subprocess.CompletedProcess[str]:
        if not self.way:
            return self.desk.combo(*arguments, timeout=timeout)
        return subprocess.run(
            [*self.way, *self.desk.command(*arguments)],
            capture_output=True,
            text=True,
            env=self.desk.environment,
            cwd=self.desk.home,
            timeout=timeout,
            check=False,
        )

    def launch(self, grid: Path) -> dict[str, Any]:
        done = self.combo("launch", grid, "--json")
        assert done.returncode == 0, done.stderr
        return dict(json.loads(done.stdout.splitlines()[0]))

    def watch(self, *arguments: str, patience: float) -> Watcher:
        said = self.desk.home / f"monitor-{len(self.watchers)}.txt"
        with said.open("wb") as file:
            process = subprocess.Popen(
                [*self.way, sys.executable, "-c", MONITOR, str(patience), "monitor", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                env=self.desk.environment,
                cwd=self.desk.home,
            )
        self.watchers.append(Watcher(process, said))
        return self.watchers[-1]

    def close(self) -> None:
        """Never raises."""
        for watcher in self.watchers:
            with contextlib.suppress(Exception):
                watcher.process.kill()
                watcher.process.wait(10)


@dataclass(frozen=True)
class FarRun:
    """A run on the host, seen from here through its files."""

    directory: Path

    @property
    def begins(self) -> dict[str, Begin]:
        """By `session/attempt-N`."""
        files = self.directory.glob("sessions/*/attempt-*/begin")
        return {f"{file.parts[-3]}/{file.parts[-2]}": Begin.parse(file.read_text()) for file in sorted(files)}

    @property
    def processes(self) -> dict[str, tuple[int, int]]:
        """Supervisor and command of each attempt, by the pids of the host."""
        return {name: (begin.supervisor, begin.pid) for name, begin in self.begins.items()}

    @property
    def ends(self) -> list[str]:
        return sorted(f"{file.parts[-3]}/{file.parts[-2]}" for file in self.directory.glob("sessions/*/attempt-*/end"))

    @property
    def records(self) -> int:
        return sum(len(file.read_text().splitlines()) for file in self.directory.glob("sessions/*/attempt-*/out/*"))

    @cached_property
    def id(self) -> str:
        return (self.directory / "id").read_text().strip()

    @property
    def launches(self) -> Counter[str]:
        """How often the dispatcher decided to start which attempt."""
        return Counter(f"{event.session}/attempt-{event.attempt}" for event in events(self.directory, "granted"))


def only_run(home: Path) -> FarRun:
    """The one run below a home."""
    (directory,) = (home / "comborun").glob("*-????????T??????Z-????")
    return FarRun(directory)


def episodes(report: Path) -> Counter[tuple[str, str, int]]:
    """How often a report has each episode: policy, environment, index."""
    with (report / "episodes.csv").open(newline="") as file:
        return Counter((row["policy"], row["environment"], int(row["episode"])) for row in csv.DictReader(file))
