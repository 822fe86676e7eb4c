"""What survives which kill, of dispatchers, multiplexers and supervisors; and records that are no records."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time

import pytest
from box import Box, bash, kill, until
from recorded import record
from traces import HOLD, NAMES, RECORD, STARTED, concurrency, starts

from comborun.rules.vocabulary import Cause, Outcome


def test_running_sessions_keep_their_slots_and_gpus_through_a_change_of_dispatcher(box: Box) -> None:
    box.plan({name: bash(HOLD, gpus=1) for name in NAMES}, parallel=3, per_gpu=1, gpus="0,1")
    box.start()
    for name in NAMES[:2]:
        box.begun(name)
    box.kill_dispatcher()
    box.start()
    until(lambda: len(box.told("^adopted env_")) == 2, "both are adopted")
    time.sleep(0.3)  # time enough to start a third one wrongly
    assert len(box.told("^granted")) == 2
    box.write("go", "")
    box.await_done()


def test_dispatchers_killed_at_random_moments_lose_nothing_and_run_nothing_twice(box: Box) -> None:
    chance = random.Random(7)
    box.plan({f"env_p{i}": bash(STARTED + "sleep 0.05") for i in range(24)}, parallel=4)
    box.start()
    for _ in range(8):
        time.sleep(chance.uniform(0.0, 0.12))
        kill(box.dispatcher, signal.SIGKILL)
        box.start()
    box.await_done()
    assert [starts(box, name) for name in box.names] == [["1"]] * 24


def test_a_session_whose_supervisor_and_command_are_gone_is_lost_and_tried_again(box: Box) -> None:
    crash = "if [[ $COMBORUN_ATTEMPT == 1 ]]; then sleep 60; fi"
    box.plan({"env_one": bash(STARTED + crash)})
    box.start()
    begin = box.begun("env_one")
    until(lambda: starts(box, "env_one"), "its command has begun")
    kill(begin.supervisor, signal.SIGKILL)
    os.killpg(begin.pid, signal.SIGKILL)
    box.await_done()
    first, second = box.ended("env_one", 1), box.ended("env_one", 2)
    assert (first.cause, first.outcome, first.code) == (Cause.LOST, Outcome.LOST, None)
    # Behind it may stand who was killed for memory meanwhile: the kernel counts that for the whole machine.
    note = first.note.partition("; processes killed for memory on this machine")[0]
    assert note == "its supervisor died before recording the end"
    assert first.started == pytest.approx(begin.started)
    assert second.clean
    assert starts(box, "env_one") == ["1", "2"]


def test_what_was_complete_when_its_processes_died_never_runs_again(box: Box) -> None:
    box.plan({"env_one": bash(STARTED + RECORD + "echo; exec sleep 60", results=("*.jsonl",))})
    box.start()
    begin = box.begun("env_one")
    until(lambda: list(box.directory.glob("sessions/env_one/attempt-1/out/*.jsonl")), "its record is there")
    box.kill_dispatcher()
    kill(begin.supervisor, signal.SIGKILL)
    os.killpg(begin.pid, signal.SIGKILL)
    box.start()  # a user starts it, which asks for another attempt of what is lost
    box.await_done()
    assert box.ended("env_one").outcome is Outcome.SUCCEEDED
    for verb in ("pause", "resume"):
        box.program("control", verb)
    box.start()
    box.await_done()
    assert starts(box, "env_one") == ["1"]


def test_after_a_restart_of_the_machine_what_ran_is_lost_and_runs_again(box: Box) -> None:
    box.plan({"env_one": bash(STARTED + "true")})
    box.write("sessions/env_one/attempt-1/grant", '{"gpus": ""}\n')
    box.write(
        "sessions/env_one/attempt-1/claim",
        record(supervisor=os.getpid(), supervisor_start=1, boot="another"),
    )
    box.write(
        "sessions/env_one/attempt-1/begin",
        record(
            attempt=1,
            started=1.5,
            supervisor=os.getpid(),
            supervisor_start=1,
            pid=os.getpid(),
            pid_start=1,
            boot="another",
        ),
    )
    box.start()
    box.await_done()
    assert box.ended("env_one", 1).note == "the machine rebooted"
    assert box.ended("env_one", 2).clean


def test_records_that_are_garbage_are_no_records(box: Box) -> None:
    garbage = ["", "garbage", "\0\0\0\n=\n==\n", '{"supervisor": "x[$(touch pwned)]", "boot": "b"}\n']
    box.plan({f"env_{number}": bash("true") for number in range(len(garbage))}, policy={"breaker": 0})
    for name, text in zip(box.names, garbage, strict=True):
        for part in ("grant", "claim", "begin"):
            box.write(f"sessions/{name}/attempt-1/{part}", text)
        box.write(f"sessions/{name}/attempt-1/end", "" if text.startswith("{") else text)
    box.start()
    box.await_done()
    assert all(box.ended(name, 2).clean for name in box.names)
    assert list(box.directory.rglob("pwned")) == []


def test_a_granted_session_that_never_began_starts_once_with_its_gpus(box: Box) -> None:
    sessions = {name: bash(STARTED + "true", gpus=1) for name in ("env_one", "env_two", "env_three")}
    box.plan(sessions, gpus="3")
    box.write("sessions/env_one/attempt-1/grant", "")  # as a dispatcher leaves it that is killed just then
    nowhere = box.directory / "sessions/env_two/attempt-1/grant"
    nowhere.parent.mkdir(parents=True)
    nowhere.symlink_to("/nonexistent/grant")
    box.write("sessions/env_three/attempt-1/grant", '{"gpus": "3"}\n')
    box.start()
    box.await_done()
    assert [box.begun(name).gpus for name in box.names] == ["3"] * 3
    assert [starts(box, name) for name in box.names] == [["1"]] * 3


def test_a_message_about_what_is_not_so_changes_nothing(box: Box) -> None:
    box.plan({name: bash("sleep 0.5") for name in NAMES[:2]}, parallel=1)
    box.start()
    box.begun(NAMES[0])
    with (box.directory / "dispatch/fifo").open("w") as fifo:
        fifo.write(f"free {NAMES[0]} 7\nended {NAMES[1]} 1\nended nobody 1\nrefused {NAMES[0]}\n")
        fifo.write("free x[$(touch pwned)] a[0]\n\n\0\n")
    box.await_done()
    assert concurrency(box) == 1
    assert list(box.directory.rglob("pwned")) == []


def test_a_fifo_that_somebody_removed_is_made_again_and_no_session_waits_for_its_deadline(box: Box) -> None:
    box.environment["COMBORUN_LAUNCH_S"] = "120"
    box.plan({name: bash(STARTED + HOLD) for name in NAMES[:4]}, parallel=1)
    box.start()
    box.begun(NAMES[0])
    fifo = box.directory / "dispatch/fifo"
    fifo.unlink()
    (box.directory / "go").touch()  # it ends, and the next one's window speaks, while nobody hears
    box.await_done()
    assert fifo.is_fifo()
    assert box.told("^not_begun") == []
    assert all(starts(box, name) == ["1"] for name in NAMES[:4])


def test_there_is_one_dispatcher_however_many_are_started(box: Box) -> None:
    box.plan({name: bash(STARTED + "sleep 0.3") for name in NAMES})
    command = box.command("start")
    starters = [
        subprocess.Popen(command, env=box.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(5)
    ]
    said = [process.communicate(timeout=30) for process in starters]
    assert [process.returncode for process in starters] == [0] * 5, said
    assert sum("started" in out for out, _ in said) == 1
    box.await_done()
    assert all(starts(box, name) == ["1"] for name in NAMES)
