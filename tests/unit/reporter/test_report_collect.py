"""From a directory to everything that a report is made of."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from recorded import record
from report_runs import RUN, START, RunDirectory, row, write_rows

from comborun.amendment.resumption import Rejected
from comborun.errors import UserError
from comborun.reporter.collect import collect_folder, collect_run
from comborun.reporter.counting.quality import between_runs, differences
from comborun.reporter.merge import rejected
from comborun.reporter.pages.page import page
from comborun.reporter.records.collected import Collected
from comborun.reporter.records.reading import RejectKind
from comborun.reporter.summary import summarize
from comborun.rules.events import Kind
from comborun.rules.results.fields import ResultRules


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


def test_a_folder_made_ahead_of_its_turn_is_no_attempt_but_one_with_a_result_or_a_grant_is(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    run.attempt(run.session("flat", "stairs"), row(1), number=1)
    for file, text in (("2/out/episodes.jsonl", row(2)), ("3/grant", '{"gpus": ""}\n'), ("4/.end", "\n")):
        run.put(f"sessions/stairs_flat/attempt-{file}", text)
    (tmp_path / "sessions/stairs_flat/attempt-4/out").mkdir()
    collected = collect_run(run.write())
    assert [attempt.number for attempt in collected.sessions[0].attempts] == [1, 2, 3]
    assert [record.episode for record in collected.records] == [1, 2]


def test_a_change_is_told_as_made_while_the_run_was_stopped_or_held_until_it_goes_on(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    run.attempt(run.session("flat", "stairs"), row(1), number=1)

    def ordered(order: str, **more: object) -> dict[str, object]:
        return {"kind": Kind.ORDERED, "order": order, **more}

    def changes(number: int) -> dict[str, object]:
        return ordered("set", values=f"parallel={number}")

    happened = [
        *({"kind": Kind.DISPATCHING}, ordered("stop", names=["stairs_flat"]), changes(1)),
        *(ordered("stop"), {"kind": Kind.LEFT, "why": "stopped"}, changes(2), ordered("resume"), changes(3)),
        *(ordered("stop"), {"kind": Kind.DISPATCHING}, changes(4)),
        *(ordered("pause"), changes(5), {"kind": Kind.HALTED}, changes(6), ordered("drain"), changes(7)),
        *({"kind": Kind.DISPATCHING}, ordered("start"), changes(8), ordered("stop"), changes(9)),
        *(ordered("resume"), changes(10), {"kind": Kind.HALTED}, changes(11)),
    ]
    run.put(RUN.events, "".join(json.dumps({"at": START + at, **one}) + "\n" for at, one in enumerate(happened)))
    said = [line for line in differences(collect_run(run.write()), {}) if "parallel=" in line]
    states = [line.partition(", at ")[0].rpartition(" ")[2] for line in said]
    until_stop = ["ran", "stopped", "ran", "ran", "paused", "paused", "draining", "draining", "stopped"]
    assert states == [*until_stop, "ran", "halted"]


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
    out = Path(RUN.attempt(session.name, 1).output)
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
    assert collect_run(tmp_path).origin == {
        "comborun": "0.1.0",
        "commit": "7dc8c99",
        "host.hostname": "gpubox",
        "host.cpus": "16",
    }
    run.put(RUN.manifest, "{")
    assert collect_run(tmp_path).origin == {}


def test_what_differs_between_policies_besides_themselves_is_told(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    for policy, gpu, host in (("flat", 0, "node1"), ("rough", 1, "node1")):
        session = run.session(policy, "stairs")
        run.attempt(session, row(0))
        begin = record(attempt=1, started=START, pid=77, boot="b", host=host, multiplexer="tmux", gpus=gpu)
        run.put(RUN.attempt(session.name, 1).begin, begin)
    run.write()
    assert summarize(collect_run(tmp_path)).summary.differences == ()
    origin = {"uncommitted": True, "host": {"gpus": [0, 1], "cards": ["NVIDIA H100", "NVIDIA A100"]}}
    run.put(RUN.manifest, json.dumps({"schema": 1, "grid": "quadruped", "provenance": origin}))
    cards, code = summarize(collect_run(tmp_path)).summary.differences
    assert "same GPU models: flat on NVIDIA H100; rough on NVIDIA A100." in cards
    assert "uncommitted changes" in code
    checkpoints = {policy: {"sha256_of_ends": "ab"} for policy in ("flat", "rough")}
    origin = {"code": [{"folder": "/home/me/lab", "uncommitted": True}], "checkpoints": checkpoints}
    run.put(RUN.manifest, json.dumps({"schema": 1, "grid": "quadruped", "provenance": origin}))
    alike, code = summarize(collect_run(tmp_path)).summary.differences
    assert alike.startswith("flat, rough have the same checkpoint")
    assert "folder on the host had uncommitted changes" in code
    same = {"host": {"gpus": [0, 1], "cards": ["NVIDIA H100", "NVIDIA H100"]}}
    run.put(RUN.manifest, json.dumps({"schema": 1, "grid": "quadruped", "provenance": same}))
    assert summarize(collect_run(tmp_path)).summary.differences == ()


@pytest.mark.parametrize(
    "foreign",
    [5, [1], {"host": "box", "code": {"folder": 1}, "sync": [1, {"sha256": 2}], "checkpoints": [1], "uncommitted": 1}],
)
def test_a_manifest_of_another_form_says_nothing_of_the_origin(tmp_path: Path, foreign: object) -> None:
    run = RunDirectory(tmp_path)
    for policy in ("flat", "rough"):
        run.attempt(run.session(policy, "stairs"), row(0))
    run.write()
    run.put(RUN.manifest, json.dumps({"schema": 1, "grid": "quadruped", "provenance": foreign}))
    collected = collect_run(tmp_path)
    assert summarize(collected).summary.differences == ()
    assert [*between_runs(collected, replace(collected, name="other"))] == []


def test_policies_in_folders_with_other_code_are_told(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    for policy in ("flat", "rough"):
        run.attempt(run.session(policy, "stairs", workdir=f"~/{policy}"), row(0))
    run.write()
    for commits, told in ((("ab", "ab"), 0), (("ab", "cd"), 1)):
        code = [
            {"folder": f"/home/me/{name}", "commit": one} for name, one in zip(("flat", "rough"), commits, strict=True)
        ]
        run.put(RUN.manifest, json.dumps({"schema": 1, "grid": "quadruped", "provenance": {"code": code}}))
        assert len(summarize(collect_run(tmp_path)).summary.differences) == told


def test_another_driver_and_other_seeds_than_the_plan_gave_are_told(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    for policy, driver, first in (("flat", "550.54", 1000), ("rough", "560.35", 0)):
        session = run.session(policy, "stairs", 3)
        run.attempt(session, "".join(row(index, seed=first + index) for index in range(3)))
        begin = record(attempt=1, started=START, host="node1", gpus=0, driver=driver, gpu_models="NVIDIA H100")
        run.put(RUN.attempt(session.name, 1).begin, begin)
    run.write()
    drivers, seeds = summarize(collect_run(tmp_path)).summary.differences
    assert "same GPU drivers: flat on 550.54; rough on 560.35." in drivers
    assert "1 combo" in seeds
    assert "rough × stairs, episode 0 has the seed 0" in seeds


def test_a_folder_that_is_no_run_is_refused_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"is not a run directory: plan-1\.json") as refusal:
        collect_run(tmp_path)
    assert "folder of results" in refusal.value.hint


@pytest.mark.parametrize(("lacking", "held"), [("plan-1.json", "run.json"), ("run.json", "plan-1.json")])
def test_a_run_that_was_not_copied_whole_is_told_from_a_folder_of_records(
    tmp_path: Path, lacking: str, held: str
) -> None:
    run = RunDirectory(tmp_path)
    run.attempt(run.session("flat", "stairs"), named(0))
    run.write()
    (tmp_path / lacking).unlink()
    with pytest.raises(UserError, match=rf"not copied whole: it holds {held} but no {lacking}") as refusal:
        collect_run(tmp_path) if held == "run.json" else collect_folder(tmp_path)
    assert f"combo report {tmp_path}/sessions" in refusal.value.hint
    assert len(collect_folder(tmp_path / "sessions").records) == 1, "the hint holds"


def test_what_holds_nothing_and_what_leads_nowhere_are_no_results_but_the_latter_is_told(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    session = run.session("flat", "stairs")
    run.attempt(session, row(0))
    output = tmp_path / RUN.attempt(session.name, 1).output
    (output / "empty.jsonl").touch()
    (output / "gone.jsonl").symlink_to(tmp_path / "nowhere")
    (output / "round.jsonl").symlink_to("round.jsonl")
    collected = collect_run(run.write())
    assert [Path(path).name for path in paths(collected)] == ["episodes.jsonl", "gone.jsonl", "round.jsonl"]
    assert {"leads nowhere" in reject.reason for reject in collected.rejects} == {True}


def test_what_a_copy_lacks_is_told_in_its_place_and_an_old_version_of_it_is_not_read(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    session = run.session("flat", "stairs")
    run.attempt(session, row(0))
    at = Path(RUN.attempt(session.name, 1).output)
    run.put(at / "b.jsonl", row(1))
    elsewhere = Path(RUN.attempt("other", 1).output) / "a.jsonl"
    lacking = dict.fromkeys((at / "b.jsonl", at / "a.jsonl", elsewhere), "it kept changing while it was copied")
    collected = collect_run(run.write(), lacking)
    assert [Path(path).name for path in paths(collected)] == ["a.jsonl", "b.jsonl", "episodes.jsonl"]
    assert [(Path(reject.path).name, reject.reason) for reject in collected.rejects] == [
        ("a.jsonl", "it kept changing while it was copied"),
        ("b.jsonl", "it kept changing while it was copied"),
    ]
    assert [record.episode for record in collected.records] == [0]


def test_rejected_records_are_told_by_session_but_not_lines_whose_end_may_come_yet(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    run.attempt(run.session("flat", "stairs"), row(0) + row(1, policy="other") + '{"episode": 2')
    run.attempt(run.session("rough", "stairs"), '{"episode": 2')
    at = f"{RUN.attempt('stairs_flat', 1).output}/episodes.jsonl:2"
    reason = "of another policy: 'other', where 'flat' ran"
    assert rejected(collect_run(run.write())) == {"stairs_flat": Rejected(1, 1, reason, at)}


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


def test_the_pages_give_the_memory_of_the_host_as_a_person_reads_it(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    run.attempt(run.session("flat", "stairs"), row(0))
    run.write()
    run.put(RUN.manifest, json.dumps({"schema": 1, "grid": "g", "provenance": {"host": {"memory": 25276510208}}}))
    summary = summarize(collect_run(tmp_path)).summary
    assert ("host.memory", "23.5 GiB") in page(summary)["provenance"]
    assert summary.provenance["host.memory"] == "25276510208"


def lines_of(path: Path, rows: Iterable[Mapping[str, object]]) -> None:
    write_rows(path, rows)


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("flat/stairs.jsonl", {}),
        ("flat/stairs/r.jsonl", {"policy": "flat"}),
        ("flat/r.jsonl", {"environment": "stairs"}),
        ("stairs/flat.jsonl", {"policy": "flat"}),
    ],
)
def test_the_path_names_what_json_lines_do_not(tmp_path: Path, path: str, fields: dict[str, str]) -> None:
    lines_of(tmp_path / path, [{**fields, "episode": n, "success": n % 2 == 0} for n in range(9)])
    collected = collect_folder(tmp_path)
    assert {one.combo for one in collected.records} == {("flat", "r" if path == "flat/stairs/r.jsonl" else "stairs")}
    assert [one.episode for one in collected.records] == [*range(9)]
    assert not collected.rejects


def test_json_lines_that_name_their_combo_stand_beside_some_that_do_not(tmp_path: Path) -> None:
    named = {"policy": "rough", "environment": "grass"}
    lines_of(
        tmp_path / "flat/stairs.jsonl", [{**(named if n > 4 else {}), "episode": n, "success": True} for n in range(9)]
    )
    combos = [one.combo for one in collect_folder(tmp_path).records]
    assert combos == [("flat", "stairs")] * 5 + [("rough", "grass")] * 4


def said_of(folder: Path) -> str:
    return " ".join(one.reason for one in collect_folder(folder).defects)


def test_a_line_for_a_grid_names_the_column_of_the_environment_that_the_path_lacks(tmp_path: Path) -> None:
    rows = [{"policy": "flat", "task_suite": "goal", "episode_idx": n, "success": True} for n in range(9)]
    lines_of(tmp_path / "rollouts.jsonl", rows)
    assert "episode: episode_idx, environment: task_suite}` counts them" in said_of(tmp_path)


def test_rows_of_several_robots_come_without_a_line_that_counts_them_as_episodes(tmp_path: Path) -> None:
    row = {"policy": "flat", "environment": "stairs", "success": True}
    lines_of(tmp_path / "r.jsonl", [{**row, "episode": n, "robot_id": k} for n in range(9) for k in range(4)])
    assert "differ in robot_id: none counts" in said_of(tmp_path)
    assert "counts them" not in said_of(tmp_path)


def test_rows_that_are_written_twice_are_not_numbered_by_line(tmp_path: Path) -> None:
    rows = [f"flat,stairs,{n % 2},{n * 1.5}\n" for n in range(20)]
    (tmp_path / "once.csv").write_text("policy,environment,success,time_s\n" + "".join(rows))
    assert "episode: line}` counts them" in said_of(tmp_path)
    (tmp_path / "once.csv").write_text("policy,environment,success,time_s\n" + "".join(one * 2 for one in rows))
    assert "each stands at least 2 times" in said_of(tmp_path)
    assert "counts them" not in said_of(tmp_path)
