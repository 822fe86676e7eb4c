"""Curves in the files of a training, and its checkpoints."""

from __future__ import annotations

import io
import json
from pathlib import Path
from time import process_time
from typing import Any

import curve_samples as samples
import numpy as np
import pytest

from comborun.rules.curves import checkpoints, training
from comborun.rules.curves.event_files import masked_checksum


def read(folder: Path, files: dict[str, str | bytes], log: str = "") -> dict[str, Any]:
    for name, content in {"log": log, **{f"out/{name}": content for name, content in files.items()}}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    (folder / "out").mkdir(exist_ok=True)
    return training.read(str(folder / "log"), str(folder / "out"))


def points(found: dict[str, Any]) -> dict[str, list[tuple[float, float]]]:
    return {one["name"]: [*zip(one["steps"], one["values"], strict=True)] for one in found["curves"]}


def evaluations() -> bytes:
    made = io.BytesIO()
    np.savez(
        made,
        timesteps=np.array([1000, 2000]),
        results=np.array([[1.0, 2.0], [3.0, 5.0]]),
        ep_lengths=np.array([[10, 20], [30, 40]]),
        successes=np.array([[True, False], [True, True]]),
    )
    return made.getvalue()


FILES: dict[str, tuple[str | bytes, dict[str, list[tuple[float, float]]]]] = {
    "progress.csv": (
        samples.PROGRESS,
        {
            "eval/mean_reward": [(4000, 123.4)],
            "rollout/ep_len_mean": [(2048, 22.3), (4096, 26.1), (6144, 27)],
            "rollout/ep_rew_mean": [(2048, 21.5), (4096, 25.75), (6144, 26)],
        },
    ),
    "progress.txt": (samples.SPINUP, {"EpLen": [(4000, 21), (8000, 31)], "AverageEpRet": [(4000, 20.5), (8000, 30.5)]}),
    "garage/progress.csv": (
        samples.GARAGE,
        {
            "Evaluation/AverageReturn": [(1000, -20.5), (2000, -10.5)],
            "Evaluation/SuccessRate": [(1000, 0), (2000, 0.25)],
        },
    ),
    "version_0/metrics.csv": (samples.LIGHTNING, {"val_success": [(99, 0.25), (199, 0.5)]}),
    "result.json": (
        samples.RLLIB,
        {
            "evaluation/episode_reward_mean": [(4000, 12), (8000, 24), (12000, 36)],
            "episode_len_mean": [(4000, 100), (8000, 100), (12000, 100)],
            "episode_reward_mean": [(4000, 10), (8000, 20), (12000, 30)],
        },
    ),
    "evaluations.npz": (
        evaluations(),
        {
            "eval/episode_length": [(1000, 15), (2000, 35)],
            "eval/episode_return": [(1000, 1.5), (2000, 4)],
            "eval/success": [(1000, 0.5), (2000, 1)],
        },
    ),
    "tb/events.out.tfevents.1700000000.box.1.0": (
        samples.events(
            [(0, "Train/mean_reward", 1.5), (10, "Train/mean_reward", 2.5), (3, "Train/mean_reward/time", 9.0)]
        )
        + samples.event(10, "eval/success", 0.5, tensor=True)
        + samples.frame(b"\x2a" + b"\xff" * 70_000)
        + samples.event(20, "Train/mean_reward", 3.5)
        + samples.event(30, "Train/mean_reward", 4.5)[:-9],
        {"eval/success": [(10, 0.5)], "Train/mean_reward": [(0, 1.5), (10, 2.5), (20, 3.5)]},
    ),
    "metrics.jsonl": (
        '{"step": 1, "eval": {"success_rate": 0.25}}\n{"step": 2, "eval": {"success_rate": 0.5}, "x": NaN}\n{"ste',
        {"eval/success_rate": [(1, 0.25), (2, 0.5)]},
    ),
    "long.jsonl": (
        '{"tag": "train/return", "step": 1, "value": 2}\n{"tag": "loss", "step": 1, "value": 5}\n[1]\n',
        {"train/return": [(1, 2)]},
    ),
    "wandb.jsonl": (
        (
            '{"_step": 0, "_timestamp": 1.7e9, "global_step": 100, "return": 1}\n'
            '{"_step": 1, "global_step": 200, "return": 3}\n'
        ),
        {"return": [(100, 1), (200, 3)]},
    ),
    "trainer_state.json": (
        json.dumps({"log_history": [{"step": 10, "loss": 1, "reward": 0.5}, {"step": 20, "reward": 0.75}], "x": 1}),
        {"reward": [(10, 0.5), (20, 0.75)]},
    ),
    "columns.json": (
        json.dumps({"timesteps": [10, 20], "returns": [1.0, None], "lengths": [5, 6], "note": "x"}),
        {"lengths": [(10, 5), (20, 6)], "returns": [(10, 1)]},
    ),
    "sacred/metrics.json": (
        json.dumps({"train.reward": {"steps": [1, 2], "timestamps": ["a", "b"], "values": [0.5, 0.75]}}),
        {"train.reward": [(1, 0.5), (2, 0.75)]},
    ),
    "scalars/episode_return.json": (
        json.dumps([[1.7e9, 10, 1.5], [1.7e9, 20, 2.5]]),
        {"episode_return": [(10, 1.5), (20, 2.5)]},
    ),
    "semicolons.csv": ("Iteration;Mean Reward;Success %\n1;1,5;50\n2;2,5;75\n", {"Mean Reward": [(1, 1.5), (2, 2.5)]}),
    "units.csv": (
        "frames,Episode Return,win rate (%)\n1.2M,5,50\n2.4M,6,60%\n",
        {"Episode Return": [(1_200_000, 5), (2_400_000, 6)], "win rate (%)": [(1_200_000, 0.5), (2_400_000, 0.6)]},
    ),
    "quoted.csv": ('"step","mean reward"\n"1,000","2.5"\n"2,000","3.5"\n', {"mean reward": [(1000, 2.5), (2000, 3.5)]}),
    "run-ppo-tag-Train_mean_reward.csv": (
        "Wall time,Step,Value\n1.7e9,0,1.5\n1.7e9,10,2.5\n",
        {"Train_mean_reward": [(0, 1.5), (10, 2.5)]},
    ),
    "train.log": (
        samples.SB3[:400],
        {
            "rollout/ep_len_mean": [(2048, 22.3)],
            "rollout/ep_rew_mean": [(2048, 21.5)],
            "rollout/success_rate": [(2048, 0.25)],
        },
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_scalars_is_read(tmp_path: Path, name: str) -> None:
    content, expected = FILES[name]
    found = points(read(tmp_path, {name: content}))
    assert {key: value for key, value in found.items() if key in expected} == expected
    assert not [one for one in found if "loss" in one or "time" in one.rpartition("/")[2]]


def test_the_episodes_of_several_environments_are_put_in_the_order_in_which_they_ended(tmp_path: Path) -> None:
    found = points(read(tmp_path, dict(samples.MONITORS)))
    assert found["monitor/episode_return"] == [(10, -5), (30, -3), (40, -4)]
    assert found["monitor/success"] == [(10, 0), (30, 1), (40, 1)]


def test_files_of_ranks_are_averaged_and_later_event_files_go_on(tmp_path: Path) -> None:
    ranks = {f"rank_{rank}/progress.csv": f"step,reward\n1,{rank}\n2,{rank + 2}\n" for rank in (0, 1)}
    first = samples.events((step, "return", 1.0) for step in range(0, 100, 10))
    second = samples.events((step, "return", 2.0) for step in range(50, 80, 10))
    found = read(tmp_path, {**ranks, "tb/events.out.tfevents.1.b": first, "tb/events.out.tfevents.2.b": second})
    assert points(found)["reward"] == [(1, 0.5), (2, 2.5)]
    assert points(found)["return"][-4:] == [(40, 1), (50, 2), (60, 2), (70, 2)]
    assert next(one["ranks"] for one in found["curves"] if one["name"] == "reward") == 2


def test_a_metric_that_log_and_files_have_comes_from_the_one_with_more_of_it(tmp_path: Path) -> None:
    log = samples.SB3 + samples.SB3.replace("2048", "8192").replace("4096", "9999")
    (one,) = (
        it
        for it in read(tmp_path, {"progress.csv": samples.PROGRESS}, log)["curves"]
        if it["name"].endswith("ep_rew_mean")
    )
    assert (one["source"], one["points"]) == ("log", 4)


def test_of_as_many_values_in_a_file_and_in_the_log_those_of_the_file_are_taken(tmp_path: Path) -> None:
    rows = "time/total_timesteps,rollout/ep_rew_mean\n2048,21.4987\n4096,25.7512\n"
    found = read(tmp_path, {"progress.csv": rows}, samples.SB3)
    assert points(found)["rollout/ep_rew_mean"] == [(2048, 21.4987), (4096, 25.7512)]


def test_archives_without_evaluations_are_named(tmp_path: Path) -> None:
    made = io.BytesIO()
    np.savez(made, mean=np.array([1.0]), var=np.array([2.0]))
    found = read(tmp_path, {"a.npz": made.getvalue(), "b.npz": made.getvalue(), "evaluations.npz": evaluations()})
    assert [(fact["code"], fact["path"], fact["files"]) for fact in found["facts"]] == [("arrays_not_read", "a.npz", 2)]
    assert points(found)["eval/episode_return"] == [(1000, 1.5), (2000, 4)]


@pytest.mark.parametrize(
    "content", ["", "\0\0", "step,reward", "{", "[[[[", "PK\x03\x04", "\x93NUMPY", "a,b\n1,2\n", '"step"']
)
@pytest.mark.parametrize("name", ["a.csv", "monitor.csv", "a.json", "a.jsonl", "a.npz", "x.tfevents.1", "a.log"])
def test_a_file_of_something_else_has_no_curve(tmp_path: Path, name: str, content: str) -> None:
    assert read(tmp_path, {name: content})["curves"] == []


def test_of_a_large_log_the_beginning_and_the_end_are_read_and_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "LOG_MOST", 4000)
    log = "".join(f"step={step} reward={step}.5\n" for step in range(1000))
    found = read(tmp_path, {}, log)
    (one,) = found["curves"]
    assert (one["steps"][0], one["steps"][-1], one["values"][-1]) == (0, 999, 999.5)
    assert all(value == step + 0.5 for step, value in zip(one["steps"], one["values"], strict=True))
    assert one["read"] < 300
    assert [fact["code"] for fact in found["facts"]] == ["read_in_part"]


def test_steps_of_unmarked_ranks_that_go_back_all_the_time_give_no_curve_and_it_says_so(tmp_path: Path) -> None:
    log = "".join(f"step={at if at % 2 else at // 4} reward={at}\n" for at in range(100))
    found = read(tmp_path, {}, log)
    assert found["curves"] == []
    assert found["facts"] == [{"code": "steps_jump", "name": "reward", "path": "log"}]


def test_steps_that_begin_again_with_each_episode_are_none_of_a_training(tmp_path: Path) -> None:
    rows = "".join(f"{at % 50},{at}\n" for at in range(500))
    assert read(tmp_path, {"trajectory.csv": f"step,reward\n{rows}"})["curves"] == []


def test_of_a_folder_with_too_many_files_the_first_are_looked_at_and_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "ENTRIES_MOST", 3)
    found = read(tmp_path, {f"{at}/model_{at}.pt": b"x" for at in range(1, 6)})
    assert [one["step"] for one in found["checkpoints"]] == [1, 2, 3]
    assert [fact["code"] for fact in found["facts"]] == ["folder_in_part"]


