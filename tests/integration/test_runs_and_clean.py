"""`combo runs` over all hosts, and `combo clean`."""

from __future__ import annotations

import time
from dataclasses import replace

from box import until
from desk import Desk, evaluate

from comborun.monitor.fleet import each_once
from comborun.remote.runs import Listing, Run

_SHARED = ("run", "grid", "host", "directory", "reachable", "finished", "stopped", "hold", "counts", "smoke")
_SHARED += ("episodes_done", "episodes_planned")
_ENDED = (*_SHARED, "seconds")


def test_runs_are_told_in_the_words_of_status_with_numbers_as_numbers(desk: Desk) -> None:
    desk.combo("run", desk.grid(), "--smoke", "1")
    (told,), status = desk.json("runs"), desk.json("status")
    assert {key: told[key] for key in _ENDED} == {key: status[key] for key in _ENDED}
    assert (told["counts"], told["smoke"]) == ({"succeeded": 4}, {"succeeded": 4})
    assert abs(told["started"] - time.time()) < 60
    assert 0 < told["seconds"] < 60
    shown = desk.combo("runs").stdout
    assert "4 succeeded; smoke test: 4 succeeded" in shown
    assert str(desk.runs[-1].parent) in shown


def test_a_run_that_goes_on_and_one_that_was_stopped_have_the_counts_of_status(desk: Desk) -> None:
    desk.launched(1, command=evaluate(pace=30), limits="{parallel: 1}")
    for verb, counts in (("status", {"queued": 3, "running": 1}), ("stop", {"cancelled": 4})):
        desk.combo(verb)
        (told,), status = desk.json("runs"), desk.json("status")
        assert {key: told[key] for key in _SHARED} == {key: status[key] for key in _SHARED}
        assert told["counts"] == counts
    assert "stopped: 4 cancelled" in desk.combo("runs").stdout


def test_a_run_that_two_hosts_share_by_other_paths_is_listed_once() -> None:
    """By the host that answers."""
    run = Run("maze-20260102T000000Z-00aa", "/shared/maze-20260102T000000Z-00aa", {"succeeded": "2"})
    there = Listing("node", (replace(run, directory=f"/mnt{run.directory}"),), complaint="node can't be reached")
    for found in ((Listing("login", (run,)), there), (there, Listing("login", (run,)))):
        ((one, listed),) = each_once(found)
        assert (one.host, listed.directory) == ("login", run.directory)


def test_clean_says_what_it_would_remove_and_leaves_what_has_not_finished(desk: Desk) -> None:
    desk.combo("run", desk.grid())
    finished = desk.runs[-1]
    assert "1 run stays: on this machine" in desk.combo("clean", "--older", "0", "--yes").stdout, "it is not named"
    desk.combo("launch", desk.grid(command=evaluate(pace=30)), "--new")
    until(lambda: len(desk.runs) == 2, "two runs")
    going = next(run for run in desk.runs if run != finished)
    until((going / "sessions/maze_good/attempt-1/begin").exists, "it begins")
    assert "2 runs stay: younger than 30 days" in desk.combo("clean").stdout
    shown = desk.combo("clean", "--older", "0").stdout
    assert (shown.count("1 run stays: "), "not finished" in shown) == (2, True)
    assert "any of 2 runs" in desk.combo("status", "little-2").stderr, "none of them was removed"
    assert "would remove 1 run on local" in desk.combo("clean", finished.name, "--dry-run").stdout
    refused = desk.combo("clean", finished.name)
    assert (refused.returncode, "--yes removes them" in refused.stderr) == (2, True), "nobody can be asked"
    assert finished.is_dir()
    done = desk.combo("clean", finished.name, "--run", going.name, "--yes").stdout
    assert f"{going.name} stays: not finished" in done
    assert (finished.exists(), going.is_dir()) == (False, True)
    assert f"{finished} was removed" in desk.combo("status", finished.name).stderr

    desk.combo("stop", going.name)
    desk.combo("clean", "--older", "0", "--yes")
    assert going.is_dir(), "what was stopped goes only where it is named"
    assert "4 cancelled" in desk.combo("clean", going.name, "--dry-run").stdout, "what is missing is said before"
    desk.combo("clean", going.name, "--yes")
    assert not going.exists()


def test_a_folder_that_is_not_there_is_told_as_such(desk: Desk) -> None:
    (desk.home / "results.jsonl").touch()
    for word, why in (("./typo", "no such file or folder"), ("./results.jsonl", "is a file")):
        refused = desk.combo("report", word, code=2)
        assert f"{word}: {why}" in refused.stderr
