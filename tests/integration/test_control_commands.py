"""`combo retry`, `slots`, `pause`, `drain` and `notify` on runs that really run."""

from __future__ import annotations

import json
import signal
from pathlib import Path

from box import alive, kill, until
from desk import ONE, Desk, evaluate

from comborun.rules.records import parse


def kill_dispatcher(desk: Desk) -> None:
    record = parse((desk.runs[-1] / "dispatch/dispatcher").read_text())
    kill(int(record["pid"]), signal.SIGKILL)
    until(lambda: not alive(int(record["pid"])), "the dispatcher is gone")


def first(words: str) -> str:
    """The evaluator, when `words` of sh let it."""
    return f"sh -c '{words}; exec \"$@\"' x {evaluate()}"


GATED = first("until [ -e ~/gate ]; do sleep 0.1; done")


def test_retry_starts_again_what_failed_though_the_run_had_ended_and_nothing_else(desk: Desk) -> None:
    grid = desk.grid(command=first("[ -e ~/mended ] || exit 3"), environments="[maze]")
    assert desk.combo("run", grid).returncode == 1
    (desk.home / "mended").touch()
    again = desk.combo("retry", "--failed", code=0)
    assert "maze_good" in again.stdout
    desk.combo("monitor", "--interval", "0.3", code=0)
    assert desk.report()["totals"]["completed"] == 8
    again = desk.json("retry", "maze_good")
    assert again["done"] is False
    assert again["lines"][0].startswith("maze_good: ")
    assert not (desk.runs[-1] / "sessions/maze_good/attempt-3").exists()
    none = desk.combo("retry", "--stalled")
    assert (none.returncode, none.stdout) == (0, f"{desk.runs[-1].name}: no session has stalled\n")


def test_slots_lets_more_run_at_once(desk: Desk) -> None:
    desk.launched(1, command=evaluate(pace=30), limits="{parallel: 1}")
    assert desk.combo("slots", "3").returncode == 0
    until(lambda: len(desk.begun) == 3, "three run")
    assert desk.combo("slots", "1").returncode == 0
    assert sorted(desk.states.values()) == ["queued", "running", "running", "running"], "fewer slots end nothing"
    assert desk.combo("slots", "0").returncode == 2


def test_pause_starts_nothing_new_though_a_launch_takes_over_the_grid_until_the_run_is_resumed(desk: Desk) -> None:
    keys = {"limits": "{parallel: 1}", "environments": "[maze]", "command": GATED}
    run = desk.launched(1, **keys)
    why = "the training job needs the GPU"
    paused = desk.combo("pause", "--why", why.replace("job ", "job\n"), code=0)
    assert f"combo resume {run.name}" in paused.stdout
    again = desk.combo("run", desk.grid(**keys | {"environments": "[maze, field]"}), code=0)
    assert f"is paused ({why}), and nothing was started: run `combo resume {run.name}` to continue" in again.stdout
    assert "+ good in field: new" in again.stdout
    (desk.home / "gate").touch()
    until((run / "sessions/maze_good/attempt-1/end").exists, "what runs comes to its end")
    status = desk.json("status")
    assert (status["hold"]["kind"], status["hold"]["why"]) == ("paused", why)
    assert status["hint"].startswith("paused: run `combo resume ")
    assert status["hint"].endswith(f"nothing new starts: {why}")
    assert not status["finished"]
    assert any("paused" in reason for reason in desk.json("explain", "maze_poor")["reasons"])
    assert f"paused ({why})" in desk.combo("runs").stdout
    assert desk.json("launch", desk.home / "grid.yaml")["hold"] == {"kind": "paused", "why": why}
    assert desk.begun == {"maze_good"}
    desk.combo("resume", code=0)
    until((run / "dispatch/done").exists, "all that the grid names has run", 40)


