"""What a grid may say of the fields of its rows, and the line that is proposed where rows don't count."""

from __future__ import annotations

import json

import pytest

from comborun.rules.facts import Fact
from comborun.rules.results.fields import Field, Identity, RefusedError, ResultRules
from comborun.rules.results.one_row import read_row, verdict_of
from comborun.rules.results.proposals import propose, proposed
from comborun.words import say

SPAN = (0, 10)


def mason(**rules: object) -> Identity:
    return Identity("mason", "stairs", ResultRules(**rules))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rule", "value", "verdict"),
    [
        ({"at_least": 200}, 200, True),
        ({"at_least": 200}, 199.9, False),
        ({"at_least": 200}, "213.5", True),
        ({"at_least": 0, "at_most": 1}, 2, False),
        ({"at_least": 200}, float("nan"), None),
        ({"at_least": 200}, 10**400, None),
        ({"at_least": 200}, True, None),
        ({"any_of": ["solved", "goal"]}, "goal", True),
        ({"any_of": ["solved"]}, "lost", False),
        ({"any_of": ["1"]}, 1.0, True),
        ({"any_of": ["true"]}, True, True),
        ({"at_least": 200}, None, None),
    ],
)
def test_a_verdict_is_made_of_a_value_as_the_grid_says(rule: dict[str, object], value: object, verdict: object) -> None:
    field = Field("success", json.dumps({"field": "x", **rule}))
    assert verdict_of({"x": value}, field)[0] is verdict


def test_a_name_with_dots_is_a_path_unless_it_is_a_field() -> None:
    assert verdict_of({"info": {"is_success": True}}, Field("success", "info.is_success"))[0] is True
    assert verdict_of({"info.ok": False, "info": {"ok": True}}, Field("success", "info.ok"))[0] is False
    assert verdict_of({"info": [1]}, Field("success", "info.ok"))[0] is None


def test_rows_may_count_from_one() -> None:
    identity = mason(episode='{"field": "ep", "from": 1}')
    assert read_row({"ep": 1}, identity).index == 0
    with pytest.raises(RefusedError, match="index_below_first"):
        read_row({"ep": 0}, identity)


def test_a_policy_may_be_named_by_something_else_or_not_asked_about() -> None:
    row = {"policy": "rough", "ckpt": "a.pt", "episode": 0}
    assert read_row(row, mason(policy="ignore")).policy == "mason"
    assert read_row(row, mason(policy='{"any_of": ["rough"]}')).policy == "mason"
    assert read_row(row, mason(policy='{"field": "ckpt", "any_of": ["a.pt"]}')).policy == "mason"
    with pytest.raises(RefusedError):
        read_row(row, mason(policy='{"field": "ckpt", "any_of": ["b.pt"]}'))


_HISTORY = "{episode: _step, success: eval/success}"
PROPOSED = {
    "with another name, counted from 1": (
        [{"ep": at + 1, "success": True} for at in range(10)],
        "{episode: {field: ep, from: 1}}",
    ),
    "without an index": ([{"success": at % 2 == 0} for at in range(10)], "{episode: line}"),
    "counted from 1": (
        [{"episode": at + 1, "success": True} for at in range(10)],
        "{episode: {field: episode, from: 1}}",
    ),
    "with a verdict of another name": ([{"episode": 0, "is_success": 1.0}], "{success: is_success}"),
    "all of it": (
        [{"policy": "x", "environment": "y", "trial": at, "info": {"solved": False}} for at in range(10)],
        "{policy: ignore, environment: ignore, episode: trial, success: info.solved}",
    ),
    "with full marks under another name": (
        [{"ep": at, "is_success": 10 * (at % 2)} for at in range(8)],
        "{episode: ep, success: {field: is_success, at_least: 10}}",
    ),
    "with words under another name": (
        [{"ep": at, "solved": ("Success", "Gave up")[at % 2]} for at in range(8)],
        "{episode: ep, success: {field: solved, any_of: [Success]}}",
    ),
    "of one sum": ([{"suite": "all", "is_success": 100.0}], ""),
    "of several policies": ([{"policy": name, "episode": 0, "success": True} for name in "abc"], ""),
    "of no help": ([{"note": "begun"}], ""),
    "of a history of steps": ([{"_step": at, "eval/success": at > 3} for at in range(9)], _HISTORY),
    "with a return alone": ([{"episode": 0, "return": 1.5}], "{success: none}"),
    "as they should be": ([{"episode": at, "success": True} for at in range(10)], ""),
}


@pytest.mark.parametrize("case", PROPOSED)
def test_the_line_that_would_make_rows_count_is_proposed(case: str) -> None:
    rows, wanted = PROPOSED[case]
    seen = [row["episode"] for row in rows if isinstance(row.get("episode"), int)]
    keys = propose(rows, mason(), SPAN, seen)
    assert not wanted if not keys else wanted in say(Fact("results_line", **proposed(keys, rows)))
