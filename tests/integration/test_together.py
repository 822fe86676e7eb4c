"""One process for all environments of a policy: counts and budgets for each, and what a crash leaves to the others."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from box import until
from desk import Desk

from comborun.rules.endings.failures import Failure

PROGRAM = """
import json, os, sys, time
jobs, output, bad, how = sys.argv[1:5]
rank, ranks = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
for place, job in enumerate(json.load(open(jobs))["jobs"]):
    if place % ranks != rank:
        continue
    if how != "silent":
        print("Running job", job["name"], flush=True)
    for episode in range(job["n"]):
        if job["name"] == bad and not os.path.exists("mended") and episode == (how != "silent"):
            if how == "error":
                raise RuntimeError("broken: " + job["name"])
            os.kill(os.getpid(), 11)
        while job["name"] == "hall" and os.path.exists("gate"):
            time.sleep(0.02)
        row = {"environment": job["name"], "episode": episode, "seed": job["seed"] + episode}
        row["success"] = episode % 2 == 0
        own = "_" + job["name"] if os.path.exists("apart") else ""
        with open(f"{output}/rows_{rank}{own}.jsonl", "a") as file:
            file.write(json.dumps(row) + "\\n")
        if os.path.exists("slow"):
            time.sleep(float(open("slow").read()))
"""


class Lab:
    """A grid with one policy, whose environments share a process."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        (desk.home / "runner.py").write_text(PROGRAM)

    def grid(self, bad: str = "none", how: str = "crash", **keys: str) -> Path:
        words = f"{shlex.quote(sys.executable)} runner.py {{file.jobs.json}} {{output_dir}} {bad} {how}"
        jobs = '[{name: "{environment}", n: "{episodes}", seed: "{seed}"}]'
        entries = {
            "policies": "[good]",
            "environments": "[maze, hall, yard]",
            "episodes": "3",
            "together": "environments",
            "files": f"{{jobs.json: {{jobs: {jobs}}}}}",
            "retry": "{crashed: {times: 1, wait: 0}}",
            "limits": "{breaker: 0}",
        }
        return self.desk.grid(command=words, **{**entries, **keys})

    def run(self, grid: Path, code: int | None = None) -> dict[str, str]:
        self.desk.combo("run", grid, timeout=120, code=code)
        return self.desk.states

    @property
    def starts(self) -> list[list[str]]:
        """The environments of each start, in their order."""
        grants = sorted(self.desk.runs[-1].glob("sessions/together_good/attempt-*/grant"))
        return [[name.partition("_")[0] for name in json.loads(one.read_text())["together"]] for one in grants]

    def counted(self, name: str) -> int:
        """The records of a running combo."""
        file = self.desk.runs[-1] / f"sessions/{name}/attempt-1/.counts"
        return int(json.loads(file.read_text())["records"]) if file.exists() else 0

    def ends(self, name: str) -> list[dict[str, Any]]:
        return [
            json.loads(one.read_text()) for one in sorted(self.desk.runs[-1].glob(f"sessions/{name}/attempt-*/end"))
        ]


@pytest.fixture
def lab(desk: Desk) -> Lab:
    return Lab(desk)


def test_each_combo_has_its_own_counts_records_and_line(lab: Lab) -> None:
    assert lab.run(lab.grid(policies="[good, bad]"), code=0) == dict.fromkeys(
        [f"{environment}_{policy}" for policy in ("good", "bad") for environment in ("maze", "hall", "yard")],
        "succeeded",
    )
    assert len(lab.desk.records(lab.desk.runs[-1])) == 8  # of each process, and by links of each combo
    report = lab.desk.report()
    assert {combo["environment"]: combo["successes"] for combo in report["combos"]} == dict.fromkeys(
        ("maze", "hall", "yard"), 2
    )
    assert [end["records"] for end in lab.ends("hall_good")] == [3]
    assert [len(list((lab.desk.runs[-1] / "results").iterdir())), lab.ends("together_good")[0]["outcome"]] == [
        2,
        "succeeded",
    ]


