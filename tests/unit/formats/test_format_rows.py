"""Result files with a row per episode: what is taken, what is refused, and that nothing else is lost by it."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from adapter_samples import OURS, complaints, only, read_sample, read_text, sample, verdicts
from report_runs import row

from comborun.model.attempt import Verdict
from comborun.reporter.counting.measures import balanced_rate
from comborun.reporter.records.files import decoded
from comborun.reporter.records.files import read as read_file
from comborun.reporter.records.reading import Context, Defect, Reading, Reject
from comborun.rules.results.episodes import decode
from comborun.rules.results.fields import ResultRules

LEGGED = "legged/stairs_rough_episodes.jsonl"
JOBS = "arena/zero/2026-07-20_10-00-00/pick_zero/episode_results_rebuild{}.jsonl"


def read(content: str | bytes, context: Context = OURS) -> Reading:
    return read_text("jsonl-rows", content, context)


def told(found: Sequence[Defect | Reject]) -> list[tuple[int, str]]:
    return [(entry.line, entry.reason) for entry in found]


# rows in our own words


def test_a_record_has_its_verdict_metrics_and_everything_else_that_stood_there() -> None:
    line = row(7, True, seed=1007, distance_m=8.25, steps=400, termination="goal", path=[1, {"x": 2}], fell=False)
    record = only(read(line).records)
    assert record.key == ("flat", "stairs", 7)
    assert record.verdict is Verdict.SUCCESS
    assert record.seed == 1007
    assert record.metrics == {"distance_m": 8.25, "steps": 400.0}
    assert record.extra == {"termination": "goal", "path": [1, {"x": 2}], "fell": False}
    assert (record.session, record.attempt, record.source) == ("stairs_flat", 2, "out/results:1")


def test_the_grid_names_the_fields_of_a_program_with_words_of_its_own() -> None:
    rules = ResultRules(success="completion", episode="episode_id", metrics=("progress",))
    line = '{"episode_id": "stairs_flat_ep0012", "completion": true, "progress": 12, "zone": 3, "success": false}\n'
    record = only(read(line, Context("f", "flat", "stairs", rules)).records)
    assert (record.episode, record.verdict) == (12, Verdict.SUCCESS)
    assert record.metrics == {"progress": 12.0}
    assert record.extra == {"episode_id": "stairs_flat_ep0012", "zone": 3, "success": False}


def test_numbers_that_are_none_are_left_out_and_named() -> None:
    line = '{"episode": 0, "success": true, "a": NaN, "b": 1e400, "c": -Infinity, "d": 1, "e": [NaN, 2]}\n'
    reading = read(line)
    assert only(reading.records).metrics == {"d": 1.0}
    assert only(reading.records).extra == {"e": [None, 2]}
    assert [reason for _, reason in told(reading.defects)] == [
        f"the field '{name}' is not a finite number: left out" for name in "abc"
    ]


@pytest.mark.parametrize(
    ("text", "episodes", "rejects", "defects"),
    [
        (row(0) + row(1)[:-1], [0, 1], [], [(2, "the last line lacks its newline; its record is whole and counts")]),
        (row(0)[:-1] + '{"episode": 1, "suc\n' + row(2), [0, 2], [(1, "not JSON after a whole record")], []),
        ('{"episode": 1, "before": {"episode": 9, "success": true}\n', [], [(1, "not JSON")], []),
        (row(0) + "null\n" + row(1), [0, 1], [(2, "not a JSON object")], []),
        (
            row(0) + str({"episode": 1, "success": True}) + "\n",
            [0],
            [(2, "no JSON, but an object as Python prints it: write `json.dumps(row)`")],
            [],
        ),
        (row(0) + "[" * 100_000 + "\n" + row(1), [0, 1], [(2, "nested too deeply")], []),
        (row(0) + row(1, a=json.loads("[" * 200 + "]" * 200)) + row(2), [0, 2], [(2, "nested too deeply")], []),
    ],
    ids=["no newline", "glued", "no digging", "null", "Python's", "very deep", "deep"],
)
def test_a_broken_line_is_named_with_its_place_and_costs_no_other(
    text: str, episodes: list[int], rejects: list[tuple[int, str]], defects: list[tuple[int, str]]
) -> None:
    reading = read(text)
    assert [record.episode for record in reading.records] == episodes
    assert told(reading.rejects) == rejects
    assert told(reading.defects) == defects


def test_marks_and_line_ends_of_other_systems_are_no_trouble() -> None:
    reading = read(b"\xef\xbb\xbf" + row(0).strip().encode() + b"\r\n\r\n  \n" + row(1).encode())
    assert [record.source for record in reading.records] == ["out/results:1", "out/results:4"]
    assert reading.rejects == reading.defects == []


def test_bytes_that_are_no_text_spoil_only_their_own_field() -> None:
    record = only(read(b'{"episode": 0, "success": true, "note": "\xff\xfe"}\n').records)
    assert record.extra == {"note": "��"}


# completion rows


def test_completion_is_the_verdict_and_the_id_ends_in_the_index() -> None:
    reading = read_sample("completion-rows", LEGGED)
    assert verdicts(reading) == {n: "success" if n in (0, 3) else "failure" for n in range(6)}
    assert reading.records[3].metrics["time_to_complete"] == 512.25
    assert reading.records[3].extra["flip_detected"] is False
    assert (reading.rejects, reading.defects) == ([], [])


def test_a_seed_that_was_ignored_pairs_nothing() -> None:
    row = {"episode_id": "a_ep0001", "completion": True, "seed": 42}
    reading = read_text("completion-rows", json.dumps(row) + "\n")
    record = only(reading.records)
    assert (record.seed, record.metrics["seed_unused"]) == (None, 42.0)
    assert reading.unpaired


# job rows


def jobs(number: int, first: int = 0) -> Reading:
    name = JOBS.format(number)
    context = replace(OURS, path=name, policy=None, environment=None, first=first)
    return read_text("job-rows", sample(name), context)


def test_rows_of_a_job_are_numbered_as_they_ended_and_null_is_no_failure() -> None:
    reading = jobs(0)
    assert verdicts(reading) == {0: "success", 1: "success", 2: "success", 3: "errored", 4: "failure"}
    assert reading.records[1].extra["env_id"] == "2"


def test_copies_and_their_order_are_kept_for_the_balanced_estimate() -> None:
    rate = balanced_rate([*jobs(0).records, *jobs(1, first=5).records])
    assert rate is not None
    assert (rate.copies, rate.each) == (4, 1)


def test_the_same_row_twice_is_the_same_episode() -> None:
    line = '{"job_name": "j", "env_id": 1, "episode_in_env": 2, "success": true}\n'
    assert [record.episode for record in read_text("job-rows", line * 2).records] == [0, 0]


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
    reading = read_text("job-rows", json.dumps({"job_name": "j", **row}) + "\n")
    assert (verdicts(reading), complaints(reading)) == ({7: verdict}, [])


def test_a_row_that_nothing_numbers_is_rejected_and_costs_no_other() -> None:
    rows = [{"job_name": "j", "success": True}, 5, {"job_name": "j", "env_id": 0, "episode_in_env": 0, "success": True}]
    reading = read_text("job-rows", "".join(json.dumps(row) + "\n" for row in rows))
    assert verdicts(reading) == {0: "success"}
    assert [reject.line for reject in reading.rejects] == [1, 2]


def test_the_grids_metrics_leave_what_the_balanced_estimate_needs() -> None:
    name = JOBS.format(0)
    context = replace(OURS, path=name, rules=ResultRules(metrics=("episode_length",)))
    reading = read_text("job-rows", sample(name), context)
    assert set(reading.records[0].metrics) == {"episode_length", "episode_in_env"}


@pytest.mark.parametrize(
    "number",
    [
        "123456789012345678901234567890",
        "-18446744073709551616",
        "1e400",
        "-0.0",
        "NaN",
        "5e-324",
        '"\\ud800"',
        "9" * 19,
    ],
)
def test_the_fast_decoder_says_what_the_rules_say(number: str) -> None:
    for line in (f'{{"x": {number}}}\n', f'{{"deep": [{{"x": [{number}, 0.1]}}]}}\n', f'{{"x": {number}}} {{"y": 1}}'):
        assert repr(decoded(line.encode())) == repr(decode(line))


def test_bytes_that_are_no_text_and_rows_that_are_too_deep_are_left_to_the_rules() -> None:
    for line in (b'{"x": "\xff"}', b'{"x": ' + b"[" * 200 + b"]" * 200 + b"}", b"", b"  \n", b"{"):
        assert decoded(line) == decode(line.decode("utf-8", "replace"))


ROWS = '{"episode": 0, "success": true}\n{"episode": 1, "success": false}\n'


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("r.json", ROWS),
        ("r.txt", ROWS),
        ("results", ROWS),
        ("r.csv", "episode|success\n0|True\n1|False\n"),
        ("r.csv", "episode success\n0   True\n1   False\n"),
        ("r.csv", "episode,success\n0,True\nepisode,success\n1,False\n"),  # written by two processes
        ("r.csv", "episode,success\n0,True\nsuccess,episode\nFalse,1\n"),
        ("r.csv", "episode,success,length\n0,True,5\nepisode,success\n1,False\n"),
        ("r.csv", "episode,success\n0,True\n\n episode,success,length\n1,False,7\n"),
        (
            "r.csv",
            ",episode,state,success,note\n,0,success,True,\n,1,,False,success\n",
        ),  # cells that are called as a column is
    ],
)
def test_rows_are_read_whatever_their_file_is_called_and_their_cells_lie_between(name: str, text: str) -> None:
    reading = read_file(io.BytesIO(text.encode()), replace(OURS, path=f"out/{name}"))
    assert verdicts(reading) == {0: "success", 1: "failure"}


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ('{\n  "episode": 0,\n  "success": true\n}\n{\n  "episode": 1,\n  "success": false\n}\n', 1),
        ('[\n  {\n    "episode": 0,\n    "success": true\n  }\n]\n', 1),
        ('{"episode": 0, "success": true}\n{\n{"episode": 1, "success": false}\n', 1),  # a torn line alone
        ('{\n{"episode": 1, "success": false}\n', 1),
    ],
)
def test_objects_over_several_lines_have_one_reason(text: str, codes: int) -> None:
    found = read_file(io.BytesIO(text.encode()), Context("r.jsonl", "a", "b"))
    assert len(found.rejects) == codes
    assert len(found.records) == text.count('{"episode"')
