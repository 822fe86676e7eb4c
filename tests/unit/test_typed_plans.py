"""Plans that a host made up, or a disk spoilt: a sentence, whatever they hold."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from monitor_stage import a_plan, a_session

from comborun.model.codec import as_data
from comborun.model.plan import Plan

PLAN = a_plan([replace(a_session("flat", "stairs"), flag="smoke", threads=2), a_session("rough", "stairs")])
DATA: dict[str, Any] = json.loads(PLAN.to_json())
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def test_a_plan_is_read_as_it_was_written_also_by_a_version_that_wrote_every_field() -> None:
    assert Plan.from_json(PLAN.to_json()) == PLAN
    assert Plan.from_json(json.dumps(as_data(PLAN))) == PLAN


def test_fields_of_a_later_version_are_left_out() -> None:
    session, limits = DATA["sessions"][0] | {"new": 1}, DATA["limits"] | {"new": [2]}
    later = DATA | {"new": {"a": 3}, "sessions": [session, *DATA["sessions"][1:]], "limits": limits}
    assert Plan.from_json(json.dumps(later)) == PLAN


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *[("grid", value) for value in (7, None, [], {})],
        *[("sessions", value) for value in (None, 7, "ab", [7], [{}], {"a": 1})],
        *[("limits", value) for value in (None, [], {"parallel": "many"}, {"nonsense": 1})],
        *[("poll", value) for value in ("soon", None, 1e999, -1e999, 10**400, [])],
        *[("gpus", value) for value in (["a"], 7, None)],
        *[("retry", value) for value in ([{}], [{"failure": "no such", "times": 1, "wait": 1}], 7)],
        *[("stop_early", value) for value in (7, {"x": 1})],
    ],
)
def test_a_key_with_a_value_of_another_kind_is_told(key: str, value: object) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        Plan.from_json(json.dumps(DATA | {key: value}))


@pytest.mark.parametrize("name", ["", "../../etc", "a b", "a/b", "\x1b[31m", "x" * 300, 7, None])
def test_a_session_is_called_as_a_file_may_be(name: object) -> None:
    session = DATA["sessions"][0] | {"name": name}
    with pytest.raises(ValueError, match=r"\w"):
        Plan.from_json(json.dumps(DATA | {"sessions": [session]}))


@pytest.mark.parametrize("text", ["", "\0" * 100, "[" * 200_000, '{"a":' * 200_000, "nonsense", "[]", "7", "null"])
def test_a_text_that_is_no_plan_is_told(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        Plan.from_json(text)


@given(st.sampled_from(sorted(DATA["sessions"][0])), ANY)
def test_a_session_with_anything_in_it_is_read_or_told(key: str, value: object) -> None:
    try:
        plan = Plan.from_json(json.dumps(DATA | {"sessions": [DATA["sessions"][0] | {key: value}]}))
    except ValueError:
        return
    assert all(isinstance(session.count, int) for session in plan.sessions)
