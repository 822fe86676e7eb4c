"""The table at the end of a smoke test."""

from __future__ import annotations

import io

from monitor_stage import Seen, a_plan, a_session, a_view, an_answer
from rich.console import Console

from comborun.cli.smoking import table
from monitor.answer.snapshot import parse_snapshot
from monitor.classify import classify
from monitor.history import History, fold


def drawn(*seen: Seen) -> str:
    """Of a smoke test of three episodes, with one blank where there are several."""
    history = fold(History(), parse_snapshot(an_answer(*seen), 400))
    file = io.StringIO()
    Console(file=file, width=120).print(
        table(classify(a_view(a_plan([a_session("act", "grass", 3)])), history).sessions)
    )
    return " ".join(file.getvalue().split())


def test_a_program_that_writes_too_much_is_told_so_and_has_no_more_than_all_of_it() -> None:
    told = drawn(Seen("grass_act").ended(records=4, successes=1))
    assert "3 of 3 succeeded (1 line more than planned)" in told


def test_how_it_ended_goes_by_all_its_attempts() -> None:
    told = drawn(
        Seen("grass_act").ended("exited", "partial", code=1, records=2),
        Seen("grass_act", 2, first=2).ended("exited", "none", code=1),
    )
    assert "2 of 3 partial (exit code 1)" in told
