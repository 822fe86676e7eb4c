"""A grid is changed and launched again: its run gets what is new, and nothing that was computed is lost."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from box import until
from desk import Desk, evaluate
from happened import granted

from comborun.rules.records import parse


def finish(desk: Desk, grid: Path, *options: str) -> str:
    """Launch a grid and wait for its end; what was said. Without a report, which takes its time."""
    launched = desk.combo("launch", grid, *options)
    assert launched.returncode in (0, 1), launched.stderr  # 1: every session has failed by then
    until((desk.runs[-1] / "dispatch/done").exists, "the run ends", 40)
    return launched.stdout


def totals(desk: Desk) -> dict[str, Any]:
    assert desk.combo("report").returncode == 0
    return dict(desk.report()["totals"])


def test_a_policy_and_episodes_that_are_added_are_all_that_runs(desk: Desk) -> None:
    finish(desk, desk.grid(policies="[good]"))
    before = desk.records(desk.runs[-1])
    grown = finish(desk, desk.grid(policies="[poor, good]", episodes="6"))
    (run,) = desk.runs
    assert sorted(granted(run)[2:]) == ["field_good_e4-5", "field_poor", "maze_good_e4-5", "maze_poor"]
    after = desk.records(run)
    assert {name: after[name] for name in before} == before
    told = totals(desk)
    assert told["completed"] == told["planned"] == 24
    assert "+ good in maze: episodes 4-5" in grown
    assert "has finished" in desk.combo("launch", desk.grid(policies="[poor, good]", episodes="6")).stdout
    other = desk.grid(environments="[lake]", policies="[good]")
    assert "shares no work" in desk.combo("launch", other, code=0).stdout
    assert len(desk.runs) == 2, "a finished run without common work gets a successor"


def test_a_changed_command_reruns_its_combo_alone_and_the_old_records_count_no_more(desk: Desk) -> None:
    counted = f"env N={{policy.n}} {evaluate()}"
    keys = {"policies": "{good: {n: 1}, poor: {n: 1}}", "environments": "[maze]", "command": counted}
    finish(desk, desk.grid(**keys))
    changed = desk.grid(**{**keys, "policies": "{good: {n: 2}, poor: {n: 1}}"})
    asked = desk.combo("launch", changed, code=2)
    assert "~ good in maze" in asked.stderr
    assert "poor" not in asked.stderr.split("hint")[0]
    assert all(way_out in asked.stderr for way_out in ("--changed rerun", "--changed keep", "--new"))
    finish(desk, changed, "--changed", "rerun")
    (run,) = desk.runs
    assert [name.startswith("maze_good_") for name in granted(run)] == [False, False, True]
    told = totals(desk)
    assert told["completed"] == told["planned"] == 8
    rows = [json.loads(row) for row in (run / "dispatch/queue.jsonl").read_text().splitlines()]
    assert [row["name"] for row in rows if row.get("flag")] == ["maze_good"]
    assert any("maze_good" in json.dumps(finding) for finding in desk.report()["quality"]["findings"])


def test_what_ended_without_any_record_follows_the_grid_without_a_question(desk: Desk) -> None:
    keys = {"environments": "[maze]", "command": f"sh -c '[ {{policy.n}} = 1 ] && exec \"$@\"' x {evaluate()}"}
    finish(desk, desk.grid(**keys, policies="{good: {n: 0}, poor: {n: 1}}"))
    desk.combo("run", desk.grid(**keys, policies="{good: {n: 1}, poor: {n: 1}}"), code=0)
    assert len(desk.runs) == 1
    assert desk.report()["totals"]["completed"] == 8


def test_a_superseded_session_without_a_record_goes_on_and_is_named_unasked(desk: Desk) -> None:
    keys = {"policies": "[good]", "environments": "[maze]", "limits": "{parallel: 2}"}
    desk.combo("launch", desk.grid(**keys, command=evaluate(pace=30)))
    (run,) = desk.runs
    begin = parse((run / "sessions/maze_good/attempt-1/begin").read_text())
    changed = desk.combo("launch", desk.grid(**keys, command=evaluate(pace=29)), code=0)
    assert f"stop {run.name} maze_good" in changed.stdout
    os.kill(int(begin["pid"]), 0)
    until(lambda: list(run.glob("sessions/maze_good_*/attempt-1/begin")), "its successor begins", 20)
    ordered = json.loads(desk.combo("stop", "good", "maze", "--dry-run", "--json").stdout)
    (successor,) = (path.parts[-3] for path in run.glob("sessions/maze_good_*/attempt-1/begin"))
    assert sorted(ordered["running"]) == ["maze_good", successor], "all that runs of the combo"


def test_resume_and_retry_say_that_the_file_has_changed_since_its_launch(desk: Desk) -> None:
    finish(desk, desk.grid(command="false", policies="[good]", environments="[maze]"))
    assert "launch grid.yaml" not in desk.combo("resume", "--dry-run").stderr
    desk.grid(command="true", policies="[good]", environments="[maze]")
    assert "launch grid.yaml" in desk.combo("resume", "--dry-run").stderr
    assert "launch grid.yaml" in desk.combo("retry", "--failed").stderr
    finish(desk, desk.home / "grid.yaml")
    assert "launch grid.yaml" not in desk.combo("resume", "--dry-run").stderr


def test_at_a_terminal_the_question_is_asked_and_the_answer_is_taken(desk: Desk) -> None:
    gate = desk.home / "gate"
    desk.combo("launch", desk.grid(command=evaluate(gate=gate)))
    (run,) = desk.runs
    counts = [run / f"sessions/{name}/attempt-1/.counts" for name in granted(run)]
    until(lambda: all(path.exists() and parse(path.read_text())["records"] == "3" for path in counts), "they record")
    changed = desk.grid(command=evaluate(pace=29, gate=gate))
    code, said = desk.typed("launch", changed, answer="n\n")
    assert code == 0, said
    assert "Use the new grid?" in said
    assert "kept as the run has it" in said
    assert "dropped" not in (desk.runs[-1] / "dispatch/queue.jsonl").read_text()


def test_a_run_that_goes_on_is_not_taken_over_by_another_grid_of_the_same_name(desk: Desk) -> None:
    run = desk.launched(1, command=evaluate(pace=30), policies="[good]", environments="[maze]")
    queue = (run / "dispatch/queue.jsonl").read_text()
    refused = desk.combo("launch", desk.grid(command=evaluate(), policies="[poor]", environments="[field]"))
    assert refused.returncode == 2
    assert f"the run {run.name} goes on, and it has no combo of this grid, which is also named little" in refused.stderr
    assert (run / "dispatch/queue.jsonl").read_text() == queue


def test_a_launch_that_is_killed_while_it_amends_is_mended_by_the_same_command(desk: Desk) -> None:
    finish(desk, desk.grid(policies="[good]", environments="[maze]"))
    (run,) = desk.runs
    grid = desk.grid(policies="[good, p0, p1, p2, p3]", environments="[maze]")
    launch = desk.start("launch", grid)
    until(lambda: list(run.glob("sessions/maze_p*")) or not launch.process.is_alive(), "it gets so far", 30)
    launch.kill()
    finish(desk, grid)
    assert sorted(granted(run)) == ["maze_good", "maze_p0", "maze_p1", "maze_p2", "maze_p3"]
    assert {name: len(lines) for name, lines in desk.records(run).items()} == dict.fromkeys(granted(run), 4)
