"""Files of a folder whose paths name policies and environments otherwise than the grid, or only one of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from report_runs import write_rows

from comborun.grid import parse_grid
from comborun.monitor.trial_setup import plan_anywhere
from comborun.remote.transport import LocalTransport
from comborun.reporter.planned_folder import collect_by_plan
from comborun.reporter.summary import summarize

if TYPE_CHECKING:
    from pathlib import Path

GRID = """
policies: [flat, rough]
environments: [grass, stairs]
episodes: 3
command: run {output_dir} {episodes}
"""


def written(folder: Path, *files: str, **fields: str) -> None:
    for file in files:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        rows = (json.dumps({"episode": i, "success": True, **fields}) + "\n" for i in range(3))
        write_rows(folder / file, rows)


def read(folder: Path, line: str = "") -> tuple[int, str]:
    """How many episodes count, and what is said."""
    grid = GRID + (f"results: {line}\n" if line else "")
    plan = plan_anywhere(parse_grid(grid, folder / "grid.yaml"), lambda _: LocalTransport())
    summary = summarize(collect_by_plan(folder, plan)).summary
    return summary.totals.completed, " ".join(one.what for one in summary.quality.findings)


@pytest.mark.parametrize(
    ("files", "fields", "line"),
    [
        (["flt/grass/r.jsonl", "rgh/stairs/r.jsonl"], {}, "{policy: {values: {flat: flt, rough: rgh}}}"),
        (["flt_grass.jsonl", "rgh_stairs.jsonl"], {}, "{policy: {values: {flat: flt, rough: rgh}}}"),
        (["x/flt/grass/r.jsonl", "x/rgh/stairs/r.jsonl"], {}, "{policy: {values: {flat: flt, rough: rgh}}}"),
        (["grass/flat_v2.jsonl", "grass/rough.jsonl"], {}, "{policy: {values: {flat: flat_v2}}}"),
        (
            ["flat/grass-v1/log.jsonl", "flat/stairs-v1/log.jsonl"],
            {},
            "{environment: {values: {grass: grass-v1, stairs: stairs-v1}}}",
        ),
        (
            ["grass_1/r.jsonl", "stairs_1/r.jsonl"],
            {"policy": "flat"},
            "{environment: {values: {grass: grass_1, stairs: stairs_1}}}",
        ),
    ],
)
def test_names_in_paths_that_the_grid_does_not_know_come_with_the_mapping_that_counts_them(
    tmp_path: Path, files: list[str], fields: dict[str, str], line: str
) -> None:
    written(tmp_path, *files, **fields)
    count, said = read(tmp_path)
    assert f"`results: {line}` counts them" in said
    assert said.count("does not know") == 1
    assert count < 6
    assert read(tmp_path, line)[0] == 6


BOTH = "{policy: {values: {flat: flt, rough: rgh}}, environment: {values: {grass: grs, stairs: strs}}}"


@pytest.mark.parametrize(
    "form", ["{}/{}/r.jsonl", "x/{}/y/{}.jsonl", "{}_{}.jsonl", "{}__{}.jsonl", "run/{}-{}/out.jsonl"]
)
def test_unknown_names_of_both_kinds_come_with_one_line_that_maps_both(tmp_path: Path, form: str) -> None:
    files = [form.format(policy, environment) for policy in ("flt", "rgh") for environment in ("grs", "strs")]
    written(tmp_path, *files)
    count, said = read(tmp_path)
    assert (count, said.count(f"`results: {BOTH}` counts them"), said.count("does not know")) == (0, 2, 2)
    assert read(tmp_path, BOTH)[0] == 12


def test_tables_whose_names_would_be_guessed_from_their_paths_are_mapped_alike(tmp_path: Path) -> None:
    for policy in ("flt", "rgh"):
        for environment in ("grs", "strs"):
            (tmp_path / policy / environment).mkdir(parents=True)
            (tmp_path / policy / environment / "r.csv").write_text("episode,success\n0,1\n1,0\n2,1\n")
    files = 'files: "**/*.csv"'
    count, said = read(tmp_path, f"{{{files}}}")
    assert (count, said.count(f"`results: {BOTH}` counts them"), said.count("does not know")) == (0, 2, 2)
    assert read(tmp_path, f"{{{files}, {BOTH[1:]}")[0] == 12


def test_unknown_names_of_one_file_are_told(tmp_path: Path) -> None:
    written(tmp_path, "flt/grs/r.jsonl")
    assert read(tmp_path)[1].count("does not know") == 2


def test_unknown_names_of_both_kinds_that_are_not_alike_are_told_and_not_guessed(tmp_path: Path) -> None:
    written(tmp_path, "a/grs/r.jsonl", "b/strs/r.jsonl")
    count, said = read(tmp_path)
    assert count == 0
    for told in ("6 rows of policy 'a', 'b', which", "6 rows of environment 'grs', 'strs', which"):
        assert told in said
    assert "counts them" not in said
    assert said.count("NAME: ") == 2


def test_names_that_are_not_alike_are_told_and_not_guessed(tmp_path: Path) -> None:
    written(tmp_path, "a/grass/r.jsonl", "b/stairs/r.jsonl")
    count, said = read(tmp_path)
    assert count == 0
    assert "6 rows of policy 'a', 'b', which the grid does not know: it has 'flat', 'rough'" in said
    assert "counts them" not in said
    assert "{policy: {values: {NAME: a}}}" in said


def test_rows_may_name_what_their_path_does_not(tmp_path: Path) -> None:
    written(tmp_path, "flat/a.jsonl", environment="grass")
    written(tmp_path, "stairs/b.jsonl", policy="rough")
    written(tmp_path, "rough/c.jsonl", policy="flat", environment="stairs")
    assert read(tmp_path)[0] == 9


def test_a_path_may_name_its_session_twice(tmp_path: Path) -> None:
    written(tmp_path, "grass_flat/flat_grass.jsonl")
    assert read(tmp_path)[0] == 3
