"""Numbers that measure nothing: identifiers, values that stand for "none", times that are no times to success."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from report_runs import summarized

from comborun.model.attempt import EpisodeRecord, Verdict, packed
from comborun.reporter.collect import collect_folder
from comborun.reporter.comparing.graded import Graded, compare_graded, scores
from comborun.reporter.evidence.fields import FieldFact, fields_of
from comborun.reporter.merge import merge
from comborun.reporter.pages.document import report_json
from comborun.reporter.summary import Summary, summarize

Fields = Callable[[str, int, bool], Mapping[str, Any]]


def summary_of(folder: Path, fields: Fields, count: int = 60) -> Summary:
    rows = []
    for policy, every in (("A", 2), ("B", 3)):
        for at in range(count):
            success = at % every == 0
            row = {"policy": policy, "environment": "s", "episode": at, "seed": at, "success": success}
            rows.append({**row, **fields(policy, at, success)})
    return summarized(folder, rows)


def means(summary: Summary) -> dict[str, float]:
    return {mean.name: mean.mean for mean in summary.combos[0].metrics}


def told(summary: Summary, word: str) -> bool:
    return any(word in one.what for one in summary.quality.findings)


@pytest.mark.parametrize(
    "fields",
    [
        {"pid": lambda at: 4000 + 7 * (at % 5)},
        {"worker": lambda at: at % 8},
        {"gpu": lambda at: at % 4},
        {"started": lambda at: 1.7e9 + 13.7 * at},
        {"n_row": lambda at: 3 * at + 1},
        {"env.port": lambda at: 5000 + at % 3},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_identifiers_are_named_and_not_averaged(fields: dict[str, Callable[[int], float]], tmp_path: Path) -> None:
    ((name, value),) = fields.items()
    summary = summary_of(tmp_path, lambda _, at, __: {name: value(at), "distance": 0.1 * (at % 7)})
    assert [*means(summary)] == ["distance"]
    assert told(summary, name)


@pytest.mark.parametrize("name", ["task_id", "timestamp", "env.seed", "object_idx"])
def test_what_its_name_shows_to_have_no_mean_needs_no_word(name: str, tmp_path: Path) -> None:
    summary = summary_of(tmp_path, lambda _, at, __: {name: 7 * at % 11, "distance": 0.1 * (at % 7)})
    assert [*means(summary)] == ["distance"]
    assert not summary.quality.findings


@pytest.mark.parametrize("name", ["collisions", "gpu_memory", "distance_m", "success_port_distance", "steps"])
def test_measurements_are_averaged(name: str, tmp_path: Path) -> None:
    summary = summary_of(tmp_path, lambda _, at, __: {name: at % 7 + 0.5 * (name != "steps")})
    assert name in means(summary)
    assert not summary.quality.findings


@pytest.mark.parametrize(
    ("value", "found"),
    [(999, True), (9999.0, True), (1e9, True), (2**31 - 1, True), (-1, True), (-999, True), (950, False), (3, False)],
)
def test_a_value_that_means_none_is_left_out_and_told(value: float, found: bool, tmp_path: Path) -> None:
    summary = summary_of(tmp_path, lambda _, at, success: {"gap": 0.1 * (at % 9) if success else value})
    mean = summary.combos[0].metrics[0]
    assert told(summary, "gap") is found
    assert mean.n == (30 if found else 60)
    assert mean.only == ("success" if found else None)


@pytest.mark.parametrize("name", ["reward", "episode_return", "score"])
def test_minus_one_is_a_reward(name: str, tmp_path: Path) -> None:
    summary = summary_of(tmp_path, lambda _, at, success: {name: 0.1 * (at % 9) if success else -1})
    assert summary.combos[0].metrics[0].n == 60


def test_999_steps_are_the_horizon(tmp_path: Path) -> None:
    summary = summary_of(tmp_path, lambda _, at, success: {"steps": 20 + at if success else 999})
    assert summary.combos[0].metrics[0].n == 60


def test_a_length_that_is_the_same_in_every_success_is_no_time_to_success(tmp_path: Path) -> None:
    summary = summary_of(tmp_path, lambda _, __, ___: {"episode_length": 200})
    assert not any(combo.time_to_success for combo in summary.combos)


def test_a_length_at_the_horizon_in_most_successes_is_no_time_to_success(tmp_path: Path) -> None:
    summary = summary_of(tmp_path, lambda _, at, __: {"steps": 200 if at % 4 else 190})
    assert not any(combo.time_to_success for combo in summary.combos)


def test_a_length_at_the_horizon_in_one_policy_alone_is_no_time_of_it_and_is_told(tmp_path: Path) -> None:
    own = {"A": lambda at: 20 + at, "B": lambda at: 200 if at % 8 else 190}
    summary = summary_of(tmp_path, lambda who, at, success: {"steps": own[who](at) if success else 200})
    assert [bool(combo.time_to_success) for combo in summary.combos] == [True, False]
    assert told(summary, "20 of 20 successes without a time")


def test_negative_times_are_none_and_are_told(tmp_path: Path) -> None:
    summary = summary_of(tmp_path, lambda _, at, success: {"steps": 20 + at if success and at % 4 == 0 else -1})
    time = summary.combos[0].time_to_success
    assert time is not None
    assert time.untimed == 15
    assert min(time.curve.times) >= 20
    assert told(summary, "15 of 30 successes")


def test_a_policy_without_the_time_of_the_others_is_named(tmp_path: Path) -> None:
    summary = summary_of(tmp_path, lambda who, at, __: {"duration_s" if who == "B" else "steps": 20 + at})
    (finding,) = summary.quality.findings
    assert finding.where.startswith("A")
    assert "duration_s" in finding.what


def test_a_claim_by_a_metric_of_successes_says_of_how_many(tmp_path: Path) -> None:
    summary_of(tmp_path, lambda who, at, success: {"reach_s": at + 30.0 * (who == "A")} if success else {}, 120)
    merged = merge(collect_folder(tmp_path).records, {})
    found, _ = compare_graded("reach_s", {"s": [scores(one, "reach_s") for one in merged]})
    assert isinstance(found, Graded)
    assert found.only_successes
    assert found.n == (20, 20)  # those that both completed with success


def test_the_json_says_which_verdict_has_a_metric(tmp_path: Path) -> None:
    summary = summary_of(tmp_path, lambda _, at, success: {"reach": at + 0.5} if success else {})
    combo = json.loads(report_json(summary))["combos"][0]
    assert combo["metrics"]["reach"]["only"] == "success"
    assert combo["metrics"]["reach"]["n"] == 30


def test_a_huge_time_of_failures_is_no_time_and_a_horizon_is_one(tmp_path: Path) -> None:
    def fields(_: str, at: int, success: bool) -> Mapping[str, Any]:
        return {"completion_time": 3 + at / 10 if success else 1e6, "num_steps": 40 + at if success else 999}

    summary = summary_of(tmp_path, fields)
    assert means(summary)["completion_time"] < 10
    assert told(summary, "completion_time is 1e+06 in")
    assert means(summary)["num_steps"] > 300


def table(folder: Path, rows: str) -> Summary:
    (folder / "p" / "e").mkdir(parents=True)
    (folder / "p/e/rows.csv").write_text(rows)
    return summarize(collect_folder(folder)).summary


def test_a_field_of_which_some_numbers_are_text_is_named_and_not_averaged(tmp_path: Path) -> None:
    """In a table with commas a comma in quotes may be anything, and a mean of the others is none of the field."""
    summary = table(tmp_path, 'episode,success,dist,note\n0,1,"3,75",7\n1,0,"1,5",N/A\n2,1,2,8\n')
    assert means(summary) == {"note": 7.5}
    assert told(summary, "dist is text in 2 episodes, such as '3,75'")


def test_a_table_between_semicolons_may_have_points_between_thousands(tmp_path: Path) -> None:
    summary = table(tmp_path, "episode;success;dist\n0;1;1.234,5\n1;0;987,25\n2;1;12,0\n")
    assert means(summary) == {"dist": pytest.approx((1234.5 + 987.25 + 12) / 3)}
    assert not told(summary, "dist")


@pytest.mark.parametrize("name", ["return", "episode_reward", "score"])
def test_returns_that_grow_evenly_are_returns(name: str, tmp_path: Path) -> None:
    summary = summary_of(tmp_path, lambda _, at, __: {name: 100 + 3 * at})
    assert [*means(summary)] == [name]
    assert not told(summary, name)


def test_what_the_grid_names_is_not_said_to_be_left_out() -> None:
    rows = [EpisodeRecord("p", "e", at, Verdict.MEASURED, **packed({"row": float(at)})) for at in range(12)]
    assert fields_of([rows]).facts
    assert not fields_of([rows], ["row"]).facts


def so_far(values: Sequence[float]) -> list[float]:
    return [sum(values[: at + 1]) / (at + 1) for at in range(len(values))]


def last_ones(values: Sequence[float], last: int) -> list[float]:
    return [sum(some) / len(some) for some in (values[max(0, at + 1 - last) : at + 1] for at in range(len(values)))]


RETURNS = [round(math.sin(5 * at) + at % 3, 4) for at in range(60)]
"""without the rounding, running means of them have more digits than they"""


@pytest.mark.parametrize(
    "column",
    [
        so_far,
        lambda wins: [round(100 * one, 1) for one in so_far(wins)],
        lambda wins: [round(one, 2) for one in so_far(wins)],
        lambda wins: [float(sum(wins[: at + 1])) for at in range(60)],
        lambda _: so_far([math.sin(5 * at) + at % 3 for at in range(60)]),
        lambda _: [max(RETURNS[: at + 1]) for at in range(60)],
        lambda wins: last_ones(wins, 10),
        lambda wins: [round(100 * one, 1) for one in last_ones(wins, 20)],
    ],
    ids=["rate", "percent", "rounded", "successes", "return", "best", "last ten", "last twenty in percent"],
)
def test_what_sums_up_the_rows_before_is_named_and_no_value_of_an_episode(
    column: Callable[[Sequence[float]], Sequence[float]], tmp_path: Path
) -> None:
    columns = {name: column([float(at % every == 0) for at in range(60)]) for name, every in (("A", 2), ("B", 3))}
    summary = summary_of(tmp_path, lambda policy, at, _: {"r": RETURNS[at], "own": columns[policy][at]})
    assert [*means(summary)] == ["r"]
    assert told(summary, "own")


@pytest.mark.parametrize(
    "own",
    [lambda at, won: won * 1.0, lambda at, _: 0.1 * (at % 7), lambda at, _: 1.0, lambda at, won: 3 * won - at % 2],
    ids=["verdict", "measurement", "constant", "whole"],
)
def test_a_measurement_is_no_running_number(own: Callable[[int, bool], float], tmp_path: Path) -> None:
    summary = summary_of(tmp_path, lambda _, at, won: {"r": RETURNS[at], "own": own(at, won)})
    assert [*means(summary)] == ["r", "own"]


def test_a_copy_of_a_growing_field_is_no_running_number(tmp_path: Path) -> None:
    summary = summary_of(tmp_path, lambda _, at, __: {"own": at * at, "copy": at * at})
    assert [*means(summary)] == ["own", "copy"]


def test_an_average_so_far_leaves_one_number_by_which_policies_compare(tmp_path: Path) -> None:
    rows = [
        {"policy": policy, "environment": "s", "episode": at, "score": shift + RETURNS[at], "mean_score": mean}
        for policy, shift in (("A", 0), ("B", 1))
        for at, mean in enumerate(so_far([shift + one for one in RETURNS]))
    ]
    metric = summarized(tmp_path, rows).metric
    assert metric is not None
    assert metric.name == "score"


@pytest.mark.parametrize(
    ("name", "highest", "hinted"),
    [("progress", 1.0, True), ("task_score", 0.8, True), ("progress", 3.0, False), ("distance", 1.0, False)],
)
def test_graded_progress_that_nothing_compares_comes_with_the_line_that_does(
    name: str, highest: float, hinted: bool, tmp_path: Path
) -> None:
    summary = summary_of(tmp_path, lambda _, at, __: {name: highest * (at % 5) / 4})
    assert told(summary, f"compare: {name}") == hinted


def measured(values: Iterable[float]) -> list[EpisodeRecord]:
    return [EpisodeRecord("p", "e", at, Verdict.MEASURED, **packed({"x": one})) for at, one in enumerate(values)]


_RANDOM = random.Random(1)
DRAWN = [_RANDOM.gauss(0, 1) for _ in range(400)]


def smoothed(values: Sequence[float], share: float) -> list[float]:
    return [*accumulate(values, lambda mean, one: (1 - share) * mean + share * one)]


@pytest.mark.parametrize(
    "values",
    [smoothed(DRAWN[:200], 0.05), smoothed(DRAWN, 0.3), last_ones(DRAWN, 30)[30:], [*accumulate(DRAWN[:200])]],
    ids=["exponential", "exponential, fast", "sliding", "walk"],
)
def test_values_that_go_on_from_row_to_row_are_named_unless_the_grid_names_them(values: Sequence[float]) -> None:
    found = fields_of([measured(values[: len(values) // 2]), measured(values[len(values) // 2 :])])
    assert (found.running, found.going_on, [one.code for one in found.facts]) == ({"x"}, {"x"}, [FieldFact.GOES_ON])
    assert not fields_of([measured(values)], ["x"]).running


@pytest.mark.parametrize(
    "values",
    [
        DRAWN,
        [one + at / 40 for at, one in enumerate(DRAWN)],  # a slow drift
        [one + 9 * (at // 10 % 4) for at, one in enumerate(DRAWN)],  # task after task
        [one + 9 * (at // 5 % 3) for at, one in enumerate(DRAWN)],
        [float(one > 0) for one in DRAWN],
        [one for at in range(0, 400, 16) for one in sorted(DRAWN[at : at + 16])],  # as episodes side by side end
        sorted(DRAWN),
        [*accumulate([_RANDOM.gauss(0, 1) for _ in range(2000)], lambda one, new: 0.4 * one + new)],
    ],
    ids=["independent", "drift", "tasks of 10", "tasks of 5", "two values", "batches", "sorted", "a little alike"],
)
def test_values_that_turn_as_often_as_chance_makes_them_are_those_of_episodes(values: Sequence[float]) -> None:
    assert not fields_of([measured(values)]).running


def spread(at: int, low: float, high: float) -> float:
    return low + (high - low) * (at * 37 % 60) / 59


@pytest.mark.parametrize("factor", [1_000, 1_000_000])
@pytest.mark.parametrize("verdicts", [True, False])
def test_values_in_another_unit_are_named_and_not_compared(factor: int, verdicts: bool, tmp_path: Path) -> None:
    rows = [
        {"policy": policy, "environment": "s", "episode": at, "score": spread(at, 1, 2) * times}
        for policy, times in (("A", factor), ("B", 1), ("C", 1.2))
        for at in range(60)
    ]
    summary = summarized(tmp_path, [{**one, "success": one["episode"] % 2 == 0} for one in rows] if verdicts else rows)
    assert told(summary, f"score of A in s is about {factor:,} times that of B and C, as in another unit")
    assert not summary.comparisons.by_metric("score")


@pytest.mark.parametrize(
    ("low", "high"), [(1, 2), (3, 8), (30, 90), (300, 340), (1e4, 2e4), (1, 4000)], ids=lambda value: f"{value:g}"
)
def test_other_values_are_in_no_other_unit(low: float, high: float, tmp_path: Path) -> None:
    found = summary_of(
        tmp_path, lambda who, at, _: {"cost": spread(at, 1, 1.1) if who == "B" else spread(at, low, high)}
    )
    assert not told(found, "another unit")


@pytest.mark.parametrize(("value", "named"), [(lambda _: 1, False), (lambda at: 1 + at % 2, True)])
def test_a_number_that_never_varies_is_not_named(value: Callable[[int], int], named: bool, tmp_path: Path) -> None:
    assert told(summary_of(tmp_path, lambda _, at, __: {"attempt": value(at)}), "measure nothing") is named
