"""The class of a failure, an end record that says it, and what is tried again by default."""

from __future__ import annotations

import json

import pytest
from recorded import record

from comborun.model.attempt import End
from comborun.model.judging import DEFAULT_RETRY
from comborun.rules.endings.failures import Failure, failure_of
from comborun.rules.vocabulary import Cause, Completeness, Outcome


@pytest.mark.parametrize(
    ("completeness", "cause", "code", "signal", "failure"),
    [
        ("complete", Cause.SIGNAL, 139, 11, None),
        ("none", Cause.STOPPED, 143, 15, None),
        ("partial", Cause.EXITED, 0, None, Failure.NO_RESULT),
        ("none", Cause.EXITED, 3, None, Failure.ERROR),
        ("partial", Cause.SIGNAL, 139, 11, Failure.CRASHED),
        ("partial", Cause.SIGNAL, 137, 9, Failure.KILLED),
        ("none", Cause.GPU_MEMORY, 1, None, Failure.GPU_MEMORY),
        ("none", Cause.STALLED, 143, 15, Failure.STALLED),
        ("none", Cause.HUNG, None, None, Failure.STALLED),
        ("none", Cause.LOST, None, None, Failure.LOST),
        ("none", Cause.UNKNOWN, None, None, Failure.ERROR),
    ],
)
def test_the_class_of_a_failure_follows_from_the_evidence(
    completeness: str, cause: Cause, code: int | None, signal: int | None, failure: Failure | None
) -> None:
    assert failure_of(Completeness(completeness), cause, code, signal) is failure


def end(**fields: object) -> End:
    values = {"attempt": 1, "ended": 5, "cause": "exited", "completeness": "partial", "code": 1} | fields
    return End.parse(record(**values))


@pytest.mark.parametrize("fields", [{}, {"class": ""}, {"class": "of_a_later_version", "peak_memory_kib": ""}])
def test_an_end_without_a_class_that_is_known_here_gets_that_of_its_cause(fields: dict[str, str]) -> None:
    assert (end(**fields).failure, end(**fields).peak_memory) == (Failure.ERROR, None)


def test_an_end_whose_cause_is_of_a_later_version_is_still_read() -> None:
    told = end(cause="abducted")
    assert (told.cause, told.outcome) == (Cause.UNKNOWN, Outcome.PARTIAL)


def test_by_default_an_error_of_the_program_is_not_tried_again() -> None:
    times = {rule.failure: rule.times for rule in DEFAULT_RETRY}
    assert [times[one] for one in (Failure.ERROR, Failure.NO_RESULT, Failure.TIMED_OUT)] == [0, 0, 0]


@pytest.mark.parametrize("fields", ["cause", "class", "outcome", "code", "completeness", "ended", "records", "marks"])
def test_an_edited_end_with_lists_for_texts_is_read(fields):
    end = End.parse(json.dumps({"cause": "signal", "code": 1, "ended": 2.5, fields: [["x"], {}]}))
    assert isinstance(end.outcome.value, str)
