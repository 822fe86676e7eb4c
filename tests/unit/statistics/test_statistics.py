"""Intervals: against published values, against scipy's own implementation, and by exact coverage."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
from scipy.stats import binom, binomtest

from comborun.reporter.statistics.proportion import Proportion, clopper_pearson, proportion


@pytest.mark.parametrize("n", [1, 2, 7, 100, 1000])
def test_the_interval_is_the_one_that_scipy_finds_by_searching(n: int) -> None:
    for successes in {0, 1, n // 3, n - 1, n}:
        expected = binomtest(successes, n).proportion_ci(0.95, "exact")
        assert clopper_pearson(successes, n) == pytest.approx((expected.low, expected.high), abs=1e-9)


@pytest.mark.parametrize("n", [1, 10, 37, 100])
def test_the_interval_covers_the_truth_as_often_as_it_says(n: int) -> None:
    intervals = [clopper_pearson(k, n) or (math.nan, math.nan) for k in range(n + 1)]
    for truth in (0.001, 0.01, 0.05, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 0.95, 0.99, 0.999):
        covering = [k for k, (low, high) in enumerate(intervals) if low <= truth <= high]
        assert sum(binom.pmf(k, n, truth) for k in covering) >= 0.95


def test_no_episodes_are_no_rate_and_no_interval() -> None:
    assert proportion(0, 0) == Proportion(0, 0, None)
    assert proportion(0, 0).rate is None


@pytest.mark.parametrize(("successes", "n"), [(-1, 5), (6, 5), (1, 0)])
def test_counts_that_cannot_be_are_refused(successes: int, n: int) -> None:
    with pytest.raises(ValueError, match="successes of"):
        clopper_pearson(successes, n)


def test_the_reporter_loads_scipy_matplotlib_and_jinja2_only_when_it_needs_them() -> None:
    script = (
        "import sys, reporter, reporter.report, reporter.pages.page, reporter.figures, reporter.statistics\n"
        "print({'scipy', 'numpy', 'matplotlib', 'jinja2'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout == "set()\n"
