"""Rows of a SQLite file, read only: no journal, lock or temporary file is ever written beside it."""

from __future__ import annotations

from comborun.rules.documents import numbered, rank
from comborun.rules.fields import FORMAT, TORN, UNREADABLE, RefusedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterator

    from comborun.rules.fields import Identity
    from comborun.rules.readers import Entry, Whole

ROWS_MOST = 1_000_000
_TABLES = """SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0
    AND name NOT LIKE 'sqlite~_%' ESCAPE '~' ORDER BY name LIMIT ?"""
"""no views and no virtual tables: these compute"""
_TABLES_MOST = 1000
_CELL_MOST = 1 << 20
"""bytes"""
_STEPS, _STEPS_MOST = 100_000, 20_000
"""of SQLite's machine between two looks, and looks at most: a file can't keep its reader busy for ever"""


def reading(place: str) -> Callable[[Whole], Iterator[Entry]]:
    """What reads the file at a place: by its path, since SQLite opens its files itself."""

    def read(file: Whole) -> Iterator[Entry]:
        return numbered(_rows(place, file.identity))

    return read


def _rows(place: str, identity: Identity) -> list[dict[str, Any]]:
    """Of the table that is most surely one of episodes. Raises RefusedError."""
    if not place:
        raise RefusedError(UNREADABLE, "a SQLite file can be read from a folder only")
    try:
        import sqlite3
        from urllib.parse import quote
    except ImportError as error:
        raise RefusedError(UNREADABLE, "a SQLite file, and this Python has no sqlite3") from error
    try:
        base = sqlite3.connect(f"file:{quote(place)}?mode=ro&immutable=1", uri=True)
        try:
            return _best(base, identity)
        finally:
            base.close()
    except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as error:
        if str(error) == "interrupted":
            raise RefusedError(UNREADABLE, "a SQLite file that takes too long to read") from error
        raise RefusedError(TORN, f"a SQLite file being written, or cut off: {error}") from error


def _best(base: Any, identity: Identity) -> list[dict[str, Any]]:
    looks = iter(range(_STEPS_MOST))
    base.set_progress_handler(lambda: next(looks, None) is None, _STEPS)
    base.text_factory = lambda data: data[:_CELL_MOST].decode("utf-8", "replace")
    names = [name for (name,) in base.execute(_TABLES, (_TABLES_MOST,)) if isinstance(name, str)]
    firsts = ((name, _select(base, name, 1)) for name in names)
    ranked = ((rank(rows, identity, name, 1), name) for name, rows in firsts if rows)
    best = min(((how, name) for how, name in ranked if how is not None), default=None)
    if best is None:
        shown = ", ".join(names[:5]) or "none"
        raise RefusedError(FORMAT, f"a SQLite file whose tables ({shown}) hold no episodes")
    rows = _select(base, best[1], ROWS_MOST + 1)
    if len(rows) > ROWS_MOST:
        raise RefusedError(UNREADABLE, f"its table {best[1]!r} has more than {ROWS_MOST} rows")
    return rows


def _select(base: Any, table: str, most: int) -> list[dict[str, Any]]:
    quoted = table.replace('"', '""')
    cursor = base.execute(f'SELECT * FROM "{quoted}" LIMIT ?', (most,))  # noqa: S608  # a name can't be a parameter
    names = [column[0] for column in cursor.description]
    return [{name: cell for name, cell in zip(names, row) if not isinstance(cell, bytes)} for row in cursor]
