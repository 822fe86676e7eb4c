"""`control RUN decided`: what has not begun is not needed any more; what has begun goes on; and saying so twice."""

from __future__ import annotations

import subprocess

from box import Box, alive, bash, until
from test_retries import HOLD, launches

DECISION = '{"environment": "x", "better": "a]b $(c)"}\n'


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


def test_a_name_that_is_no_session_is_refused_before_anything_is_written(box: Box) -> None:
    box.plan({"env_one": bash("true")})
    assert tell(box, "../env_one", told=DECISION).returncode == 64
    assert not (box.directory / "dispatch/decided").exists()
