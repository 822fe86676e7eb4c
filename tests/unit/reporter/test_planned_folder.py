"""A folder of result files that a grid gives a plan and a reading."""

from __future__ import annotations

import json
from itertools import product
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from report_runs import write_rows

from comborun.cli import combo
from comborun.errors import UserError
from comborun.grid import parse_grid
from comborun.monitor.trial_setup import plan_anywhere
from comborun.remote.transport import LocalTransport
from comborun.reporter.collect import collect_folder
from comborun.reporter.planned_folder import collect_by_plan
from comborun.reporter.report import report_folder
from comborun.reporter.summary import summarize

if TYPE_CHECKING:
    from collections.abc import Sequence
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
        write_rows(folder / file, ({"ep": i, "solved": True} for i in range(3)))
    plan = plan_anywhere(parse_grid(grid, folder / "grid.yaml"), lambda _: LocalTransport())
    return summarize(collect_by_plan(folder, plan)).summary


@pytest.mark.parametrize(
    "file", ["grass/flat/r.jsonl", "flat/grass/attempt-1/r.jsonl", "grass_flat/r.jsonl", "flat-grass.jsonl"]
)
def test_a_path_names_the_combo_and_the_grid_the_fields(tmp_path: Path, file: str) -> None:
    counts = {one.key: one.counts for one in report_of(tmp_path, file).combos}
    assert [key for key, one in counts.items() if one and one.completed == 3] == [("flat", "grass")]
    assert sum(one.missing for one in counts.values() if one) == 9


@pytest.mark.parametrize("file", ["{}.csv", "{}/rows.csv", "all/{}/rows_0.csv"])
def test_rows_of_each_combo_are_numbered_by_their_place_whatever_other_files_have(tmp_path: Path, file: str) -> None:
    for policy in ("flat", "rough_2"):
        (tmp_path / file.format(policy)).parent.mkdir(parents=True, exist_ok=True)
        rows = (f"{task},{trial},1\n" for task in ("grass", "stairs") for trial in (1, 2, 3))
        (tmp_path / file.format(policy)).write_text("task,trial,solved\n" + "".join(rows))
    line = '{files: "**/*.csv", episode: line, environment: task, success: solved}'
    summary = report_of(tmp_path, grid=GRID.partition("results")[0] + f"results: {line}\n")
    assert (summary.totals.completed, summary.totals.missing) == (12, 0)


@pytest.mark.parametrize("name", ["flat_grass_20261102.jsonl", "2026-11-02/10-30-00_grass_flat/r.jsonl"])
@pytest.mark.parametrize("form", ["{}", "policy=flat,env=grass/{}"])
def test_dates_in_a_name_and_pairs_of_hydra_hide_no_name_of_the_grid(tmp_path: Path, name: str, form: str) -> None:
    name = name if form == "{}" else form.format("2026-11-02.jsonl")
    combos = report_of(tmp_path, name).combos
    assert [one.key for one in combos if one.counts and one.counts.completed] == [("flat", "grass")]


def test_a_name_of_the_grid_with_a_date_is_itself(tmp_path: Path) -> None:
    grid = GRID.replace("rough_2", "flat_20261102").replace("stairs", "grass_2026-11-02")
    combos = report_of(
        tmp_path, "flat_20261102/grass.jsonl", "2026-11-03/flat_grass_2026-11-02.jsonl", grid=grid
    ).combos
    assert {one.key for one in combos if one.counts and one.counts.completed} == {
        ("flat_20261102", "grass"),
        ("flat", "grass_2026-11-02"),
    }


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


def test_rows_that_repeat_an_index_come_with_the_line_though_others_count(tmp_path: Path) -> None:
    folder = tmp_path / "grass/flat"
    rows = [{"scene": scene, "ep": i, "solved": (scene == "b") == i} for scene in ("a", "b") for i in (0, 1)]
    write_rows(folder / "r.jsonl", rows)
    grid = GRID.replace("episodes: 3", "episodes: 4")
    summary = report_of(tmp_path, grid=grid)
    assert summary.totals.completed == 0
    findings = " ".join(one.what for one in summary.quality.findings)
    assert "`results: {episode: [scene, ep]}` counts them" in findings
    mended = report_of(tmp_path, grid=grid.replace("episode: ep", "episode: [scene, ep]"))
    assert mended.totals.completed == 4


