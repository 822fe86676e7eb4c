"""Differences of independent rates, against statsmodels, scipy and exact sums."""

from __future__ import annotations

from math import pi

import numpy as np
import pytest
from scipy.stats import barnard_exact, binom, norm

from comborun.reporter.statistics.barnard import SET_ASIDE, barnard
from comborun.reporter.statistics.difference import newcombe
from comborun.reporter.statistics.proportion import clopper_pearson, clopper_pearson_each

TABLES = [
    ((7, 10), (3, 12)),
    ((0, 10), (0, 10)),
    ((10, 10), (0, 7)),
    ((1, 1), (0, 1)),
    ((1, 3), (0, 1)),
    ((70, 100), (52, 100)),
    ((99, 100), (91, 100)),
    ((43, 53), (40, 79)),
]


@pytest.mark.parametrize(("a", "b"), TABLES)
def test_the_interval_is_newcombes(a: tuple[int, int], b: tuple[int, int]) -> None:
    from statsmodels.stats.proportion import confint_proportions_2indep

    expected = confint_proportions_2indep(*a, *b, compare="diff", method="newcomb")
    assert newcombe(a, b) == pytest.approx(expected, abs=1e-9)


def test_many_exact_intervals_at_once_are_the_same_as_one_by_one() -> None:
    assert clopper_pearson_each(range(13), 12 + 1) == tuple(clopper_pearson(k, 13) for k in range(13))
    assert clopper_pearson_each([13], 13) == (clopper_pearson(13, 13),)


@pytest.mark.parametrize(("a", "b"), [table for table in TABLES if table[0][0] + table[1][0] > 0])
def test_the_test_is_barnards_when_no_rate_is_set_aside(a: tuple[int, int], b: tuple[int, int]) -> None:
    table = [[a[0], b[0]], [a[1] - a[0], b[1] - b[0]]]
    assert barnard(a, b, set_aside=0) == pytest.approx(barnard_exact(table, n=256).pvalue, abs=2e-9)


@pytest.mark.parametrize(
    ("a", "b"), [((4, 500), (15, 500)), ((250, 500), (200, 500)), ((490, 500), (499, 500)), ((3, 30), (90, 470))]
)
def test_the_search_misses_no_peak_that_a_far_finer_one_finds(a: tuple[int, int], b: tuple[int, int]) -> None:
    z = np.abs(pooled_z(a[1], b[1]))
    region = z >= z[a[0], b[0]] - 1e-9
    rates = np.sin(np.linspace(0, pi / 2, 1500)) ** 2
    first, second = (binom.pmf(np.arange(n + 1), n, rates[:, None]) for n in (a[1], b[1]))
    finest = np.einsum("ri,ij,rj->r", first, region, second, optimize=True).max()
    found = barnard(a, b, set_aside=0)
    assert finest <= found * (1 + 1e-9)
    assert found <= finest * 1.001


def pooled_z(n: int, m: int) -> np.ndarray:
    i, j = np.arange(n + 1)[:, None], np.arange(m + 1)[None, :]
    pooled = (i + j) / (n + m)
    spread = np.sqrt(pooled * (1 - pooled) * (1 / n + 1 / m))
    return np.divide(i / n - j / m, spread, out=np.zeros((n + 1, m + 1)), where=spread > 0)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (8, 8), (12, 5), (20, 20)])
def test_equal_rates_are_told_apart_no_more_often_than_alpha(n: int, m: int) -> None:
    p = np.array([[barnard((i, n), (j, m)) for j in range(m + 1)] for i in range(n + 1)])
    for alpha in (0.001, 0.01, 0.05, 0.2):
        for rate in np.linspace(0.005, 0.995, 67):
            tables = np.outer(binom.pmf(range(n + 1), n, rate), binom.pmf(range(m + 1), m, rate))
            assert tables[p <= alpha].sum() <= alpha + 1e-12


def test_setting_far_off_rates_aside_costs_at_most_what_it_says() -> None:
    for a, b in TABLES:
        assert barnard(a, b) <= min(1.0, barnard(a, b, set_aside=0) + SET_ASIDE) + 1e-9


def test_no_p_lies_below_what_was_set_aside() -> None:
    assert SET_ASIDE <= barnard((200, 200), (0, 200)) < SET_ASIDE * 1.001


def test_swapping_the_arms_turns_the_sign_and_nothing_else() -> None:
    for a, b in TABLES:
        low, high = newcombe(a, b)
        assert newcombe(b, a) == pytest.approx((-high, -low), abs=1e-15)
        assert barnard(b, a) == pytest.approx(barnard(a, b), rel=1e-7)


def test_counting_failures_for_successes_changes_no_p() -> None:
    for (x, n), (y, m) in TABLES:
        assert barnard((n - x, n), (m - y, m)) == pytest.approx(barnard((x, n), (y, m)), rel=1e-7)


@pytest.mark.parametrize("size", [60_000, 5_000_000, 10**15])
def test_very_many_episodes_are_compared_by_what_can_happen_at_all(size: int) -> None:
    a, b = (size // 2, size), (size // 2 - round(2 * size**0.5), size)
    assert barnard(a, b) == pytest.approx(2 * norm.sf(pooled_z_of(a, b)), rel=0.02)


def pooled_z_of(a: tuple[int, int], b: tuple[int, int]) -> float:
    pooled = (a[0] + b[0]) / (a[1] + b[1])
    return (a[0] / a[1] - b[0] / b[1]) / np.sqrt(pooled * (1 - pooled) * (1 / a[1] + 1 / b[1]))
