"""Which sessions of a process the next start runs, and which were under way when it ended."""

from __future__ import annotations

import pytest

from comborun.rules.endings.process_starts import Candidate, Start, chosen, crashes

NAMES = ("a_one", "b_one", "c_one", "d_one")
ENVIRONMENTS = dict(zip(NAMES, ("maze", "maze-2", "hall", "yard")))


def names(*candidates: Candidate) -> list[str]:
    return [one.name for one in chosen(candidates)]


def test_what_crashed_goes_last_then_alone() -> None:
    fresh, once, twice = Candidate("fresh", 1), Candidate("once", 0, 1), Candidate("twice", 2, 2)
    assert names(once, fresh, twice) == ["fresh", "once"]
    assert names(twice, once) == ["once"]
    assert names(Candidate("later", 0, 1, wait_s=60.0), Candidate("now", 1, 2)) == ["now"]
    assert names() == []


def test_only_crashes_count_not_stops_and_not_what_succeeded() -> None:
    crashed = {"cause": "signal", "completeness": "partial"}
    stopped = {"cause": "stopped", "completeness": "none"}
    assert crashes([crashed, stopped, crashed, {"cause": "signal", "completeness": "complete"}, {}]) == 2


@pytest.mark.parametrize(
    ("recorded", "lines", "found"),
    [
        (["b_one"], [], ["b_one"]),  # its rows tell
        ([], ["Running job maze", "Running job hall"], ["c_one"]),
        ([], ["Running job hall", "jobs: maze, hall, yard"], ["c_one"]),  # a line that names several says nothing
        ([], ["Running job maze-2"], ["b_one"]),
        ([], ["nothing"], ["a_one"]),
    ],
)
def test_records_tell_what_was_under_way_else_the_log_else_the_order(
    recorded: list[str], lines: list[str], found: list[str]
) -> None:
    assert Start(NAMES, [], recorded, 1).under_way(lines, ENVIRONMENTS) == found
    assert "a_one" not in Start(NAMES, ["a_one"], [], 1).under_way([], ENVIRONMENTS)


def test_each_rank_has_one_under_way_and_the_one_that_failed_is_blamed() -> None:
    start = Start(NAMES, ["a_one"], ["b_one"], 2)
    lines = ["[default0]:Running job hall", "Root Cause (first observed failure):", "  rank      : 0 (local_rank: 0)"]
    under_way = start.under_way(lines, ENVIRONMENTS)
    assert under_way == ["b_one", "c_one"]
    assert start.blamed(under_way, lines) == ["c_one"]
    assert start.blamed(under_way, []) == under_way
    assert start.first() == ["a_one", "b_one"]
