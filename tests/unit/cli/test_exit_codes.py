"""The exit code of a command that watched a run, and the table of a smoke test."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from dataclasses import replace

from monitor_stage import Seen, a_hold, a_plan, a_session, a_view, an_answer

from comborun.cli.launch import show_tried
from comborun.cli.status import exit_code
from comborun.monitor.classify import classify
from comborun.monitor.observe import History, fold
from comborun.monitor.snapshot import parse_snapshot

SMOKE = replace(a_session("act", "grass", 1), name="grass_act_smoke", flag="smoke")
VIEW = a_view(a_plan([SMOKE, a_session("act", "grass")]))
SUCCEEDED = Seen("grass_act").ended(records=100, successes=1)
FAILED = Seen("grass_act").ended("exited", "none", code=1)
UNSMOKED = Seen("grass_act_smoke").ended("exited", "none", code=1)


def code(*seen: Seen, **fields: object) -> int:
    answer = an_answer(*seen, **fields)  # type: ignore[arg-type]
    return exit_code(classify(VIEW, fold(History(), parse_snapshot(answer))))


def test_a_run_that_goes_on_is_none_that_failed() -> None:
    assert code(FAILED) == 0


def test_all_that_was_planned_must_have_succeeded() -> None:
    assert code(SUCCEEDED, done={"at": 1}) == 0
    assert code(FAILED, done={"at": 1}) == 1


def test_a_smoke_test_is_not_among_what_was_planned() -> None:
    assert code(UNSMOKED, SUCCEEDED, done={"at": 1}) == 0


def test_a_run_that_was_halted_has_not_succeeded() -> None:
    assert code(UNSMOKED, host=(a_hold("halted", "no record"),), dispatcher=None) == 1


def test_a_run_whose_dispatcher_is_gone_does_not_go_on() -> None:
    assert code(Seen("grass_act"), dispatcher=None) == 1
    assert code(Seen("grass_act"), dispatcher=None, stopped=True) == 0, "it is being stopped, as somebody asked"
    assert code(Seen("grass_act"), host=(a_hold("paused", ""),), dispatcher=None) == 0
    assert code(SUCCEEDED, done={"at": 1}, dispatcher=None) == 0


def drawn(*seen: Seen) -> str:
    """The table of a smoke test of three episodes. Several blanks become one."""
    history = fold(History(), parse_snapshot(an_answer(*seen)))
    with contextlib.redirect_stdout(io.StringIO()) as told:
        show_tried(classify(a_view(a_plan([a_session("act", "grass", 3)])), history).sessions)
    return " ".join(told.getvalue().split())


def test_records_that_do_not_count_are_told_and_pass_nothing() -> None:
    why = "all 3 rows say policy 'rough', this session is 'act'"
    told = drawn(Seen("grass_act").ended("exited", "none", code=0, verdicts=0, why=why))
    assert told.startswith("policy environment verdicts ended")
    assert "✗ act grass 0 of 3" in told
    assert "say policy 'rough'" in told
    none = drawn(Seen("grass_act").ended("exited", "partial", code=0, records=3, verdicts=0, why="no field 'success'"))
    assert "✗ act grass 0 of 3" in none


def test_how_it_ended_goes_by_all_its_attempts() -> None:
    told = drawn(
        Seen("grass_act").ended("exited", "partial", code=1, records=2),
        Seen("grass_act", 2, first=2).ended("exited", "none", code=1),
    )
    assert "2 of 3 partial (exit code 1)" in told


def test_commands_work_where_home_is_not_set() -> None:
    """As in some services: the password file knows it."""
    without = {name: value for name, value in os.environ.items() if name != "HOME"}
    done = subprocess.run(
        [sys.executable, "-m", "comborun", "runs"], env=without, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
