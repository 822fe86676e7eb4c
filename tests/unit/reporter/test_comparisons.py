"""Which episodes are pairs, what is compared with what, and what is said of it."""

from __future__ import annotations

import random

import pytest
from scipy.stats import barnard_exact, binomtest
from statsmodels.stats.multitest import multipletests

from comborun.attempt import EpisodeRecord, Verdict
from comborun.reporter.comparing.claims import claims
from comborun.reporter.comparing.comparisons import Comparison, Comparisons, compare
from comborun.reporter.comparing.pairing import Arm, Counted, arm, paired_outcomes, pairing
from comborun.reporter.statistics.barnard import paired_gap

VERDICTS = {"+": Verdict.SUCCESS, "-": Verdict.FAILURE, "!": Verdict.ERRORED}


def episodes(policy: str, marks: str, seed: int | None = 1000, **fields: object) -> list[EpisodeRecord]:
    """An episode per mark: `+` success, `-` failure, `!` errored, a blank for none. Fields are formatted with the
    index."""
    return [
        EpisodeRecord(
            policy,
            "stairs",
            index,
            VERDICTS[mark],
            seed=None if seed is None else seed + index,
            extra={name: str(value).format(index) for name, value in fields.items()},
        )
        for index, mark in enumerate(marks)
        if mark != " "
    ]


def side(policy: str, marks: str, seed: int | None = 1000, **fields: object) -> Arm:
    return arm(policy, episodes(policy, marks, seed, **fields))


def only(comparisons: Comparisons) -> Comparison:
    (comparison,) = comparisons.all
    return comparison


def test_equal_seeds_of_all_common_episodes_make_pairs() -> None:
    found = pairing(side("a", "++-+!"), side("b", "+- ++-"))
    assert found.paired
    assert found.why == "equal seeds in all 3 common episodes"


@pytest.mark.parametrize(
    ("a", "b", "why"),
    [
        (side("a", "++"), side("b", "  ++"), "no episode index in common"),
        (side("a", "++", None), side("b", "++", None), "no seeds in the records"),
        (side("a", "++", 1), side("b", "++", 2), "seeds differ in 2 of 2 common episodes"),
        (side("a", "!!"), side("b", "++"), "no episode index in common"),
    ],
)
def test_without_that_they_are_no_pairs_and_it_is_said_why(a: Arm, b: Arm, why: str) -> None:
    found = pairing(a, b)
    assert not found.paired
    assert found.why == why


def test_a_single_seed_for_all_episodes_shows_nothing() -> None:
    same = [record.but(seed=7) for record in episodes("a", "+-+-")]
    found = pairing(arm("a", same), arm("b", same))
    assert not found.paired
    assert found.why == "only 1 different seeds in 4 common episodes, which says nothing of equal starts"


def test_seeds_of_only_some_episodes_are_not_enough() -> None:
    some = [record.but(seed=None) if record.episode else record for record in episodes("a", "+-+")]
    assert pairing(arm("a", some), side("b", "+++")).why == "seeds for only 1 of 3 episodes"


def test_hashes_of_initial_states_say_more_than_seeds() -> None:
    a, b = side("a", "+-", init_hash="x{}"), side("b", "++", init_hash="x{}")
    assert pairing(a, b).why == "equal initial states (init_hash) in all 2 common episodes"
    other = side("b", "++", init_hash="y{}")
    assert pairing(a, other).why == "initial states (init_hash) differ in 2 of 2 common episodes"
    without_seeds = (side("a", "+-", None, init_hash="x{}"), side("b", "++", None, init_hash="x{}"))
    assert pairing(*without_seeds).paired


def test_pairs_stand_in_index_order_up_to_the_first_gap() -> None:
    a, b = side("a", "++-!+ +"), side("b", "+--++++")
    assert paired_outcomes(a, b, range(7))[0] == (0, 1, 0, 0, 0)
    assert paired_outcomes(b, a, range(7))[0] == (0, -1, 0, 0, 0)
    assert paired_outcomes(a, b, range(6, 7))[0] == (0,)
    assert paired_outcomes(a, b, [])[0] == ()


