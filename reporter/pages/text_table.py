"""A table as rows of text: the same in HTML, Markdown and LaTeX. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Self, TypeVar

T = TypeVar("T")

SHOWN = 40
"""comparisons of a table, the smallest p first"""
LEANS = "† Stopped early: the number of episodes depends on how they went, so this number leans away from the others."


class Strong(str):
    __slots__ = ()


class Plot(str):
    """The text of a cell in which every sign has the same width."""

    __slots__ = ()


class Tagged(str):
    """The text of a cell that a page shows as a tag, in a style of report.css."""

    style: str

    def __new__(cls, text: str, style: str) -> Self:
        tag = super().__new__(cls, text)
        tag.style = style
        return tag


@dataclass(frozen=True)
class TextTable:
    title: str
    columns: Sequence[tuple[str, str]]
    """heads and alignments: `left` for words, `right` for numbers"""
    rows: Sequence[Sequence[str]]
    note: str = ""
    total: int = 0
    below: Sequence[str] = ()

    def cells(self, row: Sequence[str]) -> Iterator[tuple[tuple[str, str], str]]:
        """With their columns."""
        return zip(self.columns, row, strict=True)

    @property
    def more(self) -> str:
        count = len(self.rows)
        return (
            f"The {count} with the smallest p of {self.total}; final_benchmark_report.json has all."
            if count < self.total
            else ""
        )


def columns(left: str, right: str = "", last: str = "") -> list[tuple[str, str]]:
    """Heads between bars: of words, of numbers, and again of words."""
    sides = (("left", left), ("right", right), ("left", last))
    return [(head, side) for side, heads in sides for head in heads.split("|") if head]


def filled(table: TextTable) -> TextTable:
    """Without the columns that are empty in all rows."""
    kept = [column for column, _ in enumerate(table.columns) if any(row[column] for row in table.rows)]
    rows = [[row[column] for column in kept] for row in table.rows]
    return replace(table, columns=[table.columns[column] for column in kept], rows=rows)


def smallest(found: Sequence[T]) -> Sequence[T]:
    """All in their order, or the SHOWN with the smallest p."""
    return found if len(found) <= SHOWN else sorted(found, key=attrgetter("p_holm"))[:SHOWN]