def test_a_reader_that_fails_costs_its_own_file_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("comborun.rules.curves.scalar_files.Episodes.take", lambda *_: 1 / 0)
    found = read(tmp_path, {**samples.MONITORS, "progress.csv": "step,reward\n1,2\n"})
    assert points(found) == {"reward": [(1, 2)]}
    assert {fact["code"] for fact in found["facts"]} == {"curves_not_read"}


def test_a_long_curve_keeps_its_ends_and_its_extremes_in_few_points(tmp_path: Path) -> None:
    values = {7777: 99.0, 3: -50.0}
    log = "".join(f"step={step} reward={values.get(step, step % 10)}\n" for step in range(20_000))
    (one,) = read(tmp_path, {}, log)["curves"]
    assert len(one["steps"]) <= 200
    assert {(3, -50), (7777, 99), (0, 0), (19_999, 9)} <= {*zip(one["steps"], one["values"], strict=True)}


def test_the_checksum_is_the_one_of_tensorflow() -> None:
    assert masked_checksum(b"123456789") == (((0xE3069283 >> 15 | 0xE3069283 << 17) + 0xA282EAD8) & 0xFFFFFFFF)


NAMES = {
    "model_1500.pt": (1500, ""),
    "rl_model_10000_steps.zip": (10000, "steps"),
    "last_Ant_ep_150_rew_294.18793.pth": (150, "epochs"),
    "epoch=3-step=1000.ckpt": (1000, "steps"),
    "policy_step_400.pt": (400, "steps"),
    "step_10k.pt": (10_000, "steps"),
    "ckpt_1.2M.pt": (None, ""),
    "agent_seed3.pt": (None, ""),
    "best_model.zip": (None, ""),
    "model-00001-of-00002.safetensors": (None, ""),
    "sac_20260102_101010.pt": (None, ""),
    "run_2026-01-02/model_best_0.93.pt": (None, ""),
    "step-000500/model.safetensors": (500, "steps"),
    "1200000_steps.zip": (1_200_000, "steps"),
    "iter_0000500.pth": (500, "iterations"),
}


