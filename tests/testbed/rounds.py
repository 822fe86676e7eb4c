"""How much of what takes long runs by default: all of it with COMBORUN_SLOW=1."""

from __future__ import annotations

import os

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeVar

    Row = TypeVar("Row")

ALL = bool(os.environ.get("COMBORUN_SLOW"))


def rounds(many: int) -> int:
    """So many with COMBORUN_SLOW=1, else two fifths."""
    return many if ALL else max(1, many * 2 // 5)


def some(rows: Iterable[Row], *usual: int) -> list[Row]:
    """The rows of a matrix; by default only those at these places."""
    return [row for place, row in enumerate(rows) if ALL or place in usual]


only_slow = pytest.mark.skipif(not ALL, reason="takes long: set COMBORUN_SLOW=1")
