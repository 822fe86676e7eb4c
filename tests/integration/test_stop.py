"""stop.sh: what is stopped is gone, with everything that it started, and nothing else is touched."""

from __future__ import annotations

import getpass
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from box import Box, Script, alive, bash, frozen, kill, python, until
from nvidia import Gpus
from recorded import record
from traces import HOLD, RECORD

from comborun.host.system import files
from comborun.host.verbs import stop
from comborun.model.judging import NO_LIMITS, EvidenceRules, WatchRules
from comborun.rules.vocabulary import Cause, Completeness, Outcome

KEYBOARD = """
import time
try:
    print("ready", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    print("KeyboardInterrupt", flush=True)
"""

ESCAPES = {
    "setsid": "setsid sleep 600 & sleep 600",
    "nohup": "nohup sleep 600 >/dev/null 2>&1 & sleep 600",
    "double_fork": "( ( setsid sleep 600 & ) & ) & sleep 600",
    "lock_closed": "setsid sleep 600 9>&- & sleep 600",
    "deaf": "trap '' HUP INT TERM; setsid sleep 600 & while :; do sleep 1; done",
}


def test_python_programs_see_the_stop_as_a_keyboard_interrupt_and_all_of_them_are_gone_soon(usual_box: Box) -> None:
    usual_box.environment["COMBORUN_STOP_INT_S"] = "30"
    usual_box.plan({f"env_p{i}": python(KEYBOARD) for i in range(4)})
    usual_box.start()
    until(lambda: all("ready\n" in usual_box.log(name) for name in usual_box.names), "the programs are ready")
    os.killpg(usual_box.begun("env_p0").pid, signal.SIGSTOP)
    began = time.monotonic()
    stopped = usual_box.stop()
    assert time.monotonic() - began < 10
    assert stopped.returncode == 0, stopped.stderr
    for name in usual_box.names:
        assert usual_box.log(name) == "ready\nKeyboardInterrupt\n"
        end = usual_box.ended(name)
        assert (end.cause, end.code, end.outcome) == (Cause.STOPPED, 0, Outcome.CANCELLED)


SAYS_DONE = """
import signal, time
signal.signal(signal.SIGTERM, signal.default_int_handler)
try:
    print("ready", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    print("interrupted", flush=True)
print("Training finished", flush=True)
"""


@pytest.mark.parametrize("by", ["stop", signal.SIGINT, signal.SIGTERM, "stall"])
def test_what_a_program_says_after_it_was_told_to_end_proves_nothing(box: Box, by: object) -> None:
    more = {"evidence": EvidenceRules(line="Training finished")}
    more |= {"watch": WatchRules(1)} if by == "stall" else {}
    box.environment["COMBORUN_WATCH_S"] = "0.3"
    box.plan({"env_one": python(SAYS_DONE, more=more)})
    box.start()
    until(lambda: "ready" in box.log("env_one"), "the program is ready")
    if by == "stop":
        assert box.stop().returncode == 0
    elif by != "stall":
        os.kill(int(files.read(str(box.attempt("env_one") / "claim"))["supervisor"]), by)
    end = box.ended("env_one")
    assert "Training finished" in box.log("env_one")
    assert (str(end.cause), end.completeness) == ("stalled" if by == "stall" else "stopped", Completeness.NONE)


def test_what_a_program_said_before_it_was_told_to_end_still_proves_its_work(box: Box) -> None:
    box.plan({"env_one": bash("echo finished; sleep 60", more={"evidence": EvidenceRules(line="finished")})})
    box.start()
    until(lambda: "finished" in box.log("env_one"), "its work is done")
    assert box.stop().returncode == 0
    assert box.ended("env_one").outcome is Outcome.SUCCEEDED


def test_a_run_whose_compiled_modules_were_cut_short_and_one_without_a_name(box: Box) -> None:
    library = box.own_library()
    box.run({"env_one": bash("true")})
    for path in library.glob("**/*.pyc"):  # as Python leaves them on a full disk: whole pages
        os.truncate(path, min(path.stat().st_size, 4096))
    stopped = box.stop()
    assert stopped.returncode == 0, stopped.stderr
    assert not any(Path(top, "nonexistent").exists() for top in (Path.cwd(), "/")), "and nothing is compiled elsewhere"
    box.write("id", "")
    assert box.stop().stderr == f"stop: {box.directory} is not a run directory\n"


def test_what_left_its_group_is_gone_too(box: Box) -> None:
    box.environment |= {"COMBORUN_STOP_INT_S": "1", "COMBORUN_STOP_TERM_S": "1"}
    box.plan({name: bash(f"echo ready; {command}") for name, command in ESCAPES.items()}, parallel=len(ESCAPES))
    box.start()
    for name in box.names:
        until(lambda name=name: "ready" in box.log(name), f"the program {name} is ready")
        until(lambda name=name: len(box.marked(name)) >= 2, "it has its children")
    stopped = box.stop()
    assert stopped.returncode == 0, stopped.stdout
    assert box.marked() == []
    assert {box.ended(name).cause for name in box.names} == {Cause.STOPPED}


