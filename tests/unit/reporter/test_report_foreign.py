"""A report of results that comborun did not launch: many formats in one folder, one table."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path
from typing import Any

import pytest
from adapter_samples import SAMPLES, sample
from report_runs import RUN, RunDirectory, document

from comborun.reporter.collect import collect_folder, collect_run
from comborun.reporter.records.collected import Collected
from comborun.reporter.report import report_folder
from comborun.rules.results.fields import ResultRules
from comborun.rules.results.formats import WHY

VIDEO = b"".join(struct.pack(">I4s", 16, kind) + bytes(8) for kind in (b"ftyp", b"mdat", b"moov"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every sample, and the videos of a program that leaves nothing else."""
    root = tmp_path_factory.mktemp("mixed") / "results"
    shutil.copytree(SAMPLES, root)
    simulated = root / "octo-small/scene/arm_pd/PickCan-v0/rob_0_0_rot_0_rgb_overlay_None"
    simulated.mkdir(parents=True)
    for episode, verdict in enumerate(("success", "failure", "success")):
        (simulated / f"{verdict}_obj_episode_{episode}.mp4").write_bytes(VIDEO if episode else b"")
    (root / "notes.txt").write_text("bought milk")
    return root


@pytest.fixture(scope="module")
def collected(folder: Path) -> Collected:
    return collect_folder(folder)


def test_every_file_of_a_known_format_is_taken_and_says_as_what(collected: Collected) -> None:
    read = [file for file in collected.files if file.format]
    assert {file.format for file in read} == {*WHY} - {"jsonl-rows", "log-pattern", "table"}
    assert all(file.why for file in read), [file.path for file in read if not file.why]
    assert [file.path for file in collected.files if not file.format] == ["sb3/cartpole.monitor.csv"]
    assert "notes.txt" not in {file.path for file in collected.files}


def test_results_of_many_formats_give_one_table(folder: Path, tmp_path: Path) -> None:
    summary = report_folder(folder, tmp_path / "report")
    told = document(tmp_path / "report")
    table: dict[Any, Any] = {
        (combo["policy"], combo["environment"]): (combo["successes"], combo["completed"]) for combo in told["combos"]
    }
    ran = {combo: numbers for combo, numbers in table.items() if numbers[1]}
    assert ran == {
        ("vla_eval", "libero"): (5, 9),
        ("inspect", "match"): (3, 5),
        ("act", "pusht"): (1, 4),
        ("agent", "EB-Habitat"): (1, 2),
        ("clients", "libero_goal"): (1, 2),
        ("cluster", "behavior_openpi_pi05_eval"): (7, 16),
        ("gpt_four_base", "eb_alfred/base"): (1, 3),
        ("gpt_four_base", "eb_manipulation/base"): (1, 1),
        ("gpt_four_base", "eb_nav/base"): (1, 1),
        ("gr00t", "libero_sim/task_a"): (4, 6),
        ("octo-small", "scene/arm_pd/PickCan-v0"): (2, 3),
        ("pi0", "libero_spatial"): (2, 3),
        ("ppo", "PickCube-v1"): (14, 16),
        ("robomimic", "PnPCounterToCab"): (7, 10),
        ("robomimic", "lift"): (7, 10),
        ("unnamed", "sb3"): (8, 10),
        ("unnamed", "sqlite"): (6, 9),
        ("rough", "stairs"): (2, 6),
        ("smolvla", "libero_object"): (3, 3),
        ("smolvla", "libero_spatial"): (3, 6),
        ("zero", "pick_zero"): (4, 6),
        ("zero", "policy_runner"): (5, 8),
    }
    assert len(summary.combos) == len(table)


def test_a_further_rebuild_of_a_job_goes_on_counting(collected: Collected) -> None:
    found = [record.episode for record in collected.records if record.environment == "pick_zero"]
    assert sorted(found) == list(range(7))


def test_what_forbids_pairing_and_what_is_biased_is_told(collected: Collected) -> None:
    assert set(collected.unpaired) == {
        ("cluster", "behavior_openpi_pi05_eval"),
        ("gr00t", "libero_sim/task_a"),
        ("ppo", "PickCube-v1"),
        ("robomimic", "PnPCounterToCab"),
        ("robomimic", "lift"),
        ("rough", "stairs"),
        ("zero", "pick_zero"),
        ("zero", "policy_runner"),
    }
    told = [defect.reason for defect in collected.defects]
    assert sum("successes end early" in reason for reason in told) == 3
    assert "a training, at step 8192 of 100000: it has no episodes to count" in told