@pytest.mark.parametrize(
    ("names", "line"),
    [
        ({"flat": "flt", "rough_2": "r2"}, "{policy: {values: {flat: flt, rough_2: r2}}}"),
        ({"flat": "flat", "rough_2": "other"}, "{policy: {values: {rough_2: other}}}"),
        ({"flat": "flat_v2", "rough_2": "rough_2"}, "{policy: {values: {flat: flat_v2}}}"),
        ({"flat": "a", "rough_2": "b"}, "{policy: {values: {NAME: a}}}"),
    ],
)
def test_rows_of_names_that_the_grid_does_not_know_come_with_the_mapping(
    tmp_path: Path, names: dict[str, str], line: str
) -> None:
    rows = [
        {"policy": name, "environment": "grass", "ep": i, "solved": True} for name in names.values() for i in (0, 1)
    ]
    write_rows(tmp_path / "all.jsonl", rows)
    findings = " ".join(one.what for one in report_of(tmp_path).quality.findings)
    assert f"`results: {line}`" in findings
    if "NAME" not in line:
        mapped = GRID.replace("success: solved", f"success: solved, {line[1:-1]}")
        combos = report_of(tmp_path, grid=mapped).combos
        assert sum(one.counts.completed for one in combos if one.counts) == 4


MAPPED = (
    "{policy: {field: model, values: {flat: Flat, rough_2: Rough-2}},"
    " environment: {field: env, values: {grass: Grass-v1}}}"
)


def write_combos(file: Path, columns: tuple[str, str], policies: tuple[str, ...], places: tuple[str, ...]) -> None:
    """Three episodes of each combo in one file, with these two columns."""
    rows = [
        {**dict(zip(columns, combo, strict=True)), "ep": i, "solved": int(i > 0)}
        for combo in product(policies, places)
        for i in range(3)
    ]
    table = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    file.write_text("".join(f"{line}\n" for line in (table if file.suffix == ".csv" else map(json.dumps, rows))))


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
@pytest.mark.parametrize(
    ("columns", "policies", "places", "line"),
    [
        (("agent", "task"), ("flat", "rough_2"), ("grass", "stairs"), "{policy: agent, environment: task}"),
        (
            ("model", "env"),
            ("Flat", "Rough-2"),
            ("Grass-v1", "stairs"),
            MAPPED,
        ),
        (("algo", "scenario"), ("flat", "rough_2"), ("stairs",), "{policy: algo, environment: scenario}"),
    ],
)
def test_rows_that_name_their_combos_in_other_columns_come_with_the_line_that_counts_them(
    tmp_path: Path, ending: str, columns: tuple[str, str], policies: tuple[str, ...], places: tuple[str, ...], line: str
) -> None:
    write_combos(tmp_path / f"all.{ending}", columns, policies, places)
    grid = GRID.replace("**/*.jsonl", f"**/*.{ending}")
    findings = " ".join(one.what for one in report_of(tmp_path, grid=grid).quality.findings)
    assert f"`results: {line}` counts them" in findings
    mapped = grid.replace("success: solved", f"success: solved, {line[1:-1]}")
    combos = report_of(tmp_path, grid=mapped).combos
    assert [one.counts.completed for one in combos if one.counts if one.counts.completed] == [3] * 2 * len(places)


@pytest.mark.parametrize("columns", [("model", "env"), ("x", "y")])
def test_no_line_makes_one_combo_of_the_rows_of_several(tmp_path: Path, columns: tuple[str, str]) -> None:
    write_combos(tmp_path / "all.csv", columns, ("A", "B"), ("C", "D"))
    findings = " ".join(one.what for one in report_of(tmp_path, grid=GRID.replace("jsonl", "csv")).quality.findings)
    assert "NAME: all" not in findings
    assert "counts them" not in findings
    assert ("{policy: {field: model, values: {NAME: A}}" in findings) == (columns[0] == "model")


def test_a_grid_for_which_nothing_of_full_files_counts_is_refused(tmp_path: Path) -> None:
    row = {"policy": "other", "environment": "grass", "ep": 0, "solved": True}
    (tmp_path / "all.jsonl").write_text(json.dumps(row) + "\n")
    plan = plan_anywhere(parse_grid(GRID, tmp_path / "grid.yaml"), lambda _: LocalTransport())
    with pytest.raises(UserError) as refused:
        report_folder(tmp_path, tmp_path / "report", plan=plan)
    assert refused.value.exit_code == 1
    assert "'other'" in refused.value.message


