"""Episodes that are not there: a folder in which one policy has fewer records, and errored ones beside a claim."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from comborun.reporter.collect import collect_folder
from comborun.reporter.summary import Summary, summarize


def told(folder: Path, policies: dict[str, Iterable[tuple[int, object]]]) -> Summary:
    rows = [
        {"policy": policy, "environment": "s", "episode": episode, "success": success}
        for policy, episodes in policies.items()
        for episode, success in episodes
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return summarize(collect_folder(folder)).summary


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
