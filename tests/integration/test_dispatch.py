"""The dispatcher with real tmux and screen: the queue and its limits."""

from __future__ import annotations

import os
import re
import shutil
import signal
import time
from itertools import pairwise

from box import Box, Script, alive, bash, kill, until
from traces import HOLD, NAMES, RECORD, STARTED, concurrency, spans, starts

from comborun.rules.vocabulary import Cause, Outcome


def test_a_run_starts_all_its_sessions_in_order_and_says_how_they_ended(usual_box: Box) -> None:
    usual_box.run({name: bash(STARTED + "true") for name in NAMES}, parallel=2)
    assert {key: value for key, value in usual_box.done.items() if key not in {"at", "seconds"}} == {
        "succeeded": "8",
        "partial": "0",
        "failed": "0",
        "cancelled": "0",
        "lost": "0",
        "not_needed": "0",
        "after": "",
        "planned": "8",
        "records": "0",
    }
    assert [line.split()[1] for line in usual_box.told("^granted")] == NAMES
    assert all(starts(usual_box, name) == ["1"] for name in NAMES)
    assert (usual_box.directory / "dispatch/out").read_text() == ""


def test_windows_have_exact_names_and_go_when_the_session_ends(any_box: Box) -> None:
    any_box.plan({"env_policy1": bash("sleep 60"), "env_policy10": bash("sleep 60")})
    any_box.start()
    suffix = any_box.id[-4:]
    addresses = {name: any_box.begun(name).address for name in any_box.names}
    until(lambda: len(any_box.windows()) == 2, "both have a window")
    assert sorted(any_box.windows()) == [f"env_policy10_{suffix}", f"env_policy1_{suffix}"]
    assert re.fullmatch(rf"([0-9]+\.)?env_policy1_{suffix}", addresses["env_policy1"])
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
    assert len(box.told("^granted")) == len(OUTCOMES)


def test_no_more_run_at_once_than_there_are_slots(box: Box) -> None:
    box.run({name: bash("sleep 0.3") for name in NAMES}, parallel=3)
    assert concurrency(box) == 3


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
    assert len(box.told("^granted")) == 5
    assert box.start("--parallel", "2").returncode == 0
    box.await_done()


def test_a_free_slot_is_taken_at_once_and_not_at_the_next_sweep(usual_box: Box) -> None:
    usual_box.run({name: bash("sleep 0.1") for name in NAMES}, parallel=1)
    times = spans(usual_box)
    gaps = sorted(later[0] - earlier[1] for earlier, later in pairwise(times))
    assert gaps[len(gaps) // 2] < 0.2, f"a sweep is every 2 s: {gaps}"


def test_no_idle_server_stays_when_all_is_done_or_nothing_is_left_to_do(box: Box) -> None:
    box.run({name: bash("true") for name in NAMES[:3]}, parallel=2)
    until(lambda: box.servers() == [], "the server ends with its last window")
    assert "nothing is left to do" in box.start().stdout
    assert box.servers() == []


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


def test_a_session_whose_window_can_not_be_made_is_a_failed_launch(box: Box) -> None:
    box.stand_in("tmux", "exit 1")
    box.environment["COMBORUN_LAUNCH_S"] = "20"
    box.run({"env_one": bash("true")})
    assert box.ended("env_one").cause is Cause.LAUNCH_FAILED
    assert "refused (code 1" in box.ended("env_one").note


def test_a_session_that_never_begins_costs_three_tries(box: Box) -> None:
    hangs = box.stand_in("tmux", "exec sleep 60")
    box.environment["COMBORUN_LAUNCH_S"] = "1"
    box.run({"env_one": bash("true")})
    assert len(box.told("^not_begun")) == 3
    assert box.ended("env_one").note == "it did not begin within 1 s"
    hangs.unlink()  # what clears the box away asks tmux, too


def test_a_frozen_tmux_server_freezes_nobody_and_nothing_runs_twice(box: Box) -> None:
    box.environment["COMBORUN_LAUNCH_S"] = "20"
    box.plan({name: bash(STARTED + "sleep 0.5") for name in NAMES[:3]}, parallel=1)
    box.start()
    box.begun(NAMES[0])
    (server,) = box.servers()
    kill(server, signal.SIGSTOP)
    box.ended(NAMES[0])
    until(lambda: len(box.told("^granted")) == 2, "the next one is launched")
    assert box.program("probe").returncode == 0
    kill(server, signal.SIGCONT)
    box.await_done()
    assert all(starts(box, name) == ["1"] for name in NAMES[:3])


def test_a_dispatcher_whose_run_was_removed_leaves(box: Box) -> None:
    box.plan({"env_one": bash("sleep 600"), "env_two": bash("sleep 600")}, parallel=1)
    box.start()
    command = box.begun("env_one").pid
    dispatcher = int(box.fields("dispatch/dispatcher")["pid"])
    removed = lambda: shutil.rmtree(box.directory, ignore_errors=True) or not box.directory.exists()  # noqa: E731
    until(removed, "it is removed, whatever is written there meanwhile")
    (box.attempt("env_one") / "out").mkdir(parents=True)  # the session goes on and writes
    until(lambda: not alive(dispatcher), "it holds no lease for what is gone")
    kill(command, signal.SIGKILL)  # no `stop` finds it any more


def test_a_run_that_can_not_be_read_for_a_while_goes_on_later(box: Box) -> None:
    box.plan({name: bash(STARTED + HOLD) for name in NAMES[:2]}, parallel=1)
    box.start()
    box.begun(NAMES[0])
    os.link(box.directory / "id", box.directory / "kept")
    (box.directory / "loop").symlink_to("id")
    (box.directory / "loop").replace(box.directory / "id")  # a link to itself can't be read, by root neither
    time.sleep(3)  # the dispatcher looks every two seconds
    assert box.dispatcher_lives
    (box.directory / "kept").replace(box.directory / "id")
    box.write("go", "")
    box.await_done()
    assert all(starts(box, name) == ["1"] for name in NAMES[:2])


def test_a_run_whose_disk_is_full_is_stopped_at_once_and_goes_on_later(small_disk_box: Box) -> None:
    box = small_disk_box
    box.plan({name: bash(STARTED) for name in NAMES[:2]}, parallel=1)
    box.attempt(NAMES[0]).mkdir()  # it was about to begin when its dispatcher was killed
    (box.attempt(NAMES[0]) / "grant").write_text('{"gpus": ""}')
    filler = box.fill_disk()
    stopped = box.stop()
    assert stopped.returncode == 0, stopped.stdout + stopped.stderr
    assert f"{NAMES[0]}: cancelled before it began; nothing can be written" in stopped.stdout
    filler.unlink()
    box.start()
    box.await_done(40)
    assert box.done["succeeded"] == "2"


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
