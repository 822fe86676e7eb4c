"""`progress.each`: what a bar's total stands for, as a number or as an attribute of a combo."""

from __future__ import annotations

import gridtext

HEAD = """\
policies: {act: , slow: {trials: 5}}
environments: {spatial: {trials: 50}, long: {trials: "0x20"}, goal: }
episodes: 100
command: run
"""
BAR = r"pattern: '(\d+)/(\d+) \['"


def text(progress: str) -> str:
    return f"{HEAD}progress: {{{BAR}, {progress}}}\n"


def each_of(progress: str) -> dict[tuple[str, str], int]:
    sessions = gridtext.plan(text(progress) + "exclude: [{environment: [long, goal]}]\n").sessions
    return {(one.policy, one.environment): one.progress.each for one in sessions}


def test_it_is_a_number_or_the_attribute_of_each_combos_own() -> None:
    assert each_of("each: 25") == {("act", "spatial"): 25, ("slow", "spatial"): 25}
    assert each_of('each: "{environment.trials}"') == {("act", "spatial"): 50, ("slow", "spatial"): 50}
    assert each_of("silent: true") == {("act", "spatial"): 0, ("slow", "spatial"): 0}


def test_what_is_no_number_for_a_combo_is_told_once_with_its_line() -> None:
    told = gridtext.mistakes(text('each: "{environment.trials}"')).splitlines()
    assert [line for line in told if line.startswith("grid.yaml")] == [
        "grid.yaml:5:45: `progress.each`: environment `goal` has no value for {environment.trials}",
        "grid.yaml:5:45: `progress.each`: {environment.trials} of environment `long`: `0x20` is not a whole number",
    ]
