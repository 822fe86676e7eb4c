"""What Slurm does to tasks, for real: nothing is lost, and nothing runs twice that counts."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys

import pytest
from box import Script, alive, bash, kill, python
from rounds import only_slow
from slurm import requeued
from slurm_box import KIND, SlurmBox

from comborun.words.endings import said

STEPS = """exec 3>>"$COMBORUN_OUTPUT_DIR/records.jsonl"
for i in $(seq "$COMBORUN_FIRST_EPISODE" "$COMBORUN_LAST_EPISODE"); do
  until [[ -e $COMBORUN_RUN_DIR/go-$COMBORUN_ATTEMPT-$i ]]; do sleep 0.1; done
  printf '{"episode": %d, "attempt": %d, "success": true}\\n' "$i" "$COMBORUN_ATTEMPT" >&3
done"""
"""an episode when it is told to go on, over a descriptor that stays open"""


@pytest.fixture
def box(slurm_box: SlurmBox) -> SlurmBox:
    return slurm_box


def steps(count: int = 4) -> Script:
    return bash(STEPS, count=count, results=("*.jsonl",), more={"ranged": True})


def go(box: SlurmBox, attempt: int, *episodes: int) -> None:
    for episode in episodes:
        box.write(f"go-{attempt}-{episode}", "")


def records(box: SlurmBox, name: str, number: int) -> list[int]:
    """The episodes of an attempt, as readers see them."""
    file = box.attempt(name, number) / "out/records.jsonl"
    return [json.loads(line)["episode"] for line in file.read_text().splitlines()] if file.exists() else []


def accepted(box: SlurmBox) -> list[int]:
    """The episodes of all files that the run's results are made of."""
    files = (box.directory / "results").glob("*.jsonl")
    return sorted(json.loads(line)["episode"] for file in files for line in file.read_text().splitlines())


def waiting(box: SlurmBox) -> list[tuple[str, int]]:
    """Session and attempt of each task, as the probe tells."""
    return [(task["session"], task["attempt"]) for task in box.look()["tasks"]]


def await_records(box: SlurmBox, name: str, number: int, *episodes: int) -> None:
    box.wait_for(lambda: records(box, name, number) == list(episodes), f"attempt {number} has made {episodes}")


def test_the_old_process_of_a_task_that_was_started_again_does_not_count(box: SlurmBox) -> None:
    box.environment["COMBORUN_WATCH_S"] = "60"  # so that it does not hear of it and goes on, as without a network
    box.lay_out({"env_one": steps()})
    box.submit()
    go(box, 1, 0, 1)
    await_records(box, "env_one", 1, 0, 1)
    task, node, old = box.task("env_one"), box.node("env_one"), box.begun("env_one").supervisor
    box.slurm.kill(f"slurmd-{node}")
    box.slurm.control("update", f"node={node}", "state=down", "reason=test")
    requeued(box.slurm, task)
    box.begun("env_one", 2)
    assert alive(old)
    assert box.node("env_one", 2) != node
    assert (box.begun("env_one", 2).first, box.begun("env_one", 2).count) == (2, 2)
    go(box, 1, 2, 3)
    box.wait_for(lambda: not alive(old), "the old process has done all that it wanted")
    assert box.ends("env_one") == [("lost", "partial")]
    assert box.field("sessions/env_one/attempt-1/end", "records") == "2"
    assert records(box, "env_one", 1) == [0, 1]
    box.slurm.start(f"slurmd-{node}")
    go(box, 2, 2, 3)
    done = box.await_end()
    assert done["succeeded"] == "1"
    assert accepted(box) == [0, 1, 2, 3]
    assert records(box, "env_one", 1) == [0, 1]
    assert box.ends("env_one") == [("lost", "partial"), ("exited", "complete")]


def test_a_process_that_was_given_up_ends_as_soon_as_it_hears_of_it(box: SlurmBox) -> None:
    box.lay_out({"env_one": steps(1)})
    box.submit()
    box.begun("env_one")
    task, node, old = box.task("env_one"), box.node("env_one"), box.begun("env_one").supervisor
    box.slurm.kill(f"slurmd-{node}")
    box.slurm.control("update", f"node={node}", "state=down", "reason=test")
    requeued(box.slurm, task)
    box.begun("env_one", 2)
    box.wait_for(lambda: not alive(old), "the old supervisor leaves")
    go(box, 1, 0)
    go(box, 2, 0)
    assert box.await_end()["succeeded"] == "1", box.story()
    assert box.ends("env_one") == [("lost", "none"), ("exited", "complete")]


