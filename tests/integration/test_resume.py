"""`combo resume`: what has no record runs, and what has one never runs again."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

from box import until
from desk import ONE, Desk, evaluate


def done(run: Path) -> bool:
    return (run / "dispatch/done").exists()


def ended(desk: Desk, grid: Path) -> Path:
    """The run of a grid, launched and gone to its end; no report, which takes its time."""
    assert desk.combo("launch", grid).returncode in {0, 1}  # 1: all failed before it returned
    until(lambda: done(desk.runs[-1]), "the run ends", 40)
    return desk.runs[-1]


def episodes(desk: Desk) -> Counter[tuple[str, int]]:
    """How often each episode of a policy was recorded."""
    records = [json.loads(line) for lines in desk.records(desk.runs[-1]).values() for line in lines]
    return Counter((f"{record['environment']}_{record['policy']}", record["episode"]) for record in records)


def test_gaps_get_sessions_for_exactly_their_episodes(desk: Desk) -> None:
    grid = desk.grid(policies="[good]", episodes="7", command=evaluate(fail="holes"))
    run = ended(desk, grid)
    dry = desk.combo("resume", "--dry-run")
    assert "maze_good_e1-1: a new session for good in maze, episode 1\n" in dry.stdout
    assert done(run), "a dry run does nothing"
    resumed = desk.json("resume")
    assert [entry["session"] for entry in resumed["added"]] == [
        f"{environment}_good_e{episode}-{episode}" for environment in ("maze", "field") for episode in (1, 4)
    ]
    assert resumed["again"] == []
    until(lambda: done(run), "the gaps are filled", 30)
    wanted = {(f"{environment}_good", episode) for environment in ("maze", "field") for episode in range(7)}
    assert episodes(desk) == dict.fromkeys(wanted, 1)
    assert desk.combo("report").returncode == 0
    assert desk.report()["totals"]["missing"] == 0
    assert "nothing to resume" in desk.combo("resume").stdout
    again = desk.combo("launch", grid).stdout
    assert "has finished" in again, "it is the same grid's run"
    assert "did not succeed" not in again, "what sessions lacked was done by others"


def test_a_missing_tail_is_another_attempt_of_the_same_session(desk: Desk) -> None:
    grid = desk.grid(**ONE, command=evaluate(fail="half"))
    run = ended(desk, grid)
    again = desk.combo("launch", grid, "--changed", "rerun").stdout
    assert "1 of 1 session did not succeed, and 2 of 4 episodes are missing" in again
    assert f"resume {run.name}" in again, "the way to what is missing"
    assert "--changed rerun has no effect: no combo has changed" in again
    assert desk.json("launch", grid)["lacks"]
    said = desk.combo("resume").stdout
    assert "maze_good: another attempt, for the episodes 2-3 that have no record" in said
    until((run / "sessions/maze_good/attempt-2/end").exists, "it is tried again", 30)
    until(lambda: done(run), "the run ends", 20)
    assert episodes(desk) == {("maze_good", 0): 1, ("maze_good", 1): 1, ("maze_good", 2): 1}, "half of the tail"


def test_a_session_whose_attempt_was_removed_from_an_ended_run_runs_again(desk: Desk) -> None:
    grid = desk.grid(**ONE)
    run = ended(desk, grid)
    for words in (("launch", grid), ("resume",)):
        shutil.rmtree(run / "sessions/maze_good/attempt-1")
        assert desk.combo(*words).returncode == 0
        until((run / "sessions/maze_good/attempt-1/end").exists, f"it runs again with {words[0]}", 30)
        until(lambda: done(run), "the run ends", 20)


def test_a_run_that_is_held_or_stopped_goes_on(desk: Desk) -> None:
    gate = desk.home / "gate"
    desk.combo("launch", desk.grid(command=evaluate(gate=gate), limits="{parallel: 1}"))
    (run,) = desk.runs
    for how, lifted in {"pause": ["paused: by hand"], "drain stop": ["draining: by hand", "stopped"]}.items():
        for verb in how.split():
            assert desk.combo(verb).returncode == 0
        resumed = desk.combo("resume", code=0)
        told = [line.removeprefix("  no longer ") for line in resumed.stdout.splitlines() if "no longer" in line]
        assert told == lifted
        assert ("running" in resumed.stdout) is (how == "pause"), "after a stop nothing runs"
    gate.touch()
    until(lambda: done(run), "it ends", 40)
    assert sum(episodes(desk).values()) >= len(episodes(desk)) == 16
    assert desk.combo("stop").returncode == 0
    assert "nothing is missing; there is nothing to resume" in desk.combo("resume", "--dry-run").stdout


def test_records_that_the_report_rejects_are_not_made_again_and_the_reason_is_told(desk: Desk) -> None:
    run = ended(desk, desk.grid(**ONE, command=evaluate(fail="misnamed")))
    for _ in range(2):
        said = desk.combo("resume")
        assert "maze_good, episodes 0-3: its records are rejected by the report (of another policy" in said.stdout
        assert "sessions/maze_good/attempt-1/out/episodes.jsonl:1), so running it again would not help" in said.stdout
        assert "there is nothing to resume" in said.stdout
    told = desk.json("resume", "--dry-run")
    assert (told["again"], told["added"]) == ([], [])
    assert [one["session"] for one in told["futile"]] == ["maze_good"]
    assert [path.name for path in run.glob("plan-*.json")] == ["plan-1.json"]
