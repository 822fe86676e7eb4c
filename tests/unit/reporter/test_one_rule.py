"""The host while a run lasts, and the report afterwards, count the same rows of the same files."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from both_sides import both_sides
from report_runs import RUN, RunDirectory, write_rows

from comborun.host.record.judging import Judged
from comborun.reporter.collect import collect_run
from comborun.reporter.counting.combo import EpisodeCounts
from comborun.rules.results.fields import ResultRules
from comborun.rules.vocabulary import Completeness
from comborun.words.rows import proposed

TEN = range(10)
TABLE = {
    "as documented": ("r.jsonl", [{"episode": at, "success": at % 2 == 0} for at in TEN], (10, 10, 5)),
    "of another policy": ("r.jsonl", [{"policy": "rough", "episode": at, "success": True} for at in TEN], (0, 0, 0)),
    "without an index": ("r.jsonl", [{"success": at % 2 == 0} for at in TEN], (0, 0, 0)),
    "with an index of another name": ("r.jsonl", [{"episode_idx": at, "success": True} for at in TEN], (0, 0, 0)),
    "counted from 1": ("r.jsonl", [{"episode": at + 1, "success": at % 2 == 0} for at in TEN], (9, 9, 5)),
    "with a verdict further in": ("r.jsonl", [{"episode": at, "metrics": {"success": True}} for at in TEN], (10, 0, 0)),
    "one document": ("r.json", {"episodes": [{"episode": at, "success": True} for at in TEN]}, (10, 10, 10)),
    "one list": ("r.json", [[{"episode": at, "success": True} for at in TEN]], (10, 10, 10)),
    "one document in a file of rows": ("r.jsonl", {"episodes": [{"episode": at} for at in TEN]}, (0, 0, 0)),
}
"""what ten episodes are written as, and how many of them count: records, verdicts, successes"""


def both(folder: Path, name: str, text: str, rules: ResultRules) -> tuple[Judged, EpisodeCounts]:
    """What the host says of one file of ten planned episodes, and what the report does."""
    return both_sides(folder, {name: text}, 10, rules)


@pytest.mark.parametrize("case", TABLE)
def test_host_and_report_count_alike(tmp_path: Path, case: str) -> None:
    name, rows, wanted = TABLE[case]
    lines: list[Any] = rows if isinstance(rows, list) else [rows]
    text = "".join(json.dumps(row) + "\n" for row in lines)
    judged, counts = both(tmp_path, name, text, ResultRules(files=("*.jsonl", "*.json")))
    told = judged.counts
    assert (told.records, told.verdicts, told.successes) == wanted
    assert (counts.completed + counts.errored, counts.completed, counts.successes) == wanted
    assert judged.completeness is counts.completeness
    assert (counts.completeness is Completeness.COMPLETE) == (wanted[:2] == (10, 10))
    assert bool(told.facts) == (wanted[:2] != (10, 10))


def test_they_count_alike_whatever_a_program_writes(tmp_path: Path) -> None:
    draw = random.Random(12)
    fields = {
        "episode": [0, 1, 2, 3.0, 9, 10, -1, "ep_4", "x", True, None, 1e300, [5]],
        "success": [True, False, 1, 0.0, "true", "False", "done", None, 2, {}],
        "policy": ["mason", "mason", "rough", 7, "", None],
        "environment": ["stairs", "maze", None],
        "episode_id": ["a_1"],
        "completion": [True, 0],
        "job_name": ["job"],
        "env_id": [0, 1],
        "episode_in_env": [0, 1, 2],
        "outcomes": [{"success": True}, 3],
    }
    broken = ["{", "[1, 2]", '"x"', "{}{}", '{"episode": 1} x', "NaN", "", " \r", "\x00", '{"episode": 5, "succ']
    found = set()
    for number in range(60):
        names = draw.sample(sorted(fields), draw.randint(1, 5)) + (
            ["episode", "success"] if draw.random() < 0.7 else []
        )
        lines = []
        for _ in range(draw.randint(0, 15)):
            row = {name: draw.choice(fields[name]) for name in names if draw.random() < 0.9}
            lines.append(draw.choice(broken) if draw.random() < 0.1 else json.dumps(row))
        text = "\n".join(lines) + draw.choice(["", "\n"])
        judged, counts = both(tmp_path / str(number), "r.jsonl", text or " ", ResultRules(files=("*.jsonl",)))
        told = judged.counts.records, judged.counts.verdicts, judged.counts.successes
        assert told == (counts.completed + counts.errored, counts.completed, counts.successes), text
        found.add(told)
    assert len(found) > 10


PROPOSED = {
    "of another policy": {"policy": "ignore"},
    "without an index": {"episode": "line"},
    "with an index of another name": {"episode": "episode_idx"},
    "counted from 1": {"episode": '{"field": "episode", "from": 1}'},
    "with a verdict further in": {"success": "metrics.success"},
}


@pytest.mark.parametrize("case", PROPOSED)
def test_with_the_line_that_is_proposed_both_count_every_episode(tmp_path: Path, case: str) -> None:
    name, rows, _ = TABLE[case]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    judged, counts = both(tmp_path / "before", name, text, ResultRules(files=("*.jsonl",)))
    assert proposed(judged.counts.facts[-1]).keys() == PROPOSED[case].keys()
    rules = ResultRules(**{"files": ("*.jsonl",), **PROPOSED[case]})  # type: ignore[arg-type]
    judged, counts = both(tmp_path / "after", name, text, rules)
    assert (judged.counts.records, judged.counts.verdicts, counts.completed) == (10, 10, 10)
    assert judged.completeness is counts.completeness is Completeness.COMPLETE
    assert judged.counts.successes == counts.successes


def test_rows_that_are_numbered_by_their_lines_pair_nothing_unless_they_have_seeds(tmp_path: Path) -> None:
    for seeded in (False, True):
        run = RunDirectory(tmp_path / str(seeded))
        session = run.session("mason", "stairs", count=3, results=ResultRules(files=("*.jsonl",), episode="line"))
        run.attempt(session)
        run.write()
        output = run.path / RUN.attempt(session.name, 1).output
        rows = [{"success": True, "seed": at} if seeded else {"success": True} for at in range(3)]
        write_rows(output / "r.jsonl", rows)
        collected = collect_run(run.path)
        assert [record.episode for record in collected.records] == [0, 1, 2]
        assert bool(collected.unpaired) is not seeded
