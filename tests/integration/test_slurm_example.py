"""The example grid, a real simulation, runs on Slurm to the same report as on one machine, episode for episode."""

from __future__ import annotations

import csv
import os
import shlex
import sys
from pathlib import Path

import pytest
from desk import CHECKOUT, Desk, desk
from slurm import Slurm

__all__ = ["desk"]

EXAMPLE = CHECKOUT / "examples/quadruped"
WHOLE = bool(os.environ.get("COMBORUN_SLOW"))
"""all eight combos with all their episodes; else four of them with two"""
EPISODES, ENVIRONMENTS = (100, "[friction, grass, boulder, stairs]") if WHOLE else (2, "[friction, stairs]")

PROGRAMS = shlex.quote(str(Path(sys.executable).parent))


def example(desk: Desk) -> Path:
    """The example's grid as it ships, with this test's Python, and less of it."""
    text = (EXAMPLE / "grid.yaml").read_text()
    changes = {
        "episodes: 100": f"episodes: {EPISODES}\nresources: {{cpus: 1, memory: 700 MiB}}",
        "environments: [friction, grass, boulder, stairs]": f"environments: {ENVIRONMENTS}",
        "workdir: .": f"workdir: {EXAMPLE}",
        "setup: source ../../.venv/bin/activate": f"setup: export PATH={PROGRAMS}:$PATH",
        "checkpoint: checkpoints/": f"checkpoint: {EXAMPLE}/checkpoints/",
    }
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    grid = desk.home / "grid.yaml"
    grid.write_text(text)
    return grid


def episodes(run: Path) -> list[dict[str, str]]:
    """Every episode of a run's report, without where and when it was made."""
    with (run / "report/episodes.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    told = [{key: value for key, value in row.items() if key not in ("attempt", "source", "file")} for row in rows]
    return sorted(told, key=lambda row: (row["session"], int(row["episode"])))


@pytest.mark.timeout(600)
def test_the_example_gives_the_same_report_on_slurm_as_here(slurm: Slurm, desk: Desk) -> None:
    pytest.importorskip("mujoco")
    desk.environment |= slurm.environment
    grid = example(desk)
    on_slurm = desk.combo("run", grid, "--slurm", "--plain", timeout=280)
    assert on_slurm.returncode == 0, on_slurm.stdout + on_slurm.stderr
    here = desk.combo("run", grid, "--new", "--plain", timeout=280)
    assert here.returncode == 0, here.stdout + here.stderr
    first, second = desk.runs[0], desk.runs[-1]
    assert first != second
    assert len(episodes(first)) == 2 * len(ENVIRONMENTS.split()) * EPISODES
    assert episodes(first) == episodes(second)
