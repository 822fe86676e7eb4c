"""k of n, wherever a program states it: the plan decides over all files of an attempt, on the host as in the report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from both_sides import both_sides

from comborun.rules.results.counts import UNDECIDED, Counts
from comborun.rules.results.fields import ResultRules
from comborun.words.rows import proposed, why_not_counted

FILES = ("**/*.json", "**/*.jsonl", "**/*.csv")
SEVEN = [True, False, True, True, False, True, True, True, False, True]
TASKS = [{"task": "open", "success": 3, "total": 5}, {"task": "lift", "success": 4, "total": 5}]


def lines(rows: list[Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def both(folder: Path, written: dict[str, Any], log: str = "", **rules: Any) -> tuple[Counts, tuple[int, int]]:
    """What a host counts of ten planned episodes, and successes and completed ones of the report."""
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in written.items()}
    judged, reported = both_sides(folder, texts, 10, ResultRules(**{"files": FILES, **rules}), log)
    return judged.counts, (reported.successes, reported.completed)


STATED: dict[str, dict[str, Any]] = {
    "a file for each task": {
        "a.json": {"num_success": 3, "num_trials": 5},
        "b.json": {"num_success": 4, "num_trials": 5},
    },
    "a folder for each task": {"a/r.json": {"success_rate": 0.6, "n": 5}, "b/r.json": {"success_rate": 80.0, "n": 5}},
    "a list of tasks": {"r.json": TASKS},
    "a line for each task": {"r.jsonl": lines(TASKS)},
    "a row for each task": {"r.csv": "task,num_success,num_trials\nopen,3,5\nlift,4,5\n"},
    "the episodes that failed": {"r.json": {"failed_episodes": [3, 7, 9], "num_episodes": 10}},
    "the names of those that failed": {"r.json": {"failed_episode_ids": ["ep_3", "ep_7", "ep_9"], "total": 10}},
    "the episodes that succeeded": {"r.json": {"success_episodes": [0, 1, 2, 4, 5, 6, 8], "trials": 10}},
    "pairs for each task": {"r.json": {"open": [3, 5], "lift": [4, 5]}},
    "pairs below a verdict's name": {"r.json": {"config": {"size": [5, 9]}, "success": {"a": [3, 5], "b": [4, 5]}}},
    "one pair": {"r.json": {"success": [7, 10]}},
    "tasks and their sum": {"r.json": [*TASKS, {"task": "all", "success": 7, "total": 10}]},
    "their sum beside an object of tasks, in a summary": {
        "summary.json": {
            "config": {"headless": True, "num_trials": 5},
            "overall": {"success": 7, "total": 10, "rate": 0.7},
            "per_task": {"open": {"success": 3, "total": 5}, "lift": {"success": 4, "total": 5}},
        }
    },
    "a sum, of which one task is shown": {
        "r.json": {"total": {"success": 7, "n": 10}, "worst": {"success": 1, "n": 5}}
    },
    "successes and failures": {"r.json": {"successes": 7, "failures": 3}},
    "a percentage with its sign": {"r.json": {"success_rate": "70%", "num_episodes": "10"}},
    "a summary alone": {"summary.json": {"num_success": 7, "num_trials": 10}},
    "equal counts of two processes": {f"rank{at}.json": {"success": 3 + at, "total": 5} for at in (0, 1)},
    "lists of verdicts on lines": {
        "r.jsonl": lines([{"task": "open", "successes": SEVEN[:4]}, {"successes": SEVEN[4:]}])
    },
    "lists of verdicts further in": {"r.jsonl": lines([{"seeds": [1, 2], "out": {"success": SEVEN}}])},
    "names in other letters": {"r.json": {"numSuccess": 7, "numEpisodes": 10}},
    "k of n in texts": {"r.json": {"open": "3/5", "close": "4 of 5"}},
    "k of n in a field": {"r.json": {"open": {"success": "3/5"}, "close": {"success": "4/5"}}},
    "tasks and episodes": {"r.json": {"num_tasks": 2, "n_success_episodes": 7, "n_total_episodes": 10}},
    "a list of bits": {"r.json": [int(one) for one in SEVEN]},
    "episodes beside what was set": {
        "r.json": {"meta": {"model": "x"}, **{str(at): {"success": one} for at, one in enumerate(SEVEN)}}
    },
    "failures of a number": {"r.json": {"task": "open", "failed": 3, "total": 10}},
    "a row that sums up": {
        "r.csv": "episode,success\n" + "".join(f"{at},{one:d}\n" for at, one in enumerate(SEVEN)) + "TOTAL,1\n"
    },
    "an average without an index": {
        "r.jsonl": lines([*({"episode": at, "success": one} for at, one in enumerate(SEVEN)), {"success_rate": 0.9}])
    },
}


@pytest.mark.parametrize("case", STATED)
def test_counts_that_together_are_as_many_as_planned_count(tmp_path: Path, case: str) -> None:
    counts, told = both(tmp_path, STATED[case])
    assert (counts.successes, counts.records, told) == (7, 10, (7, 10))


NOT_DECIDED: dict[str, dict[str, Any]] = {
    "one task of two": {"r.json": {"open": {"success": 3, "total": 10}, "lift": {"success": 3, "total": 9}}},
    "parts that contradict the whole": {"r.json": {"n": 10, "num_success": 6, "tasks": TASKS}},
    "tasks that contradict the sum beside them": {
        "r.json": {"overall": {"success": 8, "total": 10}, "tasks": {str(at): one for at, one in enumerate(TASKS)}}
    },
    "more than planned": {"a.json": {"success": 3, "total": 9}, "b.json": {"success": 3, "total": 9}},
    "two that differ": {"a.json": {"success": 3, "total": 10}, "b.json": {"success": 4, "total": 10}},
    "lists that are not as many as planned": {"r.jsonl": lines([{"success": [False, False, True]}] * 3)},
    "one of five or a success": {"r.json": [{"task": name, "trials": 5, "success": 1} for name in "abc"]},
    "tasks that failed, and not how many episodes": {"r.json": {"failed_tasks": ["a", "b"], "num_episodes": 10}},
    "an id that comes twice": {"r.json": {"failed_episodes": [3, 3], "num_episodes": 10}},
    "others that broke off": {"r.json": {"failed_episodes": [3], "num_episodes": 10, "errored": 2}},
    "a pair that is a size": {"r.json": {"image": [3, 10]}},
    "rates alone": {"r.json": {"open": {"success_rate": 0.6}, "lift": {"success_rate": 0.8}}},
}


@pytest.mark.parametrize("case", NOT_DECIDED)
def test_counts_that_the_plan_does_not_decide_count_nothing_and_are_named(tmp_path: Path, case: str) -> None:
    counts, told = both(tmp_path, NOT_DECIDED[case])
    assert (counts.records, told) == (0, (0, 0))
    assert ".json" in why_not_counted(counts.facts)
    assert not counts.proposes


FAILED = [{"episode": at, "failed": not one} for at, one in enumerate(SEVEN)]
PROPOSED: dict[str, tuple[dict[str, Any], Any]] = {
    "a field that is true for failures": ({"r.jsonl": lines(FAILED)}, {"field": "failed", "any_of": ["false"]}),
    "the same in a document": ({"r.json": {"runs": FAILED}}, {"field": "failed", "any_of": ["false"]}),
    "the same as numbers": (
        {"r.jsonl": lines([{"episode": at, "failure": int(not one)} for at, one in enumerate(SEVEN)])},
        {"field": "failure", "any_of": ["0"]},
    ),
    "a word in each file": (
        {f"ep_{at}.json": {"result": "success" if one else "failure"} for at, one in enumerate(SEVEN)},
        {"field": "result", "any_of": ["success"]},
    ),
    "a word in each folder": (
        {f"trial_{at}/r.json": {"outcome": "PASS" if one else "FAIL", "s": 3.5} for at, one in enumerate(SEVEN)},
        {"field": "outcome", "any_of": ["PASS"]},
    ),
    "words of named episodes": (
        {"r.json": {f"episode_{at}": {"verdict": "Solved" if one else "Gave up"} for at, one in enumerate(SEVEN)}},
        {"field": "verdict", "any_of": ["Solved"]},
    ),
}


@pytest.mark.parametrize("case", PROPOSED)
def test_a_field_with_another_meaning_is_proposed_and_counts_with_its_line(tmp_path: Path, case: str) -> None:
    written, success = PROPOSED[case]
    counts, told = both(tmp_path / "before", written)
    assert (counts.verdicts, told[0]) == (0, 0)
    assert {"success": success} in [proposed(fact) for fact in counts.facts]
    counts, told = both(tmp_path / "with", written, success=success)
    assert (counts.successes, counts.records, told) == (7, 10, (7, 10))


def test_episodes_that_each_task_of_a_document_numbers_are_no_repeats(tmp_path: Path) -> None:
    tasks = {name: {f"ep{at}": {"success": one} for at, one in enumerate(SEVEN[:5])} for name in ("open", "close")}
    counts, told = both(tmp_path / "before", {"r.json": {"suite": tasks}})
    assert (counts.records, told) == (0, (0, 0))
    line = next(keys for fact in counts.facts if (keys := proposed(fact)))
    assert line == {"episode": ["task", "episode"]}
    counts, told = both(tmp_path / "with", {"r.json": {"suite": tasks}}, **line)
    assert (counts.successes, counts.records, told) == (6, 10, (6, 10))


def test_two_of_three_files_that_are_equal_by_chance_number_their_own_episodes(tmp_path: Path) -> None:
    verdicts = {"a": [1, 0, 1], "b": [0, 1, 0], "c": [1, 0, 1], "d": [1]}
    files = {
        f"{name}.csv": "episode,success\n" + "".join(f"{at},{one}\n" for at, one in enumerate(held))
        for name, held in verdicts.items()
    }
    counts, told = both(tmp_path, files)
    assert (counts.records, told) == (0, (0, 0))
    assert {"episode": "line"} in map(proposed, counts.facts)


def test_files_beside_those_that_count_are_named_with_the_line_that_reads_both(tmp_path: Path) -> None:
    rows = [{"episode": at, "success": one} for at, one in enumerate(SEVEN)]
    table = "episode,success\n" + "".join(f"{row['episode']},{row['success']}\n" for row in rows[4:])
    written = {"a.jsonl": lines(rows[:4]), "b.csv": table}
    counts, _ = both(tmp_path / "before", written, files=("**/*.jsonl",))
    line = next(keys for fact in counts.facts if (keys := proposed(fact)))
    assert (counts.records, line) == (4, {"files": ["**/*.jsonl", "**/*.csv"]})
    counts, told = both(tmp_path / "with", written, files=tuple(line["files"]))
    assert (counts.successes, counts.records, told) == (7, 10, (7, 10))


def test_words_of_failures_alone_ask_for_the_word_that_means_a_success(tmp_path: Path) -> None:
    counts, _ = both(tmp_path, {"r.jsonl": lines([{"episode": at, "result": "FAIL"} for at in range(10)])})
    (told,) = (fact for fact in counts.facts if fact.code == UNDECIDED)
    assert (counts.verdicts, told.text("field"), told.texts("values")) == (0, "result", ("FAIL",))


def test_episodes_count_before_what_sums_them_up(tmp_path: Path) -> None:
    rows = [{"episode": at, "success": at < 5} for at in range(10)]
    counts, told = both(tmp_path, {"r.jsonl": lines(rows), "eval.json": {"success": 9, "total": 10}})
    assert (counts.successes, counts.records, told) == (5, 10, (5, 10))


@pytest.mark.parametrize(
    "log",
    [
        "".join(f"Success rate: {min(at, 7)}/{at} => x\n" for at in range(1, 11)),
        "Task open: success 3/5\nTask lift: success 4/5\n",
    ],
)
def test_a_pattern_with_groups_of_counts_reads_the_last_one_or_all_together(tmp_path: Path, log: str) -> None:
    pattern = r"[sS]uccess(?: rate:)? (?P<successes>\d+)/(?P<episodes>\d+)"
    counts, told = both(tmp_path, {}, log, source="log", pattern=pattern, files=())
    assert (counts.successes, counts.records, told) == (7, 10, (7, 10))


@pytest.mark.parametrize("line", ["Episode {}: success={}", "[{}/10] pick success: {}", "trial {} done, success {}"])
def test_a_text_with_a_line_for_each_episode_comes_with_the_pattern_that_reads_it(tmp_path: Path, line: str) -> None:
    written = {"log/eval.txt": "".join(line.format(at, one) + "\n" for at, one in enumerate(SEVEN))}
    counts, _ = both(tmp_path / "before", written)
    keys = next(keys for fact in counts.facts if (keys := proposed(fact)))
    assert (counts.records, keys.pop("files")) == (0, "**/*.txt")
    counts, told = both(tmp_path / "with", written, files=("**/*.txt",), **keys)
    assert (counts.successes, counts.records, told) == (7, 10, (7, 10))


def test_words_for_successes_and_failures_are_both_found_in_a_log(tmp_path: Path) -> None:
    log = "\r".join(f"[{at + 1}/10] episode {at}: {'PASS' if one else 'FAIL'}" for at, one in enumerate(SEVEN))
    counts, _ = both(tmp_path / "before", {}, log)
    keys = next(keys for fact in counts.facts if (keys := proposed(fact)))
    counts, told = both(tmp_path / "with", {}, log, source=keys["from"], pattern=keys["pattern"])
    assert (counts.successes, counts.records, told) == (7, 10, (7, 10))


def test_a_file_for_each_task_is_proposed_with_the_episodes_of_all(tmp_path: Path) -> None:
    written = {f"task_{at}/r.json": {"success": 3 + at, "attempts": 5} for at in (0, 1)}
    counts, _ = both(tmp_path, written, files=("**/*.jsonl",))
    assert (counts.records, counts.facts[0].count("episodes")) == (0, 10)


LIST_OF = {"episode": 2, "success": False}, {"episode": 5, "success": False}


@pytest.mark.parametrize(
    ("document", "completed"),
    [
        ({"num_success": 7, "num_episodes": 10, "failures": [*LIST_OF, {"episode": 8, "success": False}]}, 0),
        ({"success_rate": 0.2, "n_episodes": 10, "solved": [{"episode": at, "success": True} for at in (2, 5, 8)]}, 0),
        ({"summary": {"success_rate": 0.8, "n": 10}, "failed_episodes": [*LIST_OF]}, 0),
        ({"num_success": 0, "num_episodes": 10, "episodes": [*LIST_OF]}, 2),
        ({"success_rate": 1.0, "num_episodes": 10, "episodes": [{"episode": 0, "success": True}]}, 1),
        ({"num_success": 1, "num_episodes": 10, "episodes": [{"episode": 0, "success": True}]}, 1),
        ({"episode": 3, "success": True, "success_rate": 0.5, "num_episodes": 10}, 1),
    ],
    ids=["failures alone", "successes alone", "a summary", "so far", "a rate so far", "a count so far", "one episode"],
)
def test_a_list_of_failures_alone_is_no_evaluation(tmp_path: Path, document: Any, completed: int) -> None:
    counts, (_, told) = both(tmp_path, {"r.json": document})
    assert (counts.verdicts, told) == (completed, completed)
    assert ("contradict each other" in why_not_counted(counts.facts)) == (not completed)


ON = [(1, 1), (1, 2), (2, 3), (3, 4), (3, 5), (4, 6), (5, 7), (6, 8), (6, 9), (7, 10)]
COUNTING_ON: dict[str, dict[str, Any]] = {
    "lines with an index": {"r.jsonl": lines([{"episode": n, "successes": k, "total": n} for k, n in ON])},
    "lines without one": {"r.jsonl": lines([{"successes": k, "total": n} for k, n in ON])},
    "rates": {"r.jsonl": lines([{"episode": n - 1, "success_rate": k / n, "num_episodes": n} for k, n in ON])},
    "a table": {"r.csv": "episode,success,total\n" + "".join(f"{n - 1},{k},{n}\n" for k, n in ON)},
    "a list": {"r.json": [{"episode": n, "successes": k, "total": n} for k, n in ON]},
    "five each": {"r.jsonl": lines([{"success": 3, "total": 5}, {"success": 7, "total": 10}])},
    "unevenly": {
        "r.jsonl": lines([{"success": 3, "total": 4}, {"success": 4, "total": 6}, {"success": 7, "total": 10}])
    },
}


@pytest.mark.parametrize("name", COUNTING_ON)
def test_rows_that_count_all_episodes_so_far_count_by_the_last_one(tmp_path: Path, name: str) -> None:
    counts, reported = both(tmp_path, COUNTING_ON[name])
    assert (counts.successes, counts.records, counts.refused) == (7, 10, {})
    assert reported == (7, 10)


def test_counts_of_tasks_are_no_counts_that_go_on_if_so_many_are_planned_together(tmp_path: Path) -> None:
    rows = [{"success": 2, "total": 3}, {"success": 4, "total": 7}]
    assert both(tmp_path / "a", {"r.jsonl": lines(rows)})[1] == (6, 10)
    assert both(tmp_path / "b", {"r.json": rows})[1] == (6, 10)
    judged, combo = both_sides(
        tmp_path / "c",
        {"r.jsonl": lines([{"success": 3, "total": 5}, {"success": 7, "total": 10}])},
        15,
        ResultRules(files=FILES),
    )
    assert (judged.counts.successes, combo.completed) == (10, 15)


def test_the_last_of_such_rows_must_be_of_all_that_are_planned(tmp_path: Path) -> None:
    counts, reported = both(tmp_path, {"r.jsonl": lines([{"successes": k, "total": n} for k, n in ON[:4]])})
    assert (counts.records, reported) == (0, (0, 0))
    assert "the last of 4 rows: 3 of 4" in why_not_counted(counts.facts)


def test_a_number_that_may_be_the_verdict_of_a_row_or_count_on_is_asked_about(tmp_path: Path) -> None:
    rows = [{"episode": n - 1, "success": int(n > 1), "total": n} for _, n in ON]
    counts, reported = both(tmp_path / "a", {"r.jsonl": lines(rows)})
    assert (counts.records, reported) == (0, (0, 0))
    told = (
        "10 rows whose 'success' may be a verdict or count the successes so far, so none counts; if each is a verdict"
    )
    assert f"{told}: `results: {{success: {{field: success, at_least: 1}}}}`" in why_not_counted(counts.facts)
    rows[-1]["success"] = 0
    assert both(tmp_path / "b", {"r.jsonl": lines(rows)})[1] == (8, 10)
    each = [{"episode": n - 1, "success": n > 1, "successes": n - 1, "total": n} for _, n in ON]
    assert both(tmp_path / "c", {"r.jsonl": lines(each)})[1] == (9, 10)
    once = [{"episode": n - 1, "success": n == 10, "successes": int(n == 10), "total": n} for _, n in ON]
    assert both(tmp_path / "d", {"r.jsonl": lines(once)})[1] == (1, 10)


def test_a_mean_of_verdicts_that_is_one_is_no_count_of_one(tmp_path: Path) -> None:
    assert both(tmp_path / "b", {"r.json": {"num_episodes": 10, "success": 1.0, "spl": 0.5}})[1] == (0, 0)
    assert both(tmp_path / "c", {"r.json": {"num_episodes": 10.0, "success": 1.0}})[1] == (1, 10)
    assert both(tmp_path / "d", {"r.json": {"num_episodes": 10, "num_success": 1.0}})[1] == (1, 10)
    assert both(tmp_path / "e", {"r.json": {"num_episodes": 10, "success": 1}})[1] == (1, 10)
