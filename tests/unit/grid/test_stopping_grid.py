"""`block` and `stop_early` in a grid: what they are refused for, and the sessions and the rule that they make."""

from __future__ import annotations

import json

import pytest
from gridtext import mistakes, plan

from comborun.amendment.changes import ChangeKind, amend, check_rule, compare
from comborun.errors import UserError
from comborun.generate.bundle import manifest
from comborun.model.codec import decoded
from comborun.model.stopping import PlannedComparison, StopRule

RANGED = "command: run {policy} {first_episode} {episodes} {seed} {output_dir}\n"
HEAD = "policies: [a, b, c]\nenvironments: [x, y]\nepisodes: 25\nseed: 7\n"
STOP = HEAD + RANGED + "block: 10\nstop_early: all\n"


def test_a_block_cuts_a_combo_into_ranges_and_leaves_short_combos_whole() -> None:
    text = HEAD + RANGED + "block: 10\noverrides: [{when: {policy: [b, c]}, episodes: 10}]\n"
    found = [(one.name, one.first, one.count) for one in plan(text).sessions if one.environment == "x"]
    first = [("x_a_e0-9", 0, 10), ("x_b", 0, 10), ("x_c", 0, 10)]
    assert found == [*first, ("x_a_e10-19", 10, 10), ("x_a_e20-24", 20, 5)], "in turn"
    # with stop_early policies take turns, and environments go side by side
    names = [one.name for one in plan(STOP).sessions]
    assert names[:7] == ["x_a_e0-9", "x_b_e0-9", "x_c_e0-9", "y_a_e0-9", "y_b_e0-9", "y_c_e0-9", "x_a_e10-19"]
    assert len(names) == len(set(names)) == 18


def test_the_rule_is_in_the_manifest_with_all_that_the_report_will_print_as_its_family() -> None:
    text = HEAD + RANGED + "block: 5\nstop_early: {comparisons: [[a, c]], alpha: 0.1, n_max: 20, environments: [x]}\n"
    laid = plan(text)
    rule = StopRule(0.1, 4, (PlannedComparison("x", "a", "c", 0, 20),))  # and three in y, where all runs
    assert laid.stop_early == rule
    assert decoded(StopRule, json.loads(manifest(laid, {}))["stop_early"]) == rule


def test_futility_and_width_are_in_the_rule_and_an_older_rule_has_none() -> None:
    laid = plan(HEAD + RANGED + "block: 5\nstop_early: {comparisons: all, futility: 0.2, width: 0.3}\n")
    assert (laid.stop_early.futility, laid.stop_early.width) == (0.2, 0.3)
    data = json.loads(manifest(laid, {}))["stop_early"]
    assert decoded(StopRule, data) == laid.stop_early
    older = decoded(StopRule, {key: value for key, value in data.items() if key not in {"futility", "width"}})
    assert (older.futility, older.width) == (0.0, 0.0)
    text = STOP.replace("stop_early: all", "stop_early: {comparisons: all, futility: 2}")
    assert "`2` is not a valid difference of success rates" in mistakes(text)


def test_a_metric_is_in_the_rule_and_a_rule_without_one_reads_as_before() -> None:
    laid = plan(HEAD + RANGED + "block: 5\nstop_early: {comparisons: all, metric: progress}\n")
    data = json.loads(manifest(laid, {}))["stop_early"]
    assert (data["metric"], data["method"]) == ("progress", "betting")
    assert decoded(StopRule, data) == laid.stop_early
    assert "metric" not in json.loads(manifest(plan(STOP), {}))["stop_early"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEAD + "command: run {seed} {output_dir}\nblock: 10\nstop_early: all\n", "needs a program that takes a range"),
        (HEAD + RANGED.replace("{seed}", "7") + "block: 10\nstop_early: all\n", "needs a program that takes a {seed}"),
        (HEAD + RANGED + "stop_early: all\n", "needs `block`"),
        (HEAD + "command: run {episodes} {output_dir}\nblock: 10\n", "takes no range of episodes"),
        (STOP.replace("all", "{comparisons: [[a, d]]}"), "there is no policy `d`"),
        (STOP.replace("all", "{comparisons: all, metric: progress, width: 0.2}"), "`width` is of success rates"),
        (
            STOP.replace("all", "{comparisons: all, metric: progres}") + "results: {metrics: [progress]}\n",
            "not among `results.metrics`",
        ),
        (STOP + "results: {nominal: xx}\n", "there is no environment `xx`"),
        (STOP.replace("all", "{comparisons: [[a, b], [b, a]]}"), "are compared twice"),
        (STOP.replace("all", "{comparisons: [[a, a]]}"), "`a` is compared with itself"),
        (STOP.replace("all", "{environments: [z]}"), "there is no environment `z`"),
        (STOP.replace("[a, b, c]", "[a]"), "no environment has two policies to compare"),
        (STOP.replace("all", "{alpha: 5}"), "not a valid chance of error"),
        (STOP.replace("25", "250000").replace("block: 10", "block: 1"), "are more than comborun handles"),
    ],
)
def test_what_can_not_stop_early_is_refused_with_the_reason(text: str, said: str) -> None:
    assert said in mistakes(text)


def test_more_episodes_come_in_blocks_and_the_rule_stays_as_it_was() -> None:
    before, now = plan(STOP), plan(STOP.replace("25", "42").replace("alpha: 0.05", "alpha: 0.2"))
    comparison = compare(before, now)
    assert {change.kind for change in comparison.changes} == {ChangeKind.MORE}
    amended = amend(comparison)
    assert [one.name for one in amended.added][:3] == ["x_a_e25-29", "x_a_e30-39", "x_a_e40-41"]
    assert amended.plan.stop_early == before.stop_early


def test_a_policy_that_may_have_been_looked_at_can_not_begin_anew() -> None:
    comparison = compare(plan(STOP), plan(STOP.replace("run {policy}", "run --other {policy}")))
    with pytest.raises(UserError, match="can't start again"):
        check_rule(comparison, "rerun")
    check_rule(comparison, "keep")
