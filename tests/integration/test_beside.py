"""Every command works beside every other, on one host and in one root.

Two commands at the same moment end by themselves, and what they say is an answer: done, refused for a reason that a
person knows, or not all succeeded. None meets a half of what the other one did.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from desk import Desk, evaluate

COMMANDS = {
    "launch": "launch {grid}",
    "launch new": "launch {grid} --new",
    "launch other": "launch {other}",
    "launch changed": "launch {grid} --set episodes=5 --changed rerun",
    "run": "run {grid} --plain",
    "try": "try {grid}",
    "try other": "try {other}",
    "calibrate": "calibrate {grid} --yes",
    "check": "check {grid}",
    "plan": "plan {grid}",
    "status": "status little",
    "runs": "runs",
    "explain": "explain --run little maze_good",
    "logs": "logs maze_good --run little",
    "report": "report little",
    "doctor": "doctor {grid}",
    "attach": "attach maze_good --run little --show",
    "resume": "resume little",
    "retry": "retry --failed --run little",
    "retry one": "retry maze_good --run little",
    "pause": "pause little",
    "drain": "drain little",
    "slots": "slots 2 --run little",
    "stop": "stop --yes little",
    "stop one": "stop maze_good --run little",
    "recheck": "recheck little",
    "clean": "clean --yes little",
}
PAIRS = int(os.environ.get("COMBORUN_PAIRS") or (28 if os.environ.get("COMBORUN_SLOW") else 8))
FAULTS = ("Traceback", "is not a run directory", "can't be read", "failed: ", "No such file", "host program knows no")


def words(name: str, grid: Path, other: Path) -> list[str]:
    return [word.format(grid=grid, other=other) for word in COMMANDS[name].split()]


@pytest.mark.parametrize("seed", os.environ.get("COMBORUN_SEEDS", "1").split())
def test_every_command_works_beside_every_other(desk: Desk, seed: str) -> None:
    chance = random.Random(seed)
    grid = desk.grid(policies="[good]", command=evaluate(pace=0.05))
    other = desk.grid("other.yaml", policies="[poor]", command=evaluate(pace=0.05))
    other.write_text(other.read_text().replace("name: little", "name: other"))
    desk.combo("launch", grid, code=0)
    for _ in range(PAIRS):
        pair = [chance.choice([*COMMANDS]) for _ in range(2)]
        calls = [desk.start(*words(name, grid, other)) for name in pair]
        codes = [call.code(120) for call in calls]
        for name, code, call in zip(pair, codes, calls, strict=True):
            gone = "clean" in pair  # the other one may find that the run is gone
            wrong = [fault for fault in FAULTS[: 1 if gone else None] if fault in call.text]
            assert not wrong, (pair, name, code, call.text)
            assert code in (0, 1, 2, 3 if gone else 0), (pair, name, code, call.text)
        if not any(run.name.startswith("little-") for run in desk.runs):
            desk.combo("launch", grid, code=0)
    desk.combo("resume", "little", code=None)
    desk.combo("stop", "--yes", "little", code=None)
