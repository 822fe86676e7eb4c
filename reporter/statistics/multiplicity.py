"""Many comparisons at once: adjusted p-values, and letters that say which policies are not told apart. Pure."""

from __future__ import annotations

from string import ascii_letters
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def holm(ps: Sequence[float]) -> tuple[float, ...]:
    """Adjusted p-values in the order of `ps`; the chance of one false claim or more among all is at most the level,
    whatever the dependence. S. Holm, Scandinavian Journal of Statistics 6 (1979) 65-70."""
    adjusted = [0.0] * len(ps)
    largest = 0.0
    for rank, index in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        largest = max(largest, min(1.0, (len(ps) - rank) * ps[index]))
        adjusted[index] = largest
    return tuple(adjusted)


def letters(ranked: Sequence[str], different: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Name -> letters, for names ranked best first and the pairs of them that are told apart: two names share a letter
    exactly when they are not.

    H.-P. Piepho, Journal of Computational and Graphical Statistics 13 (2004) 456-466: insert and absorb.
    """
    columns = [frozenset(ranked)]
    for a, b in different:
        split = [column - {name} for column in columns if {a, b} <= column for name in (a, b)]
        columns = _absorbed([column for column in columns if not {a, b} <= column] + split)
    rank = {name: place for place, name in enumerate(ranked)}
    columns.sort(key=lambda column: sorted(rank[name] for name in column))
    marks = [_mark(place) for place in range(len(columns))]
    return tuple(
        (name, "".join(mark for mark, column in zip(marks, columns, strict=True) if name in column)) for name in ranked
    )


def _absorbed(columns: Sequence[frozenset[str]]) -> list[frozenset[str]]:
    """Without the columns that another one holds."""
    unique = list(dict.fromkeys(columns))
    return [column for column in unique if not any(column < other for other in unique)]


def _mark(place: int) -> str:
    """a .. z, A .. Z, then a' .. and so on."""
    rounds, letter = divmod(place, len(ascii_letters))
    return ascii_letters[letter] + "'" * rounds
