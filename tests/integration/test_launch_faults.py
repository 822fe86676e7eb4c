"""`combo launch` is killed with KILL at some point, and given again: one run, nothing doubled, nothing left behind.

The points are spread over a whole launch, from its first moment to its last, by a seeded random; the last of them are
when the run has just appeared, however long that takes on a busy machine. A zygote that has imported the program forks
each launch, so that the points fall into what a launch does and not into its imports.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from box import until
from desk import EVALUATOR, Desk, evaluate
from sshd import fresh_user, running_sshd

POINTS, OVER_SSH = (14, 14) if os.environ.get("COMBORUN_SLOW") else (6, 4)
APPEARED = 2
"""of them: not at a time, but when the run is there"""
EPISODES = 6
ZYGOTE = """
import importlib, json, os, pkgutil, sys
import paramiko
import comborun.__main__, comborun.cli
import comborun.remote.transport, comborun.remote.ssh.openssh, comborun.remote.ssh.transport
for module in pkgutil.iter_modules(comborun.cli.__path__, "comborun.cli."):
    importlib.import_module(module.name)
print("ready", flush=True)
while line := sys.stdin.readline():
    arguments, said = json.loads(line)
    child = os.fork()
    if not child:
        sys.argv = ["combo", *arguments]
        for stream, end in ((1, "out"), (2, "err")):
            os.dup2(os.open(f"{said}.{end}", os.O_WRONLY | os.O_CREAT), stream)
        comborun.__main__.main()
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@dataclass
class Launcher:
    """Launches grids, and kills launches."""

    desk: Desk
    home: Path
    """where the runs are"""
    zygote: subprocess.Popen[str]
    keys: dict[str, str]
    count: int = 0

    def grid(self, name: str) -> Path:
        keys = {"environments": "[maze, field]", "policies": "[good]", "episodes": str(EPISODES), **self.keys}
        path = self.desk.grid(f"{name}.yaml", **keys)
        path.write_text(path.read_text().replace("name: little", f"name: {name}"))
        return path

    def launch(self, grid: Path, moment: Callable[[], None] | None = None) -> tuple[int, Path]:
        """Exit code, and where standard output is. It is killed when `moment`, called after the fork, returns."""
        self.count += 1
        said = self.desk.home / f"said-{self.count}"
        assert self.zygote.stdin
        assert self.zygote.stdout
        self.zygote.stdin.write(json.dumps([["launch", str(grid), "--json"], str(said)]) + "\n")
        self.zygote.stdin.flush()
        child = int(self.zygote.stdout.readline())
        if moment:
            moment()
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        return int(self.zygote.stdout.readline()), said.with_suffix(".out")

    def record(self, grid: Path) -> dict[str, Any]:
        """A whole launch's record."""
        code, said = self.launch(grid)
        assert code == 0, said.with_suffix(".err").read_text()
        return dict(json.loads(said.read_text()))

    def runs(self, name: str = "*") -> list[Path]:
        return sorted((self.home / "comborun").glob(f"{name}-????????T??????Z-????"))


@contextlib.contextmanager
def launching(desk: Desk, home: Path, **keys: str) -> Iterator[Launcher]:
    zygote = subprocess.Popen(
        [sys.executable, "-c", ZYGOTE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=desk.environment,
        cwd=desk.home,
    )
    try:
        assert zygote.stdout
        assert zygote.stdout.readline() == "ready\n"
        yield Launcher(desk, home, zygote, keys)
    finally:
        with contextlib.suppress(Exception):
            zygote.kill()
            zygote.communicate(timeout=10)


@pytest.fixture
def here(desk: Desk) -> Iterator[Launcher]:
    with launching(desk, desk.home, command=evaluate(0.1)) as launcher:
        yield launcher


@pytest.fixture
def there(desk: Desk, ssh_place: Path) -> Iterator[Launcher]:
    with fresh_user() as user, running_sshd(ssh_place / f"launches-{user.name}", user) as server:
        shutil.copy(EVALUATOR, user.home / "evaluator.py")
        desk.environment["COMBORUN_SSH_CONFIG"] = str(server.config)
        command = f"/usr/bin/python3 ~/evaluator.py --{evaluate(0.1).split(' --', 1)[1]}"
        with launching(desk, user.home, command=command, host="testbox") as launcher:
            yield launcher


def test_a_launch_that_is_killed_at_any_point_and_repeated_is_one_run(here: Launcher) -> None:
    survive(here, POINTS)


def test_the_same_holds_over_ssh(there: Launcher) -> None:
    survive(there, OVER_SSH)


def survive(launcher: Launcher, points: int) -> None:
    launcher.record(launcher.grid("first"))  # starts the tmux server, and makes the folders
    before = time.monotonic()
    launcher.record(launcher.grid("whole"))
    whole = time.monotonic() - before
    met = Counter(kill_and_repeat(launcher, number, delay) for number, delay in enumerate(delays(whole, points)))
    assert met["before the run is there"], f"{met}; a whole launch takes {whole:.2f} s"
    assert met["when the run is there"], f"{met}; a whole launch takes {whole:.2f} s"
    for number in range(points):
        (run,) = launcher.runs(f"killed{number}")
        until(lambda run=run: (run / "dispatch/done").exists(), f"{run.name} ends", 60)
        holds_everything_once(run)
    until(lambda: not list((launcher.home / "comborun/.incoming").iterdir()), "nothing is left of what was sent", 5)


def delays(whole: float, points: int) -> list[float | None]:
    """From nothing to a little more than a whole launch takes; None: until the run is there."""
    chance = random.Random(20260729)
    parts = points - 1 - APPEARED
    return [0.0, *(whole * 1.1 * (part + chance.random()) / parts for part in range(parts)), *[None] * APPEARED]


def kill_and_repeat(launcher: Launcher, number: int, delay: float | None) -> str:
    """Where the kill met the launch."""
    grid = launcher.grid(f"killed{number}")

    def moment() -> None:
        if delay is None:
            until(lambda: launcher.runs(f"killed{number}"), "the run is there")
        else:
            time.sleep(delay)  # the fault's own moment; nothing is waited for

    code, _ = launcher.launch(grid, moment)
    there_were = launcher.runs(f"killed{number}")
    record = launcher.record(grid)
    (run,) = launcher.runs(f"killed{number}")
    assert record["run"] == run.name
    assert record["state"] in ({"resumed", "finished"} if there_were else {"new", "resumed"})
    if code != -signal.SIGKILL:
        return "too late"
    return "when the run is there" if there_were else "before the run is there"


def holds_everything_once(run: Path) -> None:
    journal = [line.split()[1:] for line in (run / "dispatch/journal").read_text().splitlines()]
    launches = Counter(words[1] for words in journal if words[0] == "launch")
    assert launches == {"maze_good": 1, "field_good": 1}, f"{run.name} started something twice, or nothing"
    adopted = [words[1] for words in journal if words[0] == "adopted" and words[1].startswith("left=")]
    assert [left for left in adopted if left != "left=0"] == ["left=2"], "one dispatcher did it all"
    for session in launches:
        assert [path.name for path in run.glob(f"sessions/{session}/attempt-*")] == ["attempt-1"]
        rows = (run / f"sessions/{session}/attempt-1/out/episodes.jsonl").read_text().splitlines()
        assert [json.loads(row)["episode"] for row in rows] == list(range(EPISODES))