@pytest.mark.parametrize("name", NAMES)
def test_the_step_of_a_checkpoint_is_the_one_in_its_name(name: str) -> None:
    assert checkpoints.step_in(name) == NAMES[name]


def test_checkpoints_are_named_with_their_sizes_and_folders_of_one_count_once(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "model_2.pt": b"x" * 10,
        "best_model.zip": b"x" * 5,
        "data.zip": b"x",
        "checkpoints/global_step_50/actor/rank_0.pt": b"x" * 100,
        "checkpoints/global_step_50/actor/rank_1.pt": b"x" * 100,
        "checkpoints/000100/pretrained_model/model.safetensors": b"x" * 7,
        "checkpoints/000100/training_state/optimizer.bin": b"x" * 3,
        "notes.txt": b"x",
    }
    found = read(tmp_path, files)
    (tmp_path / "out/last.pt").symlink_to("model_2.pt")
    assert [(one["path"], one["step"], one["size"]) for one in found["checkpoints"]] == [
        ("model_2.pt", 2, 10),
        ("checkpoints/global_step_50", 50, 200),
        ("checkpoints/000100", 100, 10),
        ("best_model.zip", None, 5),
    ]
    assert (found["checkpoints_found"], found["checkpoints_size"]) == (4, 225)
    assert read(tmp_path, {})["checkpoints_found"] == 4, "a link is not another one"


