"""Names in the tables of the terminal: rich takes brackets for markup, and words between colons for pictures."""

from __future__ import annotations

from pathlib import Path

import pytest
from report_runs import RunDirectory, row

from comborun.cli.report import show_comparison
from comborun.cli.trials import show_calibration
from comborun.planner.knowledge import Calibration, MeasuredCombo, Step
from comborun.reporter.collect import collect_run
from comborun.reporter.pages.between import compare_runs

NAMES = ("[v2] flat", "flat[/old]", "[bold]rough", ":star: grass", "\x1b[31mred")
SHOWN = ("[v2] flat", "flat[/old]", "[bold]rough", ":star: grass", "red")


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")


def first_cells(text: str) -> list[str]:
    return [line.split("  ")[0].rstrip() for line in text.splitlines() if line.strip()]


def test_a_calibration_shows_names_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    combos = tuple(MeasuredCombo(name, name, "work", 3, 1.0, 2.0, 100, 0, 1.5) for name in NAMES)
    steps = (Step(1, 10.0, 1.0),)
    found = Calibration("box", 8, (), "2026-01-01T00:00:00Z", "0", combos, steps, 1, "that was all")
    show_calibration(found, Path("grid.calibration.json"))
    told = capsys.readouterr().out
    assert first_cells(told)[1 : 1 + len(NAMES)] == list(SHOWN)
    assert all(told.count(name) == 2 for name in SHOWN if name != "red"), "the environments as well"
    assert "\x1b[31m" not in told


def test_two_runs_are_compared_under_names_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for run in ("first", "second"):
        made = RunDirectory(tmp_path / run)
        for number, name in enumerate(NAMES):
            made.attempt(made.session(name, name, 1, name=f"s{number}", digest=str(number)), row(0, True))
        made.write(run=run)
    found = compare_runs(collect_run(tmp_path / "first"), collect_run(tmp_path / "second"))
    show_comparison(found, tmp_path, as_json=False)
    assert first_cells(capsys.readouterr().out)[2 : 2 + len(NAMES)] == list(SHOWN)
