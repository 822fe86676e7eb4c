"""Whose end it is: where a task is requeued, the process of its earlier start may still be alive, and write."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from report_runs import RUN, RunDirectory, row

from comborun.attempt import own_end
from comborun.reporter.collect import collect_run
from comborun.reporter.summary import summarize
from comborun.resources import NO_SLURM


@pytest.mark.parametrize(
    ("claim", "end", "own"),
    [
        ('{"nonce": "a1", "count": 4}', '{"cause": "exited", "nonce": "a1"}', True),
        ('{"nonce": "a1", "count": 4}', '{"cause": "exited", "nonce": "b2"}', False),
        ('{"nonce": "a1", "count": 4}', '{"cause": "exited"}', False),
        ('{"count": 4}', '{"cause": "exited"}', True),
        ("", '{"cause": "exited", "nonce": "a1"}', True),
    ],
    ids=["its own", "another start's", "nobody's", "a run without Slurm", "a mirror without claims"],
)
def test_an_end_is_of_the_start_that_its_claim_is_of(claim: str, end: str, own: bool) -> None:
    assert own_end(claim, end) is own


def test_the_report_passes_over_the_end_of_another_start(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    session = run.session("flat", "grass", count=1)
    run.attempt(session, row(0), nonce="old")
    run.put(RUN.attempt(session.name, 1).claim, '{"nonce": "new"}')
    (history,) = collect_run(run.write()).sessions
    assert [attempt.end for attempt in history.attempts] == [None]


def test_a_report_of_a_run_on_slurm_sets_no_bound_beside_what_the_queue_decided(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    run.attempt(run.session("flat", "grass", count=1), row(0))
    collected = collect_run(run.write())
    assert collected.plan
    assert summarize(collected).summary.timing.bound is not None
    on_slurm = replace(collected, plan=replace(collected.plan, slurm=NO_SLURM))
    assert summarize(on_slurm).summary.timing.bound is None
