"""dispatch.sh with real tmux and screen: the queue, its limits, and what survives which kill."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import time
from itertools import pairwise
from pathlib import Path

import pytest
from box import Box, Script, alive, bash, frozen, kill, until

from comborun.state import Cause, Completeness, Outcome

NAMES = [f"env_p{i}" for i in range(8)]
STARTED = 'echo "$COMBORUN_ATTEMPT" >>"$COMBORUN_RUN_DIR/starts-$(basename "${COMBORUN_OUTPUT_DIR%/attempt-*}")"; '
"""appends a line to a file of the session, whatever the attempt"""

RECORD = """printf '{"episode": %d, "success": true}\\n' 0 >>"$COMBORUN_OUTPUT_DIR/records.jsonl"; """


HOLD = 'until [[ -e "$COMBORUN_RUN_DIR/go" ]]; do sleep 0.05; done'
"""goes on when the test says so"""


def starts(box: Box, name: str) -> list[str]:
    """The attempts in which the command of a session really began."""
    file = box.directory / f"starts-{name}"
    return file.read_text().split() if file.exists() else []


def spans(box: Box) -> list[tuple[float, float]]:
    """When each session of the queue began and ended, by its records."""
    return [(box.ended(name).started or 0.0, box.ended(name).ended) for name in box.names]


def concurrency(box: Box) -> int:
    """The greatest number of sessions that ran at the same moment."""
    times = spans(box)
    return max(sum(start <= moment < end for start, end in times) for moment, _ in times)


def test_a_run_starts_all_its_sessions_in_order_and_says_how_they_ended(any_box: Box) -> None:
    any_box.run({name: bash(STARTED + "true") for name in NAMES}, parallel=2)
    assert {key: value for key, value in any_box.done.items() if key != "at"} == {
        "succeeded": "8",
        "partial": "0",
        "failed": "0",
        "cancelled": "0",
        "lost": "0",
        "not_needed": "0",
        "after": "",
    }
    assert [line.split()[1] for line in any_box.told("^launch")] == NAMES
    assert all(starts(any_box, name) == ["1"] for name in NAMES)
    assert (any_box.directory / "dispatch/out").read_text() == ""


def test_windows_have_exact_names_and_go_when_the_session_ends(any_box: Box) -> None:
    any_box.plan({"env_policy1": bash("sleep 60"), "env_policy10": bash("sleep 60")})
    any_box.start()
    suffix = any_box.id[-4:]
    addresses = {name: any_box.begun(name).address for name in any_box.names}
    until(lambda: len(any_box.windows()) == 2, "both have a window")
    assert sorted(any_box.windows()) == [f"env_policy10_{suffix}", f"env_policy1_{suffix}"]
    if any_box.multiplexer == "tmux":
        assert addresses["env_policy1"] == f"env_policy1_{suffix}"
    else:
        assert addresses["env_policy1"].endswith(f".env_policy1_{suffix}")
    assert any_box.stop("env_policy1").returncode == 0
    until(lambda: any_box.windows() == [f"env_policy10_{suffix}"], "the window of the stopped one is gone")
    assert any_box.end("env_policy10") is None
    assert alive(any_box.begun("env_policy10").pid)


OUTCOMES = {
    "env_good": (bash(RECORD, results=("*.jsonl",)), Outcome.SUCCEEDED),
    "env_crashed": (bash(RECORD + "kill -SEGV $$", results=("*.jsonl",)), Outcome.SUCCEEDED),
    "env_short": (bash(RECORD, count=2, results=("*.jsonl",)), Outcome.PARTIAL),
    "env_silent": (bash("true", results=("*.jsonl",)), Outcome.FAILED),
    "env_bad": (bash("exit 3"), Outcome.FAILED),
    "env_missing": (Script(("no-such-program",)), Outcome.FAILED),
}


def test_every_outcome_is_counted_and_no_failure_is_tried_again(box: Box) -> None:
    box.run({name: script for name, (script, _) in OUTCOMES.items()}, attempts=3)
    assert {name: box.ended(name).outcome for name in OUTCOMES} == {name: out for name, (_, out) in OUTCOMES.items()}
    assert (box.done["succeeded"], box.done["partial"], box.done["failed"]) == ("2", "1", "3")
    box.start()
    assert len(box.told("^launch")) == len(OUTCOMES)


def test_no_more_run_at_once_than_there_are_slots(any_box: Box) -> None:
    any_box.run({name: bash("sleep 0.3") for name in NAMES}, parallel=3)
    assert concurrency(any_box) == 3


def test_slots_may_be_edited_while_the_run_goes_on(box: Box) -> None:
    box.plan({name: bash(HOLD) for name in NAMES}, parallel=1)
    box.start()
    box.begun(NAMES[0])
    box.write("dispatch/slots", "no number")
    box.write("dispatch/slots", "5\n")
    for name in NAMES[:5]:
        box.begun(name)
    box.write("dispatch/slots", "0\n")
    box.write("go", "")
    for name in NAMES[:5]:
        box.ended(name)
    assert len(box.told("^launch")) == 5
    assert box.start("--parallel", "2").stdout.startswith(f"dispatcher {box.dispatcher} is running")
    box.await_done()


def test_a_free_slot_is_taken_at_once_and_not_at_the_next_sweep(any_box: Box) -> None:
    any_box.run({name: bash("sleep 0.1") for name in NAMES}, parallel=1)
    times = spans(any_box)
    gaps = sorted(later[0] - earlier[1] for earlier, later in pairwise(times))
    assert gaps[len(gaps) // 2] < 0.2, f"a sweep is every 2 s: {gaps}"


def test_two_starts_are_a_stagger_apart(box: Box) -> None:
    box.run({name: bash("sleep 0.1") for name in NAMES[:4]}, stagger_ms=400)
    launches = [float(line.split()[0]) for line in box.journal.splitlines() if line.split()[1] == "launch"]
    gaps = [later - earlier for earlier, later in pairwise(launches)]
    assert min(gaps) >= 0.4
    assert max(gaps) < 1.5


def test_each_gpu_gets_its_share_and_a_session_gets_different_ones(box: Box) -> None:
    sessions = {name: bash("sleep 0.4", gpus=1) for name in NAMES}
    sessions["env_two"] = bash("sleep 0.4", gpus=2)
    box.run(sessions, parallel=20, per_gpu=2, gpus="0,3")
    grants = {name: box.begun(name).gpus for name in box.names}
    assert grants["env_two"] == "0,3"
    assert {grants[name] for name in NAMES} == {"0", "3"}
    for gpu in ("0", "3"):
        times = [(box.ended(name).started or 0, box.ended(name).ended) for name in box.names if gpu in grants[name]]
        assert max(sum(a <= moment < b for a, b in times) for moment, _ in times) == 2


def test_the_least_loaded_gpus_are_taken_first(box: Box) -> None:
    box.run({name: bash("sleep 0.5", gpus=1) for name in NAMES[:4]}, gpus="0,1,2,3")
    assert sorted(box.begun(name).gpus for name in box.names) == ["0", "1", "2", "3"]


def test_those_that_wait_for_gpus_are_passed_but_not_for_ever(box: Box) -> None:
    box.plan(
        {
            "env_first": bash(HOLD, gpus=1),
            "env_both": bash("true", gpus=2),
            "env_one": bash("true", gpus=1),
            "env_more": bash("true", gpus=1),
            "env_cpu": bash("true"),
        },
        gpus="0,1",
        per_gpu=1,
    )
    box.start()
    box.ended("env_cpu")
    box.ended("env_one")
    until(lambda: "env_more" in box.waiting, "it is told that it waits")
    assert box.waiting["env_more"][1:] == ("gpu", "GPU 0 is kept for env_both, which has waited for longer")
    assert box.waiting["env_both"][1:] == ("gpu", "sessions on GPU 0: 1, and limits.per_gpu is 1")
    box.write("go", "")
    box.await_done()
    launched = [line.split()[1] for line in box.told("^launch") if "cpu" not in line]
    assert launched == ["env_first", "env_one", "env_both", "env_more"], "one ran when env_both came: one may pass it"


def test_a_request_that_can_never_be_met_is_a_failed_launch(box: Box) -> None:
    box.run({"env_many": bash("true", gpus=3), "env_one": bash("true", gpus=1)}, gpus="0,1")
    end = box.ended("env_many")
    assert (end.cause, end.outcome) == (Cause.LAUNCH_FAILED, Outcome.FAILED)
    assert end.note == "it asks for 3 GPUs, and may use 2"
    assert box.ended("env_one").clean


def test_a_session_whose_window_can_not_be_made_is_a_failed_launch(box: Box, tmp_path: Path) -> None:
    refuses = tmp_path / "bin" / "tmux"
    refuses.parent.mkdir()
    refuses.write_text("#!/bin/sh\nexit 1\n")
    refuses.chmod(0o755)
    box.environment["PATH"] = f"{refuses.parent}:{box.environment['PATH']}"
    box.run({"env_one": bash("true")})
    assert box.ended("env_one").cause is Cause.LAUNCH_FAILED
    assert box.ended("env_one").note == "tmux refused (code 1)"


def test_a_session_that_never_begins_costs_three_tries(box: Box, tmp_path: Path) -> None:
    hangs = tmp_path / "bin" / "tmux"
    hangs.parent.mkdir()
    hangs.write_text("#!/bin/sh\nexec sleep 60\n")
    hangs.chmod(0o755)
    box.environment |= {"PATH": f"{hangs.parent}:{box.environment['PATH']}", "COMBORUN_LAUNCH_S": "1"}
    box.run({"env_one": bash("true")})
    assert len(box.told("^never-began")) == 3
    assert box.ended("env_one").note == "it did not begin within 1 s"


def test_a_frozen_tmux_server_freezes_nobody_and_nothing_runs_twice(box: Box) -> None:
    box.environment["COMBORUN_LAUNCH_S"] = "20"
    box.plan({name: bash(STARTED + "sleep 0.5") for name in NAMES[:3]}, parallel=1)
    box.start()
    box.begun(NAMES[0])
    (server,) = box.servers()
    kill(server, signal.SIGSTOP)
    box.ended(NAMES[0])
    until(lambda: len(box.told("^launch")) == 2, "the next one is launched")
    assert box.library("probe.sh").returncode == 0
    kill(server, signal.SIGCONT)
    box.await_done()
    assert all(starts(box, name) == ["1"] for name in NAMES[:3])


def test_a_full_disk_holds_the_run_until_there_is_room(small_disk_box: Box) -> None:
    box = small_disk_box
    box.environment["COMBORUN_LAUNCH_S"] = "1"
    box.plan({name: bash(STARTED + HOLD) for name in NAMES[:3]}, parallel=1)
    box.start()
    box.begun(NAMES[0])
    filler = box.fill_disk()
    box.write("go", "")  # an empty file still fits
    until(lambda: not alive(box.begun(NAMES[0]).pid), "the first one is over")
    time.sleep(2)  # long enough for the next one to be refused
    assert box.dispatcher_lives
    filler.unlink()
    box.await_done(40)
    assert box.done["succeeded"] == "3"
    assert [starts(box, name) for name in NAMES[1:3]] == [["1"]] * 2


# Kills


def test_a_dispatcher_that_was_killed_is_followed_by_one_that_adopts_everything(any_box: Box) -> None:
    any_box.plan({name: bash(STARTED + HOLD) for name in NAMES}, parallel=3)
    any_box.start()
    for name in NAMES[:3]:
        any_box.begun(name)
    any_box.kill_dispatcher()
    any_box.write("go", "")
    for name in NAMES[:3]:
        any_box.ended(name)
    any_box.start()
    any_box.await_done()
    assert all(starts(any_box, name) == ["1"] for name in NAMES)
    assert any_box.done["succeeded"] == "8"


def test_running_sessions_keep_their_slots_and_gpus_through_a_change_of_dispatcher(box: Box) -> None:
    box.plan({name: bash(HOLD, gpus=1) for name in NAMES}, parallel=3, per_gpu=1, gpus="0,1")
    box.start()
    for name in NAMES[:2]:
        box.begun(name)
    box.kill_dispatcher()
    box.start()
    until(lambda: len(box.told("^adopted env_")) == 2, "both are adopted")
    time.sleep(0.3)  # time enough to start a third one wrongly
    assert len(box.told("^launch")) == 2
    box.write("go", "")
    box.await_done()


def test_dispatchers_killed_at_random_moments_lose_nothing_and_run_nothing_twice(any_box: Box) -> None:
    chance = random.Random(7)
    any_box.plan({f"env_p{i}": bash(STARTED + "sleep 0.05") for i in range(40)}, parallel=4)
    any_box.start()
    for _ in range(12):
        time.sleep(chance.uniform(0.0, 0.12))
        kill(any_box.dispatcher, signal.SIGKILL)
        any_box.start()
    any_box.await_done()
    assert [starts(any_box, name) for name in any_box.names] == [["1"]] * 40
    assert any_box.done["succeeded"] == "40"


def test_servers_killed_at_random_moments_lose_nothing_and_run_nothing_twice(any_box: Box) -> None:
    chance = random.Random(11)
    any_box.plan({f"env_p{i}": bash(STARTED + "sleep 0.2") for i in range(16)}, parallel=4)
    any_box.start()
    for _ in range(5):
        time.sleep(chance.uniform(0.05, 0.2))
        for server in any_box.servers():
            kill(server, signal.SIGKILL)
    any_box.await_done()
    assert [starts(any_box, name) for name in any_box.names] == [["1"]] * 16
    assert any_box.done["succeeded"] == "16"


def test_supervisors_killed_at_random_moments_lose_nothing(box: Box) -> None:
    chance = random.Random(13)
    eight = {f"env_p{i}": bash("sleep 0.2; " + RECORD, results=("*.jsonl",)) for i in range(8)}
    box.plan(eight, attempts=9, policy={"breaker": 0})
    box.start()
    killed = 0
    while killed < 6 and not box.done:
        time.sleep(chance.uniform(0.02, 0.1))
        for claim in sorted(box.directory.glob("sessions/*/attempt-*/claim")):
            if not (claim.parent / "end").exists() and "supervisor=" in claim.read_text():
                kill(int(box.fields(str(claim.relative_to(box.directory)))["supervisor"]), signal.SIGKILL)
                killed += 1
                break
    box.await_done(60)
    assert killed
    assert box.done["succeeded"] == "8"
    assert box.marked() == []


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
    assert (first.cause, first.outcome, first.code, first.note) == (
        Cause.LOST,
        Outcome.LOST,
        None,
        "nobody saw its end",
    )
    assert first.started == pytest.approx(begin.started)
    assert second.clean
    assert starts(box, "env_one") == ["1", "2"]


def test_a_lost_session_is_tried_as_often_as_the_grid_says_and_again_by_a_resume(box: Box) -> None:
    box.plan({"env_one": bash('kill -KILL "$PPID" $$')}, attempts=2, policy={"breaker": 0})
    box.start()
    box.await_done()
    assert box.done["lost"] == "1"
    assert len(box.told("^launch")) == 2
    box.start()
    until(lambda: len(box.told("^done")) == 2, "the resumed run is done")
    assert len(box.told("^launch")) == 4


def test_an_orphan_is_left_to_finish_and_judged_by_its_records(box: Box) -> None:
    box.plan({"env_one": bash(STARTED + "sleep 1; " + RECORD, results=("*.jsonl",))})
    box.start()
    begin = box.begun("env_one")
    kill(begin.supervisor, signal.SIGKILL)
    box.await_done()
    end = box.ended("env_one")
    assert (end.cause, end.completeness, end.outcome) == (Cause.LOST, Completeness.COMPLETE, Outcome.SUCCEEDED)
    assert starts(box, "env_one") == ["1"]


def test_after_a_restart_of_the_machine_what_ran_is_lost_and_runs_again(box: Box) -> None:
    box.plan({"env_one": bash(STARTED + "true")})
    box.write("sessions/env_one/attempt-1/grant", "gpus=\n")
    box.write("sessions/env_one/attempt-1/claim", f"supervisor={os.getpid()}\nsupervisor_start=1\nboot=another\n")
    box.write(
        "sessions/env_one/attempt-1/begin",
        f"attempt=1\nstarted=1.5\nsupervisor={os.getpid()}\nsupervisor_start=1\npid={os.getpid()}\npid_start=1\nboot=another\n",
    )
    box.start()
    box.await_done()
    assert box.ended("env_one", 1).note == "the machine was started again"
    assert box.ended("env_one", 2).clean


@pytest.mark.parametrize("record", ["", "garbage", "\0\0\0\n=\n==\n", "supervisor=x[$(touch pwned)]\nboot=b\n"])
def test_records_that_are_garbage_are_no_records(box: Box, record: str) -> None:
    box.plan({"env_one": bash("true")})
    box.write("sessions/env_one/attempt-1/grant", record)
    box.write("sessions/env_one/attempt-1/claim", record)
    box.write("sessions/env_one/attempt-1/begin", record)
    box.write("sessions/env_one/attempt-1/end", record if "=" not in record.strip("=\n\0") else "")
    box.start()
    box.await_done()
    assert box.ended("env_one", 2).clean
    assert list(box.directory.rglob("pwned")) == []


def test_a_launch_that_was_granted_and_never_made_is_made_by_the_next_dispatcher(any_box: Box) -> None:
    any_box.plan({"env_one": bash(STARTED + "true")})
    any_box.write("sessions/env_one/attempt-1/grant", "gpus=\n")
    any_box.start()
    any_box.await_done()
    assert starts(any_box, "env_one") == ["1"]


def test_what_starts_has_its_gpus_though_its_grant_could_not_be_written_at_first(box: Box) -> None:
    box.plan({"env_one": bash("true", gpus=1), "env_two": bash("true", gpus=1)}, gpus="3")
    box.write("sessions/env_one/attempt-1/grant", "")  # as a dispatcher leaves it that is killed just then
    nowhere = box.directory / "sessions/env_two/attempt-1/grant"
    nowhere.parent.mkdir(parents=True)
    nowhere.symlink_to("/nonexistent/grant")
    box.start()
    box.await_done()
    assert [box.begun(name).gpus for name in box.names] == ["3", "3"]


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
    assert box.told("never-began") == []
    assert all(starts(box, name) == ["1"] for name in NAMES[:4])


def test_there_is_one_dispatcher_however_many_are_started(box: Box) -> None:
    box.plan({name: bash(STARTED + "sleep 0.3") for name in NAMES})
    command = ["bash", str(box.directory / "lib/start.sh"), str(box.directory)]
    starters = [
        subprocess.Popen(command, env=box.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(5)
    ]
    said = [process.communicate(timeout=30) for process in starters]
    assert [process.returncode for process in starters] == [0] * 5, said
    assert sum("started" in out for out, _ in said) == 1
    box.await_done()
    assert all(starts(box, name) == ["1"] for name in NAMES)


def test_term_ends_the_dispatcher_and_no_session(box: Box) -> None:
    box.plan({"env_one": bash("sleep 60")})
    box.start()
    begin = box.begun("env_one")
    kill(box.dispatcher, signal.SIGTERM)
    until(lambda: not box.dispatcher_lives, "the dispatcher leaves")
    assert alive(begin.pid)
    assert alive(begin.supervisor)


# Windows that are opened ahead of a free slot


def waiting(box: Box, count: int) -> None:
    """Return when so many windows wait for a slot, beside those of the sessions that run."""
    until(lambda: len(waiters(box)) == count, f"{count} windows wait")


def waiters(box: Box) -> list[int]:
    """The processes of session.sh that wait for a slot."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = file.read_bytes().split(b"\0")
            waits = words[0] == b"bash" and b"ahead" in words and str(box.directory).encode() in words[1]
            pid = int(file.parent.name)
            if waits and os.getsid(pid) == pid:  # what it starts looks like it for a moment
                found.append(pid)
    return found


