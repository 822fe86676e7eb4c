"""What `results` says of the fields of rows: read from the grid, and laid out for each combo."""

from __future__ import annotations

import gridtext
import pytest

from comborun.rules.results.fields import ResultRules

HEAD = """
policies: {mason: {kind: rough}, smith: {kind: smooth}}
environments: {stairs: {task: Stairs-v0}, grass: }
episodes: 3
command: run {policy} {environment} {episodes} {output_dir}
"""


def rules(results: str) -> list[ResultRules]:
    return [one.rules for one in gridtext.grid(f"{HEAD}results: {results}\n").combos]


@pytest.mark.parametrize("results", ["{policy: kind}", "{policy: {values: {mason: rough, smith: smooth}}}"])
def test_rows_may_name_a_policy_by_an_attribute_or_by_a_word_of_their_own(results: str) -> None:
    told = [one.policy.as_data() for one in rules(results)]
    assert told == [{"field": "policy", "any_of": [kind]} for kind in ("rough", "rough", "smooth", "smooth")]


def test_what_no_attribute_is_called_is_a_field() -> None:
    assert {one.policy.as_data() for one in rules("{policy: checkpoint}")} == {"checkpoint"}
    assert {one.environment.word for one in rules("{environment: ignore}")} == {"ignore"}


def test_a_test_of_a_value_is_kept_as_it_was_written() -> None:
    (told, *_) = rules("{success: {field: return, at_least: 200}, episode: {field: ep, from: 1}}")
    assert told.success.as_data() == {"field": "return", "at_least": 200.0}
    assert told.episode.as_data() == {"field": "ep", "from": 1}
    assert rules("{success: {equals: solved, any_of: [goal]}}")[0].success.values == ("goal", "solved")


def test_several_fields_may_tell_an_episode_together() -> None:
    (told, *_) = rules("{episode: [task, trial]}")
    assert told.episode.names == ("task", "trial")
    assert ResultRules.of(told.as_data()) == told


@pytest.mark.parametrize("one", ["{field: cost, better: lower}", "[{field: cost, better: lower}]"])
def test_the_grid_says_which_values_of_a_metric_are_better(one: str) -> None:
    (told, *_) = rules(f"{{compare: {one}}}")
    assert (told.compare, told.lower, told.higher) == (("cost",), ("cost",), ())
    assert ResultRules.of(told.as_data()) == told
    assert rules("{compare: [a, {field: b, better: higher}]}")[0].higher == ("b",)


@pytest.mark.parametrize(
    ("results", "piece"),
    [
        ("{episode: [task]}", "`episode` as a list names several fields"),
        ("{episode: [task, task]}", "`episode` as a list names several fields"),
        ("{environment: {attribute: task}}", "environment `grass` has no attribute `task`"),
        ("{success: {field: return, atleast: 3}}", "unknown key `atleast`"),
        ("{success: {field: return, at_least: many}}", "`many` is not a number"),
        ("{success: {at_least: 2, at_most: 1}}", "no number is from"),
        ("{success: {field: state, any_of: []}}", "an empty list"),
        ("{pattern: '(?P<episode>x)'}", "`pattern` is for records in the log"),
        ("{from: log, pattern: 'x(y)'}", "has no named group"),
        ("{metrics: [progress], compare: progres}", "`compare` names `progres`"),
        ("{compare: {field: cost, better: low}}", "`better: low` is neither higher nor lower"),
        ("{compare: {better: lower}}", "`compare` names no `field`"),
        ("{compare: [{field: cost, best: lower}]}", "unknown key `best`"),
    ],
)
def test_what_cannot_be_meant_is_refused(results: str, piece: str) -> None:
    assert piece in gridtext.mistakes(f"{HEAD}results: {results}\n")
