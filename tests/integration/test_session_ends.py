"""How a session ends: signals, windows that go, daemons and children that go on, and disks that are full."""

from __future__ import annotations

import re
import resource
import shlex
import signal
import subprocess

import pytest
from box import Box, Script, bash, kill, python, until
from session_by_hand import RECORDS, again_by_hand, by_hand
from test_stop import KEYBOARD

from comborun.rules.endings.evidence import Evidence
from comborun.rules.vocabulary import Cause, Completeness, Outcome


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_supervisor_reaches_the_group_and_counts_as_a_stop(box: Box, number: signal.Signals) -> None:
    box.plan({"stairs_flat": bash("sleep 60 & sleep 60 & wait")})
    process = subprocess.Popen(box.supervisor(), env=box.environment, stdout=subprocess.DEVNULL)
    box.begun("stairs_flat")
    process.send_signal(number)
    assert process.wait(20) == 0
    end = box.ended("stairs_flat")
    assert (end.cause, end.outcome, end.signal) == (Cause.STOPPED, Outcome.CANCELLED, number)
    assert box.marked() == []


def test_ctrl_c_in_an_attached_window_is_a_keyboard_interrupt_for_a_python_program(any_box: Box) -> None:
    any_box.plan({"stairs_flat": python(KEYBOARD)})
    any_box.start()
    until(lambda: "ready\n" in any_box.log("stairs_flat"), "the program is ready")
    begin = any_box.begun("stairs_flat")
    any_box.shown.interrupt(begin.address)
    end = any_box.ended("stairs_flat")
    assert any_box.log("stairs_flat") == "ready\nKeyboardInterrupt\n"
    assert (end.cause, end.note) == (Cause.STOPPED, "interrupted in its window")


def test_a_crash_leaves_no_core_file_unless_its_setup_asks_for_one(box: Box) -> None:
    limits = "echo $(ulimit -S -c) $(ulimit -H -c)"
    hard = subprocess.run(["bash", "-c", "ulimit -H -c"], capture_output=True, text=True, check=True).stdout.strip()
    before = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (before[1], before[1]))
    try:
        box.run({"env_one": bash(limits), "env_asks": bash(limits, setup=f"ulimit -c {hard}")})
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, before)
    assert box.log("env_one") == f"0 {hard}\n"
    assert box.log("env_asks") == f"{hard} {hard}\n"


def test_a_launcher_that_returns_ends_when_what_it_started_has_ended(box: Box) -> None:
    """As long as that writes, and records are missing; a daemon that only lives on is ended as before."""
    later = "".join(
        f"""sleep 1.2; printf '{{"episode": {at}, "success": true}}\\n' >>"$COMBORUN_OUTPUT_DIR/r.jsonl"; """
        for at in range(4)
    )
    idle = "setsid sleep 100 & exit 0"
    box.plan(
        {
            "env_nohup": bash(f"nohup bash -c {shlex.quote(later)} & exit 0", count=4, results=("*.jsonl",)),
            "env_setsid": bash(f"setsid bash -c {shlex.quote(later)} & exit 0", count=4, results=("*.jsonl",)),
            "env_idle": bash(idle, count=4, results=("*.jsonl",)),
        },
        parallel=3,
    )
    box.start()
    box.await_done(60)
    outcomes = {name: box.end(name) for name in box.names}
    assert [(end.outcome, end.records) for end in outcomes.values() if end] == [
        (Outcome.SUCCEEDED, 4),
        (Outcome.SUCCEEDED, 4),
        (Outcome.FAILED, 0),
    ]
    assert [fact.code for fact in outcomes["env_idle"].facts] == [Evidence.LEFT_BEHIND]  # type: ignore[union-attr]
    assert not box.marked()


def test_killing_the_multiplexer_ends_no_session(any_box: Box) -> None:
    any_box.plan({"stairs_flat": bash("echo begun; sleep 1.5; echo finished")})
    any_box.start()
    any_box.begun("stairs_flat")
    servers = any_box.servers()
    assert servers
    for server in servers:
        kill(server, signal.SIGKILL)
    end = any_box.ended("stairs_flat")
    assert end.clean
    assert any_box.log("stairs_flat") == "begun\nfinished\n"
    assert any_box.await_done()["succeeded"] == "1"


DAEMON = """
import os, subprocess, sys, time
if os.fork() == 0:
    os.setsid()
    os.closerange(3, 100)
    time.sleep({seconds})
    open(os.environ["COMBORUN_OUTPUT_DIR"] + "/daemon", "w").write("finished")
    os._exit(0)
"""


