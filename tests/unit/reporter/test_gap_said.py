"""The gap that undecided comparisons would have found, by the pairs or the rates of each."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from comborun.reporter.comparing.claims import claims
from comborun.reporter.comparing.family import compare
from comborun.reporter.comparing.sides import Arm, CountsAlone
from comborun.reporter.evidence.starts import Starts
from comborun.reporter.statistics.barnard import barnard
from comborun.reporter.statistics.difference import PairCounts
from comborun.reporter.statistics.findable import findable_paired, findable_unpaired

RUNS = 1000


@pytest.mark.parametrize(
    ("n", "differing", "level"), [(30, 10, 0.05), (100, 40, 0.05), (100, 6, 0.01), (500, 30, 0.002), (2000, 12, 0.05)]
)
def test_a_gap_is_found_four_times_in_five_if_as_many_pairs_differ(n: int, differing: int, level: float) -> None:
    gap = findable_paired(PairCounts(n - differing, differing // 2, differing - differing // 2, 0), level)
    assert gap is not None
    share = max(gap, (differing + 1) / (n + 2))
    rng = np.random.default_rng(1)
    different = rng.binomial(n, share, RUNS)
    won = rng.binomial(different, (1 + gap / share) / 2)
    found = sum(
        bool(d) and 2 * w > d and binomtest(int(w), int(d)).pvalue <= level for w, d in zip(won, different, strict=True)
    )
    assert found / RUNS == pytest.approx(0.8, abs=0.04)


@pytest.mark.parametrize(
    ("a", "b", "level"),
    [
        ((50, 100), (45, 100), 0.05),
        ((95, 100), (92, 100), 0.05),
        ((10, 20), (12, 20), 0.05),
        ((3, 60), (10, 200), 0.01),
    ],
)
def test_a_gap_of_unpaired_rates_is_found_about_four_times_in_five(
    a: tuple[int, int], b: tuple[int, int], level: float
) -> None:
    gap = findable_unpaired(a, b, level)
    assert gap is not None
    (k, n), (other, m) = a, b
    rate = (k + other + 1) / (n + m + 2)
    high = min(1.0, rate + gap * m / (n + m))
    low = max(0.0, high - gap)
    rng = np.random.default_rng(1)
    first, second = rng.binomial(n, low + gap, 300), rng.binomial(m, low, 300)
    found = [
        i / n > j / m and barnard((i, n), (j, m)) <= level for i, j in zip(first.tolist(), second.tolist(), strict=True)
    ]
    assert np.mean(found) == pytest.approx(0.8, abs=0.09)


def test_too_few_pairs_or_episodes_find_nothing() -> None:
    assert findable_paired(PairCounts(2, 1, 1, 0), 0.05) is None
    assert findable_unpaired((1, 2), (1, 2), 0.01) is None


def side(policy: str, n: int, every: int = 2) -> Arm:
    starts = Starts({at: at for at in range(n)})
    return Arm(policy, frozenset(range(n)), frozenset(range(0, n, every)), starts)


def test_each_pair_has_its_own_gap_and_a_policy_with_few_episodes_says_nothing_of_the_others() -> None:
    found = compare({"s": [side("a", 4), side("b", 1000), side("c", 1000)]})
    nothing = {(one.a, one.b): one.finds_nothing for one in found.all}
    assert nothing == {("a", "b"): True, ("a", "c"): True, ("b", "c"): False}
    said = claims(found).undecided[-1]
    assert "4 episodes (a and b; a and c)" in said


def test_near_one_and_alike_the_gap_is_small() -> None:
    n = 2000
    alike = {"a": frozenset(range(n)) - {1, 2}, "b": frozenset(range(n)) - {1, 3, 4}}
    starts = Starts({at: at for at in range(n)})
    found = compare({"s": [Arm(policy, frozenset(range(n)), won, starts) for policy, won in alike.items()]})
    (one,) = found.all
    assert one.findable is not None
    assert one.findable < 0.008


def test_only_undecided_comparisons_count() -> None:
    found = compare({"s": [CountsAlone("a", (0, 10)), CountsAlone("b", (400, 400)), CountsAlone("c", (401, 402))]})
    assert [one.findable is None for one in found.all] == [True, True, False]
