"""Nothing that can stand in a file makes an adapter raise, and no valid record is lost by a bad neighbour."""

from __future__ import annotations

import io
import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from adapter_samples import OURS, SAMPLES, read_text, verdicts
from hypothesis import given, settings
from hypothesis import strategies as st

from comborun.reporter.adapters.formats import FORMATS, read
from comborun.reporter.adapters.log_text import printed
from comborun.reporter.adapters.names import FILE, groups, read_names
from comborun.reporter.adapters.reading import Context

PATHS = ("a/x.jsonl", "episode_3/x.json", "a/episode_3_res.json", "x.log", "eval_info.json", "EVAL-a-b-c.txt")
SOME = [path.read_bytes() for path in sorted(SAMPLES.rglob("*")) if path.is_file()]

contexts = st.builds(
    lambda path, named: replace(OURS, path=path) if named else Context(path), st.sampled_from(PATHS), st.booleans()
)
KEYS = """
    episode success policy environment seed job_name env_id episode_in_env outcomes episode_idx completion episode_id
    per_task per_episode per_group overall metrics successes sum_rewards video_paths task_group task_id pc_success
    n_episodes episode_ix info task_success done step"""
keys = st.sampled_from(KEYS.split()) | st.text(max_size=5)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from([10**400, "true", "ep0007"])
)
values: st.SearchStrategy[Any] = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=6), max_leaves=20
)
words = st.sampled_from(
    [
        "results:  ('env', [True, False], {'a': [1, 2]})",
        "results:  ('env', [True,",
        "results:  (",
        "array([1., nan])",
        "success rate:  0.5",
        "Success: True",
        "Success: ",
        "Caught exception: x",
        "Starting episode 3...",
        "Task: x",
        "# episodes completed so far: 2",
        "# episodes completed so far: 0",
        "Total episodes: 9",
        "Total success rate: nan",
        "Total success rate: 1e400",
        "│success_once=0.5 │num_trajectories=3 │",
        "'eval/success_once': array(1e999), 'eval/num_trajectories': 1e400",
        "eval_success_once_mean=nan",
        "resulting in 16 episodes",
        "[train] step=7 sps=nan avgReward(100)=1e999",
        "Total steps: 9",
        "\x1b[3g",
        "\r",
        "\0",
        ")",
    ]
)
logs = st.lists(words | st.text(max_size=12), max_size=25).map(
    lambda found: "\n".join(found).encode("utf-8", "replace")
)
documents = values.map(lambda value: json.dumps(value).encode())
rows = st.lists(documents, max_size=6).map(b"\n".join)
mangled = st.builds(
    lambda content, at, junk, cut: content[: at % (len(content) + 1)] + junk + content[at % (len(content) + 1) + cut :],
    st.sampled_from(SOME),
    st.integers(0, 1 << 20),
    st.binary(max_size=8),
    st.integers(0, 40),
)
contents = st.binary(max_size=300) | logs | documents | rows | mangled


@pytest.mark.parametrize("format_", FORMATS)
@settings(max_examples=80)
@given(content=contents, context=contexts)
def test_no_adapter_raises_and_everything_has_its_place(format_: str, content: bytes, context: Context) -> None:
    reading = read_text(format_, content, context)
    assert all(record.episode >= 0 and record.policy and record.environment for record in reading.records)
    assert all(found.reason and found.path == context.path for found in (*reading.rejects, *reading.defects))
    assert all(0 <= found.successes <= found.episodes > 0 for found in reading.aggregates)
    assert any((*reading.entries, reading.rejects, reading.defects)), "a file that gives nothing says so"


@settings(max_examples=100)
@given(content=contents, context=contexts)
def test_no_file_is_too_strange_to_be_told_apart(content: bytes, context: Context) -> None:
    reading = read(io.BytesIO(content), context)
    assert reading.format or not reading.records


@settings(max_examples=60)
@given(st.lists(st.text(max_size=30) | st.from_regex(FILE, fullmatch=True), max_size=6))
def test_no_name_of_a_file_is_too_strange(names: list[str]) -> None:
    for folder, paths in groups(names).items():
        reading = read_names(paths, Context(folder))
        assert len(reading.records) + len(reading.rejects) >= 1


@settings(max_examples=150)
@given(words | st.text(alphabet="()[]{},'\"-.a1 \\\n", max_size=60))
def test_no_printed_value_is_too_strange(text: str) -> None:
    with suppress(ValueError):
        printed(text)


noise_lines = st.text(max_size=20).filter(lambda text: "episode" not in text and ":" not in text)


@settings(max_examples=100)
@given(st.lists(noise_lines, max_size=3), st.integers(1, 6))
def test_noise_between_lines_costs_no_episode(noise: list[str], count: int) -> None:
    episodes = [f"Success: True\n# episodes completed so far: {n}\n" for n in range(1, count + 1)]
    text = "".join(f"{line}\n" for line in noise).join(["", *episodes])
    found = read_text("log-lines", text.encode("utf-8", "replace"))
    assert verdicts(found) == dict.fromkeys(range(count), "success")


@settings(max_examples=100)
@given(st.lists(st.text(alphabet="([{'\"0aT,", max_size=10), max_size=3))
def test_a_broken_tuple_costs_no_whole_one(broken: list[str]) -> None:
    text = "".join(f"results:  (x{line}\n" for line in broken) + "results:  ('env', [True, False], {})\n"
    assert len(read_text("log-tuple", text).records) == 2


GOOD: dict[str, dict[str, Any]] = {
    "jsonl-rows": {"episode": 7, "success": True},
    "completion-rows": {"episode_id": "ep0007", "completion": True},
    "job-rows": {"job_name": "j", "global_episode_index": 7, "success": True},
    "eval-info": {"task_group": "g", "metrics": {"successes": [True]}},
}


@settings(max_examples=100)
@given(st.lists(values, max_size=4), st.lists(st.binary(max_size=60), max_size=4), st.sampled_from(sorted(GOOD)))
def test_a_valid_neighbour_of_anything_is_read(bad: list[Any], noise: list[bytes], format_: str) -> None:
    if format_ == "eval-info":
        content = json.dumps({"per_task": [*bad, GOOD[format_]]}).encode()
    else:
        lines = [*(line.replace(b"\n", b" ") for line in noise), *(json.dumps(value).encode() for value in bad)]
        content = b"\n".join([b"", *lines, json.dumps(GOOD[format_]).encode()])
    assert True in [record.success for record in read_text(format_, content).records]


@given(st.lists(st.dictionaries(keys, values, max_size=6), max_size=5))
def test_every_row_is_accounted_for_and_can_be_written_as_json(found: list[dict[str, Any]]) -> None:
    reading = read_text("jsonl-rows", "".join(json.dumps(value) + "\n" for value in found))
    assert len(reading.records) + len(reading.rejects) == len(found)
    json.dumps([[dict(record.metrics), dict(record.extra)] for record in reading.records], allow_nan=False)
