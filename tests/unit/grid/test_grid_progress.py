"""`progress.each`: what a bar's total stands for, as a number or as an attribute of a combo."""

from __future__ import annotations

from pathlib import Path

import pytest

from comborun.errors import GridError
from comborun.grid import Grid, parse_grid
from comborun.planner import lay_out
from comborun.resources import HostFacts

HERE = HostFacts("local", "box", 8, 1 << 34, (), "5", "3", "", ())
HEAD = """\
policies: {act: , slow: {trials: 5}}
environments: {spatial: {trials: 50}, long: {trials: "0x20"}, goal: }
episodes: 100
command: run
"""
BAR = r"pattern: '(\d+)/(\d+) \['"


def grid(progress: str, more: str = "") -> Grid:
    return parse_grid(f"{HEAD}progress: {{{BAR}, {progress}}}\n{more}", Path("grid.yaml"))


def each_of(found: Grid) -> dict[tuple[str, str], int]:
    return {(one.policy, one.environment): one.progress.each for one in lay_out(found, HERE).sessions}


def problems(progress: str, more: str = "") -> list[str]:
    with pytest.raises(GridError) as refused:
        grid(progress, more)
    return [str(problem).split("\n", maxsplit=1)[0] for problem in refused.value.problems]


def test_it_is_a_number_or_the_attribute_of_each_combos_own() -> None:
    others = "exclude: [{environment: [long, goal]}]\n"
    assert each_of(grid("each: 25", others)) == {("act", "spatial"): 25, ("slow", "spatial"): 25}
    assert each_of(grid('each: "{environment.trials}"', others)) == {("act", "spatial"): 50, ("slow", "spatial"): 50}
    assert each_of(grid("silent: true", others)) == {("act", "spatial"): 0, ("slow", "spatial"): 0}


def test_what_is_no_number_for_a_combo_is_told_once_with_its_line() -> None:
    assert problems('each: "{environment.trials}"') == [
        "grid.yaml:5:45: `progress.each`: environment `goal` has no value for {environment.trials}",
        "grid.yaml:5:45: `progress.each`: {environment.trials} of environment `long`: `0x20` is not a whole number",
    ]
