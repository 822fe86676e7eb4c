"""The comparison over several environments, against scipy and by what it promises."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import binomtest, fisher_exact, permutation_test

from comborun.reporter.statistics import pooled
from comborun.reporter.statistics.difference import PairCounts, holm
from comborun.reporter.statistics.pooled import Stratum, heterogeneity, pooled_p


def paired(both: int, only_a: int, only_b: int, neither: int) -> Stratum:
    pairs = PairCounts(both, only_a, only_b, neither)
    return Stratum(pairs.counts_a, pairs.counts_b, pairs)


def test_one_unpaired_environment_is_twice_fishers_one_sided_test() -> None:
    expected = 2 * fisher_exact([[15, 5], [9, 13]], alternative="greater").pvalue
    assert pooled_p([Stratum((15, 20), (9, 22))], 1) == pytest.approx(expected, rel=1e-9)


def test_environments_of_one_size_are_mcnemars_test_of_all_pairs() -> None:
    strata = [paired(1, 4, 1, 4), paired(0, 5, 2, 3), paired(2, 3, 0, 5)]
    assert pooled_p(strata, 1) == pytest.approx(binomtest(3, 15).pvalue, rel=1e-9)


def test_swapping_the_policies_changes_nothing() -> None:
    strata = [Stratum((7, 10), (3, 12)), paired(3, 6, 1, 5)]
    turned = [Stratum((3, 12), (7, 10)), paired(3, 1, 6, 5)]
    assert pooled_p(strata, 1) == pytest.approx(pooled_p(turned, -1), rel=1e-9)


def test_environments_of_different_sizes_are_as_by_trying_all_swaps() -> None:
    """With the same integer weights, by scipy's count of all swaps of pairs."""
    strata = [paired(0, 3, 1, 1), paired(0, 4, 1, 5)]
    values = np.array([16] * 3 + [-16] + [8] * 4 + [-8])  # 2 / 5 and 2 / 10 in eighths of the smaller
    found = permutation_test(
        (values,), np.sum, permutation_type="samples", alternative="greater", n_resamples=np.inf, vectorized=False
    )
    assert pooled_p(strata, 1) == pytest.approx(2 * found.pvalue, rel=1e-9)


def test_beyond_the_longest_sum_the_normal_distribution_is_as_good(monkeypatch: pytest.MonkeyPatch) -> None:
    strata = [Stratum((150 + index, 300), (130, 300)) for index in range(10)]
    exact = pooled_p(strata, 1)
    monkeypatch.setattr(pooled, "LONGEST", 10)
    assert pooled_p(strata, 1) == pytest.approx(exact, rel=0.05)


def test_p_is_never_zero() -> None:
    assert pooled_p([paired(0, 500, 0, 0)] * 20, 1) == pooled.SMALLEST


def test_heterogeneity_grows_with_the_spread_of_the_differences() -> None:
    same, apart = (
        [Stratum((30 + shift, 60), (30 - shift, 60)) for shift in shifts] for shifts in ((0, 1, 0), (0, 12, -12))
    )
    assert heterogeneity(same) > 0.8
    assert heterogeneity(apart) < 0.001


def test_shares_of_the_error_pass_on_what_is_decided() -> None:
    assert holm([0.02, 0.02], [0.5, 0.5]) == holm([0.02, 0.02])
    # The first spends its half, and what it decided passes to the others.
    assert holm([0.02, 0.04, 0.04], [1.0, 0.5, 0.5]) == pytest.approx((0.04, 0.08, 0.08))
    for order in product((0.01, 0.2, 0.03), repeat=2):
        assert max(holm(order, [1.0, 2.0])) >= max(order)


def test_heterogeneity_of_few_unpaired_episodes_is_seen_no_more_often_than_promised() -> None:
    rng = np.random.default_rng(5)
    drawn = rng.binomial(5, 0.5, size=(200, 2, 10)).tolist()
    found = [heterogeneity([Stratum((a, 5), (b, 5)) for a, b in zip(*one, strict=True)]) for one in drawn]
    assert sum(p < 0.05 for p in found) / 200 < 0.09  # .05 and two and a half standard errors; chi-square: .14
