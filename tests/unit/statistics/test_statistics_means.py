"""Intervals of rates and means, and curves of incidence, against scipy and by how often they cover."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest, ecdf, ttest_1samp

from comborun.reporter.statistics.proportion import (
    STEPS,
    Proportion,
    clopper_pearson,
    incidence,
    mean_interval,
    mean_of_rates,
    proportion,
)


@pytest.mark.parametrize("n", [1, 2, 7, 100, 1000])
def test_the_interval_is_the_one_that_scipy_finds_by_searching(n: int) -> None:
    for successes in {0, 1, n // 3, n - 1, n}:
        expected = binomtest(successes, n).proportion_ci(0.95, "exact")
        assert clopper_pearson(successes, n) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_no_episodes_are_no_rate_and_no_interval() -> None:
    assert proportion(0, 0) == Proportion(0, 0, None)
    assert proportion(0, 0).rate is None


@pytest.mark.parametrize(("successes", "n"), [(-1, 5), (6, 5), (1, 0)])
def test_counts_that_cannot_be_are_refused(successes: int, n: int) -> None:
    with pytest.raises(ValueError, match="successes of"):
        clopper_pearson(successes, n)


def test_the_interval_of_a_mean_is_students() -> None:
    values = np.random.default_rng(7).lognormal(size=12)
    expected = ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert mean_interval(values.tolist()) == pytest.approx((expected.low, expected.high), abs=1e-9)


@pytest.mark.parametrize("values", [[3.0], [2.0] * 9, [0.0] * 9, [1.0, 2.0, 3.0, 4.0]])
def test_equal_values_and_very_few_have_no_interval(values: list[float]) -> None:
    assert mean_interval(values) is None


def test_the_largest_numbers_that_there_are_do_no_harm() -> None:
    found = mean_interval([1.5e308, 1.6e308, -1.7e308, 1.7e308, 1.7e308])
    assert found is not None
    assert found[0] < 0.96e308 < found[1]


@pytest.mark.parametrize(
    ("n", "rates"), [(5, [0.5] * 4), (10, [0.7] * 2), (20, [0.1, 0.3, 0.9, 0.95]), (100, [0.7, 0.9]), (20, [0.99] * 8)]
)
def test_the_mean_of_rates_is_covered_about_as_often_as_it_says(n: int, rates: list[float]) -> None:
    rng = np.random.default_rng(3)
    covered = 0
    for _ in range(250):
        low, high = mean_of_rates([(int(k), n) for k in rng.binomial(n, rates)])
        covered += low - 1e-12 <= np.mean(rates) <= high + 1e-12
    assert covered / 250 >= 0.92


def test_the_mean_of_rates_lies_inside_its_interval_even_without_a_failure() -> None:
    low, high = mean_of_rates([(10, 10), (10, 10), (1, 1)])
    assert low < 0.97
    assert high == 1.0
    low, high = mean_of_rates([(0, 10), (0, 10)])
    assert low == 0.0
    assert high > 0.05


def test_incidence_counts_those_that_succeeded_among_all() -> None:
    curve = incidence([4.0, 2.0, 4.0, 9.5], 10)
    assert curve.times == (2.0, 4.0, 9.5)
    assert curve.successes == (1, 3, 4)
    assert curve.median is None
    for k, limits in zip(curve.successes, curve.band, strict=True):
        expected = binomtest(k, 10).proportion_ci(0.95, "exact")
        assert limits == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_incidence_of_only_successes_is_scipys_empirical_distribution() -> None:
    times = np.random.default_rng(4).integers(1, 30, size=80).astype(float).tolist()
    expected = ecdf(times).cdf
    curve = incidence(times, 80)
    assert curve.times == tuple(expected.quantiles)
    assert [k / 80 for k in curve.successes] == pytest.approx(expected.probabilities, abs=1e-12)
    assert curve.median == np.quantile(times, 0.5, method="inverted_cdf")
    assert curve.band[-1][1] == 1.0


@pytest.mark.parametrize(
    ("times", "n", "median"), [([1, 2, 3, 4], 4, 2), ([1, 2, 3], 5, 3), ([1, 2], 5, None), ([1, 2], 4, 2), ([7], 1, 7)]
)
def test_the_median_is_when_half_of_all_have_succeeded(times: list[float], n: int, median: float | None) -> None:
    assert incidence(times, n).median == median


def test_a_long_curve_keeps_exact_steps_and_its_end() -> None:
    curve = incidence([float(time) for time in range(1000)], 1000)
    assert len(curve.times) == STEPS
    assert (curve.times[-1], curve.successes[-1]) == (999.0, 1000)
    assert all(k == time + 1 for time, k in zip(curve.times, curve.successes, strict=True))


def test_the_mean_over_environments_with_an_episode_each_has_an_interval_from_their_spread() -> None:
    rng = np.random.default_rng(3)
    rates, covered, widths = np.linspace(0.1, 0.9, 30), 0, []
    for _ in range(1000):
        low, high = mean_of_rates([(int(k), 1) for k in rng.binomial(1, rates)])
        covered += low <= 0.5 <= high
        widths.append(high - low)
    assert covered >= 950
    assert max(widths) < 0.5
    low, high = mean_of_rates([(1, 1)] * 30)
    assert low < 0.9 and high == 1.0  # noqa: PT018
