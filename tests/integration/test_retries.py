"""Which ends call for another attempt and when it starts; when starts cease: the breaker, fail-fast."""

from __future__ import annotations

import signal
import time

import pytest
from box import Box, bash, kill, until
from happened import events
from recorded import record

from comborun.rules.facts import Fact
from comborun.rules.holds import HoldReason
from comborun.rules.room.waits import Wait
from comborun.rules.vocabulary import Cause, Outcome

CRASH = "kill -SEGV $$"
FIRST = "[[ $COMBORUN_ATTEMPT == 1 ]] || exit 0; "
"""only the first attempt fails"""
RECORD = """printf '{"episode": %d, "success": true}\\n' EPISODE >>"$COMBORUN_OUTPUT_DIR/records.jsonl"; """
RECORDS = RECORD.replace("EPISODE", "0 1")
LIFTS = ("lift_a", "lift_b")
HOLD = 'until [[ -e "$COMBORUN_RUN_DIR/go" ]]; do sleep 0.1; done; '


SLOWLY = "sleep 0.3; "
"""a slot is free, and taken, before the end of the session that had it is on record"""


def classes(box: Box, name: str) -> list[str]:
    """The failure class of each attempt that has ended, oldest first."""
    ends = sorted((box.directory / "sessions" / name).glob("attempt-*/end"))
    return [box.fields(str(end.relative_to(box.directory))).get("class", "") for end in ends]


def launches(box: Box) -> list[str]:
    return [" ".join(line.split()[1:3]) for line in box.told("^granted")]


def test_each_class_of_failure_has_a_budget_of_its_own(box: Box) -> None:
    commands = {"crash": CRASH, "kill": "kill -KILL $$", "error": "exit 3", "success": "true"}
    policy = {"breaker": 0, "retry_crashed": 9, "retry_killed": 2, "retry_error": 1, "retry_no_result": 5}
    box.run({f"env_{name}": bash(command) for name, command in commands.items()}, attempts=4, policy=policy)
    told = {name: classes(box, f"env_{name}") for name in commands}
    assert told == {"crash": ["crashed"] * 4, "kill": ["killed"] * 3, "error": ["error"] * 2, "success": [""]}


def test_a_dispatcher_that_was_killed_counts_on_where_it_was(box: Box) -> None:
    box.plan({"env_one": bash(CRASH)}, attempts=9, policy={"retry_crashed": 2, "wait_crashed_ms": 800, "breaker": 0})
    box.start()
    for number in (1, 2):
        end = box.ended("env_one", number)
        box.kill_dispatcher()
        box.start()
        assert (box.begun("env_one", number + 1).started - end.ended) >= 0.8 * number
    box.await_done()
    assert classes(box, "env_one") == ["crashed"] * 3


def test_a_clock_that_was_set_back_makes_no_session_wait_longer_than_its_wait(box: Box) -> None:
    box.plan({"env_one": bash(FIRST + CRASH)}, policy={"retry_crashed": 1, "wait_crashed_ms": 1000})
    at = "sessions/env_one/attempt-1"
    box.write(f"{at}/claim", "")
    box.write(
        f"{at}/end",
        record(attempt=1, ended=time.time() + 3600, cause="signal", class_="crashed", completeness="none"),
    )
    box.start()
    assert box.ended("env_one", 2).clean


def test_a_session_that_waits_for_a_retry_can_be_stopped(box: Box) -> None:
    box.plan({"env_one": bash(CRASH)}, policy={"retry_crashed": 1, "wait_crashed_ms": 600000})
    box.start()
    until(lambda: box.told("^retry env_one 1 class=crashed"), "it waits")
    stopped = box.stop("env_one")
    assert stopped.stdout == "env_one: cancelled while it waited for another attempt\n"
    box.await_done()
    assert box.ended("env_one", 2).cause is Cause.STOPPED
    assert box.done["cancelled"] == "1"


