"""`seeds: [0, 1, 2]` and `--set` in real runs: replicates are one combo of the report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from desk import Desk, evaluate

SET = ("--set", "episodes=3", "--set", "limits.parallel=2", "--plain")
SEEDS = (0, 100, 200)


def seeded(desk: Desk, **keys: str) -> Path:
    """The little grid with seeds in place of its seed."""
    path = desk.grid(**{"seeds": str([*SEEDS]), **keys})
    path.write_text("".join(line for line in path.read_text().splitlines(True) if not line.startswith("seed:")))
    return path


def finished(run: Path, report: Path) -> None:
    """Each combo ran three episodes for each seed, and the report counts and compares the nine as one combo."""
    manifest = json.loads((run / "run.json").read_text())
    assert manifest["provenance"]["given"] == ["episodes=3", "limits.parallel=2"]
    assert json.loads((run / "dispatch/policy.json").read_text())["parallel"] == 2
    document: dict[str, Any] = json.loads((report / "final_benchmark_report.json").read_text())
    assert (document["totals"]["completed"], document["totals"]["missing"]) == (36, 0)
    assert [one["completed"] for one in document["combos"]] == [9] * 4
    assert [(one["n_a"], one["n_b"]) for one in document["comparisons"]] == [(9, 9)] * 2
    seeds = [int(line.split(",")[3]) for line in (report / "episodes.csv").read_text().splitlines()[1:]]
    assert sorted(set(seeds)) == sorted(seed + episode for seed in SEEDS for episode in range(3))


def test_replicates_and_single_values_run_here_and_the_next_launch_follows_the_file(desk: Desk) -> None:
    grid = seeded(desk)
    desk.combo("run", grid, *SET, code=0)
    (run,) = desk.runs
    finished(run, run / "report")
    again = desk.combo("run", grid, "--plain", "--changed", "keep", code=2)
    assert "another number" in again.stderr


def test_an_option_and_a_set_of_the_same_key_are_refused(desk: Desk) -> None:
    grid = seeded(desk)
    for option in (("--parallel", "3", "--set", "limits.parallel=2"), ("--host", "box", "--set", "host=local")):
        refused = desk.combo("launch", grid, *option)
        assert (refused.returncode, "both give" in refused.stderr) == (2, True), refused.stderr
    assert not desk.runs


def test_replicates_are_compared_while_they_run_and_what_is_decided_is_not_needed(desk: Desk) -> None:
    early = {"environments": "[maze]", "episodes": "20", "block": "5", "stop_early": "all"}
    grid = seeded(desk, **early, seeds="[0, 100]", limits="{parallel: 2}", command=evaluate(pace=0.04))
    desk.combo("run", grid, "--plain", code=0)
    (run,) = desk.runs
    (decision,) = (json.loads(line) for line in (run / "dispatch/decided").read_text().splitlines())
    assert (decision["better"], decision["n_max"]) == ("good", 40)
    assert decision["pairs"] < 40
    spared = [
        one for one in run.glob("sessions/*/attempt-*/end") if json.loads(one.read_text())["cause"] == "not_needed"
    ]
    assert len(spared) > 0
    assert desk.report()["totals"]["planned"] == 80 - 5 * len(spared)
