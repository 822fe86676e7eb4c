"""Rows of one index that differ in their task, scene or file are no repeats: the line that numbers them is proposed."""

from __future__ import annotations

import json
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from both_sides import both_sides, host_counts

from comborun.rules.results.counts import REPEAT, Counts
from comborun.rules.results.fields import ResultRules
from comborun.words.rows import proposed

TWELVE = [(task, trial, (task + trial) % 3 != 0) for task in range(3) for trial in range(4)]
TURN = itemgetter(1, 0)


def both(folder: Path, files: dict[str, list[Any]], rules: ResultRules) -> tuple[Counts, int]:
    """What a host counts of twelve planned episodes; and how many the report counts, with the same successes."""
    texts = {name: "".join(json.dumps(row) + "\n" for row in rows) for name, rows in files.items()}
    judged, reported = both_sides(folder, texts, 12, rules)
    assert reported.successes == judged.counts.successes
    return judged.counts, reported.completed


def per_file(name: str, **fields: Any) -> dict[str, list[Any]]:
    return {
        name.format(task): [{"episode": trial, "success": good, **fields} for own, trial, good in TWELVE if own == task]
        for task in range(3)
    }


CASES: dict[str, tuple[dict[str, list[Any]], Any]] = {
    "by task": (
        {"r.jsonl": [{"task": task, "episode": trial, "success": good, "steps": 9.5} for task, trial, good in TWELVE]},
        ["task", "episode"],
    ),
    "by a scene's name": (
        {"r.jsonl": [{"scene_id": f"s{task}.glb", "episode": str(at), "success": good} for task, at, good in TWELVE]},
        ["scene_id", "episode"],
    ),
    "by an instance, in files of tasks": (
        {
            f"t{t}.jsonl": [{"instance": t, "episode": e, "success": g} for o, e, g in TWELVE if o == t]
            for t in range(3)
        },
        ["instance", "episode"],
    ),
    "an id that ends alike": (
        {"r.jsonl": [{"episode": f"t{t}-i{i}-p201", "success": g, "t": t, "i": i} for t, i, g in TWELVE]},
        ["t", "i"],
    ),
    "ids that end alike, and no other field": (
        {"r.jsonl": [{"episode": f"task{t}_trial{e}", "success": g} for t, e, g in TWELVE]},
        "line",
    ),
    "by task, an episode of each in turn": (
        {"r.jsonl": [{"task": task, "episode": at, "success": good} for task, at, good in sorted(TWELVE, key=TURN)]},
        ["task", "episode"],
    ),
    "by process, an episode of each in turn": (
        {"r.jsonl": [{"local_rank": t, "episode": at, "success": good} for t, at, good in sorted(TWELVE, key=TURN)]},
        ["local_rank", "episode"],
    ),
    "by seed and variation, under one index": (
        {"r.jsonl": [{"seed": t, "variation": at, "episode": 0, "success": good} for t, at, good in TWELVE]},
        ["seed", "variation"],
    ),
    "by file": (per_file("rank{}.jsonl"), "line"),
    "by process, with equal verdicts": (
        {f"rank_{at}/e.jsonl": [{"episode": e, "success": e > 1} for e in range(6)] for at in (0, 1)},
        "line",
    ),
    "by folder": (per_file("task_{}/episodes.jsonl", length=7), "line"),
    "by process, as jobs": (
        {
            f"rank{t}/e.jsonl": [
                {"job_name": "j", "env_id": 0, "episode_in_env": e, "outcomes": {"success": g}}
                for o, e, g in TWELVE
                if o == t
            ]
            for t in range(3)
        },
        "line",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_rows_that_only_share_an_index_come_with_the_line_that_counts_them(tmp_path: Path, case: str) -> None:
    files, line = CASES[case]
    told, _ = both(tmp_path / "before", files, ResultRules())
    assert told.records == 0
    assert told.proposes
    (keys,) = filter(None, map(proposed, told.facts))
    assert keys == {"episode": line}
    after, completed = both(tmp_path / "after", files, ResultRules(**keys))
    assert (after.records, after.verdicts, completed) == (12, 12, 12)
    assert after.successes == sum(
        row.get("success", row.get("outcomes", {}).get("success")) for one in files.values() for row in one
    )
    assert not after.facts


EXCEEDING: dict[str, tuple[dict[str, list[Any]], str]] = {
    "tasks, each as long as the plan": (
        {"r.jsonl": [{"task": t, "episode": e, "success": e % 2 == t % 2} for t in range(3) for e in range(12)]},
        "task",
    ),
    "policies that a text of an unknown name tells": (
        {"r.jsonl": [{"algo": at, "episode": e, "success": True} for at in ("a", "b") for e in range(12)]},
        "algo",
    ),
    "evaluations of two epochs": (
        {"r.jsonl": [{"epoch": at, "episode": e, "success": e % 2 == at} for at in range(2) for e in range(12)]},
        "epoch",
    ),
    "steps with an id": (
        {"r.jsonl": [{"episode": e, "step_id": at, "success": at == 1} for e in range(12) for at in range(2)]},
        "steps",
    ),
    "processes that differ": (
        {f"rank{at}.jsonl": [{"episode": e, "success": e % 2 == at} for e in range(12)] for at in (0, 1)},
        "file",
    ),
    "tasks that differ, in files": (
        {f"task_{at}.jsonl": [{"episode": e, "success": e % 2 == at} for e in range(12)] for at in (0, 1)},
        "file",
    ),
    "steps that agree": (
        {"r.jsonl": [{"episode": e, "timestep": at, "success": e > 5} for e in range(12) for at in range(3)]},
        "steps",
    ),
    "steps of each episode": (
        {"r.jsonl": [{"episode": e, "step": at, "success": at == 2 and e > 5} for e in range(12) for at in range(3)]},
        "steps",
    ),
}


@pytest.mark.parametrize("case", EXCEEDING)
def test_more_rows_than_planned_that_only_share_an_index_count_nothing(tmp_path: Path, case: str) -> None:
    files, by = EXCEEDING[case]
    told, completed = both(tmp_path, files, ResultRules())
    assert (told.records, completed, told.proposes) == (0, 0, False)
    assert [fact.fields["by"] for fact in told.facts if fact.code == REPEAT] == [by]


def test_the_same_rows_in_a_document_and_in_lines_count_once(tmp_path: Path) -> None:
    rows = [
        {
            "job_name": "pick",
            "env_id": env,
            "episode_in_env": at,
            "success": (env + at) % 3 > 0,
            "episode_length": 9 + env,
        }
        for env in range(4)
        for at in range(3)
    ]
    files: dict[str, list[Any]] = {"all.json": [{"runs": {"pick": {"episodes": rows}}}], "pick/e.jsonl": rows}
    told, completed = both(tmp_path, files, ResultRules(files=("**/*.json", "**/*.jsonl")))
    assert (told.records, told.successes, completed) == (12, sum(row["success"] for row in rows), 12)


def test_a_rerun_in_the_same_file_is_a_repeat(tmp_path: Path) -> None:
    rows = [{"episode": at, "success": True, "run": run, "length": 9 + at} for run in "ab" for at in range(12)]
    told, completed = both(tmp_path, {"r.jsonl": rows}, ResultRules())
    assert (told.records, told.refused, completed, told.proposes) == (12, {"repeated": 12}, 12, False)


@pytest.mark.parametrize(("lengths", "line"), [((50, 61), [{"episode": "line"}]), ((50, 50), [])])
def test_two_ranks_of_one_episode_each_differ_from_copies(
    tmp_path: Path, lengths: tuple[int, int], line: list[Any]
) -> None:
    for rank, length in enumerate(lengths):
        (tmp_path / f"rank{rank}.jsonl").write_text(
            json.dumps({"episode": 0, "success": True, "length": length}) + "\n"
        )
    counts = host_counts(tmp_path, ResultRules(), 1)
    assert [*filter(None, map(proposed, counts.facts))] == line


@pytest.mark.parametrize(
    ("names", "line"),
    [
        (("task_a.jsonl", "task_b.jsonl"), [{"episode": "line"}]),
        (("open_drawer/r.jsonl", "close_drawer/r.jsonl"), [{"episode": "line"}]),
        (("r.jsonl", "r_copy.jsonl"), []),
        (("20260101/r.jsonl", "latest/r.jsonl"), []),
    ],
)
def test_files_of_two_tasks_that_all_succeed_are_no_copies(
    tmp_path: Path, names: tuple[str, str], line: list[Any]
) -> None:
    rows = [{"episode": at, "success": True} for at in range(6)]
    told, completed = both(tmp_path, dict.fromkeys(names, rows), ResultRules())
    assert [*filter(None, map(proposed, told.facts))] == line
    assert (told.records, completed) == ((0, 0) if line else (6, 6))


def test_ranks_that_measured_the_same_to_the_last_digit_ran_the_same_episodes(tmp_path: Path) -> None:
    rows = [{"episode": at, "success": at < 4, "return": at * 0.37} for at in range(6)]
    told, completed = both(tmp_path, {f"rank{rank}.jsonl": rows for rank in range(2)}, ResultRules())
    assert (told.records, told.proposes, completed) == (6, False, 6)


def test_files_that_say_success_and_failure_of_one_index_are_no_copies_though_some_are_equal(tmp_path: Path) -> None:
    files = {
        f"traj_{at}.jsonl": [{"episode": step, "reward": 0.0, "success": step == 11 and at < 8} for step in range(12)]
        for at in range(12)
    }
    told, completed = both(tmp_path, files, ResultRules())
    assert (told.records, told.proposes, completed) == (0, False, 0)


def test_two_files_of_other_fields_tell_of_the_same_episodes(tmp_path: Path) -> None:
    files: dict[str, list[Any]] = {
        "a.jsonl": [{"episode": at, "success": True} for at in range(5)],
        "b.jsonl": [{"episode": at, "success": True, "length": 50 + at} for at in range(5)],
    }
    told, completed = both(tmp_path, files, ResultRules())
    assert (told.records, told.proposes, completed) == (5, False, 5)


@pytest.mark.parametrize("step", [2, 10, 37])
def test_indexes_of_a_larger_benchmark_come_with_the_line_that_numbers_them(tmp_path: Path, step: int) -> None:
    files = {"r.jsonl": [{"episode": at * step, "success": at % 2 == 0} for at in range(12)]}
    told, _ = both(tmp_path / "before", files, ResultRules())
    assert [*filter(None, map(proposed, told.facts))] == [{"episode": "line"}]
    assert both(tmp_path / "after", files, ResultRules(episode="line"))[1] == 12


def test_fields_that_tell_an_episode_together_number_it_once_whatever_comes_again(tmp_path: Path) -> None:
    rows = [{"task": task, "episode": trial, "success": good} for task, trial, good in TWELVE]
    files = {"a.jsonl": rows[:7], "b.jsonl": [*rows[5:], {"episode": 3, "success": True}]}
    told, completed = both(tmp_path, files, ResultRules(episode=["task", "episode"]))
    assert (told.records, completed) == (12, 12)
    assert told.refused == {"repeated": 2, "index": 1}
    assert ResultRules.of(ResultRules(episode=["task", "episode"]).as_data()).episode.names == ("task", "episode")


@pytest.mark.parametrize(
    ("indices", "line"),
    [
        ([500 + at for at in range(12)], {"field": "episode", "from": 500}),
        ([f"a1b2c{at * 7 + 30}" for at in range(12)], "line"),
        ([7 * at for at in range(12)], "line"),
    ],
)
def test_indices_of_another_range_come_with_the_line_that_numbers_them(
    tmp_path: Path, indices: list[Any], line: Any
) -> None:
    files = {"r.jsonl": [{"episode": index, "success": at % 2 == 0} for at, index in enumerate(indices)]}
    told, _ = both(tmp_path / "before", files, ResultRules())
    assert [*filter(None, map(proposed, told.facts))] == [{"episode": line}]
    assert both(tmp_path / "after", files, ResultRules(episode=line))[1] == 12


def test_names_of_several_runs_are_not_ignored_where_that_would_lose_rows(tmp_path: Path) -> None:
    rows = [{"policy": f"mason-{run}", "episode": at, "success": run == "a"} for run in "ab" for at in range(12)]
    told, _ = both(tmp_path, {"r.jsonl": rows}, ResultRules())
    assert (told.records, told.proposes) == (0, False)
    split = {f"{run}.jsonl": [row for row in rows if row["policy"] == f"mason-{run}"] for run in "ab"}
    told, _ = both(tmp_path / "files", split, ResultRules())
    assert (told.records, told.proposes) == (0, False)


def test_an_index_further_in_numbers_the_episodes_and_not_their_order(tmp_path: Path) -> None:
    rows = [{"meta": {"ep": at * 5 % 12}, "outcome": {"ok": at < 7}} for at in range(12)]
    told, _ = both(tmp_path / "before", {"r.jsonl": rows}, ResultRules())
    (keys,) = filter(None, map(proposed, told.facts))
    assert keys == {"episode": "meta.ep", "success": "outcome.ok"}
    after, completed = both(tmp_path / "after", {"r.jsonl": rows}, ResultRules(**keys))
    assert (after.successes, completed) == (7, 12)
