"""Trainings in the report: curves over all attempts, last and best values, evaluations and checkpoints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from adapter_samples import SAMPLES
from report_runs import RUN, RunDirectory

from comborun.api.reports import comparison_answer
from comborun.errors import UserError
from comborun.reporter.collect import collect_folder
from comborun.reporter.report import report_between, report_folder, report_run


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


# A folder without a plan


def progress(values: int = 3, names: str = "time/total_timesteps,rollout/ep_rew_mean") -> str:
    return f"{names}\n" + "".join(f"{1000 * at},{at}.5\n" for at in range(1, values + 1))


def put(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def named(folder: Path) -> list[str]:
    return [one.policy for one in report_folder(folder, folder / "report").trainings]


@pytest.mark.parametrize(
    ("files", "names"),
    [
        ({"progress.csv": progress(), "eval/progress.csv": progress(), "x.log": "step=1000 reward=3\n"}, ["run"]),
        ({"seed1/progress.csv": progress(), "seed2/progress.csv": progress(2)}, ["seed1", "seed2"]),
        ({"a/logs/rank_0/progress.csv": progress(), "a/logs/rank_1/progress.csv": progress()}, ["a/logs"]),
        ({"curve.csv": progress(), "report.txt": "x"}, ["run"]),
        ({"m.jsonl": '{"step": 10, "reward": 1}\n{"step": 20, "reward": 2}\n', "model_20_steps.zip": "PK"}, ["run"]),
        ({"train.log": "| train | F: 6000 | S: 3000 | E: 6 | L: 500 | R: 5.5 | FPS: 96 | T: 0:00:42\n"}, ["run"]),
    ],
)
def test_a_folder_that_a_training_wrote_is_read_as_one_and_again_so(
    tmp_path: Path, files: dict[str, str], names: list[str]
) -> None:
    folder = put(tmp_path / "run", files)
    assert named(folder) == names
    assert named(folder) == names
    assert "Curves of trainings" in (folder / "report/report.html").read_text() or len(names) == 1


def test_the_page_of_such_a_folder_has_the_values_and_says_what_it_is(tmp_path: Path) -> None:
    folder = put(tmp_path / "run", {"progress.csv": progress(), "checkpoints/model_3000_steps.zip": "PK"})
    report_folder(folder, folder / "report")
    text = (folder / "report/report.md").read_text()
    assert "run is read as a training: curves and checkpoints as the program wrote them, no rate and no outcome" in text
    assert "| run | unnamed | step 3,000 | 3.5 | 3.5 at 3,000 | 1 | 2 B |" in text


def test_a_folder_of_evaluations_stays_one(tmp_path: Path) -> None:
    rows = "".join(f'{{"policy": "p", "environment": "e", "episode": {at}, "success": true}}\n' for at in range(3))
    folder = put(tmp_path / "run", {"r.jsonl": rows, "progress.csv": progress()})
    summary = report_folder(folder, folder / "report")
    assert (summary.trainings, summary.totals.completed) == ((), 3)


@pytest.mark.parametrize("beside", [{"progress.csv": progress()}, {"logs/best_model.zip": "PK"}])
def test_evaluations_that_a_training_made_are_shown_as_its_own(tmp_path: Path, beside: dict[str, str]) -> None:
    archive = (SAMPLES / "sb3/evaluations.npz").read_bytes()
    folder = put(tmp_path / "run", beside)
    (folder / "logs").mkdir(exist_ok=True)
    (folder / "logs/evaluations.npz").write_bytes(archive)
    summary = report_folder(folder, folder / "report")
    assert (len(summary.trainings), summary.totals.completed) == (1, 0)
    success = summary.trainings[0].curve("evaluation", "success")
    assert success
    assert (success.last, success.best, success.steps) == (0.8, 0.8, (1000, 2000))
    (folder / "successes.npz").write_bytes(archive.replace(b"timesteps", b"timestamp"))
    summary = report_folder(folder, folder / "report")
    assert summary.totals.completed, "an archive of no training is one of episodes"


@pytest.mark.parametrize(
    "files",
    [
        {"trace.jsonl": "".join(f'{{"step": {at}, "reward": 1}}\n' for at in range(9))},
        {"foo.csv": progress(names="step,reward")},
    ],
)
def test_curves_that_may_be_of_something_else_are_named_with_the_way_to_read_them(
    tmp_path: Path, files: dict[str, str]
) -> None:
    (name,) = files
    with pytest.raises(UserError, match=f"{name}: curves over steps; if they are of a training, call it progress."):
        report_folder(put(tmp_path / "run", files), tmp_path / "report")
    Path(tmp_path / "run" / name).rename(tmp_path / "run" / f"progress{Path(name).suffix}")
    assert named(tmp_path / "run") == ["run"]


# Two of them


def compared(folder: Path, first: dict[str, str], second: dict[str, str], same: dict[str, str] | None = None) -> Any:
    runs = [collect_folder(put(folder / name, files)) for name, files in (("old", first), ("new", second))]
    return report_between(runs[0], runs[1], folder / "between", same or {})


def test_two_trainings_are_side_by_side_and_nothing_is_claimed(tmp_path: Path) -> None:
    evaluated = "step,success\n1000,0.5\n2000,0.25\n"
    found = compared(
        tmp_path,
        {"progress.csv": progress(2), "eval/progress.csv": evaluated},
        {"progress.csv": progress(3, "step,mean_return")},
    )
    assert found.answer == "1 training of new and old side by side: each is one run, so no difference is claimed."
    assert (found.rows, found.sentences) == ((), ())
    text = (tmp_path / "between/comparison.md").read_text()
    last = "2.5 at step 2,000 | 3.5 at step 3,000 | 2.5 at step 2,000 | 3.5 at step 3,000"
    assert f"| old → new | unnamed | reward (rollout/ep_rew_mean → mean_return) | {last} |" in text
    assert "| old → new | unnamed | evaluated success | 25.0 % at step 2,000 |  | 50.0 % at step 1,000 |  |" in text
    page = (tmp_path / "between/comparison.html").read_text()
    assert "Curves of trainings" in page
    assert page.count("<svg") == 3  # the legend, rewards, evaluated successes
    document = json.loads((tmp_path / "between/comparison.json").read_text())
    values = [(one["of"], one["role"], one["after"] and one["after"]["best"]) for one in document["trainings"]]
    assert values == [("training", "reward", 3.5), ("evaluation", "success", None)]
    assert comparison_answer(tmp_path / "between").trainings[0].before.last == 2.5  # type: ignore[union-attr]


def test_of_several_trainings_those_of_one_name_are_side_by_side(tmp_path: Path) -> None:
    first = {f"{name}/progress.csv": progress() for name in ("a", "b", "c")}
    second = {f"{name}/progress.csv": progress() for name in ("b", "C", "d")}
    found = compared(tmp_path, first, second, {"C": "c"})
    assert [pair.name for pair in found.pairs] == ["c → C", "b"]
    assert found.notes == ("Only in old: a × unnamed.", "Only in new: d × unnamed.")
    assert found.figure.legend is not None


def test_trainings_without_a_common_name_and_evaluations_beside_a_training_are_refused(tmp_path: Path) -> None:
    names = {f"{name}/progress.csv": progress() for name in "ab"}
    others = {f"{name}/progress.csv": progress() for name in "cd"}
    with pytest.raises(UserError, match="have no combo in common"):
        compared(tmp_path, names, others)


def test_a_log_of_episodes_beside_the_checkpoint_that_was_evaluated_is_no_training(tmp_path: Path) -> None:
    files = {"x.log": "Episode 1 reward 5\nEpisode 2 reward 6\n", "model_20_steps.zip": "PK"}
    with pytest.raises(UserError, match="holds an episode that counts") as error:
        report_folder(put(tmp_path / "run", files), tmp_path / "report")
    assert "curves over steps" not in str(error.value)
