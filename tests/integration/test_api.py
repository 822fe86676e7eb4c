"""The calls that Python programs make: they act, answer with values, and say nothing on the terminal."""

from __future__ import annotations

import dataclasses
import sys
import threading
from pathlib import Path

import pytest
from box import until
from desk import Desk

import comborun

PROGRAM = """
import json, os, sys, time
policy, out, count = sys.argv[1:]
print("begins with", policy, flush=True)
with open(os.path.join(out, "rows.jsonl"), "w", buffering=1) as rows:
    for n in range(int(count)):
        open(os.path.join(out, f"{n}.mp4"), "wb").close()
        rows.write(json.dumps({"episode": n, "success": bool(n), "video": f"{n}.mp4", "episode_return": 2.5}) + "\\n")
        while not os.path.exists(os.path.expanduser("~/go")):
            time.sleep(0.02)
"""
"""after one episode it waits for a gate"""


@pytest.fixture
def run(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> comborun.Run:
    """Two sessions that wait for a gate."""
    for name, value in desk.environment.items():
        monkeypatch.setenv(name, value)
    program = desk.home / "evaluate.py"
    program.write_text(PROGRAM)
    command = f"{sys.executable} '{program}' {{policy}} {{output_dir}} {{episodes}}"
    grid = desk.grid(command=command, environments="[maze]", results="{files: '*.jsonl', videos: '*.mp4'}")
    return comborun.launch(grid, set={"limits.parallel": 2, "episodes": 3})


def states(run: comborun.Run) -> dict[str, str]:
    return {one.name: str(one.outcome or one.state) for one in run.status().sessions}


def running(run: comborun.Run) -> None:
    until(lambda: set(states(run).values()) == {"running"}, lambda: f"both run: {states(run)}")


def test_a_run_is_steered_and_continued(desk: Desk, run: comborun.Run, capfd: pytest.CaptureFixture[str]) -> None:
    running(run)
    assert run.launched
    assert (run.launched.state, run.id, run.host) == ("new", desk.runs[-1].name, "local")
    assert run.slots(1).done
    assert run.change({"parallel": 2}, because="a test").done
    assert run.status().slots == 2
    assert run.pause("a test").note
    hold = run.status().hold
    assert hold
    assert (hold.kind, hold.why) == ("paused", "a test")
    stopped = run.stop("maze_poor")
    assert (stopped.sessions, stopped.clean) == (("maze_poor",), True)
    assert states(run) == {"maze_good": "running", "maze_poor": "cancelled"}
    resumed = run.resume()
    assert (resumed.done, resumed.lifted, resumed.again) == (True, True, ("maze_poor",))
    (desk.home / "go").touch()
    last = run.wait(0.2)
    assert (last.finished, dict(last.counts)) == (True, {"succeeded": 2})
    assert "".join(capfd.readouterr()) == ""


def test_what_it_answers_is_frozen_and_a_stop_ends_the_run(run: comborun.Run) -> None:
    status = run.status()
    with pytest.raises(dataclasses.FrozenInstanceError):
        status.finished = True  # type: ignore[misc]
    assert run.stop().clean
    assert run.status().stopped


def test_episodes_have_their_video_and_logs_their_text(desk: Desk, run: comborun.Run) -> None:
    running(run)
    assert [(one.session, one.untrusted_text) for one in run.logs("poor", "maze")] == [
        ("maze_poor", "begins with poor\n")
    ]
    followed = run.follow("maze_good")
    assert next(followed).untrusted_text == "begins with good\n"
    (desk.home / "go").touch()
    assert [one.ended for one in followed][-1]
    run.wait(0.2)
    episodes = run.episodes()
    assert [(one.policy, one.episode, one.success) for one in episodes[:4]] == [
        ("good", 0, False), ("good", 1, True), ("good", 2, True), ("poor", 0, False),
    ]  # fmt: skip
    first = episodes[0]
    assert first.video == desk.runs[-1] / "sessions/maze_good/attempt-1/out/0.mp4"
    assert first.video_on_host == str(first.video)
    assert first.metrics == {"episode_return": 2.5}
    frame = episodes.to_pandas()
    assert list(frame["episode_return"]) == [2.5] * 6
    assert frame["video"][0] == str(first.video)
    assert Path(run.report().report, "report.html").is_file()
    assert run.compare("good", "poor").environments[0].difference == 0


def test_who_leaves_a_watch_leaves_no_watcher_behind(run: comborun.Run) -> None:
    for status in run.watch(0.2):
        assert status.run == run.id
        break
    until(lambda: not [one for one in threading.enumerate() if one.name == "watcher"], "its thread has ended")


def test_a_run_is_opened_by_its_name_and_a_mistake_is_an_exception_with_a_code(run: comborun.Run) -> None:
    assert comborun.open(run.id[:-4]).id == comborun.open("little").id == comborun.open().id == run.id
    assert [one.run for one in comborun.runs()] == [run.id]
    with pytest.raises(comborun.UserError) as unknown:
        comborun.open("nothing")
    assert unknown.value.code == "unknown_run"
    with pytest.raises(comborun.UserError) as session:
        run.stop("nothing")
    assert (session.value.code, bool(session.value.hint)) == ("unknown_session", True)
    with pytest.raises(comborun.UserError, match="failed=True"):
        run.retry()
    grid = Path("~/bad.yaml").expanduser()
    grid.write_text("name: bad\npolicies: [a]\nenvironments: [b]\ncommand: x\nepisodes: ten\n")
    with pytest.raises(comborun.GridError) as mistakes:
        comborun.launch(grid)
    assert (mistakes.value.code, mistakes.value.place) == ("grid", f"{grid}:5:11")


def test_a_changed_grid_asks_nobody(desk: Desk, run: comborun.Run) -> None:
    until(lambda: run.status().episodes_recorded == 2, "both have a record")
    grid = desk.home / "grid.yaml"
    grid.write_text(grid.read_text().replace("{output_dir} {episodes}", "{output_dir} 2"))
    with pytest.raises(comborun.UserError) as changed:
        comborun.launch(grid)
    assert changed.value.code == "changed_grid"
    assert comborun.launch(grid, changed="keep").id == run.id