def test_a_file_that_cannot_be_read_is_named_once(tmp_path: Path) -> None:
    (tmp_path / "grass/flat").mkdir(parents=True)
    (tmp_path / "grass/flat/r.yaml").write_text("- success: true\n")
    plan = plan_anywhere(parse_grid(GRID.replace("jsonl", "yaml"), tmp_path / "grid.yaml"), lambda _: LocalTransport())
    found = collect_by_plan(tmp_path, plan)
    assert ["YAML" in one.reason for one in (*found.rejects, *found.defects)] == [True]


def test_nothing_is_said_to_count_of_a_count_that_is_refused(tmp_path: Path) -> None:
    (tmp_path / "evaluation.json").write_text('{"result": {"episodes": 20, "metrics": {"eval/success_rate": 0.8}}}')
    found = collect_folder(tmp_path)
    assert [one.reason.partition(" (")[0] for one in found.rejects] == ["it only says how many succeeded"]
    assert not found.defects


def test_the_line_for_a_folder_names_the_files_too(tmp_path: Path) -> None:
    for at in range(2):
        (tmp_path / f"flat/grass/ep_{at}").mkdir(parents=True)
        (tmp_path / f"flat/grass/ep_{at}/result.json").write_text('{"task_success": true}')
    reasons = {one.reason for one in collect_folder(tmp_path).defects}
    wanted = '`results: {files: "**/*.json", success: task_success}` counts them'
    assert reasons == {f"1 episode, but it is not read: {wanted}"}


def test_a_link_that_leads_nowhere_costs_itself(tmp_path: Path) -> None:
    """`results/` of a run holds links, which dangle where it is copied alone."""
    (tmp_path / "grass" / "flat").mkdir(parents=True)
    (tmp_path / "grass/flat/r.jsonl").symlink_to("../../sessions/r.jsonl")
    summary = report_of(tmp_path, "stairs/flat/r.jsonl")
    assert summary.totals.completed == 3
    assert any("a link that leads nowhere" in one.what for one in summary.quality.findings)


