"""The sequential test by betting: its error, its intervals, and what it does with values that are not known."""

from __future__ import annotations

import random
from itertools import product
from math import prod

import pytest

from comborun.reporter.statistics.sequential import BETS, decide_mean, interval_by_betting


def test_equal_policies_are_told_apart_in_no_more_cases_than_promised() -> None:
    rng = random.Random(5)
    claims = 0
    for _ in range(600):
        differences = [rng.random() ** 3 - rng.random() ** 3 for _ in range(60)]
        claims += decide_mean(differences, differences, 60, 0.05).winner != 0
    assert claims <= 60


def test_the_capital_is_a_martingale_for_every_walk_of_verdicts() -> None:
    """The mean over all walks of 8 fair pairs is 1, so that more than 1 / alpha is as unlikely as alpha."""
    capitals = [
        sum(prod(1 + bet * step for step in walk) for bet in BETS) / len(BETS) for walk in product((-1, 1), repeat=8)
    ]
    assert sum(capitals) / len(capitals) == pytest.approx(1)
    reached = [decide_mean(walk, walk, 8, 0.1).winner == 1 for walk in product((-1, 1), repeat=8)]
    assert 0 < sum(reached) / len(reached) <= 0.1


def test_a_clear_difference_ends_early_and_the_other_side_is_its_mirror() -> None:
    differences = [0.6, 0.4, 0.5, 0.7] * 25
    found = decide_mean(differences, differences, 100, 0.025)
    assert (found.winner, found.final) == (1, True)
    assert found.pairs < 20
    mirrored = [-one for one in differences]
    assert decide_mean(mirrored, mirrored, 100, 0.025) == type(found)(found.pairs, -1, final=True)
    assert decide_mean(differences[:5], differences[:5], 100, 0.025).final is False
    assert decide_mean([0.0] * 100, [0.0] * 100, 100, 0.025) == type(found)(100, 0, final=True)


def test_what_is_not_known_counts_against_the_winner() -> None:
    known = [0.5] * 40
    for_a, for_b = [-1.0] * 2 + known, [1.0] * 2 + known
    whole, unsure = decide_mean(known, known, 50, 0.025), decide_mean(for_a, for_b, 50, 0.025)
    assert whole.winner == unsure.winner == 1
    assert unsure.pairs > whole.pairs + 2


@pytest.mark.parametrize("shift", [-0.3, 0.0, 0.3])
def test_the_interval_holds_the_mean_and_shrinks_with_more_pairs(shift: float) -> None:
    rng = random.Random(3)
    differences = [shift + rng.uniform(-0.4, 0.4) for _ in range(400)]
    (low, high), (wide_low, wide_high) = interval_by_betting(differences), interval_by_betting(differences[:40])
    assert low < shift < high
    assert high - low < wide_high - wide_low
    mirrored = interval_by_betting([-one for one in differences])
    assert mirrored == (pytest.approx(-high, abs=2e-4), pytest.approx(-low, abs=2e-4))
