"""A fact survives records, JSON and other versions, and a name that a user chose never changes what it says."""

from __future__ import annotations

import json

import pytest

from comborun.rules import records
from comborun.rules.facts import Fact, facts_of
from comborun.words import say

NAMES = ["o'neill", 'pi "0"', "a: b", "`c`", "{code}", "%s", "🤖", "\u202eabc", "x" * 200]


@pytest.mark.parametrize("name", NAMES)
def test_a_fact_comes_back_from_a_record_as_it_was(name: str) -> None:
    fact = Fact("other_policy", rows=10, named=[name], here=name)
    record = records.parse(records.render([("reason", fact), ("facts", [fact, Fact("torn", rows=1)])]))
    assert records.facts(record) == (fact, Fact("torn", rows=1), fact)
    assert name in say(fact)


def test_a_field_that_should_hold_no_fact_is_text_whatever_was_written_there() -> None:
    record = records.parse(json.dumps({"name": {"code": "x"}, "facts": [1, {"code": 3}, {"code": "y"}], "reason": "z"}))
    assert record["name"] == ""
    assert records.facts(record) == (Fact("y"),)


def test_values_of_another_type_are_asked_for_safely() -> None:
    (fact,) = facts_of([{"code": "x", "rows": "many", "named": 3, "share": True, "n": 2.0}])
    assert (fact.number("rows"), fact.texts("named"), fact.number("share"), fact.count("n")) == (None, (), None, 2)
    assert (fact.text("rows"), fact.text("absent"), fact.count("absent")) == ("many", "", 0)


def test_an_unknown_code_is_shown_as_itself() -> None:
    assert say(Fact("of_next_year", rows=3, who=["a", "b"])) == "of_next_year (rows 3, who a, b)"
    assert say(Fact("of_next_year")) == "of_next_year"