def test_an_attempt_after_the_first_makes_what_is_missing_at_the_end_and_is_judged_by_that(box: Box) -> None:
    show = 'echo "$COMBORUN_FIRST_EPISODE $COMBORUN_LAST_EPISODE $COMBORUN_EPISODES"; '
    more = (
        "for ((i = COMBORUN_FIRST_EPISODE; i <= COMBORUN_LAST_EPISODE; i++)); do "
        + RECORD.replace("EPISODE", "$i")
        + "done; "
    )
    two = RECORD.replace("EPISODE", "10") + RECORD.replace("EPISODE", "11")
    script = bash(
        show + f"[[ $COMBORUN_ATTEMPT == 1 ]] && {{ {two} kill -KILL $$; }}; {more}",
        first=10,
        count=5,
        results=("*.jsonl",),
        more={"ranged": True},
    )
    box.run({"env_one": script}, policy={"retry_killed": 1})
    assert (box.directory / "sessions/env_one/attempt-2/grant").read_text() == '{"gpus": "", "first": 12, "count": 3}\n'
    assert box.log("env_one", 2) == "12 14 3\n"
    begin, end = box.begun("env_one", 2), box.ended("env_one", 2)
    assert (begin.first, begin.count) == (12, 3)
    assert (end.outcome, end.completeness, end.records) == (Outcome.SUCCEEDED, "complete", 3)
    claim = box.fields("sessions/env_one/attempt-2/claim")
    assert (claim["first"], claim["count"], claim["judging"]["ranged"]) == ("12", "3", True)


# The breaker and fail-fast


def test_the_same_failure_in_a_row_halts_the_run(box: Box) -> None:
    box.plan({f"env_p{i}": bash(SLOWLY + CRASH) for i in range(6)}, parallel=1)
    box.start()
    until(lambda: not box.dispatcher_lives, "the dispatcher leaves")
    assert box.fields("dispatch/hold")["kind"] == "halted"
    assert box.hold_reason
    assert (box.hold_reason.code, box.hold_reason.text("failure")) == (HoldReason.FAILURES_IN_A_ROW, "crashed")
    assert len(launches(box)) == 3
    assert box.done == {}


def test_a_halt_that_can_not_be_written_halts_all_the_same(small_disk_box: Box) -> None:
    box = small_disk_box
    filling = """[[ $COMBORUN_OUTPUT_DIR != */env_p0/* ]] || dd if=/dev/zero of="$COMBORUN_RUN_DIR/filler" bs=4096; """
    box.plan({f"env_p{i}": bash(filling + "sleep 0.3; exit 1") for i in range(4)}, parallel=1, policy={"breaker": 1})
    box.start()
    assert box.ended("env_p0").cause is Cause.DISK_FULL
    assert box.fields("dispatch/hold") == {}
    (box.directory / "filler").unlink()
    until(lambda: not box.dispatcher_lives, "the dispatcher leaves when its reason is on disk", 40)
    assert box.hold_reason
    assert (box.hold_reason.text("failure"), box.hold_reason.count("times")) == ("disk_full", 1)
    assert box.begin("env_p3") is None


def test_a_gpu_that_fails_in_a_row_is_left_alone_and_the_others_go_on(box: Box) -> None:
    bad = bash("sleep 0.3; [[ $COMBORUN_GPU == 1 ]] && kill -SEGV $$; exit 0", gpus=1)
    box.plan({f"env_p{i}": bad for i in range(10)}, gpus="0,1", per_gpu=1, parallel=2)
    box.start()
    box.await_done()
    closed = box.fields("dispatch/quarantine")
    assert (closed["gpu"], closed["class"]) == ("1", "crashed")
    found = events(box.directory, "granted", "quarantine")
    (closed,) = (event for event in found if event.kind == "quarantine")
    assert closed.fields == {"gpu": 1, "class": "crashed", "times": 3}
    later = found[found.index(closed) + 1 :]
    assert later
    assert all(event.fields["gpus"] == [0] for event in later)


