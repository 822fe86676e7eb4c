"""Failure kinds are compared where both policies tell them, in the same field and spelling."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from report_runs import summarized

from comborun.reporter.evidence.context import ContextFact
from comborun.reporter.summary import Summary


def told(folder: Path, failures: Mapping[str, Mapping[str, str]], rates: tuple[int, int] = (5, 5)) -> Summary:
    rows = [
        {"policy": policy, "environment": "s", "episode": n, "success": n % 10 < rate}
        | (dict(said) if n % 10 >= rate else {})
        for (policy, said), rate in zip(failures.items(), rates, strict=True)
        for n in range(80)
    ]
    return summarized(folder, rows)


@pytest.mark.parametrize(
    "failures",
    [
        {"A": {"failure": "fall"}, "B": {}},
        {"A": {"failure": "fall"}, "B": {"termination": "fall"}},
        {"A": {"failure": "fall"}, "B": {"failure": "Fall"}},
        {"A": {"failure": "time out"}, "B": {"failure": "time_out"}},
        {"A": {"failure": "Dropped (cup 3)"}, "B": {"failure": "dropped"}},
        {"A": {"failure": "dropped"}, "B": {"failure": "dropped at 3.2 s"}},
        {"A": {"failure": "unknown"}, "B": {"failure": "dropped"}},
    ],
)
def test_what_is_told_in_other_ways_is_not_compared(failures: Mapping[str, Mapping[str, str]], tmp_path: Path) -> None:
    summary = told(tmp_path, failures)
    assert not [one for one in summary.kinds if one.found.decided]
    assert not summary.claims.decided
    assert any("not compared as" in one.what for one in summary.quality.findings)


@pytest.mark.parametrize(
    ("failures", "rates"),
    [
        ({"A": {"failure": "fall"}, "B": {"failure": "stuck"}}, (5, 5)),
        ({"A": {"failure": "fall"}, "B": {}}, (2, 10)),
    ],
)
def test_a_kind_that_the_other_policy_never_had_is_compared(
    failures: Mapping[str, Mapping[str, str]], rates: tuple[int, int], tmp_path: Path
) -> None:
    summary = told(tmp_path, failures, rates)
    assert [one for one in summary.kinds if one.kind == "fall" and one.found.decided]
    assert not any("not compared as" in one.what for one in summary.quality.findings)


@pytest.mark.parametrize(
    ("failures", "rates", "asked"),
    [
        ({"A": {"failure": "timeout"}, "B": {"failure": "time_limit"}}, (5, 5), True),
        ({"A": {"failure": "timeout"}, "B": {"failure": "timeout"}}, (2, 8), False),
    ],
)
def test_kinds_that_only_one_of_two_policies_names_may_be_two_words_for_one(
    failures: Mapping[str, Mapping[str, str]], rates: tuple[int, int], asked: bool, tmp_path: Path
) -> None:
    summary = told(tmp_path, failures, rates)
    found = [one for one in summary.kinds if one.found.decided]
    assert found
    assert all((ContextFact.OTHER_WORDS in {fact.code for fact in one.found.facts}) is asked for one in found)
    assert any("two words for one kind?" in one for one in summary.claims.decided) is asked


def test_kinds_that_both_policies_name_are_no_question(tmp_path: Path) -> None:
    kinds = {"A": ["fall"] * 7 + ["stuck"], "B": ["stuck"] * 7 + ["fall"]}
    rows = [
        {"policy": policy, "environment": "s", "episode": at, "success": at % 9 == 8, "failure": some[at % 8]}
        for policy, some in kinds.items()
        for at in range(90)
    ]
    found = [one.found for one in summarized(tmp_path, rows).kinds if one.found.decided]
    assert found
    assert not any(fact.code == ContextFact.OTHER_WORDS for one in found for fact in one.facts)