def test_a_window_that_waits_for_a_slot_is_no_attempt_yet(any_box: Box) -> None:
    any_box.plan({name: bash(STARTED + HOLD) for name in NAMES}, parallel=2)
    any_box.start()
    waiting(any_box, 2)
    assert len(any_box.told("^launch")) == 2
    assert not any((any_box.attempt(name) / "claim").exists() for name in NAMES[2:])
    seen = any_box.library("probe.sh").stdout
    assert [line for line in seen.splitlines() if line.startswith("session ")] == [
        "session env_p0 1",
        "session env_p1 1",
    ]
    any_box.write("go", "")
    any_box.await_done()
    assert all(starts(any_box, name) == ["1"] for name in NAMES)


def test_windows_that_wait_leave_with_their_dispatcher(any_box: Box) -> None:
    any_box.plan({name: bash(HOLD) for name in NAMES}, parallel=2)
    any_box.start()
    waiting(any_box, 2)
    any_box.kill_dispatcher()
    waiting(any_box, 0)
    any_box.start()
    waiting(any_box, 2)
    kill(any_box.dispatcher, signal.SIGTERM)
    waiting(any_box, 0)
    assert len(any_box.told("^launch")) == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_a_window_that_waits_and_is_closed_costs_its_session_nothing(box: Box, number: signal.Signals) -> None:
    box.plan({name: bash(STARTED + HOLD) for name in NAMES[:3]}, parallel=1)
    box.start()
    waiting(box, 1)
    for pid in waiters(box):
        kill(pid, number)
    box.write("go", "")
    box.await_done()
    assert all(starts(box, name) == ["1"] for name in NAMES[:3])
    assert box.done["succeeded"] == "3"


