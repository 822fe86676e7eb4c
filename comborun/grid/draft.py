"""A grid file as far as it is right: its typed keys, and where in the file each of them stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from comborun.grid.yaml_tree import Scalar, Source

if TYPE_CHECKING:
    from comborun.errors import Problem
    from comborun.grid.about import AboutKeys
    from comborun.grid.model import GridFile, Layer

Path = tuple[str | int, ...]
"""the steps to a place in the file: keys, and numbers that count entries from 0"""


@dataclass(frozen=True)
class Draft:
    """A grid file as far as it is right."""

    source: Source
    """without what was cut out"""
    file: GridFile
    broken: frozenset[str]
    """top-level keys in which something was wrong: what is missing there says nothing"""
    problems: tuple[Problem, ...]
    about: AboutKeys | None = None
    """what its preset says of the program"""

    @property
    def layers(self) -> tuple[tuple[Path, Layer], ...]:
        """The file itself and its overrides, each with its path; of two that set the same the later one holds."""
        return ((), self.file), *((("overrides", index), entry) for index, entry in enumerate(self.file.overrides))

    def at_key(self, path: Path, message: str, hint: str = "") -> Problem:
        """A problem with the key that ends `path`; without a step, with the file as a whole."""
        return self.source.problem(self.source.key_place(*path) if path else None, message, hint)

    def at_piece(self, path: Path, piece: str, message: str, hint: str = "") -> Problem:
        """A problem with a piece of the text at `path`: where the piece stands, if it can be found there."""
        tree = self.source.at(*path)
        place = self.source.locate(tree, piece) if isinstance(tree, Scalar) else tree.place
        return self.source.problem(place, message, hint)
