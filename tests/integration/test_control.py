"""The verb `control`: hold a run and let it go on, change its slots, ask for another attempt. It ends nothing."""

from __future__ import annotations

import getpass
import subprocess

import pytest
from box import Box, alive, bash, until
from recorded import queue_rows
from test_retries import HOLD, launches
from traces import RECORD

from comborun.host.record.events import Events
from comborun.rules.events import Kind
from comborun.rules.names import RunLayout

FAILS_ONCE = "[[ $COMBORUN_ATTEMPT != 1 ]]"


def test_a_drained_run_is_left_by_its_dispatcher_when_nothing_runs_any_more(box: Box) -> None:
    box.plan({"env_one": bash(HOLD), "env_two": bash("true")}, parallel=1)
    box.start()
    box.begun("env_one")
    box.program("control", "drain")
    assert box.dispatcher_lives
    box.write("go", "")
    until(lambda: not box.dispatcher_lives, "the dispatcher leaves")
    assert box.ended("env_one").clean
    assert box.done == {}
    said = box.start().stdout
    assert said.startswith("the run is draining (by hand)")
    typed = ["bash", "-c", said.partition("To resume: ")[2]]
    subprocess.run(typed, env=box.environment, capture_output=True, timeout=60, check=False)
    assert not (box.directory / "dispatch/hold").exists()
    box.start()
    box.await_done()
    assert box.ended("env_two").clean


def test_a_retry_that_a_person_asked_for_has_fresh_budgets(box: Box) -> None:
    policy = {"retry_killed": 1, "breaker": 0}
    box.run({"env_one": bash("kill -KILL $$")}, attempts=2, policy=policy)
    assert launches(box) == ["env_one 1", "env_one 2"]
    box.program("control", "retry", "env_one")
    box.start()
    until(lambda: len(box.told("^done")) == 2, "the resumed run is done")
    assert launches(box)[2:] == ["env_one 3", "env_one 4"]


def test_each_order_is_an_event_with_what_was_ordered_by_whom_and_from_where(box: Box) -> None:
    box.plan({"env_one": bash("exit 1"), "env_two": bash("true")})
    box.environment["SSH_CONNECTION"] = "192.0.2.7 50022 192.0.2.1 22"
    for order in (["drain", "for", "lunch"], ["slots", "3"], ["slots", "many"], ["resume"]):
        box.program("control", *order)
    del box.environment["SSH_CONNECTION"]
    box.start()
    box.await_done()
    box.program("control", "retry", "--failed")
    box.stop("env_two")
    found = [event.fields for event in Events(RunLayout(str(box.directory))).read() if event.kind == Kind.ORDERED]
    assert {fields.pop("user") for fields in found} == {getpass.getuser()}
    lunch, *others = found
    assert lunch == {"order": "drain", "why": "for lunch", "from": "192.0.2.7"}
    assert [(one["order"], one["from"]) for one in others] == [
        ("set", "192.0.2.7"), ("resume", "192.0.2.7"), ("start", "local"), ("retry", "local"), ("stop", "local")
    ]  # fmt: skip
    assert (others[0]["values"], others[3]["names"], others[4]["names"]) == ("parallel=3", ["env_one"], ["env_two"])


def test_one_that_runs_is_not_started_twice(box: Box) -> None:
    box.plan({"env_one": bash(HOLD), "env_two": bash("true")}, parallel=1)
    box.start()
    box.begun("env_one")
    said = box.program("control", "retry", "env_one", "env_two")
    assert (said.returncode, said.stdout) == (
        1,
        "env_one: still runs: stop it first\nenv_two: waits for its turn already\n",
    )


def test_a_retry_is_heard_while_after_runs(box: Box) -> None:
    box.plan({"env_one": bash(FAILS_ONCE), "after": bash(HOLD)})
    box.start()
    box.begun("after")
    box.program("control", "retry", "env_one")
    box.write("go", "")
    box.await_done()
    assert box.ended("env_one", 2).clean
    assert box.ended("after", 2).clean


DECISION = '{"environment": "x", "better": "a]b $(c)"}\n'
WRONG = {
    "": "usage: RUN pause|",
    "slots": "slots needs a number from 1",
    "slots 0": "slots needs a number from 1",
    "retry": "retry needs names",
    "retry nobody": "there is no session nobody",
    "retry ../x": "there is no session ../x",
    "retry env_one --failed": "there is no session --failed",
    "decided ../env_one": "there is no session ../env_one",
    "explode": "not understood: explode;",
}


@pytest.mark.parametrize("arguments", WRONG)
def test_what_makes_no_sense_is_refused(box: Box, arguments: str) -> None:
    box.plan({"env_one": bash("true")})
    refused = box.program("control", *arguments.split(), told=DECISION)
    assert refused.returncode == 64
    assert WRONG[arguments] in refused.stderr
    assert not (box.directory / "sessions/env_one/retry_request").exists()
    assert not (box.directory / "dispatch/decided").exists()


# A grid that was amended


def reread(box: Box, rows: str, lost: bool = False) -> None:
    """Put another queue in the place of the old one and say so, as an amendment does, unless the message is lost."""
    box.write("dispatch/queue.new", rows).rename(box.directory / "dispatch/queue.jsonl")
    if lost:
        return
    with (box.directory / "dispatch/fifo").open("w") as fifo:
        fifo.write("reread run 0\n")


