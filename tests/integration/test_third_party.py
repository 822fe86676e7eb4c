"""Evaluation programs as their packages ship them, each through the preset and the grid of its example.

They are large, so nothing installs them here. Each runs where its package is installed beside the tests, or in the
virtual environment that a variable names; the README of its example says how to make one.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from desk import CHECKOUT, Desk, desk_at

EXAMPLES = CHECKOUT / "examples/third_party"
SOLVED_STEPS = 5
"""MyoSuite's own: an episode is a success after more of them"""

COUNT = f"""
import sys, h5py
with h5py.File(sys.argv[1]) as trace:
    solved = [trial["env_infos/solved"][()].sum() > {SOLVED_STEPS} for trial in trace.values()]
print(sum(solved), len(solved))
"""
"""of the traces that examine_env writes when asked: what was solved, counted anew"""


FOUR = {
    "metaworld": (
        "{expert: {noise: 0}, noisy: {noise: 1.5}}",
        "[reach-v3]",
        "metaworld_eval.py --task {environment} --noise {policy.noise} --num-trials {episodes} --save-dir {output_dir}",
    ),
    "minigrid": (
        "[straight, random]",
        "[MiniGrid-Empty-5x5-v0]",
        "minigrid_rollouts.py {environment} {policy} {episodes} {output_dir}",
    ),
    "cartpole": ("[pd, angle]", "[pole]", "cartpole.py {policy} {episodes} {output_dir}"),
    "swingup": ("[random, still]", "[pole]", "swingup.py {policy} {episodes}"),
}
"""what is written into the starter: policies, environments and command"""
THRESHOLDS = {"minigrid": "success: {field: reward, at_least: 0.01}"}
"""what only a person can say: from which reward on an episode is a success"""
REPORTED = {
    "metaworld": {"expert": 3, "noisy": 0},
    "minigrid": {"straight": 3, "random": 2},
    "cartpole": {"pd": None, "angle": None},
    "swingup": {"random": 1, "still": 0},
}
"""successes of 3 episodes, as the program itself tells them; None: it tells returns alone"""


def at_home(desk: Desk, example: str, variable: str) -> Path:
    """The example's folder in the user's home, beside the virtual environment that its grid activates."""
    here = Path(sys.prefix, "bin/activate").exists() and example != "gym" and importlib.util.find_spec(example)
    installed = os.environ.get(variable) or (sys.prefix if here else "")
    if not installed:
        where = f"see examples/third_party/{example}/README.md"
        pytest.skip(f"{example} is not installed here, and {variable} names no environment with it: {where}")
    if not (desk.home / example).exists():
        (desk.home / example).symlink_to(Path(installed).resolve())
    return Path(shutil.copytree(EXAMPLES / example, desk.home / f"{example} example", dirs_exist_ok=True))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with desk_at(tmp_path_factory.mktemp("third") / "a home") as desk:
        yield desk


def reported(desk: Desk, grid: Path) -> tuple[Path, dict[str, Any]]:
    done = desk.combo("run", grid, timeout=1200)
    assert done.returncode == 0, done.stdout + done.stderr
    run = next(run for run in desk.runs if run.name.startswith(grid.parent.name.split()[0]))
    return run, desk.report(run)


def solved_by_hand(desk: Desk, folder: Path, policy: str, environment: str) -> tuple[int, int]:
    """The same evaluation without comborun, counted from its traces and not from what it prints."""
    python = desk.home / "myosuite/bin/python"
    out = folder / f"by hand/{environment}_{policy}"
    out.mkdir(parents=True)
    asked = ["--env_name", environment, "--policy_path", policy, "--num_episodes", "100", "--seed", "7"]
    kept = ["--render", "none", "--save_paths", "True", "--output_dir", out, "--output_name", "kept"]
    examine = [python, "-m", "myosuite.utils.examine_env", *asked, *kept]
    subprocess.run(examine, cwd=folder, env=desk.environment, capture_output=True, check=True, timeout=300)
    counting = [python, "-c", COUNT, next(out.glob("*.h5"))]
    told = subprocess.run(counting, env=desk.environment, capture_output=True, text=True, check=True, timeout=60)
    solved, episodes = map(int, told.stdout.split())
    return solved, episodes


