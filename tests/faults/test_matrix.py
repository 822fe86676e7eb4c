"""The cells that are always run cover all pairs: of family and multiplexer, family and place, multiplexer and place."""

from __future__ import annotations

from matrix import DIAGONALS, FAMILIES, quick


def test_each_family_of_faults_happens_in_both_multiplexers_and_at_both_places() -> None:
    for family in FAMILIES:
        tests = [cell for turn in range(2) for _, cell in quick(family, 1, turn)]
        assert set(tests) == {cell for _, cell in quick(family, 2)} == set(DIAGONALS[FAMILIES[family]])
    assert {cell for family in FAMILIES for _, cell in quick(family, 2)} == {cell for one in DIAGONALS for cell in one}