def test_a_window_that_is_slow_to_go_keeps_its_turn(box: Box) -> None:
    box.environment["COMBORUN_LAUNCH_S"] = "20"
    box.plan({name: bash(STARTED + HOLD) for name in NAMES[:3]}, parallel=1)
    box.start()
    waiting(box, 1)
    (slow,) = waiters(box)
    with frozen(slow):
        box.write("go", "")
        until(lambda: len(box.told("^launch")) == 2, "the second one is told to go")
        waiting(box, 2)
        time.sleep(0.3)  # time enough for the third one to hear what was not for it
        assert box.begin(NAMES[2]) is None
    box.await_done()
    assert all(starts(box, name) == ["1"] for name in NAMES[:3])


def test_a_queued_session_that_is_stopped_gives_up_its_window(box: Box) -> None:
    box.plan({name: bash(STARTED + HOLD) for name in NAMES[:3]}, parallel=1)
    box.start()
    waiting(box, 1)
    assert box.stop(NAMES[1]).returncode == 0
    until(lambda: f"{NAMES[1]}_{box.id[-4:]}" not in box.windows(), "its window is gone")
    box.write("go", "")
    box.await_done()
    assert [starts(box, name) for name in NAMES[:3]] == [["1"], [], ["1"]]


# start.sh


