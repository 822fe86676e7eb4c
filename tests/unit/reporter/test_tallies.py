"""Counts without episodes: which attempt's counts are taken, and what the report makes of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from report_runs import RunDirectory, row

from comborun.attempt import Aggregate
from comborun.reporter.collect import collect_folder, collect_run
from comborun.reporter.counting.combo import tallies
from comborun.reporter.summary import summarize
from comborun.rules.words import Outcome

COMBO = ("flat", "stairs")


def told(successes: int, n: int, attempt: int = 1, session: str = "stairs_flat", **metrics: float) -> Aggregate:
    return Aggregate(*COMBO, successes, n, metrics=metrics, session=session, attempt=attempt)


def test_the_lowest_complete_attempt_counts_whatever_came_of_it() -> None:
    found = tallies([told(9, 12, 3), told(1, 10, 2), told(4, 4, 1)], {"stairs_flat": 10})
    assert (found[COMBO].successes, found[COMBO].episodes) == (1, 10)
    assert found[COMBO].attempts == {("stairs_flat", 2)}


@pytest.mark.parametrize("planned", [{"stairs_flat": 10}, {}])
def test_where_none_is_complete_the_one_with_the_most_episodes_counts(planned: dict[str, int]) -> None:
    found = tallies([told(2, 7, 2), told(3, 5, 1), told(7, 7, 3)], planned)
    assert (found[COMBO].successes, found[COMBO].episodes) == (2, 7)


def test_sessions_of_a_combo_are_added_up_and_their_metrics_weighed() -> None:
    found = tallies([told(2, 10, session="e0-9", speed=1.0), told(9, 30, session="e10-39", speed=3.0, only=5.0)], {})
    assert (found[COMBO].successes, found[COMBO].episodes) == (11, 40)
    assert found[COMBO].metrics == pytest.approx({"speed": 2.5, "only": 5.0})


def test_no_episodes_at_all_are_a_tally_of_none() -> None:
    found = tallies([told(0, 0, speed=2.0)], {})
    assert (found[COMBO].episodes, found[COMBO].metrics) == (0, {"speed": 2.0})


def test_a_run_of_counts_has_rates_and_comparisons(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    for policy in ("flat", "rough"):
        run.attempt(run.session(policy, "stairs"))
    counts = (told(2, 10, speed=1.5), Aggregate("rough", "stairs", 9, 8 + 1, session="stairs_rough", attempt=1))
    summary = summarize(replace(collect_run(run.write()), aggregates=counts)).summary
    flat, rough = summary.combos
    assert flat.rate is not None
    assert (flat.rate.successes, flat.rate.n, flat.ending.outcome) == (2, 10, Outcome.SUCCEEDED)
    assert [(mean.name, mean.mean, mean.n, mean.interval) for mean in flat.metrics] == [("speed", 1.5, 10, None)]
    assert rough.counts is not None
    assert (rough.counts.completed, rough.counts.missing, rough.bounds) == (9, 1, (0.9, 1.0))
    assert rough.ending.outcome is Outcome.PARTIAL
    assert flat.failures is flat.time_to_success is None
    ((comparison,),) = [group.comparisons for group in summary.comparisons.environments]
    assert (comparison.paired, comparison.pairing) == (False, "counts alone, without episodes")
    assert len(summary.claims.decided) == 1
    missing = [finding for finding in summary.quality.findings if "missing" in finding.what]
    assert [(one.where, one.what) for one in missing] == [
        ("rough × stairs", "1 of 10 episodes missing, not told which")
    ]


def test_records_tell_more_than_counts_and_are_taken(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    run.attempt(run.session("flat", "stairs", count=2), row(0) + row(1))
    summary = summarize(replace(collect_run(run.write()), aggregates=(told(0, 2),))).summary
    assert summary.counts.successes == 2


def test_a_folder_can_hold_counts_alone_for_some_policies(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(row(0, policy="rough", environment="stairs"))
    summary = summarize(replace(collect_folder(tmp_path), aggregates=(told(3, 4, session=""),))).summary
    assert [(combo.policy, combo.planned) for combo in summary.combos] == [("flat", 4), ("rough", 1)]
