"""What a file is taken for, from any folder of results."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pytest
from adapter_samples import complaints, reasons, sample

from comborun.reporter.records.files import read
from comborun.reporter.records.reading import Context, Reading
from comborun.rules.results.fields import ResultRules
from comborun.rules.results.formats import candidate

TAKEN = {
    "agent/EB-Habitat/episode_1/cosmos_log.json": "json-list-last",
    "agent/EB-Habitat/episode_3/cosmos_log.json": "json-list-last",
    "arena/zero/2026-07-20_10-00-00/pick_zero/episode_results_rebuild0.jsonl": "job-rows",
    "bench/running/eb_alfred/gpt_four_base/base/results/episode_1_final_res.json": "json-per-file",
    "bench/running/eb_alfred/gpt_four_base/base/results/summary.json": "summary",
    "bench/running/eb_manipulation/gpt_four_base/base/results/episode_1_res.json": "json-per-file",
    "clients/EVAL-libero_goal-openvla-2026_02_03-04_05_06--note.txt": "log-lines",
    "clients/pi0/libero_spatial.log": "log-lines",
    "cluster/logs/20260823-behavior_openpi_pi05_eval/eval_embodiment.log": "kn-aggregate",
    "cluster/logs/20260823-behavior_openpi_pi05_eval/metrics.log": "kn-aggregate",
    "inspect/match.eval": "inspect-log",
    "inspect/match.json": "inspect-log",
    "legged/stairs_rough_episodes.jsonl": "completion-rows",
    "lerobot/smolvla/eval_info.json": "eval-info",
    "lerobot_older/act/pusht/eval_info.json": "eval-info",
    "maniskill/PickCube-v1__ppo__1__1756000000/eval.log": "kn-aggregate",
    "ranks/zero/policy_runner.log": "rank-metrics",
    "rollouts/gr00t/rollout.log": "log-tuple",
    "robomimic/PnPCounterToCab.json": "rollout-stats",
    "robomimic/lift.log": "log-rollout-stats",
    "sb3/cartpole.monitor.csv": "table",
    "sb3/evaluations.npz": "arrays",
    "sqlite/results.db": "database",
    "training/outputs/cartpole.log": "train-step",
    "vla_eval/libero.json": "episode-list",
    "wandb/history.jsonl": "history-rows",
}


def sniffed(content: bytes | str, path: str = "x.jsonl", rules: ResultRules | None = None) -> tuple[str, Reading]:
    stream = io.BytesIO(content.encode() if isinstance(content, str) else content)
    reading = read(stream, Context(path, "flat", "stairs", rules or ResultRules()))
    assert stream.tell() == len(stream.getvalue())
    return reading.format, reading


@pytest.mark.parametrize(("name", "taken"), TAKEN.items())
def test_each_program_is_known_by_what_it_writes_whatever_its_files_are_called(name: str, taken: str) -> None:
    assert sniffed(sample(name), name)[0] == taken
    if taken not in {"json-list-last", "json-per-file", "summary"}:  # these have the episode in a name
        assert sniffed(sample(name), f"elsewhere/renamed{Path(name).suffix}")[0] == taken


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("plan.json", '{"policies": []}'),
        ("package.json", "[1, 2]"),
        ("notes.txt", "step one: results"),
        ("train.log", "loss=0.1 success_once=0.4"),
        ("a.log", ""),
        ("a.json", ""),
    ],
)
def test_other_files_are_nothing_and_no_fault(path: str, content: str) -> None:
    assert sniffed(content, path) == ("", Reading(path))


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("a/b.jsonl", True),
        ("a/B.JSON", True),
        ("a/log", True),
        ("x.jsonl.gz", True),
        ("a.txt", True),
        ("a.mp4", False),
        ("a.pt", False),
        ("a", False),
    ],
)
def test_only_names_that_can_hold_results_are_looked_into(path: str, wanted: bool) -> None:
    assert candidate(path) is wanted


def test_our_own_rows_stay_ours_whatever_else_is_in_them() -> None:
    row = '{"episode": 3, "success": true, "job_name": "j", "env_id": 1, "completion": false, "episode_id": "e9"}\n'
    taken, reading = sniffed(row)
    assert (taken, reading.records[0].episode, reading.records[0].success) == ("jsonl-rows", 3, True)
    rules = ResultRules(success="completion", episode="episode_id")
    assert sniffed(row, rules=rules)[1].records[0].episode == 9


def test_a_file_whose_first_lines_are_broken_is_known_by_the_next() -> None:
    taken, reading = sniffed(b"{torn\n\xff\n" + sample("legged/stairs_rough_episodes.jsonl"), rules=ResultRules())
    assert (taken, len(reading.rejects)) == ("completion-rows", 8)


@pytest.mark.parametrize("content", ["{torn", "no JSON\n"])
def test_rows_of_which_none_can_be_read_are_rows_all_the_same(content: str) -> None:
    taken, reading = sniffed(content)
    assert (taken, len(reading.rejects)) == ("jsonl-rows", 1)


def test_a_summary_is_named_and_not_read() -> None:
    taken, reading = sniffed('{"task_success": 1.0}', "results/summary.json")
    assert taken == "summary"
    assert reading.records == reading.aggregates == []
    assert "a summary is not read" in complaints(reading)[0]


def test_results_at_the_end_of_a_long_log_are_found() -> None:
    noise = b"[INFO] nothing to see\n" * 200_000
    assert len(noise) > 4 << 20
    assert sniffed(noise + sample("rollouts/gr00t/rollout.log"), "a.log")[0] == "log-tuple"


ROW = '{"episode": 3, "success": true}\n'


@pytest.mark.parametrize("name", ["lerobot/smolvla/eval_info.json", "clients/pi0/libero_spatial.log"])
def test_a_mark_in_front_is_passed_over(name: str) -> None:
    text = sample(name).decode()
    assert sniffed(text.encode("utf-8-sig"), name) == sniffed(text, name)
    for wide in ("utf-16", "utf-16-le", "utf-16-be"):  # as PowerShell and Excel write text
        assert sniffed(text.encode(wide), name) == sniffed(text, name)


@pytest.mark.parametrize(
    ("start", "name"),
    [(gzip.compress(gzip.compress(ROW.encode()), mtime=0), "gzip"), (b"PK\x03\x04...", "zip")],
    ids=["packed twice", "zip"],
)
def test_what_is_packed_is_refused_by_name(start: bytes, name: str) -> None:
    taken, reading = sniffed(start, "x.jsonl.gz")
    assert (taken, reasons(reading)) == ("", [f"packed with {name}: unpack it first"])
