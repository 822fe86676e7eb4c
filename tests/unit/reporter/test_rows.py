"""What the rows of a folder are: episodes, copies of another file, or neither."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from report_runs import RUN, RunDirectory, write_rows

from comborun.reporter.collect import collect_folder, collect_run
from comborun.reporter.summary import Summary, summarize
from comborun.rules.names import AttemptLayout

Rows = Iterable[Mapping[str, Any]]


def told(folder: Path, files: Mapping[str, Rows | str]) -> Summary:
    for name, rows in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(rows if isinstance(rows, str) else "".join(json.dumps(row) + "\n" for row in rows))
    return summarize(collect_folder(folder)).summary


def counts(summary: Summary) -> dict[tuple[str, str], tuple[int, int]]:
    return {one.key: (one.counts.successes, one.counts.completed) for one in summary.combos if one.counts}


def findings(summary: Summary) -> str:
    return "\n".join(f"{one.where}: {one.what}" for one in summary.quality.findings)


def row(policy: str, episode: object, success: object, **more: object) -> dict[str, object]:
    return {"policy": policy, "environment": "s", "episode": episode, "success": success, **more}


def good(episode: int, policy: str = "A") -> bool:
    return episode * 7 % 10 < (7 if policy == "A" else 4)


def steps(rows_each: Callable[[int], int], name: str = "step") -> list[dict[str, object]]:
    return [
        row(policy, episode, step + 1 == rows_each(episode) and good(episode, policy), **{name: step})
        for policy in "AB"
        for episode in range(30)
        for step in range(rows_each(episode))
    ]


@pytest.mark.parametrize(
    "rows",
    [
        steps(lambda _: 5),
        steps(lambda episode: 3 + episode % 4, "t"),
        [*steps(lambda _: 2, "frame"), *(row("C", episode, True) for episode in range(30))],
        [row(policy, n % 30, good(n + n // 30, policy)) for policy in "AB" for n in range(90)],
        [row(policy, n, good(n + turn, policy), wall=n / 3) for policy in "AB" for turn in (0, 1) for n in range(30)],
    ],
    ids=["steps", "uneven steps", "steps of two policies of three", "repeats", "two runs in one file"],
)
def test_rows_of_which_several_are_an_episode_give_no_rate(rows: Rows, tmp_path: Path) -> None:
    summary = told(tmp_path, {"rows.jsonl": rows})
    assert {counts(summary)[policy, "s"] for policy in "AB"} == {(0, 0)}
    assert counts(summary).get(("C", "s"), (30, 30)) == (30, 30)
    assert not summary.claims.decided
    assert "rows per episode" in findings(summary)
    inside = any({"step", "t", "frame"}.intersection(one) for one in rows)
    assert ("results: {episode: line}" in findings(summary)) is not inside
    assert "recorded more than once" not in findings(summary)


@pytest.mark.parametrize("name", ["attempt", "try", "retry_index"])
def test_tries_of_an_episode_are_never_proposed_as_episodes(name: str, tmp_path: Path) -> None:
    rows = [
        {**row(policy, n, turn == n % 3), name: turn} for policy in "AB" for n in range(30) for turn in range(n % 3 + 1)
    ]
    summary = told(tmp_path, {"rows.jsonl": rows})
    assert "rows per episode" in findings(summary)
    assert "episode: line" not in findings(summary)


def test_the_field_that_counts_steps_is_named(tmp_path: Path) -> None:
    assert "'step'" in findings(told(tmp_path, {"rows.jsonl": steps(lambda _: 5)}))


@pytest.mark.parametrize(
    ("name", "line"),
    [("task", "{environment: task}"), ("checkpoint", "{policy: checkpoint}")],
)
def test_the_field_that_may_name_a_combo_is_proposed(name: str, line: str, tmp_path: Path) -> None:
    rows = [row("A", n, good(n + at, "A"), **{name: at + 1}) for n in range(30) for at in range(2)]
    assert f"`results: {line}`" in findings(told(tmp_path, {"rows.jsonl": rows}))


def test_scenes_that_number_their_episodes_alike_are_not_one_scene_though_all_succeed(tmp_path: Path) -> None:
    scenes = [row("A", n, True, scene=scene) for scene in ("hall", "shed") for n in range(5)]
    copies = [row("B", n, True, run_again=turn) for turn in (0, 1) for n in range(5)]
    summary = told(tmp_path, {"rows.jsonl": [*scenes, *copies]})
    assert counts(summary) == {("A", "s"): (0, 0), ("B", "s"): (5, 5)}
    assert "5 of 10 rows repeat an index, but they differ in scene: none counts" in findings(summary)
    assert "results: {episode: line}" in findings(summary)


def test_a_few_episodes_that_a_restart_repeated_count_as_before(tmp_path: Path) -> None:
    again = [row("A", episode, not good(episode)) for episode in range(3)]
    summary = told(tmp_path, {"rows.jsonl": [*(row("A", episode, good(episode)) for episode in range(30)), *again]})
    assert counts(summary) == {("A", "s"): (21, 30)}


@pytest.mark.parametrize(
    "rows",
    [
        [row(policy, n, 1 if n == 1 else n / 4, n_trials=50) for policy in "AB" for n in range(5)],
        [row(policy, n, int(good(n, policy)), num_rollouts=20) for policy in "AB" for n in range(6)],
        [row(policy, n, None, success_rate=n / 9, n=25 + n) for policy in "AB" for n in range(9)],
    ],
    ids=["fractions", "only zero and one", "a rate beside no verdict"],
)
def test_means_of_trials_are_no_episodes(rows: Rows, tmp_path: Path) -> None:
    summary = told(tmp_path, {"rows.jsonl": rows})
    assert {completed for _, completed in counts(summary).values()} == {0}
    assert "is the mean of" in findings(summary)


def test_the_number_of_all_episodes_in_each_row_makes_no_mean_of_it(tmp_path: Path) -> None:
    rows = [row(policy, n, int(good(n, policy)), n_episodes=20) for policy in "AB" for n in range(20)]
    assert counts(told(tmp_path, {"rows.jsonl": rows})) == {("A", "s"): (14, 20), ("B", "s"): (8, 20)}


@pytest.mark.parametrize(
    ("field", "text", "told_of"),
    [
        ("exception", "CUDA out of memory", True),
        ("error", "ConnectionResetError: the server is gone", True),
        ("error", "the simulator is gone", True),
        ("notes", "ValueError: no action", True),
        ("status", "ERROR", True),
        ("error", "collision", False),
        ("status", "timeout", False),
    ],
)
def test_failures_that_tell_of_an_error_are_named(field: str, text: str, told_of: bool, tmp_path: Path) -> None:
    rows = [row("A", n, n > 3, **{field: "" if n > 3 else text}) for n in range(20)]
    summary = told(tmp_path, {"rows.jsonl": rows})
    assert counts(summary) == {("A", "s"): (16, 20)}
    assert (f"4 failures with {text!r}" in findings(summary)) is told_of


def test_failures_of_a_run_that_tell_of_an_error_are_named_too(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    session = run.session("mason", "stairs", count=12)
    run.attempt(session)
    run.write()
    rows = [{"episode": n, "success": n > 3, **({} if n > 3 else {"exception": "out of memory"})} for n in range(12)]
    output = Path(AttemptLayout(str(run.path / RUN.attempt(session.name, 1).directory)).output)
    write_rows(output / "r.jsonl", rows)
    summary = summarize(collect_run(run.path)).summary
    assert counts(summary) == {("mason", "stairs"): (8, 12)}
    assert "4 failures with 'out of memory'" in findings(summary)


A, B = ([row(policy, n, good(n, policy), seed=n) for n in range(30)] for policy in "AB")
TABLE = "policy,environment,episode,success\n" + "".join(f"A,s,{n},{good(n)}\n" for n in range(30))
INFO = json.dumps({"Success_Rate": 0.7, "Num_Episode": 30, "Num_Success": 21})


@pytest.mark.parametrize(
    "copy",
    [
        {"old/rows.jsonl": [{**one, "wall": n / 7} for n, one in enumerate(A)]},
        {"all.jsonl": [*A, *B]},
        {"partial/rows.jsonl": [{**one, "copied": True} for one in A[:20]]},
        {"a/rows.csv": TABLE},
        {"a/shifted.jsonl": [{**one, "episode": n + 1} for n, one in enumerate(A)]},
        {"a/stats.json": INFO},
    ],
    ids=["backup", "merged", "a part of it", "table", "counted from one", "summary"],
)
def test_one_evaluation_in_several_files_counts_once(copy: Mapping[str, Rows | str], tmp_path: Path) -> None:
    summary = told(tmp_path, {"a/rows.jsonl": A, "b/rows.jsonl": B, **copy})
    assert counts(summary) == {("A", "s"): (21, 30), ("B", "s"): (12, 30)}
    assert len(summary.comparisons.all) == 1
    assert "the same evaluation, counted once" in findings(summary)


@pytest.mark.parametrize(
    "second",
    [
        [{**one, "success": not one["success"]} if n == 5 else one for n, one in enumerate(A)],
        [{**one, "seed": 1000 + n} for n, one in enumerate(A)],
        [row("A", n, True) for n in range(30)],
    ],
    ids=["another verdict", "other seeds", "all succeed"],
)
def test_two_runs_are_no_copies(second: Rows, tmp_path: Path) -> None:
    summary = told(tmp_path, {"one/rows.jsonl": A, "two/rows.jsonl": second})
    assert sum(completed for _, completed in counts(summary).values()) == 60


def test_a_copy_under_a_longer_name_is_no_other_environment(tmp_path: Path) -> None:
    """Names of the path alone: `door`, which has other rows, is one."""
    rows = [{"episode": n, "success": good(n), "steps": n} for n in range(30)]
    files = {"A/results": rows, "A/results (1)": rows, "A/results_partial": rows[:6]}
    files |= {"A/results_door": [{**one, "steps": 9} for one in rows], "A/sink": rows}
    summary = told(tmp_path, {f"A/cup/{name[2:]}.jsonl": some for name, some in files.items()})
    others = {("cup", "results_door"): (21, 30), ("cup", "sink"): (21, 30)}
    assert counts(summary) == {("A", "cup"): (21, 30), **others}


@pytest.mark.parametrize("name", ["{}/10", "trial{}_of_10", "episode {} of 10", "ep {} / 10"])
def test_an_episode_of_ten_is_not_episode_ten(name: str, tmp_path: Path) -> None:
    rows = [row("A", name.format(n + 1), good(n)) for n in range(10)]
    summary = told(tmp_path, {"rows.jsonl": rows})
    assert counts(summary) == {("A", "s"): (7, 10)}


@pytest.mark.parametrize("name", ["step", "frame_index", "t"])
def test_steps_with_the_verdict_of_their_episode_are_one_episode_each(name: str, tmp_path: Path) -> None:
    rows = [
        row(policy, episode, good(episode, policy), reward=step / 7, mass=2.5 + episode, note="x", **{name: step})
        for policy in "AB"
        for episode in range(30)
        for step in range(4 + episode % 3)
    ]
    summary = told(tmp_path, {"rows.jsonl": rows})
    assert counts(summary) == {(policy, "s"): (sum(good(n, policy) for n in range(30)), 30) for policy in "AB"}
    assert {one.name for combo in summary.combos for one in combo.metrics} == {"mass"}
    assert f"4 to 6 rows per episode, which differ by '{name}' and have one verdict: taken as its steps" in findings(
        summary
    )
    assert "recorded more than once" not in findings(summary)


def test_rows_that_only_repeat_an_episode_are_not_its_steps(tmp_path: Path) -> None:
    rows = [row("A", n % 30, good(n % 30), trial=n // 30) for n in range(60)]
    assert "taken as its steps" not in findings(told(tmp_path / "a", {"rows.jsonl": rows}))
    checkpoints = [row("A", n % 30, True, step=1000 * (n // 30)) for n in range(60)]
    assert "taken as its steps" not in findings(told(tmp_path / "b", {"rows.jsonl": checkpoints}))


def test_runs_in_one_file_that_number_their_episodes_alike_are_joined(tmp_path: Path) -> None:
    rows = [
        row(policy, n, good(n + 3 * seed, policy), seed=n, train_seed=seed)
        for policy in "AB"
        for seed in (10, 2, 3)
        for n in range(30)
    ]
    summary = told(tmp_path, {"rows.jsonl": rows})
    assert {one.counts.completed for one in summary.combos if one.counts} == {90}
    assert "3 runs of A in s number their episodes alike: 'train_seed' tells them apart" in findings(summary)
    assert "A is 3 runs (train_seed 2, train_seed 3, train_seed 10)" in findings(summary)


def test_one_line_says_how_a_file_is_read_and_a_mean_has_none(tmp_path: Path) -> None:
    percent = [row("A", n, "100%" if good(n) else "0%") for n in range(20)]
    assert findings(told(tmp_path / "a", {"rows.jsonl": percent})).count("counts them") == 1
    means = [row("A", n, 0.2 * (n % 5), n_trials=50) for n in range(20)]
    assert "counts them" not in findings(told(tmp_path / "b", {"rows.jsonl": means}))


def test_no_number_is_proposed_of_which_nothing_says_that_it_is_a_success(tmp_path: Path) -> None:
    shown = findings(told(tmp_path, {"rows.jsonl": [row("A", n, 65.0 + 5 * (n % 5)) for n in range(20)]}))
    assert "at_least: NUMBER" in shown
    assert "at_least: 85" not in shown


@pytest.mark.parametrize("field", ["attempt", "retry", "versuch"])
def test_policies_that_try_again_seldom_and_often_are_judged_alike(field: str, tmp_path: Path) -> None:
    rows = [
        row(policy, episode, tried == 1 or not again, **{field: tried})
        for policy, every in (("A", 5), ("B", 1))
        for episode in range(30)
        for again in [episode % every == 0]
        for tried in range(1 + again)
    ]
    summary = told(tmp_path, {f"{policy}.jsonl": [one for one in rows if one["policy"] == policy] for policy in "AB"})
    assert counts(summary) == {("A", "s"): (0, 0), ("B", "s"): (0, 0)}
    assert repr(field) in findings(summary)


@pytest.mark.parametrize("field", ["retry_of", "rerun_of_episode", "replaces"])
def test_a_row_that_is_another_try_of_an_episode_does_not_count_besides(field: str, tmp_path: Path) -> None:
    first = [row("A", n, good(n)) for n in range(30)]
    again = [row("A", 100 + n, not good(n), **{field: n}) for n in range(4)]
    third = [row("A", 200, True, **{field: 103})]
    summary = told(tmp_path, {"rows.jsonl": [*first, *again, *third]})
    assert counts(summary) == {("A", "s"): (21, 30)}
    assert f"5 rows of another try of an episode ({field!r}): of each episode the first row with a" in findings(summary)
    assert "no record of" not in findings(summary)


@pytest.mark.parametrize("value", [None, -1, 500, "n", True])
def test_a_row_that_names_no_former_row_is_an_episode(value: object, tmp_path: Path) -> None:
    summary = told(
        tmp_path, {"rows.jsonl": [row("A", n, good(n), retry_of=value if n == 29 else None) for n in range(30)]}
    )
    assert counts(summary) == {("A", "s"): (21, 30)}
    assert "another try" not in findings(summary)


def test_the_try_of_an_errored_row_counts(tmp_path: Path) -> None:
    rows = [*(row("A", n, None if n == 3 else good(n)) for n in range(30)), row("A", 40, True, retry_of=3)]
    assert counts(told(tmp_path, {"rows.jsonl": rows}))["A", "s"][1] == 30


def measured(policy: str, changed: int = 0, apart: float = 0.0) -> list[dict[str, object]]:
    return [row(policy, n, good(n) != (n < changed), seed=n, time=1.5 * n + apart) for n in range(30)]


@pytest.mark.parametrize("name", ["A_old", "A.bak", "A (1)", "Copy of A", "A - Copy", "A_backup2"])
def test_a_backup_with_some_rows_judged_anew_is_the_same_evaluation(name: str, tmp_path: Path) -> None:
    files = {"A.jsonl": measured("A"), f"{name}.jsonl": measured("A", 2)}
    summary = told(tmp_path, files)
    assert counts(summary) == {("A", "s"): (21, 30)}
    assert "28 of 30 rows are those of A.jsonl, and its name says that it is a copy" in findings(summary)


def test_a_folder_that_is_a_backup_is_no_policy(tmp_path: Path) -> None:
    bare = [{"episode": n, "success": good(n)} for n in range(30)]
    summary = told(tmp_path, {"A/s.jsonl": bare, "A_old/s.jsonl": bare, "B/s.jsonl": bare[::-1]})
    assert {*counts(summary)} == {("A", "s"), ("B", "s")}


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("A_old", measured("A", 5)),
        ("A_old", measured("A", 1, 0.5)),
        ("A_old", measured("A")[:5]),
        ("A_new", measured("A", 2)),
        ("A_old", [{**one, "policy": "A_old"} for one in measured("A", 2)]),
        ("A_old", [{key: one[key] for key in one if key != "time"} for one in measured("A", 1)]),
    ],
    ids=["other verdicts", "other times", "few", "no such name", "another policy", "only verdicts"],
)
def test_a_file_with_other_rows_or_another_name_is_no_backup(
    name: str, rows: list[dict[str, object]], tmp_path: Path
) -> None:
    first = [{key: one[key] for key in one if key in rows[0]} for one in measured("A")]
    summary = told(tmp_path, {"A.jsonl": first, f"{name}.jsonl": rows})
    assert "its name says that it is a copy" not in findings(summary)