def test_a_queued_session_that_is_named_never_starts(box: Box) -> None:
    box.plan({"env_one": bash(HOLD), "env_two": bash("true"), "env_three": bash("true")}, parallel=1)
    box.start()
    box.begun("env_one")
    stopped = box.stop("env_two")
    box.write("go", "")
    assert stopped.stdout == "env_two: cancelled before it began\n"
    assert (box.ended("env_two").outcome, box.ended("env_two").note) == (Outcome.CANCELLED, "before it began")
    done = box.await_done()
    assert (done["succeeded"], done["cancelled"]) == ("2", "1")
    assert box.begin("env_two") is None
    box.start()
    until(lambda: len(box.told("^done")) == 2, "the resumed run is done")
    assert box.ended("env_two", 2).clean


def test_a_session_that_was_launched_and_has_not_begun_is_cancelled(box: Box) -> None:
    box.plan({"env_one": bash("true")})
    box.write("sessions/env_one/attempt-1/grant", '{"gpus": ""}\n')
    assert box.stop().stdout == "env_one: cancelled before it began\n"
    late = subprocess.run(
        box.supervisor("env_one"),
        env=box.environment,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    assert late.returncode == 76
    assert box.begin("env_one") is None


def test_a_program_that_ignores_int_and_term_is_killed(box: Box) -> None:
    box.environment |= {"COMBORUN_STOP_INT_S": "1", "COMBORUN_STOP_TERM_S": "1"}
    box.plan({"env_one": bash("trap '' INT TERM; echo ready; while :; do sleep 1; done")})
    box.start()
    until(lambda: "ready" in box.log("env_one"), "the program is ready")
    stopped = box.stop()
    assert stopped.returncode == 0
    assert re.findall("INT|TERM|KILL", stopped.stderr) == ["INT", "TERM", "KILL"]
    assert box.ended("env_one").signal == signal.SIGKILL


DEAF = "trap '' INT TERM; echo ready; while :; do sleep 0.2; done"


def stopping(box: Box, watch: WatchRules = NO_LIMITS, count: int = 1) -> list[subprocess.Popen[bytes]]:
    """Stops of one session each, which wait for programs that ignore INT and TERM."""
    box.environment |= {"COMBORUN_STOP_INT_S": "2", "COMBORUN_STOP_TERM_S": "2", "COMBORUN_WATCH_S": "0.2"}
    box.plan({f"env_p{i}": bash(DEAF, more={"watch": watch}) for i in range(count)}, attempts=1)
    box.start()
    until(lambda: all("ready" in box.log(name) for name in box.names), "the programs are ready")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started = [subprocess.Popen(box.command("stop", name), env=box.environment, **quiet) for name in box.names]
    until(lambda: all((box.attempt(name) / "stop").exists() for name in box.names), "they are being stopped")
    return started


def test_a_stop_goes_on_to_its_end_whoever_asked(box: Box) -> None:
    numbers = (signal.SIGINT, signal.SIGHUP, signal.SIGKILL)
    for asked, number in zip(stopping(box, count=len(numbers)), numbers, strict=True):
        asked.send_signal(number)
        asked.wait(10)
    for name in box.names:
        end = box.ended(name)
        assert (end.cause, end.signal) == (Cause.STOPPED, signal.SIGKILL)
    assert box.marked() == []


def test_a_stopper_that_is_killed_leaves_the_watchdog_at_work(box: Box) -> None:
    (process,) = stopping(box, WatchRules(max_s=4))
    stopper = int(box.fields("sessions/env_p0/attempt-1/stop")["pid"])
    assert stopper != process.pid
    kill(stopper, signal.SIGKILL)
    assert process.wait(10) != 0
    end = box.ended("env_p0")
    assert (end.cause, end.outcome) == (Cause.TIMED_OUT, Outcome.FAILED)


def test_an_orphan_is_stopped_and_its_end_written(box: Box) -> None:
    box.plan({"env_one": bash(RECORD + "sleep 600", count=3, results=("*.jsonl",))})
    box.start()
    begin = box.begun("env_one")
    until(lambda: box.outputs("env_one"), "the record is there")
    box.kill_dispatcher()
    kill(begin.supervisor, signal.SIGKILL)
    stopped = box.stop()
    assert (stopped.returncode, stopped.stdout) == (0, "env_one: cancelled, 1 record\n")
    end = box.ended("env_one")
    assert (end.cause, end.completeness, end.code) == (Cause.STOPPED, Completeness.PARTIAL, None)
    assert box.marked() == []


def test_a_supervisor_that_is_frozen_does_not_keep_a_session_alive(box: Box) -> None:
    box.environment |= {"COMBORUN_STOP_INT_S": "1", "COMBORUN_STOP_TERM_S": "1", "COMBORUN_STOP_KILL_S": "1"}
    box.plan({"env_one": bash("echo ready; setsid sleep 600 & sleep 600")})
    box.start()
    begin = box.begun("env_one")
    kill(begin.supervisor, signal.SIGSTOP)
    stopped = box.stop()
    assert stopped.returncode == 0, stopped.stdout + stopped.stderr
    assert box.ended("env_one").cause is Cause.STOPPED
    assert box.marked() == []
    assert not alive(begin.supervisor)


def test_a_pid_that_came_again_is_left_alone(box: Box) -> None:
    box.plan({"env_one": bash("true")})
    bystander = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        same = {"supervisor": bystander.pid, "supervisor_start": 1, "boot": boot}
        box.write("sessions/env_one/attempt-1/claim", record(**same))
        box.write("sessions/env_one/attempt-1/begin", record(**same, pid=bystander.pid, pid_start=1))
        box.write("dispatch/dispatcher", record(pid=bystander.pid, start=1, boot=boot))
        assert box.stop().returncode == 0
        assert bystander.poll() is None
        assert box.ended("env_one").cause is Cause.LOST, "its host lost its power before: no stop has ended it"
    finally:
        bystander.kill()
        bystander.wait()


def comm(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


def test_what_survives_is_named(box: Box) -> None:
    box.environment |= {"COMBORUN_STOP_INT_S": "1", "COMBORUN_STOP_TERM_S": "1", "COMBORUN_STOP_KILL_S": "1"}
    box.plan(dict.fromkeys(("env_one", "env_two"), Script(("sleep", "600"))))
    box.start()
    program, supervisor = box.begun("env_one").pid, box.begun("env_two").supervisor
    until(lambda: comm(program) == "sleep", "its script has become the program")
    with frozen(program), frozen(supervisor):
        stopped = box.stop()
        assert stopped.returncode == 1
        assert f"survives: {program} sleep" in stopped.stdout
        assert f"survives: {supervisor} comborun" in stopped.stdout


def test_memory_that_a_gpu_did_not_give_back_is_named(box: Box, tmp_path: Path) -> None:
    gpus = Gpus(box, tmp_path / "bin")
    gpus.cards(81559)
    box.environment["COMBORUN_GPU_BACK_S"] = "0"
    box.plan({f"env_{n}": bash("sleep 600", gpus=1) for n in ("one", "two", "three")}, gpus="0", per_gpu=3)
    box.start()
    held, clean, _ = (box.begun(name) for name in box.names)
    gpus.processes(f"{held.pid}, 4096", "1, 200", f"{clean.pid}9, [N/A]")
    stopped = box.stop("env_one")
    assert (stopped.returncode, stopped.stdout.splitlines()[-1]) == (
        1,
        f"GPU memory: process {held.pid} still holds 4096 MiB",
    )
    stopped = box.stop("env_two")
    assert (stopped.returncode, stopped.stdout) == (0, "env_two: cancelled, 0 records\n")
    gpus.fault("fail")
    stopped = box.stop("env_three")
    assert stopped.returncode == 0
    assert "GPU memory: unknown whether all of it came back" in stopped.stdout


def test_a_name_that_is_no_session_is_refused_and_one_that_has_ended_is_told_and_nothing_is_stopped(box: Box) -> None:
    box.plan({"env_one": bash("sleep 600"), "env_two": bash("true")})
    box.start()
    begin = box.begun("env_one")
    for name in ("env_on", "../sessions/env_one", "env_one env_two", ""):
        refused = box.stop(name)
        assert refused.returncode == 64, name
        assert "there is no session" in refused.stderr
    box.ended("env_two")
    stopped = box.stop("env_two")
    assert (stopped.returncode, stopped.stdout) == (0, "env_two: has ended already\n")
    assert box.ended("env_two").outcome is Outcome.SUCCEEDED
    assert alive(begin.pid)


def test_another_user_is_told_whose_run_it_is_and_nothing_is_signalled(
    box: Box, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    box.plan({"env_one": bash("trap 'echo told' INT TERM; " + HOLD)})
    box.start()
    begin = box.begun("env_one")
    monkeypatch.setattr(os, "getuid", lambda: 54321)
    assert stop.main([str(box.directory)]) == 73
    monkeypatch.undo()
    assert getpass.getuser() in capfd.readouterr().err
    assert alive(begin.pid)
    assert box.log("env_one") == ""
    assert not (box.directory / "dispatch/stopped").exists()