def test_a_combo_took_as_long_as_its_own_files_show_and_else_that_is_not_known(lab: Lab) -> None:
    home, combos = lab.desk.home, ("maze_good", "hall_good", "yard_good")
    (home / "slow").write_text("0.7")
    (home / "apart").touch()
    lab.run(lab.grid(), code=0)
    took = {one["name"]: one["seconds"] for one in lab.desk.json("status")["sessions"]}
    assert all(1.0 < took[name] < 2.9 for name in combos), took
    rows = {one["environment"]: one["seconds"] for one in lab.desk.report()["combos"]}
    assert rows == {name.removesuffix("_good"): pytest.approx(took[name], abs=0.001) for name in combos}
    (home / "apart").unlink()  # all rows in one file
    (home / "slow").write_text("0.1")
    lab.run(lab.grid(policies="[other]"), code=0)
    assert {one["seconds"] for one in lab.desk.json("status")["sessions"] if one["policy"] == "other"} == {None}
    assert {one["seconds"] for one in lab.desk.report()["combos"]} == {None}
    assert "took" not in lab.desk.combo("status").stdout.partition("\n\n")[2]


def test_an_environment_that_crashes_the_process_each_time_keeps_no_other_from_its_end(lab: Lab) -> None:
    states = lab.run(lab.grid(bad="maze"))
    assert states == {"maze_good": "partial", "hall_good": "succeeded", "yard_good": "succeeded"}
    assert lab.starts == [["maze", "hall", "yard"], ["hall", "yard", "maze"]]
    assert [end["class"] for end in lab.ends("maze_good")] == [Failure.CRASHED, Failure.CRASHED]
    assert [len(lab.ends(name)) for name in ("hall_good", "yard_good")] == [1, 1]

    (lab.desk.home / "mended").touch()
    resumed = lab.desk.json("resume")
    until(lambda: lab.desk.states["maze_good"] == "succeeded", "the one that was missing", 30)
    assert (len(resumed["again"]), lab.starts[2:]) == (1, [["maze"]])


def test_an_environment_that_crashes_the_processes_of_all_policies_first_halts_nothing(lab: Lab) -> None:
    limits = "{parallel: 1, breaker: 2}"
    states = lab.run(lab.grid(bad="maze", policies="[good, bad, best]", limits=limits))
    others = [f"{environment}_{policy}" for policy in ("good", "bad", "best") for environment in ("hall", "yard")]
    assert {name: states[name] for name in others} == dict.fromkeys(others, "succeeded")


def test_the_second_crash_of_an_environment_leaves_it_for_a_start_of_its_own(lab: Lab) -> None:
    lab.run(lab.grid(bad="hall", retry="{crashed: {times: 3, wait: 0}}", environments="[maze, hall, yard, roof]"))
    assert lab.starts == [["maze", "hall", "yard", "roof"], ["yard", "roof", "hall"], ["hall"]]  # limits.attempts is 3
    assert len(lab.ends("yard_good")) == 1


def test_an_error_is_not_retried_for_what_began_and_the_others_run(lab: Lab) -> None:
    states = lab.run(lab.grid(bad="maze", how="error"))
    assert states == {"maze_good": "partial", "hall_good": "succeeded", "yard_good": "succeeded"}
    assert lab.starts == [["maze", "hall", "yard"], ["hall", "yard"]]
    assert [end["class"] for end in lab.ends("maze_good")] == [Failure.ERROR]


def test_of_a_silent_program_each_environment_is_charged_once_in_turn(lab: Lab) -> None:
    states = lab.run(lab.grid(bad="maze", how="silent"))
    assert states == {"maze_good": "failed", "hall_good": "succeeded", "yard_good": "succeeded"}
    assert lab.starts == [["maze", "hall", "yard"], ["hall", "yard", "maze"]]