def test_many_checkpoints_of_several_files_are_found_in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    shards = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    below = [("", shards), *((f"/rank_{rank}", []) for rank in range(7))]
    folders = [(f"/out/runs/checkpoint-{one}{name}", [], [*held]) for one in range(5000) for name, held in below]
    monkeypatch.setattr(checkpoints.os, "walk", lambda _: iter(folders))
    monkeypatch.setattr(checkpoints, "_size", lambda _: 3)
    began = process_time()
    found, others, _ = checkpoints.found("/out")
    assert process_time() - began < 2.0
    assert (found[7].path, found[7].size, found[7].step, others) == ("runs/checkpoint-7", 6, 7, [])


def test_metrics_beyond_the_most_of_a_source_are_told(tmp_path: Path) -> None:
    names = [f"task_{chr(97 + number // 10)}{number % 10}/success" for number in range(70)]
    rows = "".join(f"{step},{','.join(str(step) for _ in names)}\n" for step in range(3))
    found = read(tmp_path, {"progress.csv": f"step,{','.join(names)}\n{rows}".encode()})
    assert [fact for fact in found["facts"] if fact["code"] == "curves_beyond"] == [
        {"code": "curves_beyond", "path": "progress.csv", "most": 64, "metrics": 6}
    ]
    assert len(found["curves"]) + found["more_curves"] == 64
