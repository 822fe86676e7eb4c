"""Episodes that are not there: a folder in which one policy has fewer records, and errored ones beside a claim."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from report_runs import summarized

from comborun.reporter.summary import Summary


def told(folder: Path, policies: dict[str, Iterable[tuple[int, object]]]) -> Summary:
    rows = [
        {"policy": policy, "environment": "s", "episode": episode, "success": success}
        for policy, episodes in policies.items()
        for episode, success in episodes
    ]
    return summarized(folder, rows)


HALF = [(episode, episode % 2 == 0) for episode in range(60)]


@pytest.mark.parametrize(
    "kept",
    [
        [(episode, True) for episode, success in HALF if success],
        [(episode, True) for episode in range(30)],
        [(1000 + episode, True) for episode in range(30)],
    ],
    ids=["only successes are recorded", "the last ones are missing", "other indexes"],
)
def test_fewer_records_of_one_policy_are_a_question(kept: Iterable[tuple[int, object]], tmp_path: Path) -> None:
    summary = told(tmp_path, {"A": HALF, "B": kept})
    assert not summary.claims.decided
    assert "B has 30 records in s and A has 60" in summary.claims.undecided[0]
    (found,) = summary.comparisons.all
    assert found.only_completed
    assert found.unknown[1] >= 29


def test_a_difference_that_holds_whatever_is_missing_is_decided_and_names_what_is_missing(tmp_path: Path) -> None:
    summary = told(tmp_path, {"A": [(n, n % 10 == 0) for n in range(60)], "B": [(n, True) for n in range(50)]})
    (claim,) = summary.claims.decided
    assert claim.startswith("B beats A")
    assert "10 of B" in claim
    assert summary.comparisons.all[0].worst_difference == pytest.approx(6 / 60 - 50 / 60)


def test_errored_episodes_are_named_in_a_decided_claim_with_the_difference_if_they_had_failed(tmp_path: Path) -> None:
    errored = [(n, None if n < 12 else True) for n in range(60)]
    summary = told(tmp_path, {"A": [(n, n % 10 == 0) for n in range(60)], "B": errored})
    (claim,) = summary.claims.decided
    assert "12 of B" in claim
    assert "+70.0 points" in claim


def test_equal_numbers_of_records_are_no_question(tmp_path: Path) -> None:
    summary = told(tmp_path, {"A": HALF, "B": [(n, n % 3 > 0) for n in range(60)]})
    (found,) = summary.comparisons.all
    assert found.worst_difference is None
    assert not summary.quality.findings


def test_an_undecided_difference_of_pairs_says_of_which_episodes_it_is(tmp_path: Path) -> None:
    """B is missing where A fails: of all episodes A's rate is the lower one, of those of both the higher one."""
    rows = [
        {"policy": policy, "environment": "s", "episode": at, "seed": at, "success": at >= 30 + 7 * (policy == "B")}
        for policy in "AB"
        for at in range(30 * (policy == "B"), 60)
    ]
    summary = summarized(tmp_path, rows)
    assert [combo.rate and combo.rate.rate for combo in summary.combos] == [0.5, pytest.approx(23 / 30)]
    assert any(
        "A minus B is +23.3 points" in one and "in the 30 episodes of both" in one for one in summary.claims.undecided
    )


@pytest.mark.parametrize("name", ["README.txt", "readme", "LICENSE.txt", "notes.txt"])
def test_texts_for_people_hold_no_results(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("Success: True\n# episodes completed so far: 1\n")
    summary = told(tmp_path, {"A": HALF, "B": HALF})
    assert ([combo.environment for combo in summary.combos] == ["s", "s"]) is (name != "notes.txt")
