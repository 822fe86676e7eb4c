"""The gap that undecided comparisons would have found, by the number of episodes of each."""

from __future__ import annotations

import pytest

from comborun.reporter.comparing.claims import claims
from comborun.reporter.comparing.family import compare
from comborun.reporter.comparing.pairing import Arm, CountsAlone
from comborun.reporter.statistics.barnard import detectable_gap


def side(policy: str, n: int, every: int = 2) -> Arm:
    return Arm(policy, frozenset(range(n)), frozenset(range(0, n, every)))


def test_a_policy_with_few_episodes_says_nothing_of_the_others() -> None:
    found = compare({"s": [side("a", 4), side("b", 1000), side("c", 1000)]})
    (group,) = found.environments
    assert group.gaps == ((4, None), (1000, detectable_gap(1000, 0.05 / 3)))
    said = claims(found).undecided[-1]
    assert "With 4 episodes" in said
    assert "With 1000 episodes" in said


def test_only_undecided_comparisons_count() -> None:
    found = compare({"s": [CountsAlone("a", (0, 10)), CountsAlone("b", (400, 400)), CountsAlone("c", (401, 402))]})
    assert [n for n, _ in found.environments[0].gaps] == [400]


@pytest.mark.parametrize("counts", [(100, 100, 100), (80, 90, 100)])
def test_it_is_said_for_which_rates_it_holds(counts: tuple[int, ...]) -> None:
    found = compare({"s": [side(policy, n) for policy, n in zip("abc", counts, strict=True)]})
    assert "at rates near one half" in claims(found).undecided[-1]
    assert [n for n, _ in found.environments[0].gaps] == sorted({*counts[:2]})