def test_the_results_of_a_run_are_reported_as_the_run(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    told = lambda: CliRunner().invoke(combo, ["report", str(tmp_path / "results")]).output  # noqa: E731
    assert "a part of the run" not in told()
    (tmp_path / "run.json").write_text("{}")
    assert f"a part of the run {tmp_path.name}: the whole run is reported" in told()


def test_of_a_folder_that_holds_runs_it_is_said_how_one_is_reported(tmp_path: Path) -> None:
    for name in ("a", ".try"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text("{}")
    told = CliRunner().invoke(combo, ["report", str(tmp_path)]).output
    assert f"{tmp_path} holds 1 run (a): `combo report RUN` reports one of them" in told


ASKED = """
policies: [a, b]
environments: [flat, ice]
episodes: 40
command: run {output_dir} {episodes}
results: {factors: [gripper, mass, light, absent], margin: 5 points, nominal: flat%s}
"""


def asked(folder: Path, value: str, also: str = "") -> Summary:
    found = [
        {"policy": policy, "environment": name, "episode": at, "seed": at, value: at * 7 % 11 < 6}
        | {"gripper": policy, "mass": float(at % 2), "light": f"lamp {at}"}
        for policy in "ab"
        for name in ("flat", "ice")
        for at in range(40)
    ]
    if value == "return":
        found = [{**row, value: float(row[value]) + at % 3} for at, row in enumerate(found)]
    write_rows(folder / "rows.jsonl", found)
    plan = plan_anywhere(parse_grid(ASKED % also, folder / "grid.yaml"), lambda _: LocalTransport())
    return summarize(collect_by_plan(folder, plan)).summary


def test_factors_of_which_nothing_can_be_said_are_named_with_the_reason(tmp_path: Path) -> None:
    summary = asked(tmp_path, "success")
    told = [one.what for one in summary.quality.findings if one.where == "factors"]
    assert [one.field for one in summary.factors] == ["mass"]
    assert [one.split()[:2] for one in told] == [["'absent'", "is"], ["'gripper'", "never"], ["'light'", "has"]]


def test_a_margin_and_a_nominal_environment_say_that_they_are_of_rates(tmp_path: Path) -> None:
    found = asked(tmp_path, "return", ", success: none, compare: return").quality.findings
    assert [one.where for one in found if "no episode has a verdict" in one.what] == ["margin", "nominal"]


@pytest.mark.parametrize("policies", [("a", "b"), ("b",), ()])
def test_policies_without_episodes_in_the_nominal_environment_are_named(
    policies: Sequence[str], tmp_path: Path
) -> None:
    rows = [
        {"policy": policy, "environment": name, "episode": at, "success": at % 3 == 0}
        for policy in "ab"
        for name in ("flat", "ice")
        for at in range(40)
        if name == "ice" or policy in policies
    ]
    write_rows(tmp_path / "rows.jsonl", rows)
    plan = plan_anywhere(parse_grid(ASKED % "", tmp_path / "grid.yaml"), lambda _: LocalTransport())
    found = summarize(collect_by_plan(tmp_path, plan)).summary.quality.findings
    lacking = ", ".join(name for name in "ab" if name not in policies)
    assert [one.what.partition(":")[0] for one in found if one.where == "nominal"] == [lacking] * bool(lacking)


@pytest.mark.parametrize("chosen", [True, False])
def test_a_verdict_that_the_grid_names_has_no_rival(tmp_path: Path, chosen: bool) -> None:
    grid = GRID.replace(", success: solved", "").replace("episode: ep", "episode: ep" + ", success: solved" * chosen)
    row = {"success": True, "solved": False} if not chosen else {"success_once": True, "solved": False}
    for file in ("flat/grass/r.jsonl", "rough_2/grass/r.jsonl"):
        write_rows(tmp_path / file, ({"ep": i, **row} for i in range(3)))
    plan = plan_anywhere(parse_grid(grid, tmp_path / "grid.yaml"), lambda _: LocalTransport())
    (comparison,) = summarize(collect_by_plan(tmp_path, plan)).summary.comparisons.all
    assert ("other_verdict_disagrees" in {one.code for one in comparison.facts}) is not chosen


def test_counts_of_no_session_are_not_said_to_lack_a_plan(tmp_path: Path) -> None:
    """The grid plans them; what lacks is the session that a file is of."""
    for policy in ("flat", "rough_2"):
        (tmp_path / f"{policy}.csv").write_text("task,successes,trials\ngrass,2,3\nstairs,1,3\n")
    grid = GRID.replace('"**/*.jsonl", episode: ep, success: solved', '"**/*.csv"')
    plan = plan_anywhere(parse_grid(grid, tmp_path / "grid.yaml"), lambda _: LocalTransport())
    reasons = {one.reason for one in collect_by_plan(tmp_path, plan).rejects}
    assert len(reasons) == 1
    assert not any("no plan" in one for one in reasons)
    assert any("POLICY/ENVIRONMENT" in one for one in reasons)


def test_a_grid_that_takes_no_file_is_named_and_not_the_formats(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("task,successes,trials\ngrass,2,3\nstairs,1,3\n")
    plan = plan_anywhere(parse_grid(GRID, tmp_path / "grid.yaml"), lambda _: LocalTransport())
    with pytest.raises(UserError, match=r"\*\*/\*\.jsonl"):
        report_folder(tmp_path, tmp_path / "report", plan=plan)


def test_rows_without_an_index_are_numbered_in_each_combo(tmp_path: Path) -> None:
    rows = [{"policy": one, "environment": "grass", "ok": True} for one in ("flat", "flat", "flat", "rough_2")]
    write_rows(tmp_path / "all.jsonl", rows)
    grid = GRID.replace("episode: ep, success: solved", "episode: line, success: ok")
    counts = {one.key: one.counts for one in report_of(tmp_path, grid=grid).combos}
    assert [one and one.completed for key, one in counts.items() if key[1] == "grass"] == [3, 1]


def test_an_axis_that_nothing_names_is_named_with_what_the_grid_has(tmp_path: Path) -> None:
    for policy in ("flat", "rough_2"):
        (tmp_path / f"{policy}.jsonl").write_text('{"ep": 0, "solved": true}\n')
    plan = plan_anywhere(parse_grid(GRID, tmp_path / "grid.yaml"), lambda _: LocalTransport())
    reasons = [one.reason for one in collect_by_plan(tmp_path, plan).defects]
    assert any("'grass', 'stairs'" in one and "environment" in one for one in reasons)
