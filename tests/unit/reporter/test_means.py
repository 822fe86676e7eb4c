"""Policies compared by the difference of means of a metric."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from comborun.reporter.comparing.family import compare
from comborun.reporter.comparing.graded import Graded, MeanDifference, compare_graded
from comborun.reporter.comparing.sides import Arm
from comborun.reporter.evidence.starts import Starts
from comborun.reporter.statistics.means import Sample, mean_difference


def test_few_pairs_try_all_signs() -> None:
    values = [0.3, -0.1, 0.5, 0.2, 0.7, -0.05, 0.4]
    difference, interval, p = mean_difference([Sample(values)])
    exact = stats.permutation_test((values,), np.mean, permutation_type="samples", n_resamples=np.inf)
    assert p == pytest.approx(exact.pvalue)
    found = stats.ttest_1samp(values, 0).confidence_interval()
    assert (difference, *interval) == pytest.approx((np.mean(values), *found))


@pytest.mark.parametrize(("n", "shift"), [(40, 0.3), (100, 0.1), (500, 0.2)])
def test_many_pairs_are_near_students_test(n: int, shift: float) -> None:
    values = np.random.default_rng(2).normal(shift, 1, n).tolist()
    _, interval, p = mean_difference([Sample(values)])
    found = stats.ttest_1samp(values, 0)
    assert p == pytest.approx(found.pvalue, rel=0.25, abs=0.002)
    assert interval == pytest.approx([*found.confidence_interval()])


@pytest.mark.parametrize(("n", "m"), [(12, 30), (200, 300)])
def test_unpaired_values_of_unlike_spread_are_near_welchs_test(n: int, m: int) -> None:
    rng = np.random.default_rng(4)
    a, b = rng.normal(0.5, 1, n).tolist(), rng.normal(0, 3, m).tolist()
    _, interval, p = mean_difference([Sample(a=a, b=b)])
    found = stats.ttest_ind(a, b, equal_var=False)
    assert p == pytest.approx(found.pvalue, abs=0.02)
    assert interval == pytest.approx([*found.confidence_interval()], abs=0.05)


def test_over_environments_each_has_the_same_weight() -> None:
    cells = [Sample([1.0, 2.0, 3.0]), Sample([0.0, 0.1] * 20)]
    assert mean_difference(cells)[0] == pytest.approx((2.0 + 0.05) / 2)


@pytest.mark.parametrize("kind", ["paired", "skewed", "unlike"])
def test_equal_policies_are_seldom_told_apart(kind: str) -> None:
    rng, runs, found = np.random.default_rng(5), 200, 0
    for _ in range(runs):
        if kind == "paired":
            sample = Sample(rng.normal(size=15).tolist())
        elif kind == "skewed":
            sample = Sample((rng.exponential(size=20) - rng.exponential(size=20)).tolist())
        else:
            sample = Sample(a=rng.normal(0, 3, 12).tolist(), b=rng.normal(0, 1, 25).tolist())
        found += mean_difference([sample])[2] <= 0.05
    assert found / runs <= 0.05 + 3 * (0.05 * 0.95 / runs) ** 0.5


def scores(policy: str, values: dict[int, float], n: int) -> Arm:
    return Arm(
        policy,
        frozenset(values),
        frozenset(),
        Starts({at: at for at in range(n)}),
        errored=frozenset(range(n)) - values.keys(),
        values=values,
    )


def test_the_size_of_differences_counts_where_their_signs_do_not_decide() -> None:
    small = {at: 0.01 * (-1) ** at for at in range(40)}
    a = scores("a", {at: value + (0.9 if at % 4 == 0 else 0.0) for at, value in small.items()}, 40)
    found = compare({}, None, compare_graded("progress", {"s": [a, scores("b", small, 40)]}))
    (mean,), (sign,) = found.mean_differences, found.graded
    assert mean.better == "a"
    assert mean.difference == pytest.approx(0.225)
    assert isinstance(mean, MeanDifference)
    assert isinstance(sign, Graded)


def test_both_ways_share_the_error_of_one_comparison() -> None:
    pair = [scores("a", {at: at / 9 for at in range(10)}, 10), scores("b", {at: at / 8 for at in range(10)}, 10)]
    found = compare({}, None, compare_graded("progress", {"s": pair}))
    assert found.size == 1
    assert found.mean_differences[0].p_holm >= min(1.0, 2 * found.mean_differences[0].p) - 1e-12 or (
        found.graded[0].p < found.mean_differences[0].p
    )


def test_episodes_without_a_value_get_the_worst_one_for_the_leader() -> None:
    a = scores("a", {at: 1.0 + 0.01 * at for at in range(25)}, 60)
    b = scores("b", {at: 0.01 * at for at in range(60)}, 60)
    (mean,) = compare({}, None, compare_graded("progress", {"s": [a, b]})).mean_differences
    assert mean.only_completed
    assert not mean.decided
