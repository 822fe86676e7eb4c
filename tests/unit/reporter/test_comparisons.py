"""Which episodes are pairs, what is compared with what, and what is said of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from report_runs import episode
from scipy.stats import barnard_exact, binomtest

from comborun.model.attempt import EpisodeRecord, Verdict, packed
from comborun.reporter.comparing.claims import claims, prevented
from comborun.reporter.comparing.comparison import Comparison
from comborun.reporter.comparing.family import Comparisons, compare
from comborun.reporter.comparing.pairing import meet, pairs_in_order
from comborun.reporter.comparing.sides import Arm, CountsAlone, arm, outcomes
from comborun.reporter.evidence.starts import Settled
from comborun.reporter.merge import merge
from comborun.reporter.statistics.difference import holm
from comborun.reporter.statistics.findable import detectable_gap


def episodes(policy: str, marks: str, seed: int | None = 1000, **fields: object) -> list[EpisodeRecord]:
    """An episode per mark; a blank means no episode. Fields are formatted with the index."""
    filled = ({name: str(value).format(index) for name, value in fields.items()} for index in range(len(marks)))
    return [
        episode(index, mark, policy, seed=None if seed is None else seed + index, **more)
        for index, (mark, more) in enumerate(zip(marks, filled, strict=True))
        if mark != " "
    ]


def side(policy: str, marks: str, seed: int | None = 1000, **fields: object) -> Arm:
    return arm_of(episodes(policy, marks, seed, **fields))


def arm_of(records: list[EpisodeRecord], caution: str = "") -> Arm:
    (combo,) = merge(records, {})
    return arm(combo, Settled(caution) if caution else None)


def only(comparisons: Comparisons) -> Comparison:
    (comparison,) = comparisons.all
    return comparison


CAUTION = "numbered in the order of ending"
HASHED = {"init_hash": "x{}"}
SOME = [replace(record, seed=None) if record.episode else record for record in episodes("a", "+-+")]
GAPPED = [*episodes("b", "+-", init_hash="y{}"), *episodes("b", "  +")]


@pytest.mark.parametrize(
    ("a", "b", "paired", "why"),
    [
        (side("a", "++-+!"), side("b", "+- ++-"), True, "equal seeds in all 3 common episodes"),
        (side("a", "++"), side("b", "  ++"), False, "no episode index in common"),
        (side("a", "!!"), side("b", "++"), False, "no episode index in common"),
        (side("a", "++", None), side("b", "++", None), False, "no seeds in the records"),
        (arm_of(SOME), side("b", "+++"), False, "no seeds in the records in 2 of 3 common episodes"),
        (side("a", "++", 1), side("b", "++", 2), False, "seeds differ"),
        (arm_of(episodes("a", "+-"), CAUTION), side("b", "+-"), False, CAUTION),
        (side("a", "+-"), arm_of(episodes("b", "+-"), CAUTION), False, CAUTION),
        (
            *(side("a", "+-", None, **HASHED), side("b", "++", None, **HASHED)),
            *(True, "equal initial states (init_hash) in all 2 common episodes"),
        ),
        (
            *(side("a", "+-+", **HASHED), arm_of(GAPPED)),
            *(False, "initial states (init_hash) differ in 2 of 3 common episodes"),
        ),
        (
            *(arm_of(episodes("a", "+-", **HASHED), CAUTION), side("b", "++", **HASHED)),
            *(True, "equal initial states (init_hash) in all 2 common episodes"),
        ),
    ],
)
def test_episodes_are_pairs_where_all_are_shown_to_start_the_same(a: Arm, b: Arm, paired: bool, why: str) -> None:
    found = meet("", a, b)
    assert (found.paired, found.why) == (paired, why)


def test_nobody_wins_a_pair_without_a_verdict() -> None:
    a, b = side("a", "++-!+"), side("b", "+--+!")
    assert outcomes(a, b, pairs_in_order(a, b, range(5))[0]) == (0, 1, 0, 0, 0)


def test_paired_episodes_are_compared_by_mcnemar_on_the_common_ones() -> None:
    found = only(compare({"stairs": [side("a", "++++++++-+ "), side("b", "-------++-+")]}))
    assert found.pairs is not None
    assert (found.pairs.both, found.pairs.only_a, found.pairs.only_b, found.pairs.neither) == (1, 8, 1, 0)
    assert (found.rate_a.successes, found.rate_a.n, found.rate_b.successes, found.rate_b.n) == (9, 10, 2, 10)
    assert found.difference == pytest.approx(0.7)
    assert found.p == pytest.approx(binomtest(1, 9).pvalue, abs=1e-12)
    assert (found.test, found.interval_method) == ("exact McNemar", "Zou-Donner")


def test_unpaired_episodes_are_compared_by_barnard_on_all_of_each() -> None:
    found = only(compare({"stairs": [side("a", "+++++++---", None), side("b", "+++---------", None)]}))
    assert found.pairs is None
    assert (found.rate_a.n, found.rate_b.n) == (10, 12)
    assert found.p == pytest.approx(barnard_exact([[7, 3], [3, 9]], n=256).pvalue, abs=1e-6)
    assert (found.test, found.interval_method) == ("Barnard", "Newcombe")


def three(seed: int | None = 1000) -> list[Arm]:
    return [side("best", "+" * 38 + "--", seed), side("good", "+" * 32 + "-" * 8, seed), side("bad", "-" * 40, seed)]


def test_every_pair_of_every_environment_is_corrected_for_all_of_them() -> None:
    from statsmodels.stats.multitest import multipletests

    found = compare({"stairs": three(), "grass": three(None)})
    family = found.all
    assert found.size == len(family) == 6
    ps = [one.p for one in (*found.overall, *family)]
    weights = [1 / 3] * 3 + [1 / 6] * 6  # one half of the error each
    assert [one.p_holm for one in (*found.overall, *family)] == pytest.approx(holm(ps, weights), abs=1e-12)
    alone = compare({"stairs": three()}).all
    expected = multipletests([one.p for one in alone], method="holm")[1]
    assert [one.p_holm for one in alone] == pytest.approx(expected, abs=1e-12)
    assert found.environments[0].letters == (("best", "a"), ("good", "a"), ("bad", "b"))
    assert found.letters_by_combo()["bad", "stairs"] == "b"


def test_a_policy_without_completed_episodes_is_left_out_and_named() -> None:
    found = compare({"stairs": [side("a", "++"), side("b", "!!"), side("c", "--")], "grass": [side("a", "+")]})
    assert [(comparison.a, comparison.b) for comparison in found.environments[0].comparisons] == [("a", "c")]
    assert found.left_out == (("stairs", ("b",)),)
    assert compare({"stairs": [CountsAlone("a", (0, 0)), side("b", "++")]}).left_out == (("stairs", ("a",)),)


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
            "rough beats flat in stairs: 38/40 = 95.0 % against 2/40 = 5.0 %, +90.0 points [+66.2, +98.8], paired"
            " (exact McNemar), Holm p < 0.0001."
        ),
    )
    assert found.undecided == ()


def test_claims_stand_by_environment_and_then_the_largest_difference_first() -> None:
    found = claims(compare({"stairs": three(), "grass": three()}))
    assert [claim.split(":")[0] for claim in found.decided] == [
        "Overall best beats bad",
        "Overall good beats bad",
        "Overall best beats good",
        "best beats bad in stairs",
        "good beats bad in stairs",
        "best beats bad in grass",
        "good beats bad in grass",
    ]


def test_the_gap_that_could_be_found_grows_with_the_family() -> None:
    (stairs, _) = compare({"stairs": three(), "grass": three(None)}).environments
    assert stairs.n == 40
    assert stairs.gap == detectable_gap(40, 0.05)
    assert stairs.gap_in_family == detectable_gap(40, 0.05 / 12)


def test_episodes_that_crashed_are_not_left_out_of_a_claim() -> None:
    crashed, honest = side("a", "+" * 50 + "!" * 50, None), side("b", "+" * 63 + "-" * 37, None)
    one = only(compare({"stairs": [crashed, honest]}))
    assert one.p_holm < 0.0001
    assert (one.decided, one.only_completed, one.better, one.unknown) == (False, True, None, (50, 0))
    found = claims(compare({"stairs": [crashed, honest]}), {("a", "stairs"): "exit code 1"})
    assert found.decided == ()
    assert found.undecided[0].startswith("Only among completed episodes: a beats b in stairs: 50/50 = 100.0 % against")
    assert "50 of a (exit code 1)" in found.undecided[0]


@pytest.mark.parametrize("seed", [1000, None])
def test_a_claim_survives_a_few_missing_episodes(seed: int | None) -> None:
    one = only(compare({"stairs": [side("a", "+" * 38 + " !" + "+" * 10, seed), side("b", "-" * 50, seed)]}))
    assert (one.decided, one.unknown) == (True, (2, 0))
    assert one.worst_p >= one.p


def test_an_episode_with_two_outcomes_counts_against_the_claim() -> None:
    records = [*episodes("a", "+" * 6), *(replace(one, verdict=Verdict.FAILURE) for one in episodes("a", "++"))]
    one = only(compare({"stairs": [arm_of(records), side("b", "-" * 6)]}))
    assert (one.p, one.unknown) == (2 / 2**6, (2, 0))
    assert one.worst_p == pytest.approx(2 / 2**4)


def repeated(policy: str, marks: str, starts: int, field: str = "seed") -> Arm:
    """Episodes whose starts come again after as many."""
    found = episodes(policy, marks, None, **({"init_hash": "x{}"} if field == "hash" else {}))
    if field == "hash":
        return arm_of([replace(one, **packed(extra={"init_hash": f"x{one.episode % starts}"})) for one in found])
    return arm_of([replace(one, seed=one.episode % starts) for one in found])


@pytest.mark.parametrize("field", ["seed", "hash"])
def test_a_start_that_comes_again_is_no_new_evidence(field: str) -> None:
    one = only(compare({"stairs": [repeated("a", "++++-" * 20, 5, field), repeated("b", "-----" * 20, 5, field)]}))
    assert one.pairs is not None
    assert (one.pairs.n, one.pairs.only_a, one.rate_a.n, one.rate_a.starts) == (5, 4, 100, 5)
    assert one.p == pytest.approx(2 / 2**4)
    assert not one.decided
    low, high = one.rate_a.interval or (0, 0)
    assert (low, high) == pytest.approx((0.2836, 0.9949), abs=1e-4)


def test_repeated_starts_are_counted_once_without_pairs_too() -> None:
    a, b = repeated("a", "++++-" * 20, 5), repeated("b", "-" * 100, 50)
    one = only(compare({"stairs": [a, b]}))
    assert (one.paired, one.rate_a.starts, one.rate_b.starts) == (False, 5, 50)
    assert one.p == pytest.approx(barnard_exact([[4, 0], [1, 50]], n=256).pvalue, abs=2e-8)


def many(policy: str, marks: str, environments: int = 10) -> dict[str, Arm]:
    return {f"e{index}": side(policy, marks) for index in range(environments)}


def test_what_no_environment_shows_all_of_them_together_may() -> None:
    a, b = many("a", "+++-" + "+-" * 8), many("b", "--+-" + "+-" * 8)
    found = compare({name: [a[name], b[name]] for name in a})
    assert not any(one.decided for one in found.all)
    (overall,) = found.overall
    assert (overall.better, overall.environments, overall.paired) == ("a", 10, 10)
    assert overall.difference == pytest.approx(0.1)
    assert overall.p == pytest.approx(2 / 2**20, rel=1e-6)
    assert overall.interval[0] < 0.1 < overall.interval[1]
    assert (
        claims(found).decided[0].startswith("Overall a beats b: mean rate 55.0 % against 45.0 % over 10 environments")
    )


def test_an_overall_claim_must_hold_with_the_missing_episodes_against_it_too() -> None:
    a, b = many("a", "+++-" + "!!!!!!"), many("b", "--+-" + "+-" * 3)
    (overall,) = compare({name: [a[name], b[name]] for name in a}).overall
    assert (overall.decided, overall.only_completed, overall.unknown) == (False, True, (60, 0))


def test_differences_that_are_not_the_same_everywhere_are_told() -> None:
    up, down = "+" * 30 + "-" * 10, "+" * 10 + "-" * 30
    environments = {
        f"e{index}": [side("a", up if index else down), side("b", down if index else up)] for index in range(4)
    }
    (overall,) = compare(environments).overall
    assert overall.heterogeneity < 0.001
    assert overall.range == (-0.5, 0.5)
    told = [sentence for sentence in claims(compare(environments)).decided if sentence.startswith("Overall")]
    assert "not the same everywhere, −50.0 to +50.0 (Cochran" in told[0]


def test_ranks_are_those_that_the_overall_comparisons_leave_open() -> None:
    arms = [many(name, marks, 3) for name, marks in (("a", "+" * 20), ("b", "+" * 19 + "-"), ("c", "-" * 20))]
    found = compare({name: [one[name] for one in arms] for name in arms[0]})
    assert [found.rank(name) for name in "abc"] == [(1, 2), (1, 2), (3, 3)]


def test_too_many_comparisons_are_none_and_the_report_says_so() -> None:
    policies = [side(f"policy{number}", "+-") for number in range(202)]
    found = compare({"stairs": policies})
    assert (found.all, found.too_many) == ((), 202 * 201 // 2)
    (told,) = prevented(found)
    assert "20301" in told.what


def test_environments_of_single_episodes_are_told_together() -> None:
    cells = {f"t{n}": [side("a", "+-"[n % 2]), side("b", "-")] for n in range(6)}
    several = {"many": [side("a", "+-+-"), side("b", "--+-")]}
    (single, alone) = (claims(compare(one)).undecided for one in ({**cells, **several}, {"t0": cells["t0"]}))
    assert sum("single episodes" in one.lower() for one in single) == 1
    assert any(
        one.startswith("Single episodes decide nothing in 6 environments: t0, t1, t2 and 3 more.") for one in single
    )
    assert [one.split(":")[0] for one in single if one.startswith("Not decided in")] == ["Not decided in many"]
    assert alone[0].startswith("Not decided in t0")