def test_an_environment_that_fails_in_a_row_is_closed_while_others_make_progress(box: Box) -> None:
    """The run goes on without it, and is halted when nothing else is left."""
    seen = 'until grep -q true "$COMBORUN_RUN_DIR/sessions/lift_a/attempt-1/.counts"; do sleep 0.1; done; '
    seen = seen.replace("true", """'"records": "*2'""")
    fails = {f"push_p{i}": bash(seen + SLOWLY + CRASH, more={"environment": "push"}) for i in range(5)}
    works = {name: bash(RECORDS + HOLD, count=2, results=("*.jsonl",), more={"environment": "lift"}) for name in LIFTS}
    box.plan({LIFTS[0]: works[LIFTS[0]], **fails, LIFTS[1]: works[LIFTS[1]]}, parallel=2)
    box.start()
    until(lambda: box.begin(LIFTS[1]), "the other one starts, since the environment of the five is closed")
    assert box.begin("push_p4") is None
    assert box.fields("dispatch/hold") == {}
    assert box.waiting["push_p4"] == Fact(Wait.ENVIRONMENT_CLOSED, environment="push", failure="crashed")
    (closed,) = box.look()["closed"]
    assert (closed["environment"], closed["failure"]) == ("push", "crashed")
    (box.directory / "go").touch()
    until(lambda: not box.dispatcher_lives, "the dispatcher leaves")
    assert all(box.ended(name).outcome is Outcome.SUCCEEDED for name in LIFTS)
    assert box.hold_reason == Fact(HoldReason.ENVIRONMENTS_CLOSED, environments=["push"], failures=["crashed"])


def test_a_run_without_a_gpu_left_is_halted(box: Box) -> None:
    box.plan({f"env_p{i}": bash(SLOWLY + CRASH, gpus=1) for i in range(8)}, gpus="0", parallel=1)
    box.start()
    until(lambda: not box.dispatcher_lives, "the dispatcher leaves")
    assert box.hold_reason == Fact(HoldReason.NO_GPU_LEFT)
    assert len(launches(box)) == 3


def test_sessions_that_vanish_together_are_one_event(box: Box) -> None:
    box.plan({f"env_p{i}": bash(HOLD) for i in range(5)}, parallel=5, attempts=2)
    box.start()
    begun = [box.begun(name) for name in box.names]
    box.kill_dispatcher()
    for begin in begun:
        kill(begin.supervisor, signal.SIGKILL)
    for begin in begun:
        kill(begin.pid, signal.SIGKILL)
    box.write("go", "")
    box.start()
    box.await_done(40)
    assert box.done["succeeded"] == "5"


def test_too_many_failures_halt_the_run_and_a_resume_forgives_them(box: Box) -> None:
    failing = {f"env_p{i}": bash(SLOWLY + "exit 1") for i in range(6)}
    box.plan(failing, parallel=1, policy={"fail_fast_percent": 30})
    box.start()
    until(lambda: not box.dispatcher_lives, "the dispatcher leaves")
    assert box.hold_reason == Fact(HoldReason.TOO_MANY_FAILED, failed=2, sessions=6, limit=0, percent=30)
    assert box.start().stdout.startswith("the run is halted (2 of 6 sessions")
    assert len(launches(box)) == 2
    assert box.program("control", "resume").returncode == 0
    box.start()
    until(lambda: len(launches(box)) == 4, "two more have started")
    until(lambda: not box.dispatcher_lives, "the dispatcher leaves again")


@pytest.mark.parametrize("dispatcher", ["that lives", "that comes after it"])
def test_a_lower_limit_halts_a_run_by_what_has_failed_already(box: Box, dispatcher: str) -> None:
    box.plan(
        {**{f"env_p{i}": bash("exit 1") for i in range(2)}, **{f"env_q{i}": bash(HOLD) for i in range(3)}}, parallel=2
    )
    box.start()
    box.begun("env_q1")
    until(lambda: len(box.told("^ended")) == 2, "two have failed")
    assert box.fields("dispatch/hold") == {}
    box.write("dispatch/policy.json", record(**box.fields("dispatch/policy.json"), fail_fast=2))
    if dispatcher == "that lives":
        assert box.program("control", "slots", "2").returncode == 0
    else:
        box.kill_dispatcher()
        box.start()
    until(lambda: box.fields("dispatch/hold"), "the run is halted")
    assert box.hold_reason == Fact(HoldReason.TOO_MANY_FAILED, failed=2, sessions=5, limit=2, percent=0)
    box.write("go", "")
    until(lambda: not box.dispatcher_lives, "the dispatcher leaves when nothing runs")
    assert box.begin("env_q2") is None