@pytest.mark.parametrize("lost", [False, True])
def test_an_amended_queue_is_read_again_and_what_runs_goes_on(box: Box, lost: bool) -> None:
    scripts = {"env_one": bash(HOLD), "env_gone": bash("true"), "env_new": bash("true")}
    box.plan(scripts, parallel=1)
    box.write("dispatch/queue.jsonl", queue_rows(env_one="", env_gone=""))
    box.start()
    begin = box.begun("env_one")
    reread(box, queue_rows(env_one="", env_gone="dropped", env_new=""), lost)
    until(lambda: box.told("^reread left=2"), "it has read it")
    assert alive(begin.pid)
    box.write("go", "")
    done = box.await_done()
    assert (done["succeeded"], box.begin("env_gone")) == ("2", None)
    assert box.ended("env_new").clean


def test_a_policy_that_is_torn_for_a_moment_changes_nothing(box: Box) -> None:
    box.plan({"env_one": bash(HOLD), "env_two": bash(HOLD)}, parallel=2)
    box.start()
    box.begun("env_two")
    box.write("dispatch/policy.json", "")
    fifo = box.directory / "dispatch/fifo"
    fifo.unlink()
    until(fifo.is_fifo, "the dispatcher looks at its files")
    box.write("go", "")
    box.await_done()
    assert (box.directory / "dispatch/slots").read_text() == "2\n"


@pytest.mark.parametrize("lost", [False, True])
def test_an_amendment_is_heard_while_after_runs(box: Box, lost: bool) -> None:
    box.plan({"env_one": bash("true"), "env_new": bash("true"), "after": bash(HOLD)})
    box.write("dispatch/queue.jsonl", queue_rows(env_one=""))
    box.start()
    box.begun("after")
    reread(box, queue_rows(env_one="", env_new=""), lost)
    box.write("go", "")
    assert box.await_done()["succeeded"] == "2"


def test_a_session_that_was_dropped_while_it_ran_is_not_tried_again(box: Box) -> None:
    box.plan({"env_one": bash(HOLD + "kill -KILL $$")}, policy={"retry_killed": 3})
    box.start()
    box.begun("env_one")
    reread(box, queue_rows(env_one="dropped"))
    until(lambda: box.told("^reread"), "it has read it")
    box.write("go", "")
    done = box.await_done()
    assert launches(box) == ["env_one 1"]
    assert (done["failed"], done["succeeded"]) == ("0", "0")


# A smoke test goes first

GLOBS = ("*.jsonl",)
ROWS = queue_rows(env_one="", env_two="", env_one_smoke="smoke", env_two_smoke="smoke")


def test_others_wait_until_each_session_of_the_smoke_test_has_left_a_record(box: Box) -> None:
    good = bash(RECORD, results=GLOBS, count=2)
    slow = bash(HOLD + RECORD, results=GLOBS, count=2)
    box.plan({"env_one": good, "env_two": good, "env_one_smoke": good, "env_two_smoke": slow})
    box.write("dispatch/queue.jsonl", ROWS)
    box.start()
    box.ended("env_one_smoke")
    until(lambda: [one.code for one in box.waiting.values()] == ["smoke_test_first"] * 2, "the others wait")
    box.kill_dispatcher()
    box.start()
    box.write("go", "")
    box.await_done()
    assert [line.split()[0] for line in launches(box)][:2] == ["env_one_smoke", "env_two_smoke"]


# A decision: what has not begun is not needed any more, and what has begun goes on


def tell(box: Box, *names: str, told: str) -> subprocess.CompletedProcess[str]:
    return box.program("control", "decided", *names, told=told)


def test_what_waits_is_not_needed_and_what_runs_goes_on_to_its_end(box: Box) -> None:
    box.plan({"env_one": bash(HOLD), "env_two": bash("true"), "env_three": bash("true")}, parallel=1)
    box.start()
    begin = box.begun("env_one")
    first = tell(box, "env_one", "env_two", told=DECISION)
    assert (first.returncode, first.stdout) == (0, f"{DECISION}env_two: not needed any more\n")
    again = tell(box, "env_one", "env_two", told=DECISION)
    assert (again.returncode, again.stdout) == (0, "")
    assert (box.directory / "dispatch/decided").read_text() == DECISION
    assert alive(begin.pid)
    box.write("go", "")
    box.await_done()
    assert launches(box) == ["env_one 1", "env_three 1"]
    done = {key: box.done[key] for key in ("succeeded", "cancelled", "failed", "lost", "not_needed")}
    assert done == {"succeeded": "2", "cancelled": "0", "failed": "0", "lost": "0", "not_needed": "1"}
    assert box.start().returncode == 0  # a run that is done starts nothing of what was not needed
    until(lambda: not box.dispatcher_lives, "nothing is left to do")
    assert launches(box) == ["env_one 1", "env_three 1"]


def test_a_decision_works_without_a_dispatcher_and_outlives_it(box: Box) -> None:
    box.plan({"env_one": bash(HOLD), "env_two": bash("true")}, parallel=1)
    box.start()
    box.begun("env_one")
    box.kill_dispatcher()
    assert "env_two: not needed" in tell(box, "env_two", told="").stdout
    box.start()
    box.write("go", "")
    box.await_done()
    assert launches(box) == ["env_one 1"]
    assert (box.done["succeeded"], box.done["not_needed"]) == ("1", "1")
