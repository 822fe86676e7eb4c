"""The record of curves over all attempts of a training, and read back whatever stands in it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from comborun.rules.curves import record
from comborun.words import say


def curve(steps: list[float], values: list[float], **fields: Any) -> dict[str, Any]:
    told = {"name": "reward", "role": "reward", "of": "training", "unit": "steps", "source": "log", "score": 1}
    return {**told, "points": len(steps), "read": len(steps), "steps": steps, "values": values, **fields}


def parsed(*curves: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return record.parse(json.dumps({"curves": curves, **fields}))


def test_a_later_attempt_counts_from_its_first_step_on() -> None:
    first, second = parsed(curve([10, 20, 30], [1, 2, 3])), parsed(curve([25, 35], [7, 8]))
    found = record.joined([(1, first), (2, second)])
    (one,) = found["curves"]
    assert (one["steps"], one["values"], one["superseded"]) == ([10, 20, 25, 35], [1, 2, 7, 8], 1)
    assert [say(fact) for fact in found["facts"]] == [
        "attempt 2 went on from step 25: from there its values count, and not those of earlier attempts"
    ]


def test_an_attempt_that_only_goes_on_supersedes_nothing() -> None:
    found = record.joined([(1, parsed(curve([10, 20], [1, 2]))), (2, parsed(curve([30], [3])))])
    assert (found["curves"][0]["steps"], found["curves"][0]["superseded"], found["facts"]) == ([10, 20, 30], 0, [])


def test_the_newest_values_are_those_of_the_surest_curves() -> None:
    success = curve([20], [0.25], name="eval/success", role="success", of="evaluation")
    found = parsed(curve([10, 20], [1, 2.5]), curve([20], [9], name="other"), success, announced=100)
    newest = record.newest(found)
    assert newest is not None
    assert say(newest) == "step 20 of 100: reward 2.5, success 25.0 %"
    assert record.newest(parsed()) is None


def test_the_best_is_the_first_of_the_highest_and_a_length_has_none() -> None:
    assert record.best(curve([1, 2, 3], [5, 9, 9])) == (2, 9)
    assert record.best(curve([1], [5], role="length")) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"curves": 5, "checkpoints": {}, "facts": 1}',
        '{"curves": [5, {}, {"role": "reward", "of": "training", "steps": [1], "values": [1, 2]}]}',
        '{"curves": [{"role": "reward", "of": "training", "steps": [2, 1], "values": [1, 2]}]}',
        '{"curves": [{"role": "x", "of": "training", "steps": [], "values": []}], "announced": true}',
    ],
)
def test_a_torn_or_foreign_record_has_no_curves(text: str) -> None:
    found = record.parse(text)
    assert record.joined([(1, found)])["curves"] == []
    assert record.newest(found) is None


def test_values_of_another_type_are_left_out() -> None:
    bad = curve([1, 2, 3], [1, None, "x"])  # type: ignore[list-item]
    found = parsed(bad, checkpoints=[{"path": "a.pt", "step": "x", "size": -1}, 5], announced="x")
    assert found["curves"][0]["steps"] == [1]
    assert found["checkpoints"] == [{"path": "a.pt", "step": None, "unit": "", "size": 0}]
    assert found["announced"] is None
