"""`--set KEY=VALUE`: checked like the grid, with its own place, and refused where it is more than a single value."""

from __future__ import annotations

from pathlib import Path

import pytest

from comborun.errors import GridError
from comborun.grid import Grid, parse_grid

TEXT = """
policies: [flat, rough]
environments: [stairs]
episodes: 100
command: run {policy} {environment} {episodes} {output_dir}
limits: &limits {parallel: 2, stagger: 1 s}
overrides: [{when: {policy: rough}, limits: {max_time: 1 h}}]
"""


def given(*settings: str, text: str = TEXT) -> Grid:
    return parse_grid(text, Path("grid.yaml"), given=settings)


def test_a_single_value_takes_the_place_of_the_grids_own_and_nothing_else_changes() -> None:
    grid = given("limits.parallel=4", "episodes=10", "resources.memory=2 GiB", 'name="12"', "variables.A={x}: #1")
    assert (grid.limits.parallel, grid.limits.stagger, grid.episodes) == (4, 1.0, 10)
    assert (grid.resources.memory, grid.name, grid.variables) == (2 << 30, "12", {"A": "{x}: #1"})
    assert grid.combos[1].settings.limits.max_time == 3600
    assert grid.text == TEXT


def test_a_run_keeps_what_was_given_with_the_grid_and_policies_found_later_do_not_lose_it() -> None:
    grid = given("limits.parallel=4", text=TEXT.replace("[flat, rough]", "{glob: ~/*.pt}").replace("overrides", "#"))
    assert grid.record.startswith("# --set limits.parallel=4\n")
    assert parse_grid(grid.record, Path("grid.yaml")).limits.parallel == 2  # the text itself is the user's
    assert grid.with_files((("a", "/a.pt"),)).limits.parallel == 4


@pytest.mark.parametrize(
    ("setting", "message", "hint"),
    [
        ("limits.paralel=4", "--set limits.paralel: there is no key `paralel` in `limits`", "did you mean `parallel`?"),
        ("limits=4", "--set limits: `limits` has more than a single value", "grid file"),
        ("use_gpus=[0]", "--set use_gpus: a list is not a single value", "grid file"),
        ("policies.flat.x=1", "--set policies.flat.x: `policies` has more than a single value", "grid file"),
        ("episodes.x=1", "--set episodes.x: `episodes` is not a map in this grid", "grid file"),
        ("episodes", "--set episodes: expected a key and a value", "limits.parallel=4"),
    ],
)
def test_what_is_no_single_value_of_the_grid_is_refused_with_its_place(setting: str, message: str, hint: str) -> None:
    with pytest.raises(GridError) as caught:
        given(setting)
    (problem,) = caught.value.problems
    assert message in str(problem)
    assert hint in problem.hint
