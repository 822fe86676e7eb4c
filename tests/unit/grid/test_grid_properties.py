"""Whatever a file holds, it is a grid or it is refused in words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rounds import rounds

from comborun.errors import GridError
from comborun.grid import Grid, parse_grid
from comborun.grid.presets import starter_grid

STARTER = starter_grid("x")
WORDS = """
    policies environments command episodes overrides when policy environment results files none include exclude limits
    parallel variables glob resources gpus use_gpus after host root workdir link_from seed name a b flat stairs ~ null
    true 1.10 1e2 {policy} {policy.x} {seed} &a *a <<: !!str | > >- ' " [ ] { } , # ? % --- \\ \\ud800 \\0 日本 ..
"""
SPACES = (": ", "- ", "\n", "  ", ":\n  ", " ", "\ufeff", "\u2028", "\x85", "\t")
PIECES = st.lists(st.sampled_from([*WORDS.split(), *SPACES]), max_size=60).map("".join)
BROKEN = st.tuples(st.integers(0, len(STARTER)), st.integers(0, 60), PIECES).map(
    lambda cut: STARTER[: cut[0]] + cut[2] + STARTER[cut[0] + cut[1] :]
)


NO_CONTROL = st.characters(exclude_categories=("Cc", "Cs"))


def answered(text: str) -> Grid | None:
    try:
        return parse_grid(text, Path("grid.yaml"))
    except GridError as error:
        return None if error.problems else pytest.fail("refused without a reason")


@settings(max_examples=rounds(150))
@given(PIECES)
def test_arbitrary_yaml_is_answered(text: str) -> None:
    answered(text)


@settings(max_examples=rounds(150))
@given(BROKEN)
def test_a_good_grid_that_is_cut_and_patched_is_answered(text: str) -> None:
    grid = answered(text)
    if grid:
        assert grid.combos
        assert all(combo.settings.command for combo in grid.combos)


@given(st.dictionaries(st.from_regex(r"\A[A-Za-z0-9_-]{1,10}\Z"), st.text(NO_CONTROL)))
@example({"face": "\N{GRINNING FACE}"})
def test_attributes_come_back_as_they_were_written(attributes: dict[str, str]) -> None:
    grid = answered(f"policies: {{a: {json.dumps(attributes)}}}\nenvironments: [x]\ncommand: run\nresults: none\n")
    assert dict(grid.combos[0].policy.attributes) == attributes
