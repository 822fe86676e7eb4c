"""When each attempt ran, which start an end belongs to, and what the figure says about the makespan."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from report_runs import RUN, START, RunDirectory, planned_session, row

from comborun.model.attempt import Begin, End
from comborun.model.resources import NO_SLURM
from comborun.reporter.collect import collect_run
from comborun.reporter.counting.ending import RunTiming, TimedAttempt
from comborun.reporter.figures.sessions import sessions
from comborun.reporter.records.collected import AttemptRecord
from comborun.reporter.summary import summarize


def span(name: str, start: float, end: float | None) -> TimedAttempt:
    began = Begin.of({"started": str(START + start)})
    ended = None if end is None else End.of({"started": str(START + start), "ended": str(START + end)})
    return TimedAttempt(START + start, planned_session("flat", name, 1), AttemptRecord(1, began, ended))


def test_attempts_share_a_row_only_one_after_another() -> None:
    spans = (span("a", 0, 10), span("b", 0, 4), span("c", 4, 6), span("d", 5, 9), span("e", 7, None), span("f", 20, 21))
    lanes = RunTiming(spans, 8).lanes()
    assert [[session.environment for _, session, _ in lane] for lane in lanes] == [["a", "f"], ["b", "c", "e"], ["d"]]


@pytest.mark.parametrize(
    ("slots", "bound"),
    [(1, 18.0), (2, 10.0), (3, 10.0), (None, None)],
    ids=["the work of all", "the longest", "still the longest", "no plan"],
)
def test_the_bound_is_the_longest_attempt_or_the_work_over_the_slots(slots: int | None, bound: float | None) -> None:
    assert RunTiming((span("a", 0, 10), span("b", 0, 4), span("c", 4, 8)), slots).bound == bound


def test_an_attempt_without_end_leaves_work_and_bound_open() -> None:
    running = RunTiming((span("a", 0, 10), span("b", 12, None)), 2)
    assert (running.work, running.bound, running.seen) == (None, None, 12)


def test_the_figure_sets_the_makespan_beside_what_bounds_it(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    for name, start, end in (("grass", 0, 60), ("stairs", 0, 90), ("boulder", 60, 120)):
        run.attempt(run.session("flat", name, count=1), row(0), started=START + start, ended=START + end)
    timing = run.report().summary.timing
    assert (timing.makespan, timing.sequential) == (120, 210)
    figure = sessions(timing)
    assert figure
    assert "last end: 2 min 00 s; one after another: 3 min 30 s (1.8 times as long)" in figure.note
    assert "in 8 slots takes less than 1 min 30 s" in figure.note


@pytest.mark.parametrize(("end", "own"), [({"nonce": "new"}, True), ({"nonce": "old"}, False), ({}, False)])
def test_the_end_of_another_start_is_passed_over(tmp_path: Path, end: dict[str, str], own: bool) -> None:
    """Where a task is requeued, the process of its earlier start may still be alive, and write."""
    run = RunDirectory(tmp_path)
    session = run.session("flat", "grass", count=1)
    run.attempt(session, row(0), **end)
    run.put(RUN.attempt(session.name, 1).claim, '{"nonce": "new"}')
    (history,) = collect_run(run.write()).sessions
    assert [bool(attempt.end) for attempt in history.attempts] == [own]


def test_a_report_of_a_run_on_slurm_sets_no_bound_beside_what_the_queue_decided(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    run.attempt(run.session("flat", "grass", count=1), row(0))
    collected = collect_run(run.write())
    assert collected.plan
    assert summarize(collected).summary.timing.bound is not None
    on_slurm = replace(collected, plan=replace(collected.plan, slurm=NO_SLURM))
    assert summarize(on_slurm).summary.timing.bound is None
