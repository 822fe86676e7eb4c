"""A changed `results` applies to the files that are there: all that is shown follows, and nothing runs again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from box import until
from desk import ONE, Desk, evaluate

if TYPE_CHECKING:
    from pathlib import Path


def counted(desk: Desk) -> tuple[Any, ...]:
    (session,) = desk.json("status")["sessions"]
    return session["outcome"], session["episodes_recorded"], session["successes"]


def starts(run: Path) -> int:
    return len(list(run.glob("sessions/*/attempt-*/begin")))


def test_files_whose_verdicts_were_not_found_count_once_the_grid_names_the_field(desk: Desk) -> None:
    grid = desk.grid(**ONE, results="{success: solved}")
    assert desk.combo("run", grid).returncode == 1
    (run,) = desk.runs
    assert counted(desk)[0] != "succeeded"

    mended = desk.combo("run", desk.grid(**ONE, results="{success: success}"), code=0)
    assert "the files that are there are read again" in mended.stderr
    assert desk.runs == [run]
    assert starts(run) == 1
    assert counted(desk)[:2] == ("succeeded", 4)
    assert desk.report(run)["combos"][0]["completed"] == 4
    assert json.loads((run / "dispatch/done").read_text())["succeeded"] == "1"
    assert len(list((run / "results").iterdir())) == 1


def test_a_reading_by_which_fewer_episodes_would_count_is_taken_over_only_when_asked_for(desk: Desk) -> None:
    assert desk.combo("run", desk.grid(**ONE)).returncode == 0
    (run,) = desk.runs
    worse = desk.grid(**ONE, results="{episode: step}")
    refused = desk.combo("launch", worse, code=2)
    assert "maze_good, attempt 1: 4 episodes before, 0 now" in refused.stderr
    assert desk.combo("launch", worse, "--changed", "keep").returncode == 0
    assert counted(desk)[:2] == ("succeeded", 4)
    assert desk.combo("launch", worse, "--changed", "rerun").returncode == 0
    assert counted(desk)[0] == "failed"
    assert desk.json("runs")[0]["episodes_done"] == 0
    assert starts(run) == 1
    assert desk.combo("run", desk.grid(**ONE)).returncode == 0
    assert counted(desk)[:2] == ("succeeded", 4)


def test_a_session_that_runs_is_counted_by_the_new_reading_from_the_next_look_on(desk: Desk, tmp_path: Path) -> None:
    gate, command = tmp_path / "gate", evaluate(gate=tmp_path / "gate")
    desk.environment["COMBORUN_WATCH_S"] = "0.2"
    desk.combo("launch", desk.grid(**ONE, command=command, results="{episode: step}"))
    (run,) = desk.runs
    until(lambda: "no field 'step'" in desk.combo("explain", "maze_good").stdout, "it is said what does not count", 30)
    desk.combo("launch", desk.grid(**ONE, command=command))
    until(lambda: counted(desk)[1] == 3, "the three records count", 30)
    gate.touch()
    until(lambda: counted(desk)[:2] == ("succeeded", 4), "its session ends", 30)
    assert starts(run) == 1


def test_a_smoke_test_that_failed_for_its_reading_passes_without_running_again(desk: Desk) -> None:
    assert desk.combo("run", desk.grid(**ONE, results="{episode: step}"), "--smoke", "1").returncode == 1
    (run,) = desk.runs
    assert starts(run) == 1
    desk.combo("run", desk.grid(**ONE), "--smoke", "1", code=0)
    assert starts(run) == 2  # the smoke test has not run again, and the combo has run once
