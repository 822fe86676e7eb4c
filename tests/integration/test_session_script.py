"""session.sh on real processes: how a command is started, watched, ended and judged."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from box import Box, Script, alive, bash, until
from session_by_hand import again_by_hand, by_hand

from comborun.rules.vocabulary import Cause, Completeness, Outcome


def test_by_hand_in_a_plain_terminal_a_session_runs_shows_its_output_and_is_on_record(box: Box) -> None:
    shown = by_hand(box, bash("echo hello; sleep 0.3; echo world >&2"))
    begin, end = box.begin("stairs_flat"), box.end("stairs_flat")
    assert shown.returncode == 0, shown.stderr
    assert (shown.stdout, shown.stderr) == ("hello\nworld\n", "")
    assert box.log("stairs_flat") == "hello\nworld\n"
    assert begin
    assert (begin.multiplexer, begin.address, begin.attempt) == ("none", "", 1)
    assert end
    assert (end.cause, end.code, end.completeness) == (Cause.EXITED, 0, Completeness.COMPLETE)
    assert end.started
    assert end.started <= end.ended


def test_the_command_sees_its_surroundings(box: Box) -> None:
    box.write("sessions/stairs_flat/attempt-1/grant", '{"gpus": "2,5"}\n')
    script = bash("env | grep -E '^(COMBORUN_|CUDA_|PYTHONUNBUFFERED|EXTRA)' | sort", first=10, count=5)
    by_hand(box, Script(script.command, first=10, count=5, variables=("EXTRA='a b'",)))
    seen = dict(line.split("=", 1) for line in box.log("stairs_flat").splitlines())
    attempt = box.attempt("stairs_flat")
    assert {key: value for key, value in seen.items() if key not in box.environment} == {
        "COMBORUN_OUTPUT_DIR": str(attempt / "out"),
        "COMBORUN_ATTEMPT": "1",
        "COMBORUN_FIRST_EPISODE": "10",
        "COMBORUN_LAST_EPISODE": "14",
        "COMBORUN_END_EPISODE": "15",
        "COMBORUN_EPISODES": "5",
        "COMBORUN_RUN": box.id,
        "COMBORUN_RUN_DIR": str(box.directory),
        "COMBORUN_RESULTS_DIR": str(box.directory / "results"),
        "COMBORUN_GPU": "2",
        "COMBORUN_GPUS": "2,5",
        "COMBORUN_GPU_COUNT": "2",
        "COMBORUN_SESSION": f"{box.id}/stairs_flat/1",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": "2,5",
        "PYTHONUNBUFFERED": "1",
        "EXTRA": "a b",
    }


def test_a_command_that_takes_no_range_and_a_grant_that_tells_none_make_all(box: Box) -> None:
    grants = {
        "takes_none": '{"first": 14, "count": 6}\n',
        "no_number": '{"first": "x", "count": 6}\n',
        "empty": '{"first": 14, "count": 0}\n',
        "half": '{"first": 14}\n',
    }
    for name, grant in grants.items():
        show = bash(
            'echo "$COMBORUN_FIRST_EPISODE $COMBORUN_EPISODES"',
            first=10,
            count=10,
            more={"ranged": name != "takes_none"},
        )
        box.write(f"sessions/{name}/attempt-1/grant", grant)
        by_hand(box, show, name=name)
        assert box.log(name) == "10 10\n"


@pytest.mark.parametrize("setup", ["", "true"])
def test_the_command_has_a_process_session_of_its_own_and_no_terminal_to_read(box: Box, setup: str) -> None:
    by_hand(box, bash('read -r line || echo "end of input"; ps -o pid=,pgid=,sid= -p $$', setup=setup))
    begin = box.begin("stairs_flat")
    text, numbers = box.log("stairs_flat").splitlines()
    assert begin
    assert text == "end of input"
    assert [int(word) for word in numbers.split()] == [begin.pid] * 3


FAILED_LAUNCHES = {
    "no working folder": (Script(("true",), workdir="/no/such/folder"), 78, "there is no folder /no/such/folder"),
    "no such program": (Script(("no-such-program",)), 127, "no-such-program could not be run in"),
    "no such program after setup": (
        Script(("no-such-program",), setup="true"),
        127,
        "no-such-program could not be run in",
    ),
    "no such file": (Script(("./evaluate.sh",)), 127, "./evaluate.sh could not be run in"),
    "not executable": (Script(("/etc/passwd",)), 126, "/etc/passwd could not be run in"),
    "a folder": (Script(("/etc",), setup="true"), 126, "/etc could not be run in"),
}


@pytest.mark.parametrize("case", FAILED_LAUNCHES)
def test_a_command_that_never_ran_is_a_failed_launch_with_its_reason(box: Box, case: str) -> None:
    script, code, note = FAILED_LAUNCHES[case]
    by_hand(box, script)
    end = box.ended("stairs_flat")
    assert (end.cause, end.code, end.outcome) == (Cause.LAUNCH_FAILED, code, Outcome.FAILED)
    assert note in end.note
    assert note in box.log("stairs_flat")


def test_a_file_of_the_project_that_is_not_executable_is_told_as_bash_tells_it(box: Box, tmp_path: Path) -> None:
    (tmp_path / "evaluate.sh").write_text("echo hello\n")
    by_hand(box, Script(("./evaluate.sh",), workdir=str(tmp_path)))
    assert box.ended("stairs_flat").note == f"./evaluate.sh could not be run in {tmp_path}: Permission denied"


def test_a_script_with_windows_line_ends_is_told_by_its_interpreter(box: Box, tmp_path: Path) -> None:
    program = tmp_path / "evaluate.sh"
    program.write_bytes(b"#!/bin/bash\r\necho hello\r\n")
    program.chmod(0o755)
    by_hand(box, Script((str(program),)))
    end = box.ended("stairs_flat")
    assert end.cause is Cause.LAUNCH_FAILED
    assert r"its interpreter '/bin/bash\r'" in end.note


@pytest.mark.parametrize("code", [127, 78])
def test_a_program_that_itself_exits_with_such_a_code_did_run(box: Box, code: int) -> None:
    by_hand(box, bash(f"exit {code}"))
    end = box.ended("stairs_flat")
    assert (end.cause, end.code, end.signal) == (Cause.EXITED, code, None)


def test_a_line_of_thirty_megabytes_in_the_log_of_a_window_hurts_nothing(box: Box) -> None:
    box.run({"stairs_flat": bash("head -c 30000000 /dev/zero | tr '\\0' x; echo")})
    end = box.ended("stairs_flat")
    assert end.clean
    assert (box.attempt("stairs_flat") / "log").stat().st_size == 30000001


def test_an_attempt_is_made_once(box: Box) -> None:
    by_hand(box, bash("echo once"))
    second = again_by_hand(box)
    assert second.returncode == 76
    assert "attempt 1 has been made" in second.stderr
    assert box.log("stairs_flat") == "once\n"


@pytest.mark.parametrize("attempt", ["", "0", "x", "1; touch pwned"])
def test_an_attempt_that_is_no_number_is_refused(box: Box, attempt: str) -> None:
    assert by_hand(box, bash("true"), attempt).returncode == 64


def test_two_starts_of_one_attempt_at_once_run_it_once(box: Box) -> None:
    box.plan({"stairs_flat": bash("echo once; sleep 0.2")})
    command = box.supervisor()
    pair = [subprocess.Popen(command, env=box.environment, stdout=subprocess.DEVNULL) for _ in range(6)]
    assert sorted(process.wait(30) for process in pair) == [0, *[76] * 5]
    assert box.log("stairs_flat") == "once\n"


def test_a_beginning_that_could_not_be_written_down_is_written_later(box: Box) -> None:
    box.environment["COMBORUN_WATCH_S"] = "0.1"
    box.plan({"stairs_flat": bash("exec sleep 60")})
    in_the_way = box.attempt("stairs_flat") / "begin/in the way"
    in_the_way.mkdir(parents=True)
    first = subprocess.Popen(box.supervisor(), env=box.environment, stdout=subprocess.DEVNULL)
    until(box.marked, "the command runs")
    in_the_way.rmdir()
    in_the_way.parent.rmdir()
    assert alive(box.begun("stairs_flat").pid)
    first.send_signal(signal.SIGTERM)
    assert first.wait(20) == 0


def test_another_attempt_waits_for_the_lock_and_gives_up(box: Box) -> None:
    box.environment["COMBORUN_LOCK_S"] = "0.2"
    box.plan({"stairs_flat": bash("sleep 30")})
    first = subprocess.Popen(box.supervisor(), env=box.environment, stdout=subprocess.DEVNULL)
    box.begun("stairs_flat")
    second = again_by_hand(box, "2")
    assert second.returncode == 75
    assert not (box.attempt("stairs_flat", 2) / "claim").exists()
    first.send_signal(signal.SIGTERM)
    assert first.wait(20) == 0


def test_what_an_attempt_that_has_ended_left_at_the_lock_goes_before_the_next_one(box: Box) -> None:
    box.environment["COMBORUN_LOCK_S"] = "0.2"
    box.plan({"stairs_flat": bash("true")})
    assert again_by_hand(box, "1").returncode == 0
    lock = box.directory / "sessions/stairs_flat/lock"
    marked = {**box.environment, "COMBORUN_SESSION": f"{box.id}/stairs_flat/1"}
    left = subprocess.Popen(["flock", str(lock), "sleep", "60"], env=marked)
    until(lambda: subprocess.run(["flock", "-n", str(lock), "true"], check=False).returncode, "it holds the lock")
    assert again_by_hand(box, "2").returncode == 0
    assert left.wait(20) in {-signal.SIGTERM, 128 + signal.SIGTERM}  # flock or its child may get the signal first
    assert box.ended("stairs_flat", 2).clean


def test_the_window_shows_at_once_what_the_command_prints(box: Box) -> None:
    box.environment["COMBORUN_WATCH_S"] = "3600"  # no look shows it
    window = box.own_library() / "window.sh"
    told = window.read_text()
    slow = re.sub(r"(?m)^(printf 'window .*?)( 1<>.*)$", r"{ \1; sleep 1; }\2", told)  # it comes back from that slowly
    assert slow != told
    window.write_text(slow)
    box.plan({"stairs_flat": bash("echo 'episode 7 of 100'; sleep 2; echo 'episode 8 of 100'; sleep 60")})
    box.start()
    begin = box.begun("stairs_flat")

    def seen() -> bool:
        shown = box.tmux("capture-pane", "-p", "-t", f"={begin.address}:").stdout
        return "episode 7 of 100" in shown and "episode 8 of 100" in shown

    until(seen, "the window shows the log")


def test_a_run_directory_that_was_moved_and_has_spaces_still_works(box: Box, tmp_path: Path) -> None:
    box.plan({"stairs_flat": bash('echo "$COMBORUN_OUTPUT_DIR"')})
    moved = tmp_path / "a folder; with 'odd' $names"
    shutil.move(box.directory, moved)
    box.directory = moved
    box.start()
    assert box.await_done()["succeeded"] == "1"
    assert box.log("stairs_flat") == f"{moved}/sessions/stairs_flat/attempt-1/out\n"
