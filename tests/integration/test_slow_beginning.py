"""A host that is full, and a model server that loads for long: a launch that waits is no mistake, and says for what."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import cast

import pytest
from box import Box, put_library, until
from desk import ONE, Desk, evaluate
from nvidia import Gpus
from quick_combo import Call

from comborun.remote.run_orders import Beginning, await_first
from comborun.remote.transport import LocalTransport
from comborun.rules.facts import Fact
from comborun.rules.records import render
from comborun.rules.room.waits import Wait


def test_a_full_gpu_is_waited_for_by_launch_and_run_and_calibrate(desk: Desk, tmp_path: Path) -> None:
    gpus = Gpus(cast("Box", desk), tmp_path / "bin")
    gpus.cards(20000)
    gpus.taken(19000)
    # longer than this test waits for a command: what the host says is told as soon as it is settled
    desk.environment |= {"COMBORUN_FIRST_S": "100", "COMBORUN_STOP_INT_S": "1", "COMBORUN_STOP_TERM_S": "1"}
    grid = desk.grid(**ONE, resources="{gpus: 1, gpu_memory: 5000 MiB}", command=evaluate())

    calibrating = desk.start("calibrate", grid, "--most", "1")
    assert "the first waits for GPU memory: " in _line(calibrating, "Ctrl-C ends what was started")
    calibrating.interrupt()
    assert calibrating.code(60) == 130, calibrating.text
    assert not list((desk.home / "comborun/.calibrate").glob("little*"))

    launched = desk.combo("launch", grid, code=0)
    assert "1 session planned; the first waits for GPU memory: " in launched.stdout
    again = desk.json("launch", grid)
    assert (again["state"], again["run"]) == ("resumed", desk.runs[0].name)
    assert again["waits"].startswith("waits for GPU memory: ")

    running = desk.start("run", grid)
    assert "its missing work; the first waits for GPU memory: " in _line(running, "goes on")
    gpus.taken(0)
    assert running.code(60) == 0, running.text
    assert desk.report()


@pytest.mark.parametrize(
    ("reasons", "grant", "old", "expected"),
    [
        ([Wait.SMOKE_TEST_FIRST, Wait.GPU_MEMORY_TAKEN], False, False, Beginning.WAITS),
        ([Wait.GPU_UNMEASURED], False, False, Beginning.WAITS),
        ([Wait.SMOKE_TEST_FIRST, Wait.SERVER_NOT_READY], False, False, Beginning.NOT_BEGUN),
        ([Wait.GPU_MEMORY_TAKEN], True, False, Beginning.NOT_BEGUN),
        ([Wait.GPU_MEMORY_TAKEN], False, True, Beginning.NOT_BEGUN),
    ],
    ids=["room", "a-driver-that-does-not-answer", "what-passes-or-fails", "one-on-its-way", "an-earlier-dispatcher's"],
)
def test_what_the_host_says_is_settled_when_somebody_waits_for_room_and_nobody_is_on_its_way(
    tmp_path: Path, reasons: list[Wait], grant: bool, old: bool, expected: Beginning
) -> None:
    put_library(tmp_path)
    (tmp_path / "dispatch/dispatcher").touch()
    waiting = tmp_path / "dispatch/waiting"
    waiting.write_text("".join(render([("session", "env_one"), ("reason", Fact(reason))]) for reason in reasons))
    signed = (tmp_path / "dispatch/dispatcher").stat().st_mtime
    os.utime(waiting, (signed, signed + (-1 if old else 1)))
    if grant:
        (tmp_path / "sessions/env_one/attempt-1").mkdir(parents=True)
        (tmp_path / "sessions/env_one/attempt-1/grant").touch()
    assert await_first(LocalTransport(), str(tmp_path), 3.0) is expected


def test_a_server_that_loads_is_waited_for_and_one_that_never_gets_ready_is_told_at_once(desk: Desk) -> None:
    desk.environment |= {"COMBORUN_FIRST_S": "5", "COMBORUN_STOP_INT_S": "1", "COMBORUN_STOP_TERM_S": "1"}
    uses = "[{when: {policy: good}, variables: {URL: '{server.tiny.url}'}}]"
    loads = "{tiny: {command: 'sleep 300 {port}', ready_within: 5 min}}"
    grid = desk.grid(**ONE, servers=loads, overrides=uses)
    launched = desk.combo("launch", grid)
    assert "the first waits for the server tiny, which is " in launched.stdout
    assert "waiting for the first session" in launched.stderr
    assert desk.combo("stop").returncode == 0

    desk.environment["COMBORUN_FIRST_S"] = "50"
    broken = "{tiny: {command: 'false {port}', restarts: 0}}"
    refused = desk.combo("launch", desk.grid(**ONE, servers=broken, overrides=uses, file="other.yaml"), "--new", code=2)
    assert " is halted: the server tiny " in refused.stderr
    assert "logs tiny --run " in refused.stderr


def test_an_nvidia_smi_that_fails_is_named_instead_of_a_host_without_gpus(desk: Desk, tmp_path: Path) -> None:
    gpus = Gpus(cast("Box", desk), tmp_path / "bin")
    gpus.cards(20000)
    gpus.fault("fail")
    refused = desk.combo("plan", desk.grid(**ONE, resources="{gpus: 1}"), code=2)
    assert "on this machine the driver's kernel module is not loaded: NVIDIA-SMI has failed because" in refused.stderr
    gpus.fault("")
    laid = desk.combo("plan", desk.grid(**ONE))
    assert "at once" in laid.stdout
    assert "one for each core" not in laid.stdout


def _line(call: Call, words: str) -> str:
    """The first line with these words, once it is there whole."""
    found = re.compile(rf".*{re.escape(words)}.*\n")
    until(lambda: found.search(call.text), lambda: f"it says {words}: {call.text}", 60)
    return str(found.findall(call.text)[0])


def test_a_launch_whose_sessions_are_all_refused_does_not_say_that_one_runs(desk: Desk, tmp_path: Path) -> None:
    unsafe = tmp_path / f"sockets/tmux-{os.getuid()}"
    unsafe.mkdir(parents=True)
    unsafe.chmod(0o777)  # tmux refuses it
    desk.environment["TMUX_TMPDIR"] = str(unsafe.parent)
    refused = desk.combo("launch", desk.grid(**ONE), "--multiplexer", "tmux")
    assert refused.returncode != 0, refused.stdout
    assert "the first is running" not in refused.stdout
    assert "Error: " in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_launch_whose_sessions_fail_at_once_says_so_and_why(desk: Desk) -> None:
    launched = desk.combo("launch", desk.grid(command="cat --no-such-flag {output_dir} {episodes}"))
    assert "4 of 4 failed at once: exit code 1 (" in launched.stdout.splitlines()[0]
    assert launched.returncode == 1


def test_a_line_that_says_why_is_told_once(desk: Desk) -> None:
    fails = """bash -c 'echo "ModuleNotFoundError: No module named x" >&2; exit 1' {output_dir} {episodes}"""
    launched = desk.combo("launch", desk.grid(command=fails))
    assert launched.stdout.splitlines()[0].count("ModuleNotFoundError") == 1
