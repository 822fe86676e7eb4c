"""Where a fault happens: sessions in tmux or in screen, on this machine or behind sshd.

Every fault can happen in all four; COMBORUN_SLOW=1 makes it. Otherwise a family of faults has the two cells of one
diagonal, its rows in turn, so that every pair of (family, multiplexer), of (family, place) and of (multiplexer, place)
is there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest

FULL = bool(os.environ.get("COMBORUN_SLOW"))
"""everything in all four cells, and at full length"""


class Cell(NamedTuple):
    multiplexer: str
    place: str


DIAGONALS = (
    (Cell("tmux", "local"), Cell("screen", "sshd")),
    (Cell("screen", "local"), Cell("tmux", "sshd")),
)
FAMILIES = {"killed": 0, "programs": 1, "full disk": 0, "records": 1, "twice": 0, "names": 1, "many": 0}
"""family -> its diagonal"""


def quick(family: str, rows: int) -> list[tuple[int, Cell]]:
    """The cells of each row that are always there; a single row has both of its diagonal."""
    diagonal = DIAGONALS[FAMILIES[family]]
    if rows == 1:
        return [(0, cell) for cell in diagonal]
    return [(row, diagonal[row % 2]) for row in range(rows)]


def faults(family: str, rows: Sequence[Any] = ("",)) -> Callable[[Any], Any]:
    """Parametrize a test over the cells, by its fixture `ground`, and over `rows`, by its argument `fault`."""
    always = set(quick(family, len(rows)))
    slow = (pytest.mark.slow, pytest.mark.skipif(not FULL, reason="all cells: set COMBORUN_SLOW=1"))
    cells = [(number, cell) for number in range(len(rows)) for diagonal in DIAGONALS for cell in diagonal]
    named = len(rows) > 1
    parameters = [
        pytest.param(
            *((cell, rows[number]) if named else (cell,)),
            id="-".join([*([str(rows[number]).replace(" ", "_")] if named else []), *cell]),
            marks=() if (number, cell) in always else slow,
        )
        for number, cell in cells
    ]
    names = ["ground", "fault"] if named else ["ground"]
    return pytest.mark.parametrize(names, parameters, indirect=["ground"])
