"""From a directory to everything that a report is made of."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from report_runs import RUN, RunDirectory, row

from comborun.errors import UserError
from comborun.plan import ResultRules
from reporter.adapters import RejectKind
from reporter.collect import Collected, collect_folder, collect_run


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def named(episode: int) -> str:
    return row(episode, policy="flat", environment="stairs")


def paths(collected: Collected) -> list[str]:
    return [file.path for file in collected.files]


def test_a_run_is_read_with_its_attempts_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    session = run.session("flat", "stairs")
    for number in (10, 2, 1):
        run.attempt(session, row(number), number=number)
    collected = collect_run(run.write())
    assert [attempt.number for attempt in collected.sessions[0].attempts] == [1, 2, 10]
    assert [(record.episode, record.attempt) for record in collected.records] == [(1, 1), (2, 2), (10, 10)]
    assert collected.records[0].session == "stairs_flat"
    assert paths(collected)[0] == "sessions/stairs_flat/attempt-1/out/episodes.jsonl"


def test_the_run_is_known_by_its_id_wherever_it_lies(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "copied")
    run.session("flat", "stairs")
    assert collect_run(run.write(run="grid-1-abcd")).name == "grid-1-abcd"
    (tmp_path / "copied" / RUN.id).unlink()
    assert collect_run(tmp_path / "copied").name == "copied"


def test_only_the_files_that_the_grid_names_are_read(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    session = run.session("flat", "stairs", results=ResultRules(files=("deep/*_episodes.jsonl", "**/two.jsonl")))
    run.attempt(session)
    out = RUN.attempt(session.name, 1).output
    for name in ("deep/a_episodes.jsonl", "deep/two.jsonl", "other.jsonl", "deep/.b_episodes.jsonl"):
        run.put(out / name, row(0))
    assert paths(collect_run(run.write())) == [f"{out}/deep/a_episodes.jsonl", f"{out}/deep/two.jsonl"]


def test_a_training_session_is_not_searched_for_episodes(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    run.attempt(run.session("flat", "stairs", unit="step"), row(0))
    collected = collect_run(run.write())
    assert collected.files == collected.records == ()


def test_what_the_manifest_says_of_the_origin_is_kept_flat(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    run.session("flat", "stairs")
    run.write()
    assert collect_run(tmp_path).provenance == {
        "comborun": "0.1.0",
        "commit": "7dc8c99",
        "host.hostname": "gpubox",
        "host.cpus": "16",
    }
    run.put(RUN.manifest, "{")
    assert collect_run(tmp_path).provenance == {}


def test_a_folder_that_is_no_run_is_refused_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"is no run directory: plan-1\.json") as refusal:
        collect_run(tmp_path)
    assert "folder of .jsonl files" in refusal.value.hint


def test_a_plan_that_is_broken_is_refused(tmp_path: Path) -> None:
    (tmp_path / "plan-1.json").write_text('{"schema": 1}')
    with pytest.raises(UserError, match="can't be read as a plan"):
        collect_run(tmp_path)


def test_a_folder_is_searched_to_its_depth_each_file_once(tmp_path: Path) -> None:
    original = write(tmp_path / "b" / "two.jsonl", named(2))
    write(tmp_path / "a" / "attempt-3" / "one.jsonl", named(1))
    write(tmp_path / "notes.txt", "not searched")
    write(tmp_path / ".cache" / "x.jsonl", named(9))
    write(tmp_path / "b" / ".writing.jsonl", named(9))
    (tmp_path / "c.jsonl").symlink_to(original)
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "gone.jsonl").symlink_to(tmp_path / "nowhere")
    collected = collect_folder(tmp_path)
    assert paths(collected) == ["c.jsonl", "gone.jsonl", "a/attempt-3/one.jsonl"]
    assert [(record.episode, record.attempt) for record in collected.records] == [(2, 0), (1, 3)]
    assert [(reject.path, reject.kind) for reject in collected.rejects] == [("gone.jsonl", RejectKind.UNREADABLE)]


def test_a_folder_of_which_there_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a folder"):
        collect_folder(tmp_path / "nowhere")