@pytest.mark.timeout(600)
def test_myosuite_gives_the_counts_that_its_own_traces_hold(home: Desk) -> None:
    folder = at_home(home, "myosuite", "COMBORUN_MYOSUITE")
    run, report = reported(home, folder / "grid.yaml")
    assert {combo["outcome"] for combo in report["combos"]} == {"succeeded"}
    counts = {(one["policy"], one["environment"]): (one["successes"], one["completed"]) for one in report["combos"]}
    assert len(counts) == 9
    classes = {"random": "myosuite.utils.examine_env.RandPolicy", "rest": "passive.Rest", "full": "passive.Full"}
    for policy, name in classes.items():
        environment = "myoElbowPose1D6MRandom-v0"
        assert counts[policy, environment] == solved_by_hand(home, folder, name, environment)
    assert report["quality"]["findings"] == []
    table = (run / "report/report.md").read_text()
    assert all(f"| {policy} | {k}/{n} |" in table for (policy, _), (k, n) in counts.items())


@pytest.mark.timeout(3000)
def test_lerobot_gives_the_episodes_of_its_own_results(home: Desk) -> None:
    folder = at_home(home, "lerobot", "COMBORUN_LEROBOT")
    python = home.home / "lerobot/bin/python"
    made = [python, "untrained.py", "checkpoints"]
    subprocess.run(made, cwd=folder, env=home.environment | {"HF_HUB_OFFLINE": "1"}, check=True, timeout=300)
    grid = folder / "grid.yaml"
    grid.write_text(grid.read_text().replace("episodes: 10", "episodes: 3"))
    run, report = reported(home, grid)
    for combo in report["combos"]:
        session = f"{combo['environment']}_{combo['policy']}*"
        (info,) = run.glob(f"sessions/{session}/attempt-1/out/eval_info.json")
        own = json.loads(info.read_text())["overall"]
        assert combo["outcome"] == "succeeded"
        assert (combo["completed"], combo["missing"]) == (own["n_episodes"], 0) == (3, 0)
        assert 100 * combo["success_rate"] == own["pc_success"]
        assert combo["metrics"]["max_reward"]["mean"] == pytest.approx(own["avg_max_reward"])
        assert combo["metrics"]["sum_reward"]["mean"] == pytest.approx(own["avg_sum_reward"])
    assert report["quality"]["findings"] == []
    means = {combo["policy"]: combo["metrics"]["sum_reward"]["mean"] for combo in report["combos"]}

    grid.write_text(grid.read_text().replace("name: lerobot", "name: lrcut") + "block: 1\n")
    assert home.combo("run", grid, timeout=1200).returncode == 0
    cut = home.report(next(run for run in home.runs if run.name.startswith("lrcut")))
    assert {combo["policy"]: combo["metrics"]["sum_reward"]["mean"] for combo in cut["combos"]} == means


@pytest.mark.timeout(600)
@pytest.mark.parametrize("program", FOUR)
def test_a_program_of_ones_own_gets_from_the_starter_to_a_report_by_what_try_proposes(home: Desk, program: str) -> None:
    folder = at_home(home, "gym", "COMBORUN_GYM")
    grid = folder / "grid.yaml"
    policies, environments, command = FOUR[program]
    mine = {"policies": policies, "environments": environments, "episodes": "3", "command": f"python {command}"}
    starter = home.combo("init", "--name", program).stdout
    grid.write_text(with_keys(starter, {**mine, "setup": "source ~/gym/bin/activate"}))

    tried = home.combo("try", grid, timeout=300)
    proposed = re.search(r"^    results: (.*)$", tried.stdout, re.MULTILINE)
    assert proposed, tried.stdout
    results = proposed[1].replace("success: none", THRESHOLDS.get(program, "success: none"))
    grid.write_text(with_keys(grid.read_text(), {"results": results}))
    assert home.combo("try", grid, timeout=300).returncode == 0
    assert home.combo("run", grid, timeout=300).returncode == 0
    report = home.report(next(run for run in home.runs if run.name.startswith(program)))
    assert {
        one["policy"]: one["successes"] if one["success_rate"] is not None else None for one in report["combos"]
    } == (REPORTED[program])
    assert {one["missing"] for one in report["combos"]} == {0}


def with_keys(text: str, keys: dict[str, str]) -> str:
    """A grid with other values at its top level."""
    for key in keys:
        text = re.sub(rf"^{key}:.*\n(?:[ ].*\n)*", "", text, flags=re.MULTILINE)
    return text + "".join(f"{key}: {value}\n" for key, value in keys.items())
