"""The table at the end of a smoke test."""

from __future__ import annotations

import contextlib
import io

from monitor_stage import Seen, a_plan, a_session, a_view, an_answer

from comborun.cli.launch import show_tried
from comborun.monitor.classify import classify
from comborun.monitor.observe import History, fold
from comborun.monitor.snapshot import parse_snapshot


def drawn(*seen: Seen) -> str:
    """Of a smoke test of three episodes, with one blank where there are several."""
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
