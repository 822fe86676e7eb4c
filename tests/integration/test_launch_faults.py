"""`combo launch` is killed with KILL at some point, and given again: one run, nothing doubled, nothing left behind.

The points are spread over a whole launch, from its first moment to its last, by a seeded random; the last of them is
when the run has just appeared, however long that takes on a busy machine. Each launch is a fork of a process that has
imported the program, so that the points fall into what a launch does and not into its imports.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from box import until
from desk import EVALUATOR, Desk, evaluate
from happened import events, granted
from quick_combo import call
from sshd import fresh_user, running_sshd

POINTS, OVER_SSH = (14, 14) if os.environ.get("COMBORUN_SLOW") else (5, 3)
"""the last of them: not at a time, but when the run is there"""
EPISODES = 6


@dataclass
class Launcher:
    """Launches grids, and kills launches."""

    desk: Desk
    home: Path
    """where the runs are"""
    keys: dict[str, str]

    def grid(self, name: str) -> Path:
        keys = {"environments": "[maze, field]", "policies": "[good]", "episodes": str(EPISODES), **self.keys}
        path = self.desk.grid(f"{name}.yaml", **keys)
        path.write_text(path.read_text().replace("name: little", f"name: {name}"))
        return path

    def killed(self, grid: Path, moment: Callable[[], None]) -> bool:
        """Kill a launch as soon as `moment` returns. Returns whether it was killed before its end."""
        words, home = ["launch", str(grid), "--json"], self.desk.home
        launch = call(words, self.desk.environment, home, home / "said")
        moment()
        launch.kill()
        return launch.code() == -signal.SIGKILL

    def runs(self, name: str = "*") -> list[Path]:
        return sorted((self.home / "comborun").glob(f"{name}-????????T??????Z-????"))


@pytest.fixture
def here(desk: Desk) -> Launcher:
    return Launcher(desk, desk.home, {"command": evaluate(0.1)})


@pytest.fixture
def there(desk: Desk, ssh_place: Path) -> Iterator[Launcher]:
    with fresh_user() as user, running_sshd(ssh_place / f"launches-{user.name}", user) as server:
        shutil.copy(EVALUATOR, user.home / "evaluator.py")
        desk.environment["COMBORUN_SSH_CONFIG"] = str(server.config)
        command = f"/usr/bin/python3 ~/evaluator.py --{evaluate(0.1).split(' --', 1)[1]}"
        yield Launcher(desk, user.home, {"command": command, "host": "testbox"})


def test_a_launch_that_is_killed_at_any_point_and_repeated_is_one_run(here: Launcher) -> None:
    survive(here, POINTS)


def test_the_same_holds_over_ssh(there: Launcher) -> None:
    survive(there, OVER_SSH)


def survive(launcher: Launcher, points: int) -> None:
    launcher.desk.combo("--version")  # the program is imported once
    before = time.monotonic()
    launcher.desk.combo("launch", launcher.grid("whole"), code=0)
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
    """From nothing to what the first launch takes; None: until the run is there."""
    chance = random.Random(20260729)
    parts = points - 2
    return [0.0, *(whole * (part + chance.random()) / parts for part in range(parts)), None]


def kill_and_repeat(launcher: Launcher, number: int, delay: float | None) -> str:
    """Where the kill met the launch."""
    grid = launcher.grid(f"killed{number}")

    def moment() -> None:
        if delay is None:
            until(lambda: launcher.runs(f"killed{number}"), "the run is there")
        else:
            time.sleep(delay)  # the fault's own moment; nothing is waited for

    killed = launcher.killed(grid, moment)
    there_were = launcher.runs(f"killed{number}")
    record = launcher.desk.json("launch", grid)
    (run,) = launcher.runs(f"killed{number}")
    assert record["run"] == run.name
    assert record["state"] in ({"resumed", "finished"} if there_were else {"new", "resumed"})
    if not killed:
        return "too late"
    return "when the run is there" if there_were else "before the run is there"


def holds_everything_once(run: Path) -> None:
    launches = Counter(granted(run))
    assert launches == {"maze_good": 1, "field_good": 1}, f"{run.name} started something twice, or nothing"
    left = [event.fields["left"] for event in events(run, "taken_over")]
    assert list(filter(None, left)) == [2], "one dispatcher did it all"
    for session in launches:
        assert [path.name for path in run.glob(f"sessions/{session}/attempt-*")] == ["attempt-1"]
        rows = (run / f"sessions/{session}/attempt-1/out/episodes.jsonl").read_text().splitlines()
        assert [json.loads(row)["episode"] for row in rows] == list(range(EPISODES))
