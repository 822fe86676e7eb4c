"""Where a fault happens: sessions in tmux or in screen, on this machine or behind sshd.

Every fault can happen in all four; COMBORUN_SLOW=1 makes it. Otherwise a family of faults has the two cells of one
diagonal: its rows in turn, or its tests in turn where they have one row. So every pair of (family, multiplexer), of
(family, place) and of (multiplexer, place) is there, where a family has more than one of them.
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


def faults(family: str, rows: Sequence[Any] = ("",), turn: int = 0) -> Callable[[Any], Any]:
    """Parametrize a test over the cells, by its fixture `ground`, and over `rows`, by its argument `fault`.

    The tests of a family take turns: `turn` is the number of the test.
    """
    always = {(row, DIAGONALS[FAMILIES[family]][(turn + row) % 2]) for row in range(len(rows))}
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
