"""When which attempt ran, and what the figure of it says about the makespan."""

from __future__ import annotations

from pathlib import Path

import pytest
from report_runs import START, RunDirectory, row, troubled_run

from comborun.reporter.collect import collect_run
from comborun.reporter.counting.schedule import AttemptSpan, Schedule, schedule
from comborun.reporter.figures.sessions import sessions
from comborun.rules.words import Outcome


def stay(name: str, start: float, end: float | None, attempt: int = 1) -> AttemptSpan:
    return AttemptSpan(name, "flat", name, attempt, start, end, Outcome.SUCCEEDED if end else None, "")


def test_attempts_share_a_row_only_one_after_another() -> None:
    stays = (stay("a", 0, 10), stay("b", 0, 4), stay("c", 4, 6), stay("d", 5, 9), stay("e", 7, None), stay("f", 20, 21))
    lanes = Schedule(stays, 8).lanes()
    assert [[one.session for one in lane] for lane in lanes] == [["a", "f"], ["b", "c", "e"], ["d"]]


@pytest.mark.parametrize(
    ("slots", "bound"),
    [(1, 18.0), (2, 10.0), (3, 10.0), (None, None)],
    ids=["the work of all", "the longest", "still the longest", "no plan"],
)
def test_the_bound_is_the_longest_attempt_or_the_work_over_the_slots(slots: int | None, bound: float | None) -> None:
    assert Schedule((stay("a", 0, 10), stay("b", 0, 4), stay("c", 4, 8)), slots).bound == bound


def test_an_attempt_without_end_leaves_work_and_bound_open() -> None:
    running = Schedule((stay("a", 0, 10), stay("b", 12, None)), 2)
    assert (running.work, running.bound, running.ended) == (None, None, 12)


def test_every_attempt_with_a_start_is_there_with_its_outcome(tmp_path: Path) -> None:
    found = schedule(collect_run(troubled_run(tmp_path)))
    assert found.slots == 8
    assert [one.started for one in found.stays] == sorted(one.started for one in found.stays)
    grass = [(one.attempt, one.started - START, one.outcome) for one in found.stays if one.session == "grass_flat"]
    assert grass == [(1, 0.0, Outcome.LOST), (2, 70.0, Outcome.SUCCEEDED)]


def test_the_figure_sets_the_makespan_beside_what_bounds_it(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    for name, start, end in (("grass", 0, 60), ("stairs", 0, 90), ("boulder", 60, 120)):
        run.attempt(run.session("flat", name, count=1), row(0), started=START + start, ended=START + end)
    figure = sessions(schedule(collect_run(run.write())))
    assert figure
    assert "last end: 2 min 00 s; one after another: 3 min 30 s (1.8 times as long)" in figure.note
    assert "in 8 slots takes less than 1 min 30 s" in figure.note


def test_without_a_plan_there_are_no_sessions_to_show() -> None:
    assert sessions(Schedule((), None)) is None
