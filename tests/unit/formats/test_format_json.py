"""Results in JSON documents: one per episode, lists of steps, and evaluations as a whole."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from adapter_samples import (
    OURS,
    by_episode,
    combos,
    complaints,
    only,
    read_sample,
    read_text,
    reasons,
    sample,
    verdicts,
)

from comborun.model.attempt import Verdict
from comborun.reporter.records.reading import Context, RejectKind
from comborun.rules.results.fields import ResultRules

RESULTS = "bench/running/eb_alfred/gpt_four_base/base/results"
STEPS = "agent/EB-Habitat"
"""episode 1 finished, 2 did not, 3 is cut off behind its last step"""


def at(name: str, context: Context = OURS) -> Context:
    return replace(context, path=name)


# one document per episode


def test_an_episode_per_file_has_its_index_from_the_name_and_its_combo_from_the_folders() -> None:
    reading = read_sample("json-per-file", f"{RESULTS}/episode_2_final_res.json")
    record = only(reading.records)
    assert record.key == ("gpt_four_base", "eb_alfred/base", 1)
    assert record.verdict is Verdict.SUCCESS
    assert record.metrics["task_progress"] == 0.25
    assert record.extra == {"instruction": "Put a heated mug on the table."}
    assert record.source == f"{RESULTS}/episode_2_final_res.json"


def test_a_field_that_the_grid_names_goes_before_the_programs_usual_one() -> None:
    context = replace(at("results/episode_1_res.json"), rules=ResultRules(success="done", metrics=("score",)))
    record = only(read_text("json-per-file", '{"done": true, "task_success": 0, "score": 3}', context).records)
    assert (record.verdict, record.metrics) == (Verdict.SUCCESS, {"score": 3.0})


def test_a_field_called_like_the_index_is_kept_beside_it() -> None:
    record = only(read_text("json-per-file", '{"task_success": 1, "episode": "x"}', at("episode_5_res.json")).records)
    assert (record.episode, record.extra) == (4, {"record.episode": "x"})


@pytest.mark.parametrize("end", [0, 1, 40, 200])
def test_a_half_written_document_is_torn(end: int) -> None:
    content = sample(f"{RESULTS}/episode_1_final_res.json")[:end]
    reading = read_text("json-per-file", content, at("episode_1_final_res.json"))
    assert only(reading.rejects).kind is RejectKind.TORN


@pytest.mark.parametrize(
    ("text", "name", "reason"),
    [
        ("[1]", "episode_1_res.json", "not a JSON object"),
        ("{}", "episode_0_res.json", "the name 'episode_0_res.json' holds no episode's number"),
        ("{}", "summary.json", "the name 'summary.json' holds no episode's number"),
        ('{"a" 1}', "episode_1_res.json", "not JSON: Expecting ':' delimiter in line 1"),
        ("[" * 100_000, "episode_1_res.json", "nested too deeply"),
        (f"[{'9' * 5000}]", "episode_1_res.json", "not JSON: a number too long"),
    ],
)
def test_what_is_no_record_is_named_as_that(text: str, name: str, reason: str) -> None:
    assert reasons(read_text("json-per-file", text, at(name))) == [reason]


# lists of steps


def test_the_last_step_with_a_verdict_decides() -> None:
    reading = read_sample("json-list-last", f"{STEPS}/episode_1/cosmos_log.json")
    record = only(reading.records)
    assert record.key == ("agent", "EB-Habitat", 0)
    assert record.verdict is Verdict.SUCCESS
    assert record.metrics == {"task_progress": 1.0, "env_step": 2.0, "steps": 2.0}


def test_an_episode_that_has_not_finished_is_missing_and_not_failed() -> None:
    reading = read_sample("json-list-last", f"{STEPS}/episode_2/cosmos_log.json")
    assert reading.records == []
    assert (only(reading.rejects).kind, reasons(reading)) == (RejectKind.TORN, ["not finished after 2 steps"])


def test_whole_steps_count_although_the_file_is_cut_off_behind_them() -> None:
    reading = read_sample("json-list-last", f"{STEPS}/episode_3/cosmos_log.json")
    assert verdicts(reading) == {2: "failure"}
    assert complaints(reading) == ["half-written JSON behind step 2: the steps before it count"]


def test_fifty_steps_are_an_episodes_end_and_the_last_may_lack_its_second_half() -> None:
    steps: list[Any] = [{"step": n, "done": False, "info": {"task_success": 0.0}} for n in range(49)]
    name = at("episode_3/cosmos_log.json")
    assert verdicts(read_text("json-list-last", json.dumps(steps), name)) == {}
    assert verdicts(read_text("json-list-last", json.dumps([*steps, {"step": 50}]), name)) == {2: "failure"}
    deep = json.dumps([*steps, {"step": 50}])[:-1] + ', {"a": ' + "[" * 200 + "]" * 200 + "}]"
    assert verdicts(read_text("json-list-last", deep, name)) == {2: "failure"}, (
        "a step that nobody can read is left out"
    )


@pytest.mark.parametrize("cut", range(0, 900, 7))
def test_a_list_cut_off_anywhere_gives_its_episode_or_says_why_not(cut: int) -> None:
    content = (
        sample(f"{STEPS}/episode_1/cosmos_log.json")[:-cut] if cut else sample(f"{STEPS}/episode_1/cosmos_log.json")
    )
    reading = read_text("json-list-last", content, at("episode_1/cosmos_log.json"))
    assert len(reading.records) + len(reading.rejects) == 1


# a document for a whole evaluation


def test_lists_of_successes_become_episodes_task_after_task() -> None:
    reading = read_sample("eval-info", "lerobot/smolvla/eval_info.json")
    spatial = [record for record in reading.records if record.environment == "libero_spatial"]
    assert [record.success for record in spatial] == [True, False, True, False, False, True]
    assert [record.episode for record in spatial] == [0, 1, 2, 3, 4, 5]
    assert [record.extra["task"] for record in spatial] == ["0", "0", "0", "1", "1", "1"]
    assert spatial[3].extra["video"] == "outputs/eval/videos/libero_spatial_1/eval_episode_0.mp4"
    assert spatial[0].metrics == {"sum_reward": 1.0, "max_reward": 1.0}
    assert (reading.defects, reading.rejects) == ([], [])


def test_in_a_run_all_tasks_are_of_the_sessions_combo_and_follow_its_first_episode() -> None:
    context = replace(at("eval_info.json"), first=20)
    reading = read_text("eval-info", sample("lerobot/smolvla/eval_info.json"), context)
    assert combos(reading) == {("flat", "stairs")}
    assert [record.episode for record in reading.records] == list(range(20, 29))


def test_the_older_generation_names_index_and_seed() -> None:
    reading = read_sample("eval-info", "lerobot_older/act/pusht/eval_info.json")
    assert {episode: (record.success, record.seed) for episode, record in by_episode(reading).items()} == {
        0: (False, 1000),
        1: (True, 1001),
        2: (False, 1002),
        3: (False, 1003),
    }


def edited(**changes: Any) -> str:
    return json.dumps({**json.loads(sample("lerobot/smolvla/eval_info.json")), **changes})


@pytest.mark.parametrize(
    ("rate", "complaint"),
    [
        (50.0, []),
        (0.5, ["pc_success of 0.5 is not 3 of 6 as listed: a fraction, where a percentage is meant"]),
        (60.0, ["pc_success of 60.0 is not 3 of 6 as listed"]),
    ],
)
def test_a_percentage_is_compared_with_what_is_listed(rate: float, complaint: list[str]) -> None:
    groups = {"libero_spatial": {"pc_success": rate, "n_episodes": 6}}
    assert complaints(read_text("eval-info", edited(per_group=groups), Context("a/eval_info.json"))) == complaint


def test_a_bad_task_costs_no_other_and_moves_no_index() -> None:
    tasks = json.loads(sample("lerobot/smolvla/eval_info.json"))["per_task"]
    for bad in (None, 7, {"metrics": {"successes": "yes"}}, {"task_group": "libero_spatial"}):
        reading = read_text("eval-info", edited(per_task=[bad, tasks[0]], per_group={}), at("eval_info.json"))
        assert verdicts(reading) == {3: "success", 4: "failure", 5: "success"}
        assert reasons(reading) == ["entry 0 of per_task lists no successes"]
    unnumbered = json.dumps({"per_episode": [{"success": True}, {"episode_ix": 4, "success": True}]})
    reading = read_text("eval-info", unnumbered, at("eval_info.json"))
    assert (verdicts(reading), len(reading.rejects)) == ({4: "success"}, 1)


def task(group: str, *successes: bool) -> dict[str, Any]:
    return {"task_group": group, "metrics": {"successes": successes}}


def older(*successes: bool, **fields: str) -> list[dict[str, Any]]:
    return [{"episode_ix": at, "success": one, **fields} for at, one in enumerate(successes)]


A_TASK, TWO = task("a", True, False), older(True, False)


@pytest.mark.parametrize(
    "document",
    [
        {"per_task": [A_TASK], "per_episode": TWO},
        {"a": {"per_task": [A_TASK]}, "b": {"per_episode": TWO}},
        {"per_task": [A_TASK], "b": {"per_episode": TWO}},
        {"per_task": [A_TASK], "per_group": {"a": {"pc_success": 50.0, "n_episodes": 2}, "b": {"per_episode": TWO}}},
        {"groups": [{"per_task": [A_TASK]}, {"per_episode": TWO}]},
    ],
)
def test_lists_of_several_groups_are_all_read_where_so_many_episodes_are_planned(document: Any) -> None:
    text, name = json.dumps(document), at("eval_info.json")
    assert verdicts(read_text("eval-info", text, replace(name, planned=4))) == dict(
        enumerate(["success", "failure"] * 2)
    )
    assert len(read_text("eval-info", text, name).records) == 4, "of an unknown plan"


def test_a_list_within_an_evaluation_that_repeats_its_group_counts_once() -> None:
    groups = {"b": {"per_episode": older(True, True), "pc_success": 100.0, "n_episodes": 2}}
    text = json.dumps({"per_task": [A_TASK, task("b", True, True)], "per_group": groups})
    assert list(verdicts(read_text("eval-info", text, at("eval_info.json"))).values()).count("success") == 3


def test_an_episode_of_the_older_generation_names_its_group() -> None:
    text = json.dumps({"per_task": [A_TASK], "per_episode": older(True, True, task_group="b")})
    reading = read_text("eval-info", text, Context("a/eval_info.json"))
    assert {record.environment for record in reading.records} == {"a", "b"}


def test_a_rate_of_a_group_without_a_list_is_named() -> None:
    groups = {name: {"pc_success": 50.0, "n_episodes": 2} for name in "ab"}
    text = json.dumps({"per_task": [A_TASK], "per_group": groups})
    said = "a rate of b is stated beside lists of other groups, and it has no list itself"
    assert reasons(read_text("eval-info", text, at("eval_info.json"))) == [said]
    inner = json.dumps({"per_task": [A_TASK], "b": {"overall": {"pc_success": 50.0, "n_episodes": 2}}})
    assert reasons(read_text("eval-info", inner, at("eval_info.json"))) == [said]


def test_a_percentage_without_lists_is_a_count_that_nothing_can_be_paired_with() -> None:
    text = json.dumps({"per_group": {"libero_goal": {"pc_success": 87.5, "n_episodes": 16}}})
    reading = read_text("eval-info", text, Context("pi0/eval_info.json"))
    count = only(reading.aggregates)
    assert (count.policy, count.environment, count.successes, count.episodes) == ("pi0", "libero_goal", 14, 16)
    assert reading.unpaired


@pytest.mark.parametrize(("rate", "n"), [(50.0, 0), (float("nan"), 4), (150.0, 4), (None, 4), (50.0, None)])
def test_a_percentage_of_nothing_is_no_rate(rate: Any, n: Any) -> None:
    text = json.dumps({"overall": {"pc_success": rate, "n_episodes": n}})
    reading = read_text("eval-info", text, at("eval_info.json"))
    assert reading.aggregates == []
    assert len(reading.rejects) == 1