def test_a_finished_run_says_that_nothing_is_left_to_do(box: Box) -> None:
    box.run({"env_one": bash("true")})
    before = (box.directory / "dispatch/done").read_bytes()
    again = box.start()
    assert (again.returncode, again.stdout) == (0, "nothing is left to do\n")
    assert (box.directory / "dispatch/done").read_bytes() == before


BAD_STARTS = {
    "--parallel 0": "--parallel wants a number from 1",
    "--parallel": "--parallel wants a number from 1",
    "--multiplexer byobu": "--multiplexer wants tmux or screen",
    "--fast": "what is --fast?",
}


@pytest.mark.parametrize("arguments", BAD_STARTS)
def test_a_start_that_makes_no_sense_is_refused(box: Box, arguments: str) -> None:
    box.plan({"env_one": bash("true")})
    refused = box.library("start.sh", *arguments.split())
    assert refused.returncode == 64
    assert BAD_STARTS[arguments] in refused.stderr


def minimal_path(folder: Path, *more: str) -> str:
    """A PATH with bash, coreutils, grep and util-linux, and nothing else but what is named."""
    packages = ["bash", "coreutils", "grep", "util-linux"]
    listed = subprocess.run(["dpkg", "-L", *packages], capture_output=True, text=True, check=True).stdout.split()
    folder.mkdir()
    programs = [Path(path) for path in listed if Path(path).parent.name in {"bin", "sbin"} and Path(path).is_file()]
    for program in (*programs, *(Path(shutil.which(name) or "/missing") for name in more)):
        (folder / program.name).unlink(missing_ok=True)
        (folder / program.name).symlink_to(program)
    return str(folder)


