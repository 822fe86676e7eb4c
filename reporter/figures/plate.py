"""A figure of the report: drawings side by side, each of which a page may also place by itself. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from comborun.reporter.figures.inline import View, parts
from comborun.reporter.figures.sheet import Sheet, drawing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

GAP = 0.3
"""inches between drawings"""
ABREAST = 3
"""drawings in a row of a file"""


@dataclass(frozen=True)
class Drawing:
    """Something of a size in inches, and how to draw it onto a sheet with its corner at a place."""

    width: float
    height: float
    draw: Callable[[Sheet, float, float], None]


@dataclass(frozen=True)
class Drawn:
    files: Mapping[str, bytes]
    """by name"""
    svgs: tuple[str, ...]
    """to stand inside a page: the key, if there is one, then each drawing"""


@dataclass(frozen=True, eq=False)
class Plate:
    name: str
    """of its files, and the anchor in a page"""
    title: str
    note: str
    """what it shows and how to read it; plain text"""
    drawings: tuple[Drawing, ...]
    key: Drawing | None = None
    """what the colours mean"""

    def draw(self) -> Drawn:
        """The files, and every part by itself, so that a page can set them abreast or below one another."""
        rows = [self.drawings[start : start + ABREAST] for start in range(0, len(self.drawings), ABREAST)]
        if self.key:
            rows.insert(0, (self.key,))
        width = max(sum(part.width for part in row) + GAP * (len(row) - 1) for row in rows)
        height = sum(max(part.height for part in row) for row in rows) + GAP * (len(rows) - 1)
        with drawing():
            sheet = Sheet(width + GAP, height + GAP)
            views = list(_set(sheet, rows))
            files = sheet.files()
            sheet.clear()
        return Drawn(
            {f"{self.name}.{ending}": content for ending, content in files.items()},
            parts(files["svg"].decode("utf-8"), views),
        )


def _set(sheet: Sheet, rows: Sequence[Sequence[Drawing]]) -> Iterator[View]:
    """Draws row below row, and tells where each drawing lies."""
    top, count = GAP / 2, 0
    for row in rows:
        left = GAP / 2
        for part in row:
            sheet.part = f"part{count}"
            part.draw(sheet, left, top)
            yield View(sheet.part, left, top, part.width, part.height)
            left += part.width + GAP
            count += 1
        top += max(part.height for part in row) + GAP
