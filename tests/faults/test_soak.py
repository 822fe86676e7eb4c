"""A short soak: random faults from a fixed seed against real runs, and no episode is lost (benchmarks/soak)."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHECKOUT = Path(__file__).parents[2]
SOAK = CHECKOUT / "benchmarks" / "soak"
ROUNDS = 6


def command(*words: object) -> list[str]:
    return [sys.executable, str(SOAK), "--json", *map(str, words)]


def begun_below(folder: Path) -> list[str]:
    """The pids of processes whose environment names the folder: what a round starts has its home there."""
    found = []
    for file in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if f"HOME={folder}/".encode() in file.read_bytes():
                found.append(file.parent.name)
    return found


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """With a folder for temporary files of its own, so that what is left over can be seen."""
    return {**os.environ, "PYTHONPATH": str(CHECKOUT), "TMPDIR": str(tmp_path)}


@pytest.fixture
def scenes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The soak's module `scene`, which is imported as its program does."""
    monkeypatch.syspath_prepend(SOAK)
    import scene

    yield scene
    sys.modules.pop("scene")


@pytest.mark.timeout(400)
def test_random_faults_lose_no_episode_and_leave_no_process(environment: dict[str, str], tmp_path: Path) -> None:
    done = subprocess.run(
        command("--rounds", ROUNDS, "--seed", 20, "--jobs", 4),
        env=environment,
        capture_output=True,
        text=True,
        timeout=380,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    total = json.loads(done.stdout)
    assert total["rounds"] == ROUNDS
    assert sum(total["faults"].values()) >= ROUNDS
    assert total["computed"] <= total["reported"]  # a program may be killed before it has told its ledger
    assert total["reported"] == total["planned"] > 8 * ROUNDS
    assert (total["lost"], total["missing"], total["flawed"]) == (0, 0, [])
    assert list(tmp_path.iterdir()) == []
    assert begun_below(tmp_path) == []


def test_an_interrupted_soak_tells_what_there_was_and_leaves_nothing(
    environment: dict[str, str], tmp_path: Path
) -> None:
    soak = subprocess.Popen(
        command("--rounds", 50, "--jobs", 2),
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 30
    while not list(tmp_path.glob("soak-*/home/comborun/soak-*")) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(soak.pid, signal.SIGINT)  # as a terminal does, to all of its processes
    said, _ = soak.communicate(timeout=60)
    assert soak.returncode == 130
    assert json.loads(said)["lost"] == 0
    assert list(tmp_path.iterdir()) == []
    assert begun_below(tmp_path) == []


def test_a_seed_and_a_round_draw_the_same_faults_every_time(scenes: Any) -> None:
    kinds, multiplexers = ["one", "other", scenes.GROWN], ["tmux", "screen"]
    drawn = [scenes.draw(7, number, kinds, multiplexers) for number in range(50)]
    assert drawn == [scenes.draw(7, number, kinds, multiplexers) for number in range(50)]
    assert len({str(scene) for scene in drawn}) == 50
    assert drawn != [scenes.draw(8, number, kinds, multiplexers) for number in range(50)]
    assert all(scene.ranged for scene in drawn if scenes.GROWN in {fault.kind for fault in scene.faults})
