"""How alike the episodes of one start go, and one-sided limits of rates."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import pytest
from report_runs import summarized
from scipy.stats import beta

from comborun.reporter.counting.measures import consistency
from comborun.reporter.pages.document import report_json

STARTS = ["++++", "++--", "----", "+---", "+++"]


def test_pass_k_and_agreement_are_shares_of_all_draws_without_putting_back() -> None:
    groups, successes, at = [], set(), 0
    for marks in STARTS:
        groups.append(frozenset(range(at, at + len(marks))))
        successes |= {at + place for place, mark in enumerate(marks) if mark == "+"}
        at += len(marks)
    found = consistency(groups, successes)
    assert found is not None
    assert (found.starts, found.each, found.always, found.never) == (5, 3, 2, 1)
    for k, share in enumerate(found.passes, 1):
        drawn = [[all(one == "+" for one in some) for some in combinations(marks, k)] for marks in STARTS]
        assert share == pytest.approx(sum(sum(one) / len(one) for one in drawn) / 5)
    alike = [[a == b for a, b in combinations(marks, 2)] for marks in STARTS]
    assert found.agreement == pytest.approx(sum(sum(one) / len(one) for one in alike) / 5)


@pytest.mark.parametrize("groups", [None, [frozenset({0})], [frozenset({0, 1})], []])
def test_starts_that_do_not_repeat_say_nothing(groups: list[frozenset[int]] | None) -> None:
    assert consistency(groups, {0}) is None


def test_the_report_has_them_where_starts_repeat(tmp_path: Path) -> None:
    rows = [
        {"policy": policy, "environment": "s", "episode": at, "seed": at % 10, "success": (at % 10) % 2 == 0 or at < 20}
        for policy in "AB"
        for at in range(40)
    ]
    combo = json.loads(report_json(summarized(tmp_path, rows)))["combos"][0]
    assert (combo["consistency"]["starts"], combo["consistency"]["each"]) == (10, 4)
    assert combo["consistency"]["always"] == 5
    assert combo["at_least"] == pytest.approx(beta.ppf(0.05, 7.5, 3.5))
