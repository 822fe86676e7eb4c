"""Holds of a run: whose they are, and which reasons stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from comborun.host.holds import Holds
from comborun.rules.names import RunLayout


@pytest.fixture
def run(tmp_path: Path) -> RunLayout:
    (tmp_path / "dispatch").mkdir()
    return RunLayout(str(tmp_path))


def test_a_hold_is_told_by_its_kind_and_why_and_anything_else_holds_nothing(run: RunLayout) -> None:
    holds = Holds(run)
    assert holds.look().kind == ""
    assert holds.order("paused", "two\nlines")
    assert (holds.look().kind, holds.look().why) == ("paused", "two lines")
    Path(run.hold).write_text('{"kind": "forever", "why": "x"}\n')
    assert holds.look().kind == ""


def test_a_hold_that_can_not_be_written_says_so(run: RunLayout) -> None:
    Path(run.dispatch).rmdir()
    assert not Holds(run).order("halted", "why")


@pytest.mark.parametrize(
    ("ended", "forgiven"),
    [("1000000003.0", True), ("1000000003.1", False), ("1000000001", True), ("", False), ("x[$(id)]", False)],
)
def test_what_had_ended_when_a_person_said_resume_is_forgiven(run: RunLayout, ended: str, forgiven: bool) -> None:
    holds = Holds(run)
    assert not holds.forgiven("1000000001")
    Path(run.resumed).write_text('{"at": 1000000003.0}\n')
    holds.read_resumed()
    assert holds.forgiven(ended) is forgiven
