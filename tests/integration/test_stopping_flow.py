"""`stop_early` on runs that really run: what is decided is not gone on with, and looking late changes no decision."""

from __future__ import annotations

import json
from pathlib import Path

from box import until
from desk import Desk, evaluate

STOPPING = {
    "environments": "[maze]",
    "episodes": "40",
    "block": "5",
    "limits": "{parallel: 2}",
    "stop_early": "all",
    "command": evaluate(pace=0.04),
}


def decided(run: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (run / "dispatch/decided").read_text().splitlines()]


def causes(run: Path) -> list[str]:
    return [json.loads(path.read_text())["cause"] for path in run.glob("sessions/*/attempt-*/end")]


def test_a_comparison_is_decided_early_and_the_rest_is_not_needed(desk: Desk) -> None:
    watched = desk.combo("run", desk.grid(**STOPPING), "--plain", code=0)
    (run,) = desk.runs
    (decision,) = decided(run)
    assert (decision["better"], decision["n_max"]) == ("good", 40)
    assert isinstance(decision["pairs"], int)
    assert 0 < decision["pairs"] < 40
    spared = 5 * causes(run).count("not_needed")
    assert spared > 0
    assert f"{spared} of 80 planned episodes were not needed" in watched.stdout
    assert sum(map(len, desk.records(run).values())) == 80 - spared
    assert f'"not_needed": {spared // 5}' in (run / "dispatch/done").read_text()

    told = desk.report()
    assert (told["totals"]["planned"], told["totals"]["missing"]) == (80 - spared, 0)
    (one,) = told["comparisons"]
    assert (one["better"], one["n_a"], one["test"]) == ("good", decision["pairs"], "CASM")
    assert one["sequential"] == {"n_max": 40, "stopped_early": True, "alpha": 0.05}
    report = (run / "report/report.md").read_text()
    assert f"{spared} of the grid's 80 episodes were not needed and are planned no more" in report

    desk.combo("launch", desk.home / "grid.yaml", "--new")
    until((desk.runs[-1] / "dispatch/done").exists, "all episodes have run", 40)
    desk.combo("monitor", "--plain", code=0)
    assert sum(map(len, desk.records(desk.runs[-1]).values())) == 80
    assert decided(desk.runs[-1]) == [decision], "looking late costs compute, and changes no decision"


def test_equal_policies_are_given_up_and_monitor_and_report_say_the_same(desk: Desk) -> None:
    keys = {"policies": "[poor, bad]", "episodes": "60", "stop_early": "{comparisons: all, width: 0.6}"}
    watched = desk.combo("run", desk.grid(**STOPPING | keys), "--plain", code=0)
    (run,) = desk.runs
    (over,) = decided(run)
    pairs = over["pairs"]
    assert (over["better"], over["n_max"]) == (None, 60)
    assert isinstance(pairs, int)
    assert 20 <= pairs < 55
    spared = 5 * causes(run).count("not_needed")
    assert f"{spared} of 120 planned episodes were not needed" in watched.stdout
    (one,) = desk.report()["comparisons"]
    assert (one["better"], one["n_a"], one["sequential"]["stopped_early"]) == (None, pairs, True)
    low, high = one["interval"]
    assert high - low <= 0.6


def test_records_that_can_carry_no_decision_are_told_by_whoever_looks(desk: Desk) -> None:
    unseeded = 'sed --unbuffered -i "s/.seed.: *[0-9]*, *//" "$0"/*.jsonl'
    command = f"sh -c '\"$@\"; {unseeded}; until [ -e ~/gate ]; do sleep 0.1; done' {{output_dir}} {evaluate()}"
    desk.combo("launch", desk.grid(**STOPPING | {"command": command}), code=0)
    said = "stop_early can't decide good against poor in maze, so all episodes run: no seeds in the records (episode 0)"
    until(lambda: desk.json("status")["undecided"] == said, "both policies have records", 20)
    assert f"! {said}" in " ".join(desk.combo("status").stdout.split())
    (desk.home / "gate").touch()
    watched = desk.combo("monitor", "--plain", "--interval", "0.3", code=0)
    assert f"! {said}" in watched.stdout
    assert sum(map(len, desk.records(desk.runs[-1]).values())) == 80
