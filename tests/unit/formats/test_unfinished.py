"""Documents that say themselves that they are not whole: on the host as in the report."""

import json
import random
from contextlib import suppress
from typing import Any

import pytest
from both_sides import both_sides

from comborun.rules.results.fields import Identity, RefusedError, ResultRules
from comborun.rules.results.unfinished import refuse_unfinished
from comborun.words.rows import why_not_counted

FILES = ("**/*.json",)


def episodes(count: int) -> list[Any]:
    return [{"episode": at, "success": at % 2 == 0} for at in range(count)]


def both(folder, written, planned=10):
    texts = {name: json.dumps(value) for name, value in written.items()}
    judged, reported = both_sides(folder, texts, planned, ResultRules(files=FILES))
    counts = judged.counts
    assert (counts.successes, counts.verdicts) == (reported.successes, reported.completed)
    return counts


NOT_WHOLE: dict[str, Any] = {
    "interrupted": {"interrupted": True, "total": 10, "episodes": episodes(6)},
    "running": {"meta": {"status": "Running", "num_episodes": 10}, "results": episodes(6)},
    "verdicts": {"finished": False, "num_episodes": 10, "successes": [True] * 6},
    "planned": {"complete": False, "plannedEpisodes": 10, "results": episodes(6)},
    "count": {"status": "running", "successes": 3, "total": 10},
    "completed": {"successes": 3, "completed": 6, "total": 10},
    "evaluation": {"done": False, "n_episodes": 10, "per_episode": [{"episode_ix": 1, "success": True}]},
    "summary": {"state": "aborted", "total_num_tasks": 10, "success_rate": 0.5, "num_success": 5},
}
WHOLE: dict[str, Any] = {
    "a flag that is never updated": {"finished": False, "num_episodes": 10, "episodes": episodes(10)},
    "a status that is never updated": {"status": "running", "num_episodes": 10, "results": episodes(10)},
    "a count that failures confirm": {"finished": False, "successes": 5, "failures": 5, "total": 10},
    "a count that the completed confirm": {"status": "running", "completed": 10, "successes": 5, "total": 10},
    "an end": {"status": "finished", "successes": 5, "total": 10},
    "completed ones that are the successes": {"completed": 5, "success": 5, "total": 10},
}


@pytest.mark.parametrize("name", NOT_WHOLE)
def test_a_document_that_is_not_whole_counts_nothing_and_says_why(tmp_path, name):
    counts = both(tmp_path, {"r.json": NOT_WHOLE[name]})
    assert not counts.records
    assert "r.json: it says `" in why_not_counted(counts.facts)


@pytest.mark.parametrize("name", WHOLE)
def test_a_document_that_is_whole_counts_whatever_its_flag_says(tmp_path, name):
    counts = both(tmp_path, {"r.json": WHOLE[name]})
    assert (counts.successes, counts.records) == (5, 10)


def test_an_episode_that_was_not_done_is_one_all_the_same(tmp_path):
    files = {f"episode_{at}.json": {"success": at > 4, "done": False, "num_episodes": 10} for at in range(10)}
    assert (both(tmp_path, files).successes, both(tmp_path / "b", files).records) == (5, 10)


def test_episodes_of_a_document_that_declares_no_number_count(tmp_path):
    assert both(tmp_path, {"r.json": {"interrupted": True, "episodes": episodes(6)}}).records == 6


def test_any_document_is_refused_or_not():
    rng, words = random.Random(7), ["status", "total", "finished", "done", "running", "success", "n_episodes", "", "é"]

    def anything(depth: int) -> Any:
        kind = rng.randrange(7 if depth < 3 else 5)
        leaf = [
            None,
            rng.random() < 0.5,
            rng.randrange(-3, 12),
            rng.choice([0.5, 1e300, float("nan")]),
            rng.choice(words),
        ]
        if kind < 5:
            return leaf[kind]
        inner = [anything(depth + 1) for _ in range(rng.randrange(4))]
        return inner if kind == 5 else {rng.choice(words): one for one in inner}

    for _ in range(5000):
        with suppress(RefusedError):
            refuse_unfinished(anything(0), Identity("p", "e"), rng.randrange(12))
