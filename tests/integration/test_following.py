"""`combo follow`: a real small training writes checkpoints, well and badly, and real sessions evaluate them."""

from __future__ import annotations

import json
import os
import random
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from box import until
from desk import Desk

from comborun.rules import records
from comborun.rules.following import Decision, Record, Why

WAIT = 60.0


class Training:
    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.folder = desk.home / "ckpt"
        program = [sys.executable, "-S", str(Path(__file__).with_name("training.py")), str(self.folder)]
        self.process = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        until(self.folder.is_dir, "the training begins")

    def does(self, way: str, name: str, text: str = "weights") -> None:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(f"{way} {name} {text}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def ends(self) -> None:
        assert self.process.stdin
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait(10)
        assert self.process.stdout
        self.process.stdout.close()

    def grid(self, done: str = "STABLE", gate: Path | None = None, **more: str) -> Path:
        waits = f"while [ ! -e {shlex.quote(str(gate))} ]; do sleep 0.02; done; " if gate else ""
        row = (
            '{\\"policy\\": \\"%s\\", \\"environment\\": \\"%s\\", \\"episode\\": %s,'
            ' \\"success\\": true, \\"read\\": \\"%s\\"}\\n'
        )
        loop = f'for e in 0 1; do printf "{row}" "$2" "$3" $e "$read"; done >"$4/e.jsonl"'
        text = shlex.quote(f'read=$(cat "$1" "$1"/* 2>/dev/null); {waits}{loop}'.replace("{", "{{"))
        command = f"bash -c {text} x {{policy.checkpoint}} {{policy}} {{environment}} {{output_dir}}"
        policies = (
            f'{{follow: "{self.folder}/ckpt_*", done: "{done}"{"".join(f", {k}: {v}" for k, v in more.items())}}}'
        )
        keys = {"policies": policies, "environments": "[maze]", "episodes": "2", "command": command}
        return self.desk.grid(**keys, results="{files: [e.jsonl]}", seed="1")

    def followed(self, grid: Path, *options: str) -> Path:
        self.desk.combo("follow", grid, "--pid", str(self.process.pid), *options, code=0)
        until(lambda: follower(self.desk.runs[-1]), "the follower lives")
        return self.desk.runs[-1]


def follower(run: Path) -> int:
    """Its pid, once it watches; 0 without one."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"follow\0{run}".encode() in (folder / "cmdline").read_bytes():
                watches = any("inotify" in str(one.readlink()) for one in (folder / "fd").iterdir())
                return int(folder.name) if watches else 0
    return 0


def record(run: Path) -> Record:
    file = run / "dispatch/checkpoints.jsonl"
    return Record(map(records.parse, file.read_text().splitlines() if file.exists() else ()))


def decided(run: Path) -> dict[str, str]:
    return {name: one["decision"] for name, one in record(run).checkpoints.items()}


def whys(run: Path) -> list[str]:
    return [row["reason"].code for row in record(run).passed]


def reported(desk: Desk) -> dict[str, Any]:
    desk.combo("report", code=0)
    return desk.report()


@pytest.fixture
def training(desk: Desk) -> Iterator[Training]:
    desk.environment["COMBORUN_FOLLOW_S"] = "0.1"
    made = Training(desk)
    yield made
    made.ends()


def test_checkpoints_are_evaluated_as_they_appear_though_the_training_deletes_them(training: Training) -> None:
    desk = training.desk
    run = training.followed(training.grid())
    assert "no session yet" in desk.combo("status", code=0).stdout
    assert desk.combo("report").returncode == 2
    for step in (100, 200):
        training.does("rename", f"ckpt_{step}.pt", f"weights{step}")
        until(lambda step=step: f"step_{step}" in decided(run), "it is held")
        training.does("delete", f"ckpt_{step}.pt")
        until(lambda step=step: decided(run)[f"step_{step}"] == Decision.VERIFIED, "it is verified", WAIT)
    training.does("folder", "ckpt_300", "weights300")
    until(lambda: decided(run).get("step_300") == Decision.VERIFIED, "the folder is evaluated", WAIT)
    training.does("rename", "ckpt_400.pt", "weights400")
    until(lambda: decided(run).get("step_400") == Decision.VERIFIED, "it is verified", WAIT)
    training.does("in_place", "ckpt_400.pt", "later")
    until(lambda: "written again by the training: step_400" in desk.combo("status", code=0).stdout, "it is told", WAIT)
    assert not (run / "dispatch/done").exists(), "the training lives"
    training.ends()
    until((run / "dispatch/done").exists, "the run ends with the training", WAIT)
    rows = {name: json.loads(lines[0])["read"] for name, lines in desk.records(run).items()}
    assert rows == {f"maze_step_{step}": f"weights{step}" for step in (100, 200, 300, 400)}
    told = reported(desk)
    assert told["totals"]["completed"] == told["totals"]["planned"] == 8
    trend, page = told["trends"][0], (run / "report/report.md").read_text()
    assert [one["policy"] for one in trend["checkpoints"]] == [f"step_{step}" for step in (100, 200, 300, 400)]
    assert trend["written_over"] == ["step_400"]
    assert "written again by the training: step_400" in page.lower().replace("\\", "")
    assert "refused" not in page, "it is told once"
    followed = next(one for one in desk.json("status")["facts"] if one["code"] == "following")
    assert (followed["evaluated"], followed["ended"]) == (4, True)


def test_what_is_changed_or_not_seen_to_be_complete_does_not_count(training: Training) -> None:
    desk, gate = training.desk, training.desk.home / "gate"
    training.does("rename", "ckpt_1.pt", "before")
    run = training.followed(training.grid(gate=gate))
    training.does("rename", "ckpt_2.pt", "weights")
    until(lambda: decided(run).get("step_2") == Decision.TAKEN, "it is taken", WAIT)
    if record(run).checkpoints["step_2"]["how"] == "reflink":
        pytest.skip("this disk makes copies that the training can't change")
    training.does("same_time", "ckpt_2.pt", "WEIGHTS")
    training.does("in_place", "ckpt_3.pt")
    training.does("rename", "ckpt_4.pt", "whole")
    training.does("link", "ckpt_5.pt", "ckpt_4.pt")
    training.does("rename", "ckpt_last.pt")
    until(lambda: decided(run).get("step_4") == Decision.TAKEN, "it is taken", WAIT)
    training.does("shrink", "ckpt_4.pt")
    until(lambda: decided(run)["step_4"] == Decision.CHANGED, "its size tells at once")
    gate.touch()
    until(lambda: decided(run)["step_2"] == Decision.CHANGED, "its digest tells at the end", WAIT)
    training.does("rename", "ckpt_2.pt", "weights-again")
    until(lambda: len(decided(run)) == 3, "the step is there again", WAIT)
    training.ends()
    until((run / "dispatch/done").exists, "the run ends", WAIT)
    (again,) = set(decided(run)) - {"step_2", "step_4"}
    assert again.startswith("step_2_")
    assert decided(run)[again] == Decision.VERIFIED
    assert {Why.IN_PLACE, Why.NO_FILE, Why.NO_STEP} <= set(whys(run))
    told = reported(desk)
    assert told["totals"]["planned"] == 2, "one checkpoint counts"
    facts = desk.combo("report", code=0).stdout + (run / "report/report.md").read_text()
    assert "step_4" in facts
    assert again in facts
    assert "grid changed" not in facts
    assert "step_1" not in {one["policy"] for one in told["combos"]}


def test_one_waits_the_newest_and_those_that_it_overtakes_are_recorded(training: Training) -> None:
    gate = training.desk.home / "gate"
    run = training.followed(training.grid(gate=gate), "--parallel", "1")
    training.does("rename", "ckpt_1.pt", "w1")
    until(lambda: decided(run).get("step_1") == Decision.TAKEN, "it is taken", WAIT)
    until((run / "sessions/maze_step_1/attempt-1/begin").exists, "it runs", WAIT)
    training.does("rename", "ckpt_2.pt", "w2")  # its session is queued, and the slot is taken
    until(lambda: decided(run).get("step_2") == Decision.TAKEN, "it is taken", WAIT)
    for step in (3, 4):
        training.does("rename", f"ckpt_{step}.pt", f"w{step}")
        until(lambda step=step: decided(run).get(f"step_{step}") == Decision.HELD, "it waits")
    assert decided(run)["step_3"] == Decision.SKIPPED
    assert not (run / "checkpoints/step_3").exists()
    training.does("rename", "ckpt_5.pt", "w4")  # another step, the same content
    gate.touch()
    training.ends()
    until((run / "dispatch/done").exists, "the run ends", WAIT)
    assert [name for name, one in decided(run).items() if one == Decision.VERIFIED][:2] == ["step_1", "step_2"]
    assert decided(run)["step_5"] == Decision.VERIFIED, "the last one is evaluated"


def test_a_marker_says_when_one_is_complete_and_every_says_which(training: Training) -> None:
    run = training.followed(training.grid(done=f"{training.folder}/done_*", every="2"))
    for step in (1, 2, 3, 4):
        training.does("in_place", f"ckpt_{step}", f"w{step}")
        time.sleep(0.3)
        assert f"step_{step}" not in decided(run)
        training.does("in_place", f"done_{step}")
        until(
            lambda step=step: len(record(run).having(Decision.VERIFIED)) + len(whys(run)) == step, "it is decided", WAIT
        )
    assert (list(decided(run)), whys(run)) == (["step_1", "step_3"], [Why.NOT_DUE, Why.NOT_DUE])
    training.ends()
    until((run / "dispatch/done").exists, "the run ends", WAIT)
    assert set(decided(run).values()) == {Decision.VERIFIED}
    assert [*decided(run)] == ["step_1", "step_3", "step_4"], "the last is always evaluated"


def test_kills_at_any_moment_lose_and_double_nothing(training: Training) -> None:
    desk = training.desk
    run = training.followed(training.grid())
    chance = random.Random(7)
    for step in range(1, 13):
        training.does("rename", f"ckpt_{step}.pt", f"w{step}")
        time.sleep(chance.random() / 5)
        name = "dispatch" if step % 3 == 0 else "follow"
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if f"{name}\0{run}".encode() in (folder / "cmdline").read_bytes():
                    os.kill(int(folder.name), signal.SIGKILL)
        if name == "dispatch":
            front = ["bash", str(run / "run_parallel.sh")]
            subprocess.run(front, env=desk.environment, check=True, capture_output=True)
    training.ends()
    until((run / "dispatch/done").exists, "the run ends", 3 * WAIT)
    found = decided(run)
    assert set(found.values()) <= {Decision.VERIFIED, Decision.SKIPPED}
    assert found["step_12"] == Decision.VERIFIED
    evaluated = sorted(f"maze_{name}" for name, one in found.items() if one == Decision.VERIFIED)
    names = [json.loads(line)["name"] for line in (run / "dispatch/queue.jsonl").read_text().splitlines()]
    assert sorted(names[1:]) == evaluated == sorted(desk.records(run))
    assert sorted(one.name for one in (run / "checkpoints").iterdir()) == [name[5:] for name in evaluated]
    assert reported(desk)["totals"]["completed"] == 2 * len(evaluated)


def test_stop_ends_it_and_follow_goes_on_with_the_same_run(training: Training) -> None:
    desk = training.desk
    grid = training.grid()
    run = training.followed(grid)
    desk.combo("stop", code=0)
    until(lambda: not follower(run), "the follower ends")
    training.does("rename", "ckpt_1.pt")
    training.followed(grid)
    assert desk.runs == [run]
    training.does("rename", "ckpt_2.pt", "w2")
    until(lambda: decided(run).get("step_2") == Decision.VERIFIED, "it goes on", WAIT)
    changed = training.grid(every="3")
    assert desk.combo("follow", changed, "--pid", str(training.process.pid)).returncode == 2
    assert desk.combo("follow", grid, "--pid", "4194304", "--new").returncode == 2
    assert desk.runs == [run], "nothing is left of it"
    assert desk.combo("launch", grid).returncode == 2
    assert "attempt 1" in desk.combo("explain", "maze_step_2", code=0).stdout
    desk.combo("logs", "maze_step_2", code=0)
