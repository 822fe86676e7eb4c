"""Folders that lead to false claims if their fields are read naively."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from report_runs import summarized

from comborun.reporter.pages.answer import answer
from comborun.reporter.summary import Summary

Change = Callable[[dict[str, Any]], Mapping[str, Any]]


def rows(change: Change, count: int = 100) -> list[dict[str, Any]]:
    drawn = random.Random(8)
    found = []
    for policy, rate in (("A", 0.8), ("B", 0.5)):
        for at in range(count):
            success = drawn.random() < rate
            row = {"policy": policy, "environment": "s", "episode": at, "seed": at, "success": success}
            found.append({**row, **change(row)})
    return found


def codes(summary: Summary) -> set[str]:
    (found,) = summary.comparisons.all
    return {fact.code for fact in found.facts}


@pytest.mark.parametrize("name", ["train_seed", "training_seed", "run", "run_id", "replica", "policy_seed"])
def test_a_field_that_names_runs_makes_them_the_unit(name: str, tmp_path: Path) -> None:
    summary = summarized(tmp_path, rows(lambda row: {name: row["episode"] % 4}))
    assert "run_as_random_effect" in codes(summary)
    (found,) = summary.comparisons.all
    assert found.paired  # by the seeds of episodes


def test_a_run_of_each_episode_is_no_run(tmp_path: Path) -> None:
    assert codes(summarized(tmp_path, rows(lambda row: {"run_id": f"r{row['episode']}"}))) == set()


def test_a_seed_that_comes_again_and_again_counts_once_and_the_claim_says_so(tmp_path: Path) -> None:
    summary = summarized(tmp_path, rows(lambda row: {"seed": row["episode"] % 3}))
    assert not summary.claims.decided
    assert "starts_repeat" in codes(summary)
    assert "3 different starts" in summary.claims.undecided[0]


@pytest.mark.parametrize(("a", "b"), [("pick_cube", "pick-cube"), ("Pick  cube", "pick cube"), ("π0", "π₀")])
def test_names_that_may_mean_the_same_are_told(a: str, b: str, tmp_path: Path) -> None:
    summary = summarized(tmp_path, rows(lambda row: {"environment": a if row["policy"] == "A" else b}))
    assert any(finding.where == "names" for finding in summary.quality.findings)


@pytest.mark.parametrize(("a", "b"), [("Pick-v1", "Pick-v2"), ("pi1.0", "pi10"), ("a1", "a11")])
def test_other_names_are_not(a: str, b: str, tmp_path: Path) -> None:
    summary = summarized(tmp_path, rows(lambda row: {"environment": a if row["policy"] == "A" else b}))
    assert not any(finding.where == "names" for finding in summary.quality.findings)


def test_a_time_of_zero_is_none(tmp_path: Path) -> None:
    summary = summarized(tmp_path, rows(lambda row: {"time_s": 12.0 + row["episode"] % 5 if row["success"] else 0.0}))
    assert all(combo.metrics[0].mean > 12 for combo in summary.combos)


def returns(row: dict[str, Any]) -> Mapping[str, Any]:
    return {"return": random.Random(row["episode"]).gauss(10 if row["policy"] == "A" else 7, 2)}


def without_verdict(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in row.items() if key != "success"} for row in found]


def test_a_folder_of_returns_is_compared_by_them(tmp_path: Path) -> None:
    summary = summarized(tmp_path, without_verdict(rows(returns)))
    assert answer(summary).startswith("A beats B by return")
    assert summary.totals.errored == 0
    assert [one.what for one in summary.quality.findings if "errored" in one.what] == []


@pytest.mark.parametrize(
    "more",
    [
        lambda row: {"failure": not row["success"]},
        lambda row: {"solved": int(row["success"])},
        lambda row: {"success": None} if row["episode"] == 0 else {},
    ],
    ids=["another flag", "another 0 or 1", "one has the field"],
)
def test_a_folder_that_may_have_verdicts_is_not(more: Change, tmp_path: Path) -> None:
    full = rows(returns)
    found = [{**stripped, **more(row)} for row, stripped in zip(full, without_verdict(full), strict=True)]
    assert summarized(tmp_path, found).totals.errored == 200
