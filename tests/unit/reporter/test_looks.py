"""A folder that grows and is reported several times, and a folder that is read by a grid: no sessions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from report_runs import write_rows

from comborun.cli import combo
from comborun.reporter.report import report_folder


def rows(folder: Path, count: int) -> None:
    found = [
        {"policy": policy, "environment": "s", "episode": at, "seed": at, "success": at % every == 0}
        for policy, every in (("A", 2), ("B", 3))
        for at in range(count)
    ]
    write_rows(folder / "rows.jsonl", found)


def test_the_second_look_at_a_folder_that_grows_says_that_it_is_one(tmp_path: Path) -> None:
    results = tmp_path / "results"
    results.mkdir()
    seen = []
    for count in (20, 20, 40, 60):
        rows(results, count)
        report_folder(results, tmp_path / "report")
        seen.append(json.loads((tmp_path / "report" / "final_benchmark_report.json").read_text()).get("looks"))
    assert seen == [None, None, [40, 80], [40, 80, 120]]
    assert "look 3" in (tmp_path / "report" / "report.md").read_text()


def test_a_folder_of_returns_that_grows_says_so_too(tmp_path: Path) -> None:
    results = tmp_path / "results"
    results.mkdir()
    for count in (20, 40):
        found = [
            {"policy": policy, "environment": "s", "episode": at, "seed": at, "return": at * 7 % 11 + of}
            for policy, of in (("A", 2.5), ("B", 1.0))
            for at in range(count)
        ]
        write_rows(results / "rows.jsonl", found)
        summary = report_folder(results, tmp_path / "report")
    assert summary.looks == (40, 80)
    assert (
        "look 2 at a folder that grows: earlier reports here had 40 episodes"
        in (tmp_path / "report/report.md").read_text()
    )


@pytest.mark.parametrize("earlier", ["{", "[]", '{"looks": ["<b>"], "totals": {"completed": 3}, "run": "results"}'])
def test_what_lies_there_instead_of_a_report_is_no_look(earlier: str, tmp_path: Path) -> None:
    results, output = tmp_path / "results", tmp_path / "report"
    results.mkdir()
    output.mkdir()
    rows(results, 20)
    (output / "final_benchmark_report.json").write_text(earlier)
    assert report_folder(results, output).looks == ()


def test_a_folder_with_a_grid_says_nothing_of_sessions(tmp_path: Path) -> None:
    results = tmp_path / "results"
    results.mkdir()
    rows(results, 20)
    grid = tmp_path / "grid.yaml"
    grid.write_text(
        "policies: [A, B]\nenvironments: [s]\nepisodes: 20\n"
        "command: python e.py --policy {policy} --env {environment} --out {output_dir}\n"
    )
    done = CliRunner().invoke(combo, ["report", str(results), "--grid", str(grid), "--output", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    for text in (done.output, (tmp_path / "out" / "report.md").read_text()):
        assert "session" not in text.lower()
        assert "never started" not in text
