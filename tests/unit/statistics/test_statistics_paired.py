"""Paired rates, against statsmodels and exact sums; and the gaps that a number of episodes can show."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, multinomial

from comborun.reporter.statistics.difference import PairCounts, mcnemar, paired_interval
from comborun.reporter.statistics.findable import MANY_PAIRS, detectable_gap


@pytest.mark.parametrize(("b", "c"), [(23, 7), (7, 23), (0, 1), (0, 6), (5, 5), (1, 0), (400, 340), (0, 0)])
def test_the_test_is_the_exact_one_of_statsmodels(b: int, c: int) -> None:
    from statsmodels.stats.contingency_tables import mcnemar as oracle

    expected = oracle([[3, b], [c, 4]], exact=True).pvalue if b + c else 1.0
    assert mcnemar(b, c) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("pairs", [PairCounts(0, 0, 0, 1), PairCounts(0, 1, 0, 0), PairCounts(0, 10, 0, 0)])
def test_the_interval_stays_inside_and_swaps(pairs: PairCounts) -> None:
    low, high = paired_interval(pairs)
    assert -1 <= low < high <= 1
    swapped = paired_interval(PairCounts(pairs.both, pairs.only_b, pairs.only_a, pairs.neither))
    assert swapped == pytest.approx((-high, -low), abs=1e-15)


@pytest.mark.parametrize("n", [10, 40])
def test_the_interval_covers_what_it_says_and_agrees_with_the_test(n: int) -> None:
    """By exact sums, for pairs that rarely or always go differently: the latter are those of a metric without ties."""
    tables = [(b, c, n - b - c) for b in range(n + 1) for c in range(n + 1 - b)]
    limits = np.array([paired_interval(PairCounts(0, b, c, rest)) for b, c, rest in tables])
    for differing in (0.05, 0.2, 0.5, 0.9, 1.0):
        for share in (0.5, 0.7, 0.8, 0.9, 1.0):
            p, q = differing * share, differing * (1 - share)
            weights = multinomial.pmf(tables, n, [p, q, max(0.0, 1 - p - q)])
            inside = (limits[:, 0] <= p - q + 1e-12) & (p - q - 1e-12 <= limits[:, 1])
            assert weights[inside].sum() >= 0.95, (p, q)
    decided = np.array([mcnemar(b, c) <= 0.05 for b, c, _ in tables])
    holds_0 = (limits[:, 0] <= 0) & (limits[:, 1] >= 0)
    assert (holds_0 != decided).all()


@pytest.mark.parametrize(("n", "alpha"), [(10, 0.05), (40, 0.05), (100, 0.05 / 24), (200, 0.05)])
def test_a_paired_gap_is_found_four_times_in_five(n: int, alpha: float) -> None:
    gap = detectable_gap(n, alpha)
    assert gap is not None
    assert power(n, gap, alpha) == pytest.approx(0.8, abs=1e-4)


def power(n: int, gap: float, alpha: float) -> float:
    """That A is claimed, by summing over how many pairs each policy wins."""
    a, b = ((1 + gap) / 2) ** 2, ((1 - gap) / 2) ** 2
    different = np.arange(n + 1)
    total = 0.0
    for count, weight in zip(different, binom.pmf(different, n, a + b), strict=True):
        wins = np.arange(count // 2 + 1, count + 1)
        decisive = 2 * binom.sf(wins - 1, count, 0.5) <= alpha
        total += weight * binom.pmf(wins[decisive], count, a / (a + b)).sum()
    return total


def test_too_few_episodes_show_no_gap_at_all() -> None:
    assert detectable_gap(5, 0.05) is None
    assert detectable_gap(6, 0.05) is not None


def test_of_very_many_pairs_the_approximation_is_as_good() -> None:
    exact, about = detectable_gap(MANY_PAIRS, 0.05), detectable_gap(MANY_PAIRS + 1, 0.05)
    assert exact is not None
    assert about == pytest.approx(exact, rel=0.012)
