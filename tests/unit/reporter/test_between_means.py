"""Two runs without verdicts side by side: the means of their metric are compared."""

from __future__ import annotations

import json
import random
from pathlib import Path
from statistics import fmean

import pytest
from click.testing import CliRunner
from report_runs import RunDirectory, write_rows

from comborun.cli import combo
from comborun.errors import UserError
from comborun.reporter.collect import collect_folder, collect_run
from comborun.reporter.pages.between import compare_runs, render_between
from comborun.reporter.pages.between_means import MeansBetween
from comborun.rules.results.fields import ResultRules

RULES = ResultRules.of({"files": ["*.jsonl"], "success": "none"})
Values = dict[tuple[str, str], list[float]]


def row(index: int, value: float, metric: str = "return", **fields: object) -> str:
    return json.dumps({"episode": index, metric: value, **fields}) + "\n"


def run(path: Path, name: str, values: Values, metric: str = "return", **fields: object) -> Path:
    directory = RunDirectory(path / name)
    for (policy, environment), found in values.items():
        session = directory.session(policy, environment, len(found), results=RULES)
        directory.attempt(session, "".join(row(at, value, metric, **fields) for at, value in enumerate(found)))
    return directory.write(run=f"{name}-20260509T073525Z-1a2b")


def between(path: Path, first: Values, second: Values, metric: str = "return") -> MeansBetween:
    found = compare_runs(
        *(collect_run(run(path, name, values, metric)) for name, values in (("before", first), ("after", second)))
    )
    assert isinstance(found, MeansBetween)
    return found


def drawn(seed: int, mean: float, count: int = 20) -> list[float]:
    draw = random.Random(seed)
    return [draw.gauss(mean, 1) for _ in range(count)]


def test_a_policy_whose_mean_return_is_higher_got_better(tmp_path: Path) -> None:
    first = {("ppo", "hop"): drawn(1, 5), ("ppo", "walk"): drawn(2, 5), ("sac", "hop"): drawn(3, 5)}
    second = {("ppo", "hop"): drawn(4, 8), ("ppo", "walk"): drawn(5, 5), ("sac", "hop"): drawn(6, 5)}
    found = between(tmp_path, first, second)
    assert "is better in 1 of 3 combos, by mean return; 2 not decided" in found.answer
    one = dict(found.rows[:1])["ppo"]
    assert one.means == pytest.approx((fmean(second["ppo", "hop"]), fmean(first["ppo", "hop"])))
    assert (one.a.split("-")[0], one.b.split("-")[0]) == ("after", "before")
    assert [float(cell) for cell in found.table.rows[0][2:4]] == pytest.approx(one.means[::-1], abs=0.01)
    assert one.gap == pytest.approx(one.means[0] - one.means[1])
    assert [(name, len(it.environments)) for name, it in found.rows] == [("ppo", 1), ("ppo", 1), ("sac", 1), ("ppo", 2)]
    document = json.loads(render_between(found)["comparison.json"])
    assert (document["metric"], document["better"], len(document["means"])) == ("return", "higher", 4)


def test_without_a_word_which_values_are_better_it_is_higher_or_lower(tmp_path: Path) -> None:
    found = between(tmp_path, {("a", "x"): drawn(1, 8)}, {("a", "x"): drawn(2, 5)}, metric="energy")
    assert "is lower in 1 of 1 combo, by mean energy." in found.answer
    assert found.sentences[0].startswith("a in x got lower: mean energy")


def test_of_a_metric_that_is_better_when_it_is_lower_less_is_better(tmp_path: Path) -> None:
    rules = ResultRules.of({"files": ["*.jsonl"], "success": "none", "compare": ["cost"], "lower": ["cost"]})
    for name, mean in (("before", 8.0), ("after", 5.0)):
        directory = RunDirectory(tmp_path / name)
        session = directory.session("a", "x", 20, results=rules)
        directory.attempt(session, "".join(row(at, value, "cost") for at, value in enumerate(drawn(1, mean))))
        directory.write(run=f"{name}-20260509T073525Z-1a2b")
    found = compare_runs(collect_run(tmp_path / "before"), collect_run(tmp_path / "after"))
    assert "is better in 1 of 1 combo, by mean cost." in found.answer


def test_combos_of_one_run_and_few_values_are_named(tmp_path: Path) -> None:
    first = {("a", "x"): drawn(1, 5), ("a", "y"): [1.0, 2.0], ("b", "x"): drawn(2, 5)}
    found = between(tmp_path, first, {("a", "x"): drawn(3, 5), ("a", "y"): [2.0, 3.0]})
    assert "Only in before-20260509T073525Z-1a2b: b × x." in found.notes
    assert "Too few values to compare: a × y." in found.notes
    assert "are not told apart in the only combo, by mean return" in found.answer


def test_runs_of_other_metrics_have_nothing_in_common(tmp_path: Path) -> None:
    first, second = (
        run(tmp_path, "before", {("a", "x"): drawn(1, 5)}),
        run(tmp_path, "after", {("a", "x"): drawn(2, 5)}, "energy"),
    )
    with pytest.raises(UserError, match="no combo in common"):
        compare_runs(collect_run(first), collect_run(second))


def test_names_that_differ_by_case_are_told_and_taken_as_one_when_asked_for(tmp_path: Path) -> None:
    first, second = (
        {("ppo", "hop"): drawn(seed, 5), ("ppo", name): drawn(9, 5)} for seed, name in ((1, "x"), (2, "X"))
    )
    assert any("--same X=x" in note for note in between(tmp_path, first, second).notes)
    runs = [collect_run(tmp_path / name) for name in ("before", "after")]
    found = compare_runs(*runs, {"X": "x"})
    assert isinstance(found, MeansBetween)
    assert {name for _, one in found.rows for name in one.environments} == {"hop", "x"}
    assert not any("--same" in note or "Only in" in note for note in found.notes)


def test_a_folder_with_fewer_records_lacks_them(tmp_path: Path) -> None:
    for name, count, mean in (("old", 30, 5.0), ("new", 12, 6.2)):
        (tmp_path / name).mkdir()
        rows = (row(at, value, policy="a", environment="x") for at, value in enumerate(drawn(count, mean, count)))
        write_rows(tmp_path / name / "r.jsonl", rows)
    found = compare_runs(*(collect_folder(tmp_path / name) for name in ("old", "new")))
    assert isinstance(found, MeansBetween)
    ((_, one),) = found.rows
    assert one.unknown == (18, 0)
    assert one.p < 0.05 < one.worst_p
    assert not one.decided


def test_the_command_shows_means_and_answers_with_them(tmp_path: Path) -> None:
    before = run(tmp_path, "before", {("a", "x"): drawn(1, 5)})
    after = run(tmp_path, "after", {("a", "x"): drawn(2, 9)})
    shown = CliRunner().invoke(combo, ["report", "--compare", str(before), str(after)])
    assert shown.exit_code == 0, shown.output
    assert "by mean return" in shown.output
    answered = CliRunner().invoke(combo, ["report", "--compare", str(before), str(after), "--json"])
    assert json.loads(answered.output)["means"][0]["decided"] is True
