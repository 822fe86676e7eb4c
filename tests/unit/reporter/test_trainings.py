"""Trainings in the report: curves over all attempts, last and best values, evaluations and checkpoints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from report_runs import RUN, RunDirectory

from comborun.reporter.report import report_run


def line(step: int, reward: object, length: float = 50.0) -> str:
    return f"[train] step={step} sps=980 avgReward(100)={reward} avgLength(100)={length}\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """ppo went on from step 300 in a second attempt; grpo has no rewards at first, and nothing but a log."""
    directory = tmp_path_factory.mktemp("trainings")
    run = RunDirectory(directory / "run")
    ppo, grpo = (run.session(name, "pick", 400, unit="step") for name in ("ppo", "grpo"))
    run.attempt(ppo, completeness="none", code=1)
    run.attempt(ppo, number=2)
    run.attempt(grpo)
    for number, text in ((1, line(100, 1) + line(200, 2) + line(300, 9)), (2, line(300, 3) + line(400, 2.5))):
        at = RUN.attempt(ppo.name, number)
        run.put(at.log, "Total steps: 400 (iterations=4)\n" + text)
        run.put(f"{at.output}/checkpoints/policy_step_{200 * number}.pt", "x" * 1000 * number)
    run.put(f"{RUN.attempt(ppo.name, 2).output}/eval/progress.csv", "step,success\n300,0.25\n400,0.75\n")
    run.put(RUN.attempt(grpo.name, 1).log, line(100, "nan") + line(200, -1.5) + line(300, -2))
    report_run(run.write(), directory / "report", forms=("svg",))
    return directory / "report"


@pytest.fixture(scope="module")
def document(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "final_benchmark_report.json").read_text())
    schema = json.loads((folder / "final_benchmark_report.schema.json").read_text())
    jsonschema.validate(found, schema)
    return found


def test_a_curve_goes_over_all_attempts_and_the_newest_value_of_a_step_counts(document: dict[str, Any]) -> None:
    ppo = next(one for one in document["trainings"] if one["policy"] == "ppo")
    reward = next(one for one in ppo["curves"] if (one["of"], one["role"]) == ("training", "reward"))
    assert (reward["steps"], reward["values"]) == ([100, 200, 300, 400], [1, 2, 3, 2.5])
    assert (reward["last"], reward["best"], reward["best_step"], reward["superseded"]) == (2.5, 3, 300, 1)
    findings = [one["what"] for one in document["quality"]["findings"]]
    assert "attempt 2 went on from step 300: from there its values count, and not those of earlier attempts" in findings


def test_tables_have_the_last_and_the_best_values_side_by_side(folder: Path) -> None:
    text = (folder / "report.md").read_text()
    assert "| ppo | pick | step 400 of 400 | 2.5 | 3 at 300 | 50 | 75.0 % | 75.0 % at 400 | 2 | 2.93 KiB |" in text
    assert "| grpo | pick | step 300 | -2 | -1.5 at 200 | 50 |  |  |  |  |" in text
    assert "| ppo | pick | step 300 | 25.0 % |\n| ppo | pick | step 400 | 75.0 % |" in text
    assert "| ppo | pick | step 400 | 1.95 KiB | 2 | checkpoints/policy_step_400.pt |" in text
    assert "avgReward(100): 1 value left out, since not finite" in text.replace("\\", "")


def test_the_page_draws_each_kind_of_curve_with_a_line_for_each_policy(folder: Path) -> None:
    page = (folder / "report.html").read_text()
    assert 'id="training"' in page
    for title in ("pick: reward (avgReward(100))", "pick: length (avgLength(100))", "pick: evaluated success"):
        assert title in page
    drawing = page[page.index('aria-label="pick: reward') :]
    assert drawing[: drawing.index("</svg>")].count('stroke-width="1.4"') == 2
    assert (folder / "figures/training.svg").exists()


def test_the_curves_that_the_host_kept_are_taken_before_files_are_read(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "run")
    session = run.session("ppo", "pick", 400, unit="step")
    run.attempt(session)
    at = RUN.attempt(session.name, 1)
    run.put(at.log, line(100, 1))
    curve = {"name": "r", "role": "reward", "of": "training", "unit": "steps", "steps": [7], "values": [8]}
    run.put(at.curves, json.dumps({"curves": [curve]}))
    (found,) = run.report().summary.trainings
    assert [(one.last_step, one.last) for one in found.curves] == [(7, 8)]


def test_a_run_without_trainings_has_no_part_about_them(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "run")
    run.attempt(run.session("ppo", "pick", 1), '{"episode": 0, "success": true}\n')
    report_run(run.write(), tmp_path / "report")
    assert "trainings" not in json.loads((tmp_path / "report/final_benchmark_report.json").read_text())
    assert "Trainings" not in (tmp_path / "report/report.html").read_text()
