"""Why rows don't count, as facts: kept in records, with what would make more rows count."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from comborun.rules import records
from comborun.rules.facts import Fact
from comborun.rules.results import counts
from comborun.rules.results.counts import REASONS, Counts, where_it_ran
from comborun.rules.results.fields import FIELDS, Field, Identity, ResultRules
from comborun.rules.results.formats import reader
from comborun.rules.results.tally import Files, Rows, tally
from comborun.words import rows as words
from comborun.words import say
from comborun.words.rows import flow, proposed, why_not_counted

NAMES = ("o'neill", 'a"b', "x: y", "`ls`", "🤖", "\u200fعين", "100 %", "n" * 200, "policy 'b', this session is 'c'")
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


def reasons(own: str, named: str) -> Counts:
    """What an attempt says whose rows name a policy."""
    rows = Rows(reader("jsonl-rows", Identity(own, "stairs"), "r.jsonl"))
    rows.feed("".join(json.dumps({"policy": named, "episode": at, "success": True}) + "\n" for at in range(3)).encode())
    files = Files()
    files.rows.append(("r.jsonl", rows))
    return Counts.of(records.parse(records.render(tally(files, Identity(own, "stairs"), (0, 3)).pairs())))


@pytest.mark.parametrize("name", NAMES)
def test_rows_of_a_policy_of_the_grid_are_never_proposed_to_be_accepted(name: str) -> None:
    told = reasons("own", name)
    assert told.proposes
    (another, ran) = where_it_ran(told.facts, {"policy": ["own", name], "environment": ["stairs"]})
    assert another.texts("named") == (name,)
    assert ran == Fact("another_ran", kind="policy")
    assert "ignore" not in why_not_counted((another, ran))
    elsewhere = where_it_ran(told.facts, {"policy": ["own"], "environment": [name]})
    assert elsewhere == told.facts
    assert proposed(elsewhere[-1]) == {"policy": "ignore"}


def test_what_a_file_that_is_not_read_would_add_is_no_proposal_either_if_it_is_of_another_policy() -> None:
    another = Fact("rows_of_another", kind="policy", named=["b"], own="a", rows=1, of=1)
    keys = [{"key": "files", "value": "**/*.csv"}, {"key": "policy", "value": "ignore"}]
    fact = Fact("results_not_read", file="r.csv", episodes=1, taken=[], keys=keys, another=[another.as_data()])
    told = where_it_ran([fact], {"policy": ["a", "b"]})
    assert not any(proposed(one) for one in told)
    assert proposed(where_it_ran([fact], {"policy": ["a"]})[0]) == {"files": "**/*.csv", "policy": "ignore"}


def test_the_reasons_that_the_former_version_wrote_are_shown_as_they_are() -> None:
    why = "all 3 rows say policy 'b', this session is 'a': `results: {policy: ignore}` counts them"
    told = Counts.of({"why": why})
    assert why_not_counted(where_it_ran(told.facts, {"policy": ["a", "b"]})) == why
    assert not told.proposes


def test_of_the_facts_in_an_end_only_those_about_rows_are_reasons() -> None:
    facts = [{"code": "rows_refused", "rows": 1}, {"code": "host_memory"}, "torn", {"code": 5}]
    assert [fact.code for fact in Counts.of(records.read({"facts": facts})).facts] == ["rows_refused"]


def test_every_reason_and_every_fault_of_a_file_has_words_which_no_missing_field_breaks() -> None:
    sources = "".join(path.read_text() for path in Path(counts.__file__).parent.glob("*.py"))
    made = set(re.findall(r'(?:Fact\(|RefusedError\(\w+, |refused\(\w+, )"(\w+)"', sources)) | REASONS
    assert len(made) > 60
    assert made <= words.WORDS.keys()
    assert all(say(Fact(code)) for code in words.WORDS)


@given(st.dictionaries(TEXTS, st.one_of(TEXTS, st.integers(), st.dictionaries(TEXTS, TEXTS))))
def test_a_proposal_is_yaml_whatever_the_fields_of_a_program_are_called(value: dict[str, object]) -> None:
    yaml = YAML(typ="safe", pure=True)
    yaml.allow_duplicate_keys = True
    assert yaml.load(io.StringIO(flow(value))) == value


LIMIT = st.none() | st.floats(-1e6, 1e6)
FIELD = st.one_of(
    TEXTS,
    st.sampled_from(["ignore", "line", "none", "{", '{"a": 1']),
    st.fixed_dictionaries({"field": TEXTS}, optional={"any_of": st.lists(TEXTS, min_size=1), "at_least": LIMIT}),
    st.fixed_dictionaries({"field": st.sampled_from(["ignore", "line", "none", "{"]), "from": st.integers(0, 3)}),
)
RULES = st.fixed_dictionaries(
    {}, optional={**dict.fromkeys(FIELDS, FIELD), "files": st.lists(TEXTS), "base": st.integers(0, 9), "pattern": TEXTS}
)


@given(RULES)
def test_rules_survive_their_json_and_that_of_the_former_version(given: dict[str, object]) -> None:
    rules = ResultRules(**given)  # type: ignore[arg-type]
    assert ResultRules.of(json.loads(json.dumps(rules.as_data()))) == rules
    former = {key: json.dumps(value) if isinstance(value, dict) else value for key, value in given.items()}
    assert ResultRules.of(former) == rules


@pytest.mark.parametrize("foreign", [None, 5, [], {"files": 5, "success": [1], "base": "x", "format": {}}])
def test_foreign_rules_are_those_by_default(foreign: object) -> None:
    assert ResultRules.of(foreign) == ResultRules()
    assert Field("success", foreign).name == "success"
