"""Policies that were evaluated on other days, by other people, with other robots: the day is the unit, or days are
compared within."""

from __future__ import annotations

import json
import random
from math import isfinite
from typing import TYPE_CHECKING

import pytest
from report_runs import summarized

from comborun.model.attempt import EpisodeRecord, Verdict, packed
from comborun.reporter.comparing.family import compare
from comborun.reporter.comparing.graded import compare_graded, scores
from comborun.reporter.evidence.settings import SettingFact
from comborun.reporter.evidence.starts import settle
from comborun.reporter.evidence.words import say
from comborun.reporter.merge import merge
from comborun.reporter.pages.answer import answer
from comborun.reporter.pages.comparison_tables import comparisons
from comborun.reporter.pages.document import report_json
from comborun.reporter.text import NOTHING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from comborun.reporter.comparing.comparison import Tested
    from comborun.rules.facts import Fact

    Cells = Mapping[str, Sequence[tuple[str, int, int]]]
    """by policy: a value, how many episodes succeeded, of how many"""


BY_HAND: Mapping[str, object] = {"operator": "ann"}
"""what a record of a real robot has"""


def rows(
    cells: Cells, name: str = "day", environment: str = "s", more: Mapping[str, object] = BY_HAND
) -> Iterator[dict[str, object]]:
    for policy, own in cells.items():
        verdicts = [(value, at < won) for value, won, n in own for at in random.Random(n).sample(range(n), n)]
        for at, (value, success) in enumerate(verdicts):
            yield {"policy": policy, "environment": environment, "episode": at, "success": success, **more, name: value}


def facts(one: Tested, code: str) -> list[Fact]:
    return [fact for fact in one.facts if fact.code == code]


APART = {"A": [("mon", 17, 20), ("tue", 14, 20)], "B": [("wed", 3, 20), ("thu", 6, 20)]}
ALONE = {"A": [("mon", 36, 40)], "B": [("tue", 4, 40)]}


@pytest.mark.parametrize(
    "name", ["day", "eval_date", "operator", "operator_id", "robot", "robot_name", "rater", "station"]
)
def test_one_day_each_decides_nothing_however_large_the_difference(name: str, tmp_path: Path) -> None:
    summary = summarized(tmp_path, [*rows(ALONE, name)])
    (one,) = summary.comparisons.all
    assert not one.decided
    assert one.p == 1
    assert one.interval == (-1, 1)
    (fact,) = facts(one, SettingFact.ALONE)
    assert say(fact).startswith(f"A and B have one {name} each, not the same (")
    assert name in answer(summary)
    (told,) = summary.claims.undecided
    assert "A minus B is +80.0 points. Not paired" in told
    (row,) = comparisons(summary.comparisons.all, "").rows
    assert row.count(NOTHING) == 2  # neither an interval nor a p


@pytest.mark.parametrize("name", ["max_steps", "session", "instruction"])
def test_a_condition_that_each_policy_has_is_told_beside_what_is_decided(name: str, tmp_path: Path) -> None:
    (one,) = summarized(tmp_path, [*rows(ALONE, name)]).comparisons.all
    assert one.decided


def test_one_day_each_of_a_program_is_told_beside_what_is_decided(tmp_path: Path) -> None:
    summary = summarized(tmp_path, [*rows(ALONE, more={})])
    (one,) = summary.comparisons.all
    assert one.decided
    assert "day is not the same: mon and tue" in summary.claims.decided[0]
    assert answer(summary).endswith("; but day differs between them.")


def test_days_that_differ_between_policies_are_the_unit_even_if_outcomes_do_not_go_with_them(tmp_path: Path) -> None:
    (one,) = summarized(tmp_path, [*rows(APART)]).comparisons.all
    (fact,) = facts(one, SettingFact.NESTED)
    assert fact.fields["values"] == [2, 2]
    assert "A and B have no value of day in common (2 and 2 values)" in say(fact)
    half = 4.302653 * (2 * 0.075**2) ** 0.5  # t of two degrees of freedom; days at 85 and 70 %, at 15 and 30 %
    assert one.interval == pytest.approx((0.55 - half, 1), abs=1e-6)


def test_a_metric_has_the_same_unit(tmp_path: Path) -> None:
    level = {"mon": 0.0, "tue": 50.0, "wed": 80.0, "thu": 130.0}
    records = {
        (policy, "s"): [
            EpisodeRecord(policy, "s", at, Verdict.MEASURED, **packed({"progress": level[day] + at}, {"day": day}))
            for day in days
            for at in range(20 * days.index(day), 20 * days.index(day) + 20)
        ]
        for policy, days in (("A", ("mon", "tue")), ("B", ("wed", "thu")))
    }
    settled = settle(records)
    sides = [scores(merge(own, {})[0], "progress", settled[combo]) for combo, own in records.items()]
    found = compare({}, None, compare_graded("progress", {"s": sides}))
    assert found.graded
    for one in (*found.graded, *found.mean_differences):
        assert facts(one, SettingFact.NESTED)
        assert 0.05 < one.p < 1  # of two days each
        assert all(map(isfinite, one.interval))


def measured(days: Mapping[str, Sequence[str]], environment: str = "s") -> Iterator[dict[str, object]]:
    """Twenty returns on each of these days, which differ between days alone."""
    levels = {"mon": 0, "tue": 50, "wed": 90}
    for policy, own in days.items():
        for at, day in enumerate(day for day in own for _ in range(20)):
            told = {"episode": at, "return": levels[day] + at % 7, **BY_HAND, "day": day}
            yield {"policy": policy, "environment": environment, **told}


