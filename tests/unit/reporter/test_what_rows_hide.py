"""What rows say of themselves and no verdict shows: replays, settings, marks, checkpoints, errors, spellings."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from math import nan
from pathlib import Path
from typing import Any

import pytest
from report_runs import summarized, write_rows

from comborun.reporter.collect import collect_folder
from comborun.reporter.pages.answer import answer
from comborun.reporter.pages.document import report_json
from comborun.reporter.report import report_folder
from comborun.reporter.summary import Summary, summarize

Fields = Callable[[str, int, bool], Mapping[str, Any]]


def rows(fields: Fields, a: float = 0.8, b: float = 0.45, count: int = 100) -> Iterator[dict[str, Any]]:
    rng = random.Random(5)
    for policy, rate in (("A", a), ("B", b)):
        for at in range(count):
            success = rng.random() < rate
            told = {"policy": policy, "environment": "stairs", "episode": at, "success": success}
            yield {**told, **fields(policy, at, success)}


def summary_of(folder: Path, fields: Fields, a: float = 0.8, b: float = 0.45, count: int = 100) -> Summary:
    text = "".join(json.dumps(one) + "\n" for one in rows(fields, a, b, count))
    (folder / "rows.jsonl").write_text(text)
    return summarize(collect_folder(folder)).summary


def claims(summary: Summary) -> str:
    return "\n".join(summary.claims.sentences)


def findings(summary: Summary) -> str:
    return "\n".join(f"{one.where}: {one.what}" for one in summary.quality.findings)


# -- replays ----------------------------------------------------------------------------------------------------------


def rollout(policy: str, start: int) -> dict[str, Any]:
    """What a deterministic program does from a start."""
    rng = random.Random(f"{policy} {start}")
    return {"success": rng.random() < 0.6, "return": rng.gauss(100, 20), "steps": rng.randint(90, 300)}


@pytest.mark.parametrize("starts", [1, 5])
def test_episodes_that_equal_others_in_every_digit_count_once_whatever_their_seeds(tmp_path: Path, starts: int) -> None:
    summary = summary_of(tmp_path, lambda policy, at, _: {"seed": at, **rollout(policy, at % starts)})
    (comparison,) = summary.comparisons.all
    assert {combo.rate.starts for combo in summary.combos if combo.rate} == {starts}
    assert (comparison.paired, comparison.decided) == (True, False)
    assert "100 episodes are" in claims(summary)
    codes = [fact["code"] for fact in json.loads(report_json(summary))["comparisons"][0]["facts"]]
    assert "episodes_repeat_others" in codes


def test_a_policy_that_draws_its_actions_from_few_starts_is_not_counted_by_those_of_the_other(tmp_path: Path) -> None:
    def fields(policy: str, at: int, _: bool) -> dict[str, Any]:
        return {"seed": at, **rollout(policy, at % 5 if policy == "A" else at)}

    summary = summary_of(tmp_path, fields)
    assert [combo.rate.starts if combo.rate else 0 for combo in summary.combos] == [5, None]
    assert not summary.comparisons.all[0].paired


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(lambda _, at, ok: {"progress": at % 3 / 3 if not ok else 1.0}, id="shares of subgoals"),
        pytest.param(lambda _, at, ok: {"return": 100 * 0.99 ** (11 + at % 40) * ok}, id="a discount by steps"),
        pytest.param(lambda _, at, ok: {"time_s": 30.01234 if not ok else 9.1 + at / 7}, id="failures at the horizon"),
        pytest.param(
            lambda _, at, ok: {"return": 100 * 0.99 ** (11 + (at % 20 > 13) + (at % 20 > 16) + (at % 20 > 18)) * ok},
            id="mostly the quickest solution",
        ),
        pytest.param(lambda _, at, __: {"steps": 100 + at % 5}, id="whole numbers"),
    ],
)
def test_numbers_that_recur_for_other_reasons_are_no_replays(tmp_path: Path, fields: Fields) -> None:
    summary = summary_of(tmp_path, lambda policy, at, ok: {"seed": at, **fields(policy, at, ok)})
    assert {combo.rate.starts for combo in summary.combos if combo.rate} == {None}


def test_settings_are_no_results_that_recur(tmp_path: Path) -> None:
    summary = summary_of(tmp_path, lambda _, at, __: {"seed": at, "temperature": 0.3021}, 1.0, 1.0)
    assert {combo.rate.starts for combo in summary.combos if combo.rate} == {None}


def test_a_policy_that_always_fails_at_the_horizon_keeps_its_episodes(tmp_path: Path) -> None:
    summary = summary_of(tmp_path, lambda _, at, ok: {"seed": at, "time_s": 30.01234 if not ok else at / 7}, b=0.0)
    assert {combo.rate.starts for combo in summary.combos if combo.rate} == {None}


# -- parts of one episode ---------------------------------------------------------------------------------------------


def in_groups(name: str, size: int, *, alike: bool = True) -> Fields:
    """Rows of a group that all end as their group does, or as they please."""

    def told(policy: str, at: int, ok: bool) -> dict[str, Any]:
        group = at // size
        ends = random.Random(f"{policy}{group}").random() < (0.9 if policy == "A" else 0.6)
        return {name: group, "success": ends if alike else ok}

    return told


@pytest.mark.parametrize(("name", "size"), [("rollout", 2), ("session", 2), ("game_id", 10)])
def test_rows_of_a_group_that_end_alike_count_once_and_are_not_paired(tmp_path: Path, name: str, size: int) -> None:
    summary = summary_of(tmp_path, in_groups(name, size))
    assert {combo.rate.starts for combo in summary.combos if combo.rate} == {100 // size}
    (comparison,) = summary.comparisons.all
    assert not comparison.paired
    assert f"each {name} counts once" in claims(summary)
    assert f"rows with one {name} end alike" in findings(summary)


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(in_groups("rollout", 2, alike=False), id="independent"),
        pytest.param(in_groups("object", 10), id="ten of each object"),
        pytest.param(in_groups("object", 2), id="two of each object"),
        pytest.param(in_groups("session", 10), id="ten of each session"),
        pytest.param(in_groups("num_contacts", 2), id="no name of a group"),
        pytest.param(in_groups("train_seed", 5), id="a run"),
    ],
)
def test_rows_that_may_be_episodes_stay_episodes(tmp_path: Path, fields: Fields) -> None:
    summary = summary_of(tmp_path, fields)
    assert {combo.rate.starts for combo in summary.combos if combo.rate} == {None}


# -- settings and marks -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("scene", lambda policy, at: f"s{at % 5 + 5 * (policy == 'B')}", "A and B have no value of scene in common"),
        (
            "difficulty",
            lambda policy, at: "easy" if at < (80 if policy == "A" else 20) else "hard",
            "difficulty is not spread alike: hard in 20 of 100 of A and 80 of 100 of B",
        ),
        (
            "phase",
            lambda policy, at: "first" if at < (70 if policy == "A" else 30) else "second",
            "phase is not spread alike",
        ),
        (
            "timeout",
            lambda policy, at: 40 + 20 * (policy == "B"),
            "timeout is not the same: 40 and 60",
        ),
        (
            "mode",
            lambda policy, at: "teleop" if policy == "A" and at % 3 == 0 else "auto",
            "mode is not spread alike: teleop in 34 of 100 of A and 0 of 100 of B",
        ),
        ("level", lambda policy, at: at / (10 if policy == "A" else 40), "level is not spread alike: above 1.9"),
        ("seen", lambda policy, at: at < (90 if policy == "A" else 10), "True in 90 of 100 of A and 10 of 100 of B"),
        ("takeovers", lambda policy, at: at % 3 * (policy == "A"), "takeovers is not spread alike"),
        (
            "teleop",
            lambda policy, at: policy == "A",
            "teleop is not spread alike: True in 100 of 100 of A and 0 of 100",
        ),
    ],
)
def test_settings_that_two_policies_met_unequally_often_stand_in_the_claim(
    tmp_path: Path, name: str, value: Callable[[str, int], str], said: str
) -> None:
    summary = summary_of(tmp_path, lambda policy, at, _: {name: value(policy, at)})
    assert said in summary.claims.decided[0]
    assert answer(summary).endswith(f"; but {name} differs between them.")


def test_starts_that_are_paired_are_the_same_on_another_day(tmp_path: Path) -> None:
    summary = summary_of(tmp_path, lambda policy, at, _: {"date": f"2026-11-0{1 + (policy == 'B')}", "seed": at})
    assert summary.comparisons.all[0].paired
    assert "date" not in claims(summary)


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(lambda _, at, __: {"scene": f"s{at % 5}"}, id="alike"),
        pytest.param(lambda policy, at, _: {"scene": random.Random(f"{policy}{at}").choice("abc")}, id="drawn"),
        pytest.param(
            lambda policy, at, _: {"final_object": "mug" if at < 30 + 40 * (policy == "A") else "pot"}, id="end"
        ),
        pytest.param(lambda policy, at, _: {"scene": f"{policy}{at}"}, id="another one each time"),
        pytest.param(
            lambda *its: {"ending": "goal" if its[2] else "fall" if its[0] == "A" else "jam"}, id="how it ended"
        ),
        pytest.param(lambda policy, at, _: {"touched": at < 30 + 40 * (policy == "A")}, id="what came of it"),
    ],
)
def test_settings_that_are_alike_or_none_limit_nothing(tmp_path: Path, fields: Fields) -> None:
    for count in (100, 20):
        assert "spread alike" not in claims(summary_of(tmp_path, fields, count=count))


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        ({"valid": False}, "valid is false"),
        ({"excluded": True}, "excluded is true"),
        ({"aborted": 1}, "aborted is true"),
        ({"use": 0}, "use is false"),
    ],
)
def test_episodes_that_their_rows_say_not_to_count_are_told(tmp_path: Path, mark: dict[str, Any], said: str) -> None:
    (name,) = mark
    other = {name: not mark[name]}
    summary = summary_of(tmp_path, lambda policy, at, _: mark if policy == "A" and at % 4 == 0 else other)
    assert f"{said} in 25 of 100 episodes of A" in claims(summary)
    assert f"{said} in 25 of 100 episodes" in findings(summary)
    assert findings(summary).count(said) == 1


@pytest.mark.parametrize("told", [100, 60], ids=["all", "of some"])
def test_another_field_that_says_success_and_tells_no_difference_stands_in_the_claim(told: int, tmp_path: Path) -> None:
    def judged(policy: str, at: int, ok: bool) -> dict[str, Any]:
        human = at % 2 == 0 if at < told else None
        return {"success_human": human, "grasp_success": ok or at % 9 == 0, "sound": at % 2}

    summary = summary_of(tmp_path, judged)
    assert f"the difference is another one: A has {told // 2} of {told}, B has {told // 2} of {told}" in claims(summary)
    assert "grasp_success" not in claims(summary)
    assert answer(summary).endswith("; but success_human differs between them.")


def test_outcomes_that_go_with_the_number_of_a_start_are_of_these_starts(tmp_path: Path) -> None:
    """Each episode has a seed, too, so that no start is told to repeat."""
    fields = in_groups("init_state_id", 10)
    assert "outcomes go with object: " in claims(summary_of(tmp_path, in_groups("object", 2)))
    summary = summary_of(tmp_path, lambda policy, at, ok: {**fields(policy, at, ok), "seed": 7 * at})
    assert "outcomes go with init_state_id: intervals and p are of these 10 values" in claims(summary)


def test_many_checkpoints_under_one_name_are_said(tmp_path: Path) -> None:
    summary = summary_of(tmp_path, lambda _, at, __: {"seed": at, "global_step": at // 12 * 1000})
    assert "global_step varies in A: 0, 1000, 2000, 3000, 4000, 5000, and 3 more" in claims(summary)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        pytest.param(lambda policy, at, _: {"step": 100 + 50 * (at // 50) * (policy == "B")}, True, id="in blocks"),
        pytest.param(lambda _, at, __: {"step": at // 5}, False, id="of an episode"),
    ],
)
def test_steps_that_many_episodes_in_a_row_have_are_of_a_training(tmp_path: Path, fields: Fields, said: bool) -> None:
    assert ("step varies in " in claims(summary_of(tmp_path, fields))) is said


def test_environments_that_are_called_like_steps_are_asked_for(tmp_path: Path) -> None:
    for step in range(1000, 4000, 1000):
        (tmp_path / f"eval_step_{step}").mkdir()
        text = "".join(json.dumps({**one, "environment": f"eval_step_{step}"}) + "\n" for one in rows(lambda *_: {}))
        (tmp_path / f"eval_step_{step}" / "rows.jsonl").write_text(text)
    summary = summarize(collect_folder(tmp_path)).summary
    assert "eval_step_3000 may be steps of a training" in findings(summary)
    assert "eval_step_3000 may be steps of a training" in claims(summary)


def test_two_names_of_one_checkpoint_are_said(tmp_path: Path) -> None:
    assert "both have the same checkpoint, runs/act/9.pt" in claims(
        summary_of(tmp_path, lambda *_: {"checkpoint": "runs/act/9.pt"})
    )
    assert "both have" not in claims(summary_of(tmp_path, lambda *_: {"checkpoint": "last.pt"}))


# -- rows -------------------------------------------------------------------------------------------------------------


def test_rows_of_training_beside_those_of_evaluation_are_no_repeats(tmp_path: Path) -> None:
    train = [{**one, "phase": "train"} for one in rows(lambda *_: {}, 0.2, 0.2)]
    test = [{**one, "phase": "eval"} for one in rows(lambda *_: {}, 0.7, 0.7, 50)]
    summary = summarized(tmp_path, train + test)
    assert summary.totals.completed == 0
    assert "which differ by 'phase'" in findings(summary)


def test_a_few_episodes_that_ran_again_in_another_process_are_repeats(tmp_path: Path) -> None:
    again = [{**one, "env_id": 7} for one in rows(lambda *_: {}, 0.2, 0.2, 10)]
    first = [{**one, "env_id": one["episode"] % 7} for one in rows(lambda *_: {}, 0.7, 0.7)]
    assert summarized(tmp_path, first + again).totals.completed == 200


def test_rows_of_one_index_that_a_text_tells_apart_are_not_dropped_in_silence(tmp_path: Path) -> None:
    rows = [{"algo": one, "episode": at, "success": True} for one in ("a", "b") for at in range(4)]
    summary = summarized(tmp_path, rows, "r.jsonl")
    assert summary.totals.completed == 0
    assert "differ in algo" in findings(summary)


def test_successes_with_an_error_are_told(tmp_path: Path) -> None:
    summary = summary_of(tmp_path, lambda _, at, ok: {"status": "error" if ok and not at % 5 else "ok"})
    assert "succeeded with 'error' or the like in the field 'status'" in findings(summary)


def test_a_kind_of_failure_that_one_policy_spells_in_two_ways_is_not_compared(tmp_path: Path) -> None:
    def fields(policy: str, at: int, ok: bool) -> dict[str, Any]:
        return {} if ok else {"failure": "Dropped" if policy == "A" and at % 2 else "dropped"}

    summary = summary_of(tmp_path, fields, 0.3, 0.3)
    assert "ends as" not in claims(summary)
    assert "spell their failures differently" in findings(summary)


# -- sentences --------------------------------------------------------------------------------------------------------


def test_the_gap_that_would_be_found_is_that_of_episodes_with_a_verdict(tmp_path: Path) -> None:
    told = [
        one for one in rows(lambda _, at, __: {"seed": at}, 0.6, 0.6) if one["policy"] == "A" or one["episode"] < 40
    ]
    summary = summarized(tmp_path, told)
    assert "with as many pairs that differ, if every episode had a verdict." in claims(summary)


def test_a_first_line_without_an_overall_winner_names_where_somebody_wins(tmp_path: Path) -> None:
    first = [*rows(lambda *_: {}, 0.8, 0.4)]
    other = [{**one, "environment": "ice"} for one in rows(lambda *_: {}, 0.4, 0.8)]
    summary = summarized(tmp_path, first + other)
    assert "A is better in stairs" in answer(summary)
    assert "B is better in ice" in answer(summary)


def test_numbers_that_are_too_few_are_not_called_episodes_without_a_verdict(tmp_path: Path) -> None:
    for policy in "AB":
        lines = [{"policy": policy, "environment": "ant", "episode": at, "return": at * 7.5} for at in range(5)]
        write_rows(tmp_path / f"{policy}.jsonl", lines)
    summary = summarize(collect_folder(tmp_path)).summary
    assert claims(summary) == "Not compared in ant: A, B (too few values, and not paired)."


def test_a_mean_says_of_how_many_episodes_if_not_of_all(tmp_path: Path) -> None:
    lines = [
        {"policy": policy, "environment": "ant", "episode": at, "return": nan if policy == "A" and not at % 3 else at}
        for policy in "AB"
        for at in range(30)
    ]
    write_rows(tmp_path / "rows.jsonl", lines)
    report_folder(tmp_path, tmp_path / "out")
    row = next(one for one in (tmp_path / "out/report.md").read_text().splitlines() if one.startswith("| A | ant |"))
    assert "] of 20 |" in row


def test_environments_that_are_called_like_runs_are_said(tmp_path: Path) -> None:
    found = [{**one, "environment": f"flat_seed{one['episode'] % 2}"} for one in rows(lambda *_: {})]
    write_rows(tmp_path / "rows.jsonl", found)
    assert "flat_seed0, flat_seed1 may be runs of one environment, flat" in claims(
        summarize(collect_folder(tmp_path)).summary
    )