needs_dpkg = pytest.mark.skipif(not shutil.which("dpkg"), reason="asks dpkg which programs a package holds")


@needs_dpkg
def test_without_tmux_and_screen_both_are_named(box: Box, tmp_path: Path) -> None:
    box.plan({"env_one": bash("true")})
    box.environment["PATH"] = minimal_path(tmp_path / "bin")
    refused = box.library("start.sh")
    assert refused.returncode == 69
    assert "neither tmux nor screen" in refused.stderr


@needs_dpkg
def test_nothing_is_needed_but_bash_coreutils_grep_util_linux_and_a_multiplexer(any_box: Box, tmp_path: Path) -> None:
    any_box.environment["PATH"] = minimal_path(tmp_path / "bin", any_box.multiplexer)
    any_box.plan({"env_one": bash(RECORD, results=("*.jsonl",)), "env_two": bash("sleep 60"), "after": bash("true")})
    assert any_box.start().returncode == 0
    any_box.ended("env_one")
    any_box.begun("env_two")
    assert any_box.library("probe.sh", "", "100").stderr == ""
    stopped = any_box.stop("env_two")
    assert stopped.returncode == 0, stopped.stderr
    assert any_box.await_done()["after"] == "succeeded"
    assert (any_box.directory / "dispatch/out").read_text() == ""


