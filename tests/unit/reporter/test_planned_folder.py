"""A folder of result files that a grid gives a plan and a reading."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from comborun.grid import parse_grid
from comborun.monitor.trial_setup import plan_anywhere
from comborun.remote.transport import LocalTransport
from comborun.reporter.collect import collect_by_plan
from comborun.reporter.summary import summarize

if TYPE_CHECKING:
    from pathlib import Path

    from comborun.reporter.summary import Summary

GRID = """
policies: [flat, rough_2]
environments: [grass, stairs]
episodes: 3
command: run {output_dir} {episodes}
resources: {gpus: 2}
results: {files: "**/*.jsonl", episode: ep, success: solved}
"""


def report_of(folder: Path, *files: str, grid: str = GRID) -> Summary:
    for file in files:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text("".join(json.dumps({"ep": i, "solved": True}) + "\n" for i in range(3)))
    plan = plan_anywhere(parse_grid(grid, folder / "grid.yaml"), lambda _: LocalTransport())
    return summarize(collect_by_plan(folder, plan)).summary


@pytest.mark.parametrize(
    "file", ["grass/flat/r.jsonl", "flat/grass/attempt-1/r.jsonl", "grass_flat/r.jsonl", "flat-grass.jsonl"]
)
def test_a_path_names_the_combo_and_the_grid_the_fields(tmp_path: Path, file: str) -> None:
    counts = {one.key: one.counts for one in report_of(tmp_path, file).combos}
    assert [key for key, one in counts.items() if one and one.completed == 3] == [("flat", "grass")]
    assert sum(one.missing for one in counts.values() if one) == 9


def test_a_file_whose_path_names_no_combo_is_rejected_and_nothing_still_runs(tmp_path: Path) -> None:
    summary = report_of(tmp_path, "x/r.jsonl", "flat/other.csv")
    assert summary.quality.counts["rejected"] == 3
    assert summary.timing.over


def test_an_axis_with_one_name_need_not_be_in_the_path(tmp_path: Path) -> None:
    one = GRID.replace("policies: [flat, rough_2]", "policies: [flat]")
    assert report_of(tmp_path, "stairs/r.jsonl", grid=one).totals.completed == 3


@pytest.mark.parametrize(
    ("row", "file", "line"),
    [
        ({"policy": "other", "ep": 0}, "r.jsonl", "policy: ignore"),
        ({"i": 0}, "r.jsonl", "episode: i"),
        ({"ep": 1}, "r.jsonl", "episode: {field: ep, from: 1}"),
        ({"ep": 0, "policy": "other"}, "r.ndjson", 'files: "**/*.ndjson", policy: ignore'),
    ],
)
def test_rows_that_do_not_count_come_with_the_line_of_results_that_counts_them(
    tmp_path: Path, row: dict[str, object], file: str, line: str
) -> None:
    rows = ({key: value + i if isinstance(value, int) else value for key, value in row.items()} for i in range(3))
    text = "".join(json.dumps({**one, "solved": True}) + "\n" for one in rows)
    folder = tmp_path / "grass/flat"
    folder.mkdir(parents=True)
    (folder / file).write_text(text)
    findings = " ".join(one.what for one in report_of(tmp_path).quality.findings)
    assert f"`results: {{{line}}}` counts them" in findings
