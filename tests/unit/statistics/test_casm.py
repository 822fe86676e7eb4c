"""CASM: its size by counting every walk, its cost against the table, and what must not change a decision."""

from __future__ import annotations

import random
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comborun.reporter.statistics.difference import PairCounts
from comborun.reporter.statistics.sequential import decide, decide_both, interval_after_stopping, pointless_after

OUTCOMES = st.lists(st.sampled_from((-1, 0, 1)), max_size=60)


def pairs(p: float, q: float, n: int, seed: int) -> list[int]:
    """Independent episodes of two policies with these success rates."""
    rng = random.Random(seed)
    return [(rng.random() < p) - (rng.random() < q) for _ in range(n)]


@pytest.mark.parametrize("alpha", [0.025, 0.05, 0.2])
@pytest.mark.parametrize("pattern", ["1" * 12, "010110111011", "000000111111", "111111000000", "000000000001"])
def test_given_when_pairs_differ_a_fair_coin_is_claimed_at_most_alpha_per_side(pattern: str, alpha: float) -> None:
    """Every one of the equally likely walks, so the size is exact, whatever makes pairs differ."""
    rule = len(pattern), alpha
    claims = {1: 0, -1: 0, 0: 0}
    walks = list(product((-1, 1), repeat=pattern.count("1")))
    for walk in walks:
        coins = iter(walk)
        claims[decide([next(coins) if mark == "1" else 0 for mark in pattern], *rule).winner] += 1
    assert claims[1] == claims[-1] <= alpha * len(walks)


@pytest.mark.parametrize(
    ("p", "q", "alpha", "mean_pairs", "power"),
    [
        (0.9, 0.5, 0.05, 22.1, 1.0),
        (0.8, 0.5, 0.05, 34.8, 0.995),
        (0.7, 0.5, 0.05, 59.3, 0.842),
        (0.6, 0.5, 0.05, 86.1, 0.335),
        (0.95, 0.85, 0.05, 71.6, 0.684),
        (0.9, 0.5, 0.025, 25.0, 1.0),
        (0.7, 0.5, 0.025, 67.9, 0.738),
        (0.3, 0.1, 0.025, 54.7, 0.912),
    ],
)
def test_power_and_the_mean_number_of_pairs_are_those_of_the_table(
    p: float, q: float, alpha: float, mean_pairs: float, power: float
) -> None:
    runs = 1200
    found = [decide(pairs(p, q, 100, seed), 100, alpha) for seed in range(runs)]
    assert sum(decision.pairs for decision in found) / runs == pytest.approx(mean_pairs, rel=0.05)
    assert sum(decision.winner == 1 for decision in found) / runs == pytest.approx(power, abs=0.045)


@given(OUTCOMES)
def test_swapping_the_policies_turns_the_winner_and_nothing_else(outcomes: list[int]) -> None:
    rule = 60, 0.05
    one, other = decide(outcomes, *rule), decide([-outcome for outcome in outcomes], *rule)
    assert (one.pairs, one.winner, one.final) == (other.pairs, -other.winner, other.final)


@given(OUTCOMES)
def test_looking_after_every_pair_or_once_at_the_end_gives_the_same_decision(outcomes: list[int]) -> None:
    rule = 60, 0.2
    looked = [decide(outcomes[:count], *rule) for count in range(len(outcomes) + 1)]
    first = next((decision for decision in looked if decision.final), looked[-1])
    assert first == decide(outcomes, *rule)


def test_without_a_difference_there_is_no_claim_and_n_max_ends_it() -> None:
    assert decide([0] * 30, 30, 0.05) == decide([0] * 99, 30, 0.05)
    decision = decide([0] * 30, 30, 0.05)
    assert (decision.pairs, decision.winner, decision.final) == (30, 0, True)
    assert not decide([0] * 29, 30, 0.05).final
    assert decide([], 30, 0.05).pairs == 0


@given(OUTCOMES, st.lists(st.booleans(), min_size=60, max_size=60))
def test_a_claim_made_with_unknown_outcomes_against_it_is_made_with_the_known_ones_too(
    outcomes: list[int], unknown: list[bool]
) -> None:
    for_a = [-1 if lost else outcome for outcome, lost in zip(outcomes, unknown, strict=False)]
    for_b = [1 if lost else outcome for outcome, lost in zip(outcomes, unknown, strict=False)]
    decision = decide_both(for_a, for_b, 60, 0.2)
    if decision.winner:
        against = for_a if decision.winner > 0 else for_b
        assert decide(against, 60, 0.2) == decision
    assert decide_both([-one for one in for_b], [-one for one in for_a], 60, 0.2).winner == -decision.winner


@pytest.mark.parametrize(("p", "q", "mean_pairs", "power"), [(0.5, 0.5, 73, 0.025), (0.7, 0.5, 59, 0.728)])
def test_giving_up_saves_pairs_of_equal_policies_at_the_cost_of_little_power(
    p: float, q: float, mean_pairs: float, power: float
) -> None:
    """Without giving up it is 97.6 and 66 pairs, and a power of .749."""
    runs, used, claims = 400, 0, 0
    for seed in range(runs):
        outcomes = pairs(p, q, 100, seed)
        decision = decide(outcomes, 100, 0.025)
        ended = pointless_after(outcomes[: decision.pairs], (100, 0.025), 0.2, 0.0)
        used += ended or decision.pairs
        claims += ended is None and decision.winner == 1
    assert used / runs == pytest.approx(mean_pairs, abs=6)
    assert claims / runs == pytest.approx(power, abs=0.05)


def test_a_wanted_width_ends_a_test_as_soon_as_its_interval_is_narrow() -> None:
    outcomes = pairs(0.6, 0.5, 400, 3)
    ended = pointless_after(outcomes, (400, 0.025), 0.0, 0.25)
    assert ended is not None

    def width(count: int) -> float:
        used = outcomes[:count]
        low, high = interval_after_stopping(PairCounts(used.count(0), used.count(1), used.count(-1), 0))
        return high - low

    assert width(ended) <= 0.25 < width(ended - 1)
    assert pointless_after(outcomes, (400, 0.025), 0.0, 0.0) is None
    assert pointless_after(outcomes[:19], (400, 0.025), 0.9, 0.9) is None
