"""What is measured of a combo beside its success rate, and of a policy over all environments."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from report_runs import RunDirectory, row

from comborun.attempt import EpisodeRecord, Verdict, packed
from comborun.reporter.collect import collect_run
from comborun.reporter.counting.combo import ComboSummary, MacroMean
from comborun.reporter.counting.measures import (
    KINDS,
    balanced_rate,
    ends_of,
    failure_kinds,
    metrics,
    time_field,
    time_to_success,
)
from comborun.reporter.summary import Summary, summarize


def record(index: int, verdict: Verdict = Verdict.FAILURE, **fields: object) -> EpisodeRecord:
    numbers = {name: float(value) for name, value in fields.items() if isinstance(value, int | float)}
    others = {name: value for name, value in fields.items() if name not in numbers}
    return EpisodeRecord("flat", "stairs", index, verdict, **packed(numbers, others))  # type: ignore[arg-type]


def summary_of(run: RunDirectory) -> Summary:
    return summarize(collect_run(run.write())).summary


def only(run: RunDirectory) -> ComboSummary:
    (combo,) = summary_of(run).combos
    return combo


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory(tmp_path)


def test_the_rate_lies_between_all_untold_episodes_failing_and_all_succeeding(run: RunDirectory) -> None:
    run.attempt(run.session("flat", "stairs"), row(0) + row(1) + row(2, False) + row(3, None))
    combo = only(run)
    assert combo.bounds == (0.2, 0.9)
    assert combo.retried == 0


def test_where_nothing_completed_there_are_no_bounds(run: RunDirectory) -> None:
    run.attempt(run.session("flat", "stairs"), row(0, None))
    combo = only(run)
    assert combo.bounds is None
    assert combo.failures is not None
    assert combo.failures.total == combo.failures.errored == 1


def test_episodes_of_a_later_attempt_are_retried_ones(run: RunDirectory) -> None:
    session = run.session("flat", "stairs")
    run.attempt(session, row(0) + row(1), cause="lost", completeness="partial")
    run.attempt(session, "".join(row(index) for index in range(10)), number=2)
    assert only(run).retried == 8


def test_a_combo_without_records_has_no_measures(run: RunDirectory) -> None:
    run.attempt(run.session("flat", "stairs", unit="step", count=1000))
    combo = only(run)
    assert combo.bounds is combo.failures is combo.time_to_success is combo.balanced is None
    summary = summary_of(run)
    assert (summary.comparisons.size, summary.macro_means) == (0, ())


def test_failures_are_counted_by_what_their_program_calls_them() -> None:
    kinds = ["fell", "stuck", "fell", "", "  fell\nTraceback"]
    records = [record(index, termination=kind) for index, kind in enumerate(kinds)]
    others = [record(8, Verdict.SUCCESS, termination="goal"), record(9, Verdict.ERRORED, termination="nan")]
    found = failure_kinds(ends_of([*records, *others]))
    assert found.field == "termination"
    assert found.counts == (("fell", 3), ("stuck", 1))
    assert (found.other, found.untold, found.errored, found.total) == (0, 1, 1, 6)


def test_the_plainest_field_names_the_failure() -> None:
    records = [record(0, reason="why not", failure="slipped", termination="fall"), record(1, termination="fall")]
    found = failure_kinds(ends_of(records))
    assert (found.field, found.counts, found.untold) == ("failure", (("slipped", 1),), 1)


def test_failures_that_nobody_names_are_untold() -> None:
    found = failure_kinds(ends_of([record(0), record(1, termination=7), record(2, Verdict.SUCCESS)]))
    assert (found.field, found.counts, found.untold) == (None, (), 2)


def test_more_kinds_than_a_reader_takes_in_are_summed() -> None:
    found = failure_kinds(ends_of([record(index, error=f"kind {index % 20:02d}") for index in range(41)]))
    assert len(found.counts) == KINDS
    assert found.counts[0] == ("kind 00", 3)
    assert (found.other, found.total) == (16, 41)


def test_time_to_success_is_of_all_completed_episodes() -> None:
    records = [
        record(0, Verdict.SUCCESS, time_s=4.0, steps=80),
        record(1, Verdict.FAILURE, time_s=1.0),
        record(2, Verdict.SUCCESS, time_s=2.0),
        record(3, Verdict.SUCCESS),
        record(4, Verdict.ERRORED, time_s=0.5),
    ]
    found = time_to_success(records, time_field([records]))
    assert found is not None
    assert (found.field, found.unit, found.untimed) == ("time_s", "s", 1)
    assert (found.curve.n, found.curve.times, found.curve.successes) == (4, (2.0, 4.0), (1, 2))
    assert found.curve.median == 4.0


def test_without_a_success_or_a_time_there_is_no_curve() -> None:
    assert time_to_success([record(0, time_s=1.0)], "time_s") is None
    assert time_to_success([record(0, Verdict.SUCCESS, wall_s=1.0)], "time_s") is None
    assert time_field([[record(0, Verdict.SUCCESS, wall_s=1.0)], []]) is None


def test_all_curves_have_one_field_and_fractions_are_no_steps() -> None:
    timed = [record(0, Verdict.SUCCESS, time_s=1.0, steps=20)]
    stepped = [record(0, Verdict.SUCCESS, steps=20)]
    assert time_field([timed, stepped, stepped]) == "steps"
    assert time_field([timed, stepped, timed, timed]) == "steps"
    assert time_field([timed, [record(0, Verdict.SUCCESS, steps=20.5)]]) == "time_s"


def test_a_metric_has_a_mean_its_interval_and_the_spread_of_the_episodes() -> None:
    values = np.random.default_rng(3).normal(5, 2, size=40).tolist()
    (found,) = metrics([record(index, distance_m=value) for index, value in enumerate(values)], ())
    assert found.interval is not None
    assert found.interval[0] < found.mean < found.interval[1]
    assert found.percentiles == pytest.approx(tuple(np.percentile(values, (5, 95))), abs=1e-12)
    assert found.n == 40


def test_few_values_have_no_percentiles_and_equal_ones_no_interval() -> None:
    found = {mean.name: mean for mean in metrics([record(index, a=index, b=3.0) for index in range(19)], ())}
    assert found["a"].percentiles is found["b"].interval is None
    assert found["a"].interval is not None


def test_copies_that_ran_side_by_side_give_a_balanced_rate() -> None:
    records = [
        record(index, verdict, env_id=copy, episode_in_env=order)
        for index, (copy, order, verdict) in enumerate(
            [
                (0, 1, Verdict.FAILURE),
                (0, 0, Verdict.SUCCESS),
                (1, 0, Verdict.SUCCESS),
                (0, 2, Verdict.FAILURE),
                (2, 0, Verdict.FAILURE),
            ]
        )
    ]
    found = balanced_rate(records)
    assert found is not None
    assert (found.rate.successes, found.rate.n, found.copies) == (2, 3, 3)


def test_without_several_copies_there_is_nothing_to_balance() -> None:
    one = [record(index, Verdict.SUCCESS, env_id=0, episode_in_env=index) for index in range(3)]
    assert balanced_rate(one) is None
    assert balanced_rate([*one, record(9, Verdict.SUCCESS)]) is None
    assert balanced_rate([]) is None


def test_a_mean_over_environments_weighs_each_alike(run: RunDirectory) -> None:
    run.attempt(run.session("flat", "stairs", count=4), "".join(row(index, index > 0) for index in range(4)))
    run.attempt(run.session("flat", "grass", count=2), row(0) + row(1, False))
    (found,) = summary_of(run).macro_means
    assert (found.environments, found.episodes, found.mean) == (2, 6, 0.625)
    assert found.interval is not None
    assert found.interval[0] < 0.625 < found.interval[1]
    assert found.missing == found.partial == ()


def test_no_mean_hides_a_missing_cell(run: RunDirectory) -> None:
    run.attempt(run.session("flat", "stairs", count=2), row(0) + row(1))
    run.attempt(run.session("flat", "grass", count=2), row(0, None))
    run.attempt(run.session("rough", "stairs", count=2), row(0))
    run.attempt(run.session("rough", "grass", count=2), row(0) + row(1))
    flat, rough = summary_of(run).macro_means
    assert flat == MacroMean("flat", 2, 2, None, None, missing=("grass",), partial=())
    assert (rough.mean, rough.missing, rough.partial) == (1.0, (), ("stairs",))


def test_one_environment_has_no_mean_and_training_none_either(run: RunDirectory) -> None:
    run.attempt(run.session("flat", "stairs"), row(0))
    run.attempt(run.session("flat", "grass", unit="step", count=9))
    run.attempt(run.session("train", "grass", unit="step", count=9))
    assert summary_of(run).macro_means == ()
