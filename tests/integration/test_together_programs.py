"""The grids of docs/presets.md for several environments in one process, with replicas of their programs.

COMBORUN_TORCH names a Python that has torch: then torch's own launcher starts the ranks, joined by gloo.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from desk import CHECKOUT, Desk, desk_at
from test_preset_runs import furnish

ARENA, SUITES, TASKS = re.findall(r"```yaml together\n(.*?)```", (CHECKOUT / "docs/presets.md").read_text(), re.DOTALL)
TORCH = os.environ.get("COMBORUN_TORCH", "")
RUNS = "evidence: {grace: 1 s}\nlimits: {stagger: 0 s, warm_up: 0, stall_after: 0, breaker: 0}\n"


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Desk]:
    with desk_at(tmp_path / "a home") as desk:
        furnish(desk.home)
        desk.environment["PATH"] = f"{desk.home}/bin:{desk.environment['PATH']}"
        desk.environment |= {"COMBORUN_WATCH_S": "0.5", "COMBORUN_GRACE_S": "1"}
        if TORCH:  # without the stand-in for its launcher
            shutil.rmtree(desk.home / "lib/torch")
            (desk.home / "bin/python").write_text(f'#!/bin/sh\nexec "{TORCH}" "$@"\n')
        yield desk


def run(desk: Desk, text: str, **variables: str) -> dict[str, str]:
    """The outcomes of a grid, on a machine without a GPU."""
    text = re.sub("launcher: torchrun", "launcher: {processes: 2}", re.sub("gpus: 2", "gpus: 0", text))
    added = "" if "resources:" in text else "resources: {gpus: 0}\n"
    modules = f"{desk.environment['PYTHONPATH']}:{desk.home}/lib"
    given = {"PYTHONUNBUFFERED": "1", "PYTHONPATH": modules, **variables}
    path = desk.home / "grid.yaml"
    path.write_text(f"name: little\n{text}{RUNS}{added}variables: {json.dumps(given)}\npoll: 0.3\n")
    desk.combo("run", path, "--force", timeout=180)
    return desk.states


def counted(desk: Desk) -> dict[str, tuple[int, int]]:
    return {one["environment"]: (one["completed"], one["successes"]) for one in desk.report()["combos"]}


def test_a_file_of_jobs_under_torchrun(lab: Desk) -> None:
    states = run(lab, ARENA.replace("episodes: 50", "episodes: 4"))
    assert states == dict.fromkeys(("pick_gr00t", "drawer_gr00t", "pour_gr00t"), "succeeded")
    assert counted(lab) == dict.fromkeys(("pick", "drawer", "pour"), (4, 3))
    rows = sorted(path.name for path in lab.runs[-1].glob("sessions/together_gr00t/attempt-1/out/*/*/*.jsonl"))
    assert rows == [f"episode_results_rebuild0_rank{rank}.jsonl" for rank in (0, 0, 1)]


def test_a_job_that_ends_its_rank_leaves_the_other_environments_their_attempts(lab: Desk) -> None:
    states = run(lab, ARENA.replace("episodes: 50", "episodes: 4"), REPLICA_BROKEN="pick")
    assert states == {"pick_gr00t": "partial", "drawer_gr00t": "succeeded", "pour_gr00t": "succeeded"}


def test_several_suites_of_lerobot(lab: Desk) -> None:
    text = SUITES.replace("n_episodes=50", "n_episodes=4") + "episodes: 8\n"
    assert run(lab, text) == {"libero_spatial_smolvla": "succeeded", "libero_object_smolvla": "succeeded"}
    assert counted(lab) == dict.fromkeys(("libero_spatial", "libero_object"), (8, 6))


def test_the_tasks_of_a_libero_suite(lab: Desk) -> None:
    states = run(lab, TASKS.replace("episodes: 50", "episodes: 4"))
    assert list(states.values()) == ["succeeded"] * 3
    assert set(counted(lab).values()) == {(4, 3)}
