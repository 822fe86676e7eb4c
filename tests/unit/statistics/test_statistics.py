"""Intervals of one rate, against scipy's own implementation."""

from __future__ import annotations

import pytest
from scipy.stats import binomtest

from comborun.reporter.statistics.proportion import Proportion, clopper_pearson, proportion


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
