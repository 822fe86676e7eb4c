"""What a grid that says nothing about retries gets."""

from __future__ import annotations

from comborun.judging import DEFAULT_RETRY
from comborun.rules.words import Failure

OF_THE_PROGRAM = {Failure.ERROR, Failure.NO_RESULT, Failure.TIMED_OUT}


def test_by_default_an_error_of_the_program_is_not_tried_again() -> None:
    times = {rule.failure: rule.times for rule in DEFAULT_RETRY}
    assert {failure: times.get(failure, 0) for failure in OF_THE_PROGRAM} == dict.fromkeys(OF_THE_PROGRAM, 0)


def test_by_default_what_the_machine_did_is_tried_again_later() -> None:
    again = {rule.failure for rule in DEFAULT_RETRY if rule.times}
    of_the_machine = {Failure.GPU_MEMORY, Failure.GPU_FAULT, Failure.HOST_MEMORY, Failure.KILLED, Failure.LOST}
    assert of_the_machine <= again
    assert len(DEFAULT_RETRY) == len({rule.failure for rule in DEFAULT_RETRY}), "a class has one rule"