def test_the_windows_environment_is_that_of_the_start_and_not_of_an_older_server(box: Box) -> None:
    box.environment["TMUX_MARK"] = "older"
    box.tmux("-f", "/dev/null", "new-session", "-d", "-s", "mine", "sleep 60")
    box.environment["TMUX_MARK"] = "newer"
    box.run({"env_one": bash('echo "$TMUX_MARK"')})
    assert box.log("env_one") == "newer\n"
    until(lambda: box.windows() == ["mine"], "the session's window is gone and the other is not")


# Results and what comes after


def test_results_are_links_with_the_sessions_name_where_two_share_one(box: Box) -> None:
    own = bash('echo "{}" >"$COMBORUN_OUTPUT_DIR/$RANDOM-$$.jsonl"; ' + RECORD, results=("*.jsonl",))
    deep = bash(
        'mkdir "$COMBORUN_OUTPUT_DIR/a b"; echo "{}" >"$COMBORUN_OUTPUT_DIR/a b/deep.jsonl"', results=("**/*.jsonl",)
    )
    box.run({"env_one": own, "env_two": own, "env_deep": deep, "env_none": bash("true")})
    links = {file.name: file for file in (box.directory / "results").iterdir()}
    assert {"env_one_records.jsonl", "env_two_records.jsonl", "deep.jsonl"} <= set(links)
    assert len(links) == 5
    assert all(file.is_symlink() and not file.readlink().is_absolute() for file in links.values())
    assert all(file.read_text().startswith("{") for file in links.values())