def test_pairs_are_the_same_whatever_order_the_records_came_in() -> None:
    records = episodes("a", "+-++--+! +")
    shuffled = random.Random(1).sample(records, len(records))
    other = side("b", "--+++-+-++")
    assert (
        paired_outcomes(arm("a", shuffled), other, range(10))[0]
        == paired_outcomes(arm("a", records), other, range(10))[0]
    )


def test_paired_episodes_are_compared_by_mcnemar_on_the_common_ones() -> None:
    found = only(compare({"stairs": [side("a", "++++++++-+ "), side("b", "-------++-+")]}))
    assert found.pairs is not None
    assert (found.pairs.both, found.pairs.only_a, found.pairs.only_b, found.pairs.neither) == (1, 8, 1, 0)
    assert (found.rate_a.successes, found.rate_a.n, found.rate_b.successes, found.rate_b.n) == (9, 10, 2, 10)
    assert found.difference == pytest.approx(0.7)
    assert found.p == pytest.approx(binomtest(1, 9).pvalue, abs=1e-12)
    assert (found.test, found.interval_method) == ("exact McNemar", "Bonett-Price")


def test_unpaired_episodes_are_compared_by_barnard_on_all_of_each() -> None:
    found = only(compare({"stairs": [side("a", "+++++++---", None), side("b", "+++---------", None)]}))
    assert found.pairs is None
    assert (found.rate_a.n, found.rate_b.n) == (10, 12)
    assert found.p == pytest.approx(barnard_exact([[7, 3], [3, 9]], n=256).pvalue, abs=1e-6)
    assert (found.test, found.interval_method) == ("Barnard", "Newcombe")


def test_swapping_two_policies_turns_the_sign_and_nothing_else() -> None:
    for seed in (1000, None):
        a, b = side("a", "+++-+++++-", seed), side("b", "--+---+-+-", seed)
        one, other = only(compare({"stairs": [a, b]})), only(compare({"stairs": [b, a]}))
        assert other.difference == -one.difference
        assert other.interval == pytest.approx((-one.interval[1], -one.interval[0]), abs=1e-12)
        assert other.p == pytest.approx(one.p, rel=1e-7)
        assert one.better == other.better


def three(seed: int | None = 1000) -> list[Arm]:
    return [side("best", "+" * 38 + "--", seed), side("good", "+" * 32 + "-" * 8, seed), side("bad", "-" * 40, seed)]


def test_every_pair_of_every_environment_is_corrected_for_all_of_them() -> None:
    found = compare({"stairs": three(), "grass": three(None)})
    family = found.all
    assert found.size == len(family) == 6
    expected = multipletests([comparison.p for comparison in family], method="holm")[1]
    assert [comparison.p_holm for comparison in family] == pytest.approx(expected, abs=1e-12)
    assert found.environments[0].letters == (("best", "a"), ("good", "a"), ("bad", "b"))
    assert found.letters_of("bad", "stairs") == "b"


def test_a_policy_without_completed_episodes_is_left_out_and_named() -> None:
    found = compare({"stairs": [side("a", "++"), side("b", "!!"), side("c", "--")], "grass": [side("a", "+")]})
    assert [(comparison.a, comparison.b) for comparison in found.environments[0].comparisons] == [("a", "c")]
    assert found.left_out == (("stairs", ("b",)),)
    assert claims(found).left_out == ("Not compared in stairs: b (no completed episode).",)


@pytest.mark.parametrize("environments", [{}, {"stairs": []}, {"stairs": [side("a", "++")]}])
def test_where_there_is_nothing_to_compare_nothing_is(environments: dict[str, list[Arm]]) -> None:
    found = compare(environments)
    assert (found.environments, found.size, found.left_out) == ((), 0, ())
    assert claims(found).decided == claims(found).undecided == claims(found).told == ()


@pytest.mark.parametrize(("a", "b"), [("+", "-"), ("+++", "+++"), ("---", "---"), ("+", "+")])
@pytest.mark.parametrize("seed", [1000, None])
def test_the_smallest_and_the_most_equal_runs_can_be_compared(a: str, b: str, seed: int | None) -> None:
    found = only(compare({"stairs": [side("a", a, seed), side("b", b, seed)]}))
    assert 0 < found.p <= 1
    assert -1 <= found.interval[0] <= found.difference <= found.interval[1] <= 1
    assert found.better is None


