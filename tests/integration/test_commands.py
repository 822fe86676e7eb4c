"""The commands as a user types them: real sessions, real records, a real report."""

from __future__ import annotations

import json
import re
import subprocess

from box import until
from desk import Desk, evaluate


def run_id(desk: Desk) -> str:
    return desk.runs[-1].name


def test_the_same_command_again_is_the_same_run(ended: Desk) -> None:
    report = ended.runs[-1] / "report/report.html"
    before = report.read_bytes()
    again = ended.combo("run", ended.grid())
    assert (again.returncode, "has finished" in again.stdout) == (0, True)
    assert len(ended.runs) == 1
    assert report.read_bytes() == before


def test_a_folder_of_records_from_anywhere_is_reported(ended: Desk) -> None:
    folder = ended.home / "old results"
    folder.mkdir()
    lines = [line + "\n" for lines in ended.records(ended.runs[-1]).values() for line in lines]
    (folder / "all.jsonl").write_text("".join(lines))
    ended.combo("report", folder, code=0)
    document = json.loads((folder / "report/final_benchmark_report.json").read_text())
    assert document["totals"]["completed"] == 16


def test_a_folder_that_is_called_like_a_grid_does_not_hide_its_run(ended: Desk) -> None:
    (ended.home / "little").mkdir()
    assert f"{run_id(ended)}/report" in ended.combo("report", "little").stdout
    assert "no results of a known format below little" in ended.combo("report", "./little").stderr


def test_a_copy_of_a_run_under_another_name_is_read_as_the_run(ended: Desk) -> None:
    subprocess.run(["cp", "-a", ended.runs[-1], ended.home / "kept"], check=True)
    for words in (["report", "kept"], ["report", "kept", "--grid", ended.grid()]):
        assert "16 of 16 planned episodes" in ended.combo(*words, code=0).stdout


def test_launch_returns_at_once_and_says_how_to_go_on(desk: Desk) -> None:
    grid = desk.grid(command=evaluate(pace=30), limits="{parallel: 1}")
    launched = desk.json("launch", grid)
    planned = desk.combo("plan", grid).stdout
    assert re.search(rf"has a run +{launched['run']}: `\S*combo launch` would use it, --new", planned)
    assert launched["state"] == "new"
    assert launched["sessions"] == ["maze_good", "field_good", "maze_poor", "field_poor"]
    text = desk.combo("launch", grid).stdout
    assert "goes on with its missing work" in text
    for verb in ("monitor", "attach", "stop"):
        assert re.search(rf"combo {verb} ", text), text
    resumed = desk.combo("launch", desk.grid(command=evaluate(pace=30), limits="{parallel: 3, stagger: 1}"))
    assert "limits.stagger" in resumed.stdout
    assert (desk.runs[-1] / "dispatch/slots").read_text() == "3\n", "more slots in the grid are taken over"
    assert json.loads((desk.runs[-1] / "dispatch/policy.json").read_text())["stagger_ms"] == 1000, "so is the rest"


def test_a_stop_that_is_interrupted_names_what_has_not_ended_and_what_goes_on(desk: Desk) -> None:
    deaf = "bash -c 'trap \"\" INT; sleep 60 & wait; wait' {policy} {environment}"
    desk.launched(2, command=deaf, results="none", limits="{parallel: 2}")
    stopping = desk.start("stop")
    until(lambda: len(list(desk.runs[-1].glob("sessions/*/attempt-1/stop"))) == 2, "they are told to end")
    stopping.interrupt()
    assert stopping.code(30) == 130
    said = stopping.text
    assert f"stop --run {run_id(desk)}` waits for the end" in said
    assert "2 sessions not ended, 0 ended; nothing new starts" in said
    desk.environment["COMBORUN_STOP_INT_S"] = "1"
    assert desk.combo("stop", "--run", run_id(desk)).returncode == 0


def test_plan_changes_nothing_and_prints_a_script(desk: Desk) -> None:
    grid = desk.grid()
    planned = desk.combo("plan", grid)
    assert (planned.returncode, "has a run" in planned.stdout) == (0, False)
    script = desk.combo("plan", grid, "--script", "maze_good").stdout
    assert script.startswith("#!/usr/bin/env bash\n# maze_good: policy good in environment maze, episodes 0 to 3\n")
    assert not (desk.home / "comborun").exists()