def test_a_retry_that_waits_is_shown_with_when_and_why_and_a_person_need_not_wait(desk: Desk) -> None:
    crash = first("[ -e ~/mended ] || kill -SEGV $$")
    grid = {"policies": "[good]", "environments": "[maze]", "retry": "{crashed: {times: 2, wait: 20 min}}"}
    desk.launched(1, command=crash, **grid)
    until((desk.runs[-1] / "dispatch/waiting").exists, "a retry waits")
    session = desk.json("status")["sessions"][0]
    assert (session["state"], session["outcome"], session["failure"]) == ("queued", None, "crashed")
    assert session["waiting"]["for"] == "retry"
    assert session["note"].startswith("again in ")
    assert session["note"].endswith(": crashed, attempt 2 of 3")
    assert f"its attempt 1 failed; {session['note'][:8]}" in desk.combo("explain", "maze_good").stdout
    assert "1 session queued or running; there is nothing to resume" in desk.combo("resume").stdout
    assert not (desk.runs[-1] / "plan-2.json").exists()
    (desk.home / "mended").touch()
    assert desk.combo("retry", "maze_good").returncode == 0
    until((desk.runs[-1] / "dispatch/done").exists, "it is started at once")
    assert desk.states == {"maze_good": "succeeded"}


def test_a_retry_that_is_due_and_waits_for_room_is_queued(desk: Desk) -> None:
    fails, waits = "if mkdir ~/failed; then exit 3; fi", "until [ -e ~/gate ]; do sleep 0.1; done"
    late = f'case "$*" in *" good "*) {fails};; *) {waits};; esac'
    keys = {"environments": "[maze]", "resources": "{exclusive: [door]}", "retry": "{error: {times: 1, wait: 0 s}}"}
    desk.launched(2, command=first(late), policies="[good, poor]", **keys)
    until(lambda: desk.json("status")["sessions"][0]["waiting"], "it waits")
    session = desk.json("status")["sessions"][0]
    assert (session["state"], session["outcome"], session["waiting"]["for"]) == ("queued", None, "token")
    assert session["note"] == "again as soon as there is an exclusive token: program error, attempt 2 of 2"


def test_retry_starts_the_dispatcher_when_it_is_gone_but_not_on_a_run_that_is_held(desk: Desk) -> None:
    desk.launched(1, command=evaluate(pace=30), limits="{parallel: 1}", policies="[good]")
    assert desk.combo("stop", "maze_good").returncode == 0
    until(lambda: "field_good" in desk.begun, "the next one starts")
    kill_dispatcher(desk)
    assert desk.combo("retry", "maze_good").returncode == 0
    assert desk.json("status")["dispatcher"]
    assert desk.combo("pause").returncode == 0
    assert desk.combo("stop", "field_good").returncode == 0
    held = desk.combo("retry", "field_good")
    assert "the run is paused: nothing starts until" in held.stdout


def test_resume_ends_a_run_whose_dispatcher_was_gone_before_its_last_sessions_ended(desk: Desk) -> None:
    desk.launched(1, command=GATED, after="touch ~/told", **ONE)
    kill_dispatcher(desk)
    (desk.home / "gate").touch()
    until((desk.runs[-1] / "sessions/maze_good/attempt-1/end").exists, "it ends")
    assert "does not end: run `combo resume" in desk.combo("status").stdout
    resumed = desk.combo("resume")
    assert "its dispatcher is gone: a new one ends the run" in resumed.stdout, resumed.stdout + resumed.stderr
    until((desk.runs[-1] / "dispatch/done").exists, "the run ends")
    assert (desk.home / "told").exists()
    assert "nothing to resume" in desk.combo("resume").stdout


def test_a_notify_command_that_fails_is_told_by_the_table_until_it_takes_a_notice(desk: Desk) -> None:
    hook = desk.home / "hook.sh"
    desk.launched(1, command=evaluate(pace=30), **ONE, notify=f"bash {str(hook)!r}")
    assert desk.json("status")["unheard"] is None
    assert desk.combo("notify").returncode == 1
    assert desk.json("status")["unheard"].startswith("the notify command ended with code 127 ")
    hook.write_text(f"cat > {str(desk.home / 'notice.json')!r}; echo told\n")
    told = desk.combo("notify", code=0)
    assert told.stdout == f"told\n{desk.runs[-1].name}: the command took a test notice, and ended with 0\n"
    notice = json.loads(Path(desk.home / "notice.json").read_text())
    assert (notice["kind"], notice["run"]) == ("test", desk.runs[-1].name)
    assert desk.json("status")["unheard"] is None