def test_videos_are_looked_into_and_linked_to_their_episodes(collected: Collected) -> None:
    shown = {record.episode: record.extra["video"] for record in collected.records if record.policy == "octo-small"}
    assert shown[1] == ("octo-small/scene/arm_pd/PickCan-v0/rob_0_0_rot_0_rgb_overlay_None/failure_obj_episode_1.mp4")
    told = {defect.path.rpartition("/")[2]: defect.reason for defect in collected.defects}
    assert told["success_obj_episode_0.mp4"] == "a video that can't be played: empty"


@pytest.mark.parametrize(
    ("rates", "told"), [((0.5, 0.5), []), ((0.5, 0.25), ["2 files count differently: 1 of 4, 2 of 4"])]
)
def test_logs_of_one_attempt_that_count_differently_are_told(
    tmp_path: Path, rates: tuple[float, float], told: list[str]
) -> None:
    run = RunDirectory(tmp_path)
    session = run.session("pi0", "libero", results=ResultRules(files=("*.log",)))
    run.attempt(session, "")
    for name, rate in zip(("eval.log", "metrics.log"), rates, strict=True):
        text = f"│success_once={rate} │num_trajectories=4 │\n"
        run.put(Path(RUN.attempt(session.name, 1).output) / name, text)
    assert [defect.reason for defect in collect_run(run.write()).defects] == told


def test_in_a_run_the_grids_files_are_read_whatever_their_format(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    session = run.session("pi0", "libero", count=9, first=0, results=ResultRules(files=("*.json", "*.txt", "*.mp4")))
    run.attempt(session, "")
    output = Path(RUN.attempt(session.name, 1).output)
    run.put(output / "eval_info.json", sample("lerobot/smolvla/eval_info.json"))
    run.put(output / "notes.txt", "bought milk")
    run.put(output / "failure_obj_episode_9.mp4", b"")
    found = collect_run(run.write())
    assert {(record.policy, record.environment) for record in found.records} == {("pi0", "libero")}
    assert sorted(record.episode for record in found.records) == list(range(10))
    (reject,) = found.rejects
    assert "of no format that is known" in reject.reason


def ended(count: int, success: bool) -> str:
    rows = [{"job_name": "j", "env_id": n % 2, "episode_in_env": n // 2, "success": success} for n in range(count)]
    return "".join(json.dumps(found) + "\n" for found in rows)


@pytest.mark.parametrize(
    ("attempts", "wanted"),
    [((3, 6), (2, 6)), ((6, 6), (1, 6)), ((3, 5), (2, 5)), ((5, 3), (1, 5)), ((7, 9), (1, 7)), ((3, 3), (1, 3))],
)
def test_of_episodes_numbered_as_they_ended_one_attempt_counts_as_a_whole(
    tmp_path: Path, attempts: tuple[int, int], wanted: tuple[int, int]
) -> None:
    run = RunDirectory(tmp_path)
    session = run.session("zero", "pick", count=6)
    for number, count in enumerate(attempts, 1):
        run.attempt(session, ended(count, success=number == 1), number=number)
    found = collect_run(run.write())
    records = found.records
    told = [defect for defect in found.defects if "counts as a whole" in defect.reason]
    assert len(told) == 1
    assert ({record.attempt for record in records}, len(records)) == ({wanted[0]}, wanted[1])


@pytest.mark.parametrize("other", ["base", "spatial"])
def test_folders_that_number_their_episodes_alike_are_told_where_they_are_one_combo(tmp_path: Path, other: str) -> None:
    run = RunDirectory(tmp_path)
    session = run.session("gpt", "eb-alf", results=ResultRules(files=("**/*.json",)))
    run.attempt(session, "")
    output = Path(RUN.attempt(session.name, 1).output)
    for number, folder in ((1, "base"), (2, other)):
        run.put(output / folder / f"results/episode_{number}_final_res.json", '{"task_success": 1.0}')
    told = [defect.reason for defect in collect_run(run.write()).defects]
    assert any("number their episodes alike" in reason for reason in told) is (other != "base")


def test_an_index_of_its_own_kind_does_not_fill_the_memory(tmp_path: Path) -> None:
    rows = [
        {"policy": policy, "environment": "grass", "episode": episode, "success": policy == "a"}
        for policy in "ab"
        for episode in (0, 1, 2, 10**17)
    ]
    (tmp_path / "in").mkdir()
    (tmp_path / "in/rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    summary = report_folder(tmp_path / "in", tmp_path / "out")
    assert [combo.counts.completed for combo in summary.combos if combo.counts] == [4, 4]
    assert [one.unknown for one in summary.comparisons.all] == [(0, 0)]