def test_after_runs_once_when_all_have_ended_and_sees_their_results(any_box: Box) -> None:
    after = bash(STARTED + 'cat "$COMBORUN_RESULTS_DIR"/*.jsonl >"$COMBORUN_RESULTS_DIR/report.txt"')
    sessions = {name: bash(RECORD + "sleep 0.1", results=("*.jsonl",)) for name in NAMES[:3]}
    any_box.run({**sessions, "after": after})
    assert any_box.done["after"] == "succeeded"
    assert (any_box.directory / "results/report.txt").read_text().count("success") == 3
    any_box.start()
    assert starts(any_box, "after") == ["1"]
    assert any_box.told("^(launch|ended)")[-2].startswith("launch after 1")


def test_after_runs_again_when_it_was_lost_and_not_when_it_failed(box: Box) -> None:
    box.run({"env_one": bash("true"), "after": bash(STARTED + 'kill -KILL "$PPID" $$')}, attempts=2)
    assert box.done["after"] == "lost"
    assert starts(box, "after") == ["1", "2"]
    box.write("sessions/after/session.sh", bash(STARTED + "exit 3").text("after"))
    for _ in range(2):
        box.start()
        until(lambda: box.done.get("after") == "failed", "after has failed")
        until(lambda: not box.dispatcher_lives, "the dispatcher leaves")
    assert starts(box, "after") == ["1", "2", "3"]


def test_after_runs_again_when_a_resume_added_results(box: Box) -> None:
    wait = "if [[ $COMBORUN_ATTEMPT == 1 ]]; then sleep 60; fi; " + RECORD
    count = bash('ls "$COMBORUN_RESULTS_DIR" | wc -l')
    box.plan(
        {"env_one": bash(RECORD, results=("*.jsonl",)), "env_two": bash(wait, results=("*.jsonl",)), "after": count}
    )
    box.start()
    box.begun("env_two")
    box.stop("env_two")
    box.await_done()
    assert box.log("after", 1) == "1\n"
    box.start()
    until(lambda: len(box.told("^done")) == 2, "the resumed run is done")
    assert box.log("after", 2) == "2\n"