def test_a_decided_comparison_is_claimed_from_the_better_ones_side() -> None:
    found = claims(compare({"stairs": [side("flat", "-" * 38 + "++"), side("rough", "+" * 38 + "--")]}))
    assert found.decided == (
        (
            "rough beats flat in stairs: +90.0 points [+70.1, +100.0], paired (exact McNemar), 40 episodes each,"
            " Holm p < 0.0001."
        ),
    )
    assert found.undecided == ()


def test_what_is_not_decided_is_said_with_what_could_have_been() -> None:
    found = claims(compare({"stairs": [side("flat", "+-+-+-+-+-", None), side("rough", "+++-+-+-+-", None)]}))
    assert found.undecided == (
        (
            "Not decided in stairs: flat minus rough is −10.0 points [−45.1, +29.0], Holm p = 0.82."
            " With 10 episodes and the one comparison made, a true gap of 60 points would be found 4 times in 5."
        ),
    )
    assert found.decided == ()


def test_too_few_episodes_are_said_to_be_too_few() -> None:
    one, two = (
        claims(compare({"stairs": [side("flat", "+" * n), side("rough", "-" * n)]})).undecided[0] for n in (1, 2)
    )
    assert " With 1 episode and the one comparison made, " in one
    assert two.endswith("With 2 episodes and the one comparison made, no difference at all could have been found.")


def test_many_undecided_pairs_are_named_without_their_numbers() -> None:
    (undecided,) = claims(compare({"stairs": [side(name, "+-") for name in "abcde"]})).undecided
    assert undecided.startswith("Not decided in stairs: a and b; a and c; a and d; a and e; b and c;")


def test_claims_stand_by_environment_and_then_the_largest_difference_first() -> None:
    found = claims(compare({"stairs": three(), "grass": three()}))
    assert [claim.split(":")[0] for claim in found.decided] == [
        "best beats bad in stairs",
        "good beats bad in stairs",
        "best beats bad in grass",
        "good beats bad in grass",
    ]


def test_that_nothing_is_decided_is_told_first() -> None:
    found = claims(compare({"stairs": [side("a", "+-"), side("b", "+-")]}))
    assert found.told == ("No comparison is decided.", found.undecided[0])


def test_what_a_caution_says_forbids_pairing_by_seed_but_not_by_state() -> None:
    marks = "+-+-"
    numbered = arm("a", episodes("a", marks), unpaired="numbered in the order of ending")
    assert pairing(numbered, side("b", marks)).why == "numbered in the order of ending"
    assert pairing(side("b", marks), numbered).why == "numbered in the order of ending"
    hashed = arm("a", episodes("a", marks, init_hash="x{}"), unpaired="numbered in the order of ending")
    assert pairing(hashed, side("b", marks, init_hash="x{}")).paired


def test_counts_without_episodes_are_compared_unpaired() -> None:
    found = only(compare({"stairs": [Counted("a", (7, 10)), side("b", "+++---------")]}))
    assert found.pairing == "counts alone, without episodes"
    assert (found.rate_a.n, found.rate_b.n, found.test) == (10, 12, "Barnard")
    assert compare({"stairs": [Counted("a", (0, 0)), side("b", "++")]}).left_out == (("stairs", ("a",)),)


def test_what_only_one_policy_completed_is_in_no_pair() -> None:
    found = only(compare({"stairs": [side("a", "+++ !-"), side("b", "+- ++-+++")]}))
    assert found.pairs is not None
    assert (found.pairs.both, found.pairs.only_a, found.pairs.only_b, found.pairs.neither) == (1, 1, 0, 1)


def test_the_gap_that_could_be_found_grows_with_the_family() -> None:
    (stairs, _) = compare({"stairs": three(), "grass": three(None)}).environments
    assert stairs.detectable.n == 40
    assert stairs.detectable.alone == paired_gap(40, 0.05)
    assert stairs.detectable.in_family == paired_gap(40, 0.05 / 6)
