"""Rows of JSON Lines in the words of other programs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from adapter_samples import OURS, combos, complaints, kinds, only, read_sample, read_text, sample, verdicts

from comborun.judging import ResultRules
from comborun.reporter.adapters import Reading, completion_rows, job_rows
from comborun.reporter.counting.copies import balanced_rate
from comborun.reporter.merge import merge

LEGGED = "legged/stairs_rough_episodes.jsonl"
JOBS = "arena/zero/2026-07-20_10-00-00/pick_zero/episode_results_rebuild{}.jsonl"


# completion rows


def test_completion_is_the_verdict_and_the_id_ends_in_the_index() -> None:
    reading = read_sample(completion_rows.read, LEGGED)
    assert combos(reading) == {("rough", "stairs")}
    assert verdicts(reading) == {n: "success" if n in (0, 3) else "failure" for n in range(6)}
    assert reading.records[3].metrics["time_to_complete"] == 512.25
    assert reading.records[3].extra["flip_detected"] is False
    assert (reading.rejects, reading.defects) == ((), ())


def test_a_rerun_that_was_appended_makes_duplicates_and_no_second_episodes() -> None:
    context = replace(OURS, policy=None, environment=None)
    reading = read_text(completion_rows.read, sample(LEGGED) * 2, context)
    combo = only(merge(reading.records, {}))
    assert (len(reading.records), len(combo.accepted), combo.duplicates) == (12, 6, (range(6),))


def test_a_seed_that_was_ignored_pairs_nothing() -> None:
    row = {"episode_id": "a_ep0001", "completion": True, "seed": 42}
    reading = read_text(completion_rows.read, json.dumps(row) + "\n")
    record = only(reading.records)
    assert (record.seed, record.metrics["seed_unused"]) == (None, 42.0)
    assert kinds(reading) == {"unpaired"}


def test_a_bad_line_costs_no_other() -> None:
    lines = sample(LEGGED).splitlines(keepends=True)
    reading = read_text(completion_rows.read, lines[0] + b"{oops\n" + lines[1], replace(OURS, policy="rough"))
    assert verdicts(reading) == {0: "success", 1: "failure"}
    assert [reject.line for reject in reading.rejects] == [2]


# job rows


def jobs(number: int, first: int = 0) -> Reading:
    name = JOBS.format(number)
    context = replace(OURS, path=name, policy=None, environment=None, first=first)
    return read_text(job_rows.read, sample(name), context)


def test_rows_of_a_job_are_numbered_as_they_ended_and_null_is_no_failure() -> None:
    reading = jobs(0)
    assert combos(reading) == {("zero", "pick_zero")}
    assert verdicts(reading) == {0: "success", 1: "success", 2: "success", 3: "errored", 4: "failure"}
    assert reading.records[1].extra["env_id"] == "2"
    assert reading.defects == ()


def test_a_rebuild_goes_on_counting_with_copies_of_its_own() -> None:
    reading = jobs(1, first=5)
    assert verdicts(reading) == {5: "success", 6: "failure"}
    assert [record.extra["env_id"] for record in reading.records] == ["1:1", "1:0"]


def test_copies_and_their_order_are_kept_for_the_balanced_estimate() -> None:
    rate = balanced_rate([*jobs(0).records, *jobs(1, first=5).records])
    assert rate is not None
    assert (rate.copies, rate.each, rate.left_out) == (4, 1, 2)


def test_many_copies_for_few_episodes_are_told_with_their_number() -> None:
    reading = jobs(0)
    assert kinds(reading) == {"ending-order", "first-k"}
    assert {caution.num_envs for caution in reading.cautions} == {None, 3}


def test_one_copy_of_the_environment_is_no_reason_for_caution() -> None:
    rows = [{"job_name": "j", "env_id": 0, "episode_in_env": n, "success": True} for n in range(3)]
    assert read_text(job_rows.read, "".join(json.dumps(row) + "\n" for row in rows)).cautions == ()


def test_the_same_row_twice_is_the_same_episode() -> None:
    line = '{"job_name": "j", "env_id": 1, "episode_in_env": 2, "success": true}\n'
    assert [record.episode for record in read_text(job_rows.read, line * 2).records] == [0, 0]


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        ({"episode_idx": 7, "outcomes": {"success": True}}, "success"),
        ({"episode_idx": 7, "arena_env_args": ["--x"], "outcomes": {"success": None}}, "errored"),
        ({"episode_idx": 7, "outcomes": {"moved": True}}, "errored"),
        ({"global_episode_index": 7, "env_id": 3, "episode_in_env": 1, "success": False}, "failure"),
    ],
)
def test_other_generations_have_an_index_and_outcomes_of_their_own(row: dict[str, Any], verdict: str) -> None:
    reading = read_text(job_rows.read, json.dumps({"job_name": "j", **row}) + "\n")
    assert (verdicts(reading), complaints(reading)) == ({7: verdict}, [])


def test_a_row_that_nothing_numbers_is_rejected_and_costs_no_other() -> None:
    rows = [{"job_name": "j", "success": True}, 5, {"job_name": "j", "env_id": 0, "episode_in_env": 0, "success": True}]
    reading = read_text(job_rows.read, "".join(json.dumps(row) + "\n" for row in rows))
    assert verdicts(reading) == {0: "success"}
    assert [reject.line for reject in reading.rejects] == [1, 2]


def test_the_grids_metrics_leave_what_the_balanced_estimate_needs() -> None:
    name = JOBS.format(0)
    context = replace(OURS, path=name, rules=ResultRules(metrics=("episode_length",)))
    reading = read_text(job_rows.read, sample(name), context)
    assert set(reading.records[0].metrics) == {"episode_length", "episode_in_env"}
