"""What is measured of a combo beside its success rate."""

from __future__ import annotations

import numpy as np
import pytest
from report_runs import episode

from comborun.reporter.counting.measures import (
    KINDS,
    balanced_rate,
    ends_of,
    failure_kinds,
    metrics,
    time_field,
    time_to_success,
)


def test_failures_are_counted_by_what_their_program_calls_them() -> None:
    kinds = ["fell", "stuck", "fell", "", "  fell\nTraceback"]
    records = [episode(index, "-", termination=kind) for index, kind in enumerate(kinds)]
    others = [episode(8, termination="goal"), episode(9, "!", termination="nan")]
    found = failure_kinds(ends_of([*records, *others]))
    assert found.field == "termination"
    assert [*found.kinds.items()] == [("fell", 3), ("stuck", 1)]
    assert (found.other, found.untold, found.errored, found.total) == (0, 1, 1, 6)


def test_the_plainest_field_names_the_failure() -> None:
    records = [
        episode(0, "-", reason="why not", failure="slipped", termination="fall"),
        episode(1, "-", termination="fall"),
    ]
    found = failure_kinds(ends_of(records))
    assert (found.field, found.kinds, found.untold) == ("failure", {"slipped": 1}, 1)


def test_failures_that_nobody_names_are_untold() -> None:
    found = failure_kinds(ends_of([episode(0, "-"), episode(1, "-", termination=7), episode(2)]))
    assert (found.field, found.kinds, found.untold) == (None, {}, 2)


def test_more_kinds_than_a_reader_takes_in_are_summed() -> None:
    found = failure_kinds(ends_of([episode(index, "-", error=f"kind {index % 20:02d}") for index in range(41)]))
    assert len(found.kinds) == KINDS
    assert next(iter(found.kinds.items())) == ("kind 00", 3)
    assert (found.other, found.total) == (16, 41)


def test_time_to_success_is_of_all_completed_episodes() -> None:
    records = [
        episode(0, time_s=4.0, steps=80),
        episode(1, "-", time_s=1.0),
        episode(2, time_s=2.0),
        episode(3),
        episode(4, "!", time_s=0.5),
    ]
    found = time_to_success(records, time_field([records]))
    assert found is not None
    assert (found.field, found.unit, found.untimed) == ("time_s", "s", 1)
    assert (found.curve.n, found.curve.times, found.curve.successes) == (4, (2.0, 4.0), (1, 2))
    assert found.curve.median == 4.0


def test_without_a_success_or_a_time_there_is_no_curve() -> None:
    assert time_to_success([episode(0, "-", time_s=1.0)], "time_s") is None
    assert time_to_success([episode(0, wall_s=1.0)], "time_s") is None
    assert time_field([[episode(0, wall_s=1.0)], []]) is None


def test_all_curves_have_one_field_and_fractions_are_no_steps() -> None:
    timed = [episode(0, time_s=1.0, steps=20)]
    stepped = [episode(0, steps=20)]
    assert time_field([timed, stepped, stepped]) == "steps"
    assert time_field([timed, stepped, timed, timed]) == "steps"
    assert time_field([timed, [episode(0, steps=20.5)]]) == "time_s"


def test_a_metric_has_a_mean_its_interval_and_the_spread_of_the_episodes() -> None:
    values = np.random.default_rng(3).normal(5, 2, size=40).tolist()
    (found,) = metrics([episode(index, "-", distance_m=value) for index, value in enumerate(values)], ())
    assert found.interval is not None
    assert found.interval[0] < found.mean < found.interval[1]
    assert found.percentiles == pytest.approx(tuple(np.percentile(values, (5, 95))), abs=1e-12)
    assert found.n == 40


def test_few_values_have_no_percentiles_and_equal_ones_no_interval() -> None:
    found = {mean.name: mean for mean in metrics([episode(index, "-", a=index, b=3.0) for index in range(19)], ())}
    assert found["a"].percentiles is found["b"].interval is None
    assert found["a"].interval is not None


def test_copies_that_ran_side_by_side_give_a_balanced_rate() -> None:
    records = [
        episode(index, mark, env_id=copy, episode_in_env=order)
        for index, (copy, order, mark) in enumerate([(0, 1, "-"), (0, 0, "+"), (1, 0, "+"), (0, 2, "-"), (2, 0, "-")])
    ]
    found = balanced_rate(records)
    assert found is not None
    assert (found.rate.successes, found.rate.n, found.copies) == (2, 3, 3)


def test_without_several_copies_there_is_nothing_to_balance() -> None:
    one = [episode(index, env_id=0, episode_in_env=index) for index in range(3)]
    assert balanced_rate(one) is None
    assert balanced_rate([*one, episode(9)]) is None
    assert balanced_rate([]) is None