def test_a_new_environment_has_a_process_of_its_own_and_the_others_stay(lab: Lab) -> None:
    lab.run(lab.grid(), code=0)
    lab.run(lab.grid(environments="[maze, hall, yard, roof]"), code=0)
    assert len(lab.desk.runs) == 1
    processes = {path.parent.parent.name for path in lab.desk.runs[0].glob("sessions/together_*/attempt-*/end")}
    assert len(processes) == 2
    assert len(lab.starts) == 1
    assert {len(lab.ends(f"{name}_good")) for name in ("maze", "hall", "yard", "roof")} == {1}


def test_a_changed_environment_is_evaluated_again_without_the_others(lab: Lab) -> None:
    lab.run(lab.grid(), code=0)
    override = "[{when: {environment: hall}, episodes: 5}]"
    lab.desk.combo("run", lab.grid(overrides=override), "--changed", "rerun", timeout=120, code=0)
    assert {len(lab.ends(f"{name}_good")) for name in ("maze", "hall", "yard")} == {1}
    (again,) = lab.desk.runs[0].glob("sessions/hall_good_*/attempt-1/end")
    assert json.loads(again.read_text())["records"] == 5


def test_shards_cut_the_list_of_environments(lab: Lab) -> None:
    assert set(lab.run(lab.grid(shards="2"), code=0).values()) == {"succeeded"}
    sessions = sorted(path.parent.name for path in lab.desk.runs[-1].glob("sessions/together_*/session.sh"))
    assert sessions == ["together_good_part1", "together_good_part2"]


def test_a_row_without_an_environment_counts_for_none(lab: Lab) -> None:
    path = lab.desk.home / "runner.py"
    path.write_text(PROGRAM.replace('"environment": job["name"]', '"where": job["name"]'))
    assert set(lab.run(lab.grid()).values()) == {"failed"}
    path.write_text(PROGRAM.replace('"environment": job["name"]', '"environment": job["name"] + "2"'))
    lab.desk.combo("run", lab.grid(), "--new", timeout=120)
    assert set(lab.desk.states.values()) == {"failed"}


def test_a_process_is_stopped_whole_and_its_combos_go_on(lab: Lab) -> None:
    (lab.desk.home / "gate").touch()
    lab.desk.combo("launch", lab.grid(), code=0)
    until(
        lambda: len(list(lab.desk.runs[-1].glob("sessions/hall_good/attempt-1"))) or lab.counted("maze_good") == 3,
        "maze",
        30,
    )
    states = lab.desk.states
    assert states["maze_good"] == "running"
    lab.desk.combo("stop", "hall_good", "--yes")
    until(lambda: lab.desk.states["maze_good"] == "succeeded", "it has ended", 30)
    assert lab.desk.states == {"maze_good": "succeeded", "hall_good": "cancelled", "yard_good": "cancelled"}
    (lab.desk.home / "gate").unlink()
    lab.desk.combo("retry", "hall_good")
    until(lambda: lab.desk.states["hall_good"] == "succeeded", "it runs again", 30)
    assert lab.starts == [["maze", "hall", "yard"], ["hall", "yard"]]  # the run had ended: it is resumed as a whole


def test_a_start_that_nobody_saw_end_is_judged_by_what_each_environment_left(lab: Lab) -> None:
    (lab.desk.home / "gate").touch()
    lab.desk.combo("launch", lab.grid(), code=0)
    begin = lab.desk.runs[-1] / "sessions/together_good/attempt-1/begin"
    until(lambda: begin.exists() and lab.counted("maze_good") == 3, "it is in the hall", 30)
    found = json.loads(begin.read_text())
    os.kill(int(found["supervisor"]), signal.SIGKILL)
    os.kill(int(found["pid"]), signal.SIGKILL)
    (lab.desk.home / "gate").unlink()
    until(lambda: set(lab.desk.states.values()) == {"succeeded"}, "the others run again", 60)
    assert [[end["outcome"] for end in lab.ends(f"{name}_good")] for name in ("maze", "hall", "yard")] == [
        ["succeeded"],
        ["lost", "succeeded"],
        ["succeeded"],
    ]
    assert lab.starts == [["maze", "hall", "yard"], ["yard", "hall"]]
