"""The cells that are always run cover all pairs: of family and multiplexer, family and place, multiplexer and place."""

from __future__ import annotations

import pytest
from matrix import DIAGONALS, FAMILIES, quick

CELLS = {cell for diagonal in DIAGONALS for cell in diagonal}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("rows", [1, 2, 5])
def test_each_family_of_faults_happens_in_both_multiplexers_and_at_both_places(family: str, rows: int) -> None:
    cells = quick(family, rows)
    assert {row for row, _ in cells} == set(range(rows))
    assert {cell.multiplexer for _, cell in cells} == {"tmux", "screen"}
    assert {cell.place for _, cell in cells} == {"local", "sshd"}


def test_each_multiplexer_is_there_at_each_place() -> None:
    assert {cell for family in FAMILIES for _, cell in quick(family, 1)} == CELLS
    assert len(CELLS) == 4