def test_returns_of_one_day_each_are_reported_without_a_p(tmp_path: Path) -> None:
    summary = summarized(tmp_path, measured({"A": ["mon"], "B": ["tue"]}))
    compared = summary.comparisons
    assert [one.p for one in compared.graded] == [1]
    assert not compared.mean_differences
    (told,) = summary.claims.undecided
    assert "Not decided by return: A and B in s. But A and B have one day each" in told
    assert json.loads(report_json(summary))["answer"].startswith("B and A are not told apart by return")


def test_returns_of_two_seeds_that_may_be_starts_are_reported(tmp_path: Path) -> None:
    made = [{**row, "seed": int(str(row["episode"])) // 20, "day": None} for row in measured({"A": ["mon", "tue"]})]
    other = [{**row, "seed": int(str(row["episode"])) // 20, "day": None} for row in measured({"B": ["wed", "wed"]})]
    summary = summarized(tmp_path, [*made, *other])
    assert not any(one.decided for one in summary.comparisons.graded)
    assert json.loads(report_json(summary))["graded"]


@pytest.mark.parametrize("own", [["mon", "tue"], ["mon", "mon", "mon", "tue"]])
def test_returns_are_compared_within_the_days_of_both(own: list[str], tmp_path: Path) -> None:
    other = ["tue", "wed"] if own[2:] == [] else ["mon", "tue", "tue", "tue"]
    summary = summarized(tmp_path, measured({"A": own, "B": other}))
    for one in (*summary.comparisons.graded, *summary.comparisons.mean_differences):
        assert not one.decided
        assert abs(one.difference) < 1  # the days of both differ by 40 and more
        assert facts(one, SettingFact.WITHIN)
    (told,) = summary.claims.undecided
    assert told.count("compared within") == 1


def test_a_day_of_both_is_where_they_are_compared(tmp_path: Path) -> None:
    cells = {"A": [("mon", 19, 20), ("tue", 10, 20)], "B": [("tue", 11, 20), ("wed", 1, 20)]}
    (one,) = summarized(tmp_path, [*rows(cells)]).comparisons.all
    assert one.difference == pytest.approx(-0.05)
    assert (one.rate_a.n, one.rate_b.n) == (20, 20)
    (fact,) = facts(one, SettingFact.WITHIN)
    assert say(fact) == "compared within day tue, without 20 of 40 episodes of A and 20 of 40 episodes of B"


def test_only_the_policy_that_had_another_day_leaves_episodes_out(tmp_path: Path) -> None:
    cells = {"A": [("mon", 15, 20), ("tue", 10, 20)], "B": [("mon", 5, 20)]}
    (one,) = summarized(tmp_path, [*rows(cells)]).comparisons.all
    (fact,) = facts(one, SettingFact.WITHIN)
    assert say(fact) == "compared within day mon, without 20 of 40 episodes of A"


def test_days_of_most_episodes_show_that_none_is_common(tmp_path: Path) -> None:
    made = [row if int(str(row["episode"])) > 9 else {**row, "day": None} for row in rows(ALONE)]
    (one,) = summarized(tmp_path, made).comparisons.all
    assert not one.decided


def test_common_days_that_one_policy_had_more_often_have_one_weight_for_both(tmp_path: Path) -> None:
    cells = {"A": [("mon", 36, 40), ("tue", 1, 10)], "B": [("mon", 9, 10), ("tue", 4, 40)]}
    (one,) = summarized(tmp_path, [*rows(cells)]).comparisons.all
    assert one.difference == pytest.approx(0)
    assert facts(one, SettingFact.WITHIN)
    assert (one.rate_a.n, one.rate_a.starts) == (50, None)


def test_where_one_episode_shares_a_day_the_day_is_the_unit(tmp_path: Path) -> None:
    cells = {
        "A": [("d1", 10, 20), ("d2", 10, 20), ("d3", 1, 1)],
        "B": [("d3", 0, 1), ("d4", 10, 20), ("d5", 10, 20)],
    }
    (one,) = summarized(tmp_path, [*rows(cells)]).comparisons.all
    (fact,) = facts(one, SettingFact.NESTED)
    assert "few episodes of A and B have a day of both (3 and 3 values)" in say(fact)


def test_seeds_of_a_program_need_no_day_and_those_of_people_do(tmp_path: Path) -> None:
    made = [{**row, "seed": row["episode"]} for row in rows(ALONE, more={})]
    (one,) = summarized(tmp_path / "program", made).comparisons.all
    assert one.paired
    assert one.decided
    by_hand = [{**row, "operator": "ann"} for row in made]
    (one,) = summarized(tmp_path / "people", by_hand).comparisons.all
    assert not one.decided


def test_another_day_for_each_environment_makes_several_days_over_all_of_them(tmp_path: Path) -> None:
    made = [
        row
        for place in range(4)
        for row in rows(
            {"A": [(f"a{place}", 18 - place % 2, 20)], "B": [(f"b{place}", 2 + place % 2, 20)]}, environment=f"e{place}"
        )
    ]
    compared = summarized(tmp_path, made).comparisons
    assert not any(one.decided for one in compared.all)
    (over_all,) = compared.overall
    assert over_all.decided
    assert [fact.fields["values"] for fact in facts(over_all, SettingFact.NESTED)] == [[4, 4]]
    assert not facts(over_all, SettingFact.ALONE)