def test_a_node_that_goes_down_costs_its_sessions_an_attempt_and_nothing_else(box: SlurmBox) -> None:
    names = [f"env_{number}" for number in range(8)]
    kind = KIND._replace(cpus=2)  # four to a node
    box.lay_out(dict.fromkeys(names, steps(1)), kind=kind, policy={"retry_lost": 1, "breaker": 3, "fail_fast": 1})
    box.submit()
    for name in names:
        box.begun(name)
    task = {name: box.task(name) for name in names}
    away = {name for name in names if box.node(name) == "n2"}
    assert len(away) == 4
    box.slurm.control("update", "nodename=n2", "state=down", "reason=test")
    for name in away:
        box.wait_for(lambda name=name: box.ends(name) == [("lost", "none")], f"{name} is lost")
    assert box.settle().returncode == 0
    go(box, 1, 0)
    go(box, 2, 0)
    box.slurm.command("scontrol", "update", "nodename=n2", "state=resume")  # unless it came back by itself
    for name in away:
        requeued(box.slurm, task[name])
    assert box.await_end()["succeeded"] == "8", box.story()
    assert not box.told("^halted")
    for name in away:
        assert box.ends(name) == [("lost", "none"), ("exited", "complete")]
        assert box.task(name, 2) == task[name], "it is Slurm that starts it again"


@pytest.mark.parametrize("how", ["requeue", "preemption"])
def test_what_slurm_puts_back_into_the_queue_goes_on_where_it_was(box: SlurmBox, how: str) -> None:
    box.lay_out({"env_one": steps()}, attempts=1)
    box.submit()
    go(box, 1, 0)
    await_records(box, "env_one", 1, 0)
    task = box.task("env_one")
    if how == "requeue":
        box.slurm.control("requeue", task)
    else:
        node = box.node("env_one")
        urgent = ("sbatch", "-p", "urgent", "-w", node, "--exclusive", "--output=/dev/null", "--wrap", "sleep 1")
        assert box.slurm.command(*urgent).returncode == 0
    box.wait_for(lambda: box.ends("env_one") == [("preempted", "partial")], "it is preempted")
    assert "Slurm" in said(box.fields("sessions/env_one/attempt-1/end"))
    requeued(box.slurm, task)
    go(box, 2, 1, 2, 3)
    assert box.await_end()["succeeded"] == "1"
    assert accepted(box) == [0, 1, 2, 3]
    assert box.task("env_one", 2) == task


def test_scancel_by_somebody_else_is_a_stop_and_not_a_failure(box: SlurmBox) -> None:
    box.lay_out({"env_one": steps(), "env_two": steps(1)}, policy={"retry_lost": 3})
    box.submit()
    box.begun("env_two")
    go(box, 1, 0)
    await_records(box, "env_one", 1, 0)
    assert box.slurm.command("scancel", box.task("env_one")).returncode == 0
    done = box.await_end()
    assert (done["cancelled"], done["succeeded"]) == ("1", "1")
    assert box.ends("env_one") == [("stopped", "partial")]
    go(box, 2, 1, 2, 3)
    assert "submitted 1 of 1" in box.submit()
    assert box.await_end()["succeeded"] == "2"
    assert accepted(box) == [0, 0, 1, 2, 3]


def test_what_ends_while_the_controller_is_dead_is_not_lost(box: SlurmBox) -> None:
    box.lay_out({"env_one": steps(1), "env_two": steps(2)})
    box.submit("--parallel", "1")
    box.begun("env_one")
    saved = box.slurm.folder / "state/job_state"
    settle = f"{box.id}.settle".encode()
    box.wait_for(lambda: saved.exists() and settle in saved.read_bytes(), "the controller has written down what it has")
    assert ("env_two", 1) in waiting(box)
    box.slurm.kill("slurmctld")
    box.environment["COMBORUN_SLURM_S"] = "1"
    go(box, 1, 0)
    box.ended("env_one")
    box.environment["COMBORUN_ASK_S"] = "0"
    assert box.look()["scheduler"]["answered"] is False
    assert ("env_two", 1) in waiting(box)
    assert box.program("start").returncode == 75
    box.environment["COMBORUN_SLURM_S"] = "5"
    box.slurm.start("slurmctld")
    box.begun("env_two")
    go(box, 1, 1)
    assert box.await_end()["succeeded"] == "2"
    assert box.ends("env_one") == box.ends("env_two") == [("exited", "complete")]


