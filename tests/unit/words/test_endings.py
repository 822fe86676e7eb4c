"""The table of classes of failures, and the outcome that an end record holds."""

from __future__ import annotations

from pathlib import Path

import pytest
from recorded import record

from comborun.grid.keys.limits_retry import SEEN_IN_A_LOG
from comborun.model.attempt import End
from comborun.rules.endings.breaker import Breaker
from comborun.rules.endings.failures import GPU, HOST, Failure, grid_lines
from comborun.rules.vocabulary import Outcome, outcome_of

GRID = Path(__file__).parents[3] / "docs" / "grid.md"


def test_the_reference_has_the_table_of_classes() -> None:
    text = GRID.read_text().split("## Classes of failures")[1]
    assert [line for line in text.split("\n") if line.startswith("|")][: len(Failure) + 2] == grid_lines()


def test_the_breaker_counts_a_class_for_what_its_row_says() -> None:
    for failure in Failure:
        places = {HOST: ["host"], GPU: ["2"], "": []}[failure.row.breaker]
        assert list(Breaker(1).record(failure.value, [2])) == places, failure


def test_a_class_with_signatures_may_have_patterns_of_the_grid() -> None:
    assert {failure for failure in Failure if failure.row.signatures} <= set(SEEN_IN_A_LOG)


def test_what_a_log_shows_is_said_in_the_table_and_the_report() -> None:
    silent = {failure for failure in Failure if failure.row.signatures and not failure.cause}
    assert silent == {Failure.CRASHED}, "a Cause of the same name is missing: only its signal says more"


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"completeness": "complete", "cause": "signal"}, Outcome.SUCCEEDED),
        ({"completeness": "partial", "cause": "not_needed"}, Outcome.NOT_NEEDED),
        ({"completeness": "partial", "cause": "exited", "outcome": ""}, Outcome.PARTIAL),
        ({"completeness": "none", "cause": "exited", "outcome": "of_a_later_version"}, Outcome.FAILED),
        ({"completeness": "none", "cause": "exited", "outcome": "cancelled"}, Outcome.CANCELLED),
        ({}, Outcome.FAILED),
    ],
)
def test_an_outcome_is_that_of_the_record_else_what_its_evidence_says(fields: dict[str, str], found: Outcome) -> None:
    assert outcome_of(fields) is found
    assert End.parse(record(attempt=1, ended=5, **fields)).outcome is found
