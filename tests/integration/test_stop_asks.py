"""What `combo stop` says before it ends anything, and whom it asks."""

from __future__ import annotations

from desk import Desk, evaluate

LONG = {"command": evaluate(pace=30), "limits": "{parallel: 1}"}


def running(desk: Desk) -> list[str]:
    return [name for name, state in desk.states.items() if state == "running"]


def test_stop_alone_names_the_run_its_host_and_what_runs_and_asks_on_a_terminal(desk: Desk) -> None:
    desk.launched(1, **LONG)
    told = desk.json("stop", "--dry-run")
    assert (told["running"], told["queued"]) == (["maze_good"], 3)
    assert desk.json("stop", "maze_good", "--dry-run")["sessions"] == ["maze_good"]
    code, shown = desk.typed("stop", answer="n\n")
    assert f"{desk.runs[-1].name} on local" in shown
    assert "maze_good" in shown
    assert (code, running(desk)) == (130, ["maze_good"])
    code, _ = desk.typed("stop", "good", "maze")
    assert (code, "maze_good" in running(desk)) == (0, False), "what was named is not asked about"
    code, shown = desk.typed("stop", answer="y\n")
    assert (code, running(desk)) == (0, [])


def test_stop_of_a_run_that_has_ended_names_the_other_runs_of_its_grid_that_go_on(desk: Desk) -> None:
    desk.launched(1, **LONG)
    (going,) = desk.runs
    desk.combo("launch", desk.grid(), "--new")
    newest = next(run for run in desk.runs if run != going)
    desk.combo("stop", newest.name)
    shown = desk.combo("stop", "little").stdout
    assert going.name in shown
    assert shown.count(newest.name) == 1
    assert desk.json("stop", "little", "--dry-run")["others"] == [going.name]
    assert running(desk) == []
    desk.combo("stop", going.name)
    assert desk.json("stop", "little", "--dry-run")["others"] == []