def test_a_supervisor_that_is_killed_with_its_task_is_judged_by_what_it_left(box: SlurmBox) -> None:
    box.lay_out({"env_one": steps(2)}, policy={"retry_lost": 1})
    box.submit()
    go(box, 1, 0)
    await_records(box, "env_one", 1, 0)
    go(box, 2, 1)
    supervisor, command = box.begun("env_one").supervisor, box.begun("env_one").pid
    kill(supervisor, signal.SIGKILL)
    kill(command, signal.SIGKILL)
    assert box.await_end()["succeeded"] == "1"
    assert box.ends("env_one") == [("lost", "partial"), ("exited", "complete")]
    assert accepted(box) == [0, 1]


def test_what_needs_too_much_memory_or_is_warned_of_its_limit_is_told_as_that(box: SlurmBox) -> None:
    hungry = "x = bytearray(600 << 20); x[::4096] = b'1' * len(x[::4096]); import time; time.sleep(60)"
    box.lay_out({"env_hungry": python(hungry), "env_slow": bash("sleep 100; true")})
    box.submit()
    box.begun("env_slow")
    assert box.slurm.command("scancel", "--batch", "--signal=USR1", box.task("env_slow")).returncode == 0
    done = box.await_end()
    assert (done["failed"], done["cancelled"]) == ("2", "0")
    assert box.ends("env_hungry") == [("host_memory", "none")]
    assert box.ends("env_slow") == [("timed_out", "none")]


@pytest.mark.slow
@only_slow
def test_slurm_warns_of_its_limit_in_time(box: SlurmBox) -> None:
    box.lay_out({"env_slow": bash("sleep 300; true")}, kind=KIND._replace(minutes=1))
    box.submit()
    box.await_end(110)
    assert box.ends("env_slow") == [("timed_out", "none")]


def test_two_tasks_for_the_same_attempt_make_it_once(box: SlurmBox) -> None:
    box.lay_out({"env_one": bash('echo once >>"$COMBORUN_RUN_DIR/made"; sleep 1')})
    box.submit()
    for _ in range(3):  # as if nothing were known of the first
        array = ("sbatch", "--array=0", f"--output={box.directory}/slurm/out/%A_%a", f"--job-name={box.id}.1")
        again = box.slurm.command(*array, box.directory / "slurm/array-1.sh", box.directory, "1")
        assert again.returncode == 0, again.stderr
    box.wait_for(lambda: not box.slurm.tasks(), "all tasks have left")
    assert box.settle().returncode == 0
    assert box.done["succeeded"] == "1"
    assert (box.directory / "made").read_text() == "once\n"
    assert box.ends("env_one") == [("exited", "complete")]


@pytest.mark.slow
@only_slow
def test_a_run_ends_though_slurm_is_silent_and_holds_a_task_that_is_over(box: SlurmBox) -> None:
    box.lay_out({"env_one": steps(1), "env_two": steps(1)})
    box.submit()
    box.begun("env_one")
    box.begun("env_two")
    array = (
        "sbatch",
        "--hold",
        "--array=0",
        "--output=/dev/null",
        f"--job-name={box.id}.1",
    )  # as a controller restores it
    again = box.slurm.command(*array, box.directory / "slurm/array-1.sh", box.directory, "1")
    assert again.returncode == 0, again.stderr
    controller = int((box.slurm.folder / "run/slurmctld.pid").read_text())
    os.kill(controller, signal.SIGSTOP)
    go(box, 1, 0)
    assert box.await_end()["succeeded"] == "2", box.story()
    os.kill(controller, signal.SIGCONT)
    box.wait_for(lambda: "nothing is left" in box.program("start").stdout, "Slurm answers again")
    box.wait_for(lambda: not box.slurm.tasks(), "nothing of it is in the queue")


def test_a_submission_that_was_killed_is_found_again_and_not_repeated(box: SlurmBox) -> None:
    box.lay_out({"env_one": steps(1)})
    real = shutil.which("sbatch", path=box.slurm.environment["PATH"])
    box.write("bin/sbatch", f'#!/usr/bin/env bash\n{real} "$@"\nkill -KILL "$(cat {box.directory}/pid)"\n').chmod(0o755)
    program = 'echo $$ >"$1/pid"; exec "$0" -I -S "$1/lib/comborun_host" start "$1"'
    victim = ["bash", "-c", program, sys.executable, str(box.directory)]
    path = {"PATH": f"{box.directory}/bin:{box.environment['PATH']}"}
    killed = subprocess.run(victim, env={**box.environment, **path}, capture_output=True, timeout=30, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert not box.told("^submitted")
    assert "on their way" in box.submit()
    go(box, 1, 0)
    box.ended("env_one")
    assert box.settle().returncode == 0
    assert box.await_end()["succeeded"] == "1"
    assert box.ends("env_one") == [("exited", "complete")]