@pytest.mark.parametrize(("seconds", "grace", "left"), [(0.5, "5", ["daemon"]), (60, "1", [])])
def test_a_daemon_that_finishes_its_work_in_time_is_let_and_one_that_goes_on_is_ended(
    box: Box, seconds: float, grace: str, left: list[str]
) -> None:
    box.environment["COMBORUN_GRACE_S"] = grace
    by_hand(box, python(DAEMON.format(seconds=seconds)))
    assert [file.name for file in box.outputs("stairs_flat")] == left
    assert box.marked() == []
    assert box.ended("stairs_flat").clean


WRITES_ON = {
    "in the background": "{ sleep 0.7; " + RECORDS.format(n=3).strip() + "; } & exit 0",
    "at the end of a pipe": "exec > >(sleep 0.7; cat >$COMBORUN_OUTPUT_DIR/records.jsonl); "
    'printf \'{"episode": %d, "success": true}\\n\' 0 1 2',
}


@pytest.mark.parametrize("how", WRITES_ON)
def test_what_a_child_in_the_commands_group_still_writes_when_it_has_ended_counts(box: Box, how: str) -> None:
    box.environment["COMBORUN_GRACE_S"] = "20"
    by_hand(box, bash(WRITES_ON[how], count=3, results=("*.jsonl",)))
    end = box.ended("stairs_flat")
    assert (end.completeness, end.records, end.note) == (Completeness.COMPLETE, 3, "")


def test_what_goes_on_after_the_grace_is_ended_and_a_failure_says_so(box: Box) -> None:
    leaves = "sleep 60 & setsid sleep 60 &"
    by_hand(box, bash(f"trap '' HUP INT TERM; {leaves} exit 0", count=3, results=("*.jsonl",)))
    assert box.marked() == []
    end = box.ended("stairs_flat")
    (left,) = end.facts
    assert (left.code, left.count("count")) == (Evidence.LEFT_BEHIND, 2)


def test_of_a_session_that_is_stopped_nothing_gets_a_grace(box: Box) -> None:
    box.environment["COMBORUN_GRACE_S"] = "60"
    box.plan({"env_one": bash("trap 'exit 0' INT; (trap '' HUP INT TERM; sleep 60) & while :; do sleep 0.1; done")})
    assert box.start().returncode == 0
    box.begun("env_one")
    until(lambda: len(box.marked("env_one")) > 2, "its child has begun")
    assert box.stop().returncode == 0
    assert box.ended("env_one").cause is Cause.STOPPED
    assert box.marked() == []


@pytest.mark.parametrize("setup", ["", "true"])
def test_the_command_ignores_no_signal_that_its_supervisor_does(box: Box, setup: str) -> None:
    by_hand(box, Script(("grep", "SigIgn", "/proc/self/status"), setup=setup))
    ignored = int(box.log("stairs_flat").split()[1], 16)
    supervisors = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGTSTP)
    ours = {
        number for number in supervisors if signal.getsignal(number) is signal.SIG_IGN
    }  # by nohup, say: no shell undoes it
    assert [number.name for number in supervisors if ignored >> (number - 1) & 1 and number not in ours] == []


def test_a_disk_that_fills_up_while_a_session_runs_still_gets_its_end(small_disk_box: Box) -> None:
    box = small_disk_box
    fills = 'cat /dev/zero >"$COMBORUN_OUTPUT_DIR/big"'
    done = by_hand(box, bash(RECORDS.format(n=2) + fills, count=4, results=("*.jsonl",)))
    assert done.returncode == 0, done.stderr
    end = box.ended("stairs_flat")
    assert (end.cause, end.code, end.records) == (Cause.DISK_FULL, 1, 2)
    assert re.match(r"\d+ KiB are free on the file system of its output", end.note)


def test_a_disk_that_is_full_before_the_start_is_told(small_disk_box: Box) -> None:
    box = small_disk_box
    box.plan({"stairs_flat": bash("true")})
    box.fill_disk()
    refused = again_by_hand(box)
    assert refused.returncode == 73
    assert "can't write" in refused.stderr or "can't make" in refused.stderr
    assert not (box.attempt("stairs_flat") / "claim").exists()


def test_a_supervisor_that_is_told_to_end_just_as_its_command_dies_writes_the_end(box: Box) -> None:
    names = [f"env_{number}" for number in range(16)]
    box.plan({name: bash("sleep 100; true") for name in names})
    started = [subprocess.Popen(box.supervisor(name), env=box.environment) for name in names]
    for name in names:
        box.begun(name)
    for name in names:  # as Slurm does, which signals every process of a task
        kill(box.begun(name).pid, signal.SIGTERM)
        kill(box.begun(name).supervisor, signal.SIGTERM)
    until(lambda: all(one.poll() is not None for one in started), "all supervisors have left")
    for name in names:
        assert box.ended(name).cause in {Cause.STOPPED, Cause.SIGNAL}
