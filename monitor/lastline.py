"""What a terminal would show as the last line of a log, without anything that could act on ours."""

from __future__ import annotations

import re
import unicodedata

from comborun.text import ESCAPE, INVISIBLE

LONGEST = 200
"""characters that are kept of a line"""
_FARTHEST = 1000
"""columns: programs that jump further to the right are not followed"""


def last_line(log: bytes) -> str:
    """The last line that shows anything: `\\r` and cursor moves overwrite as they do on a terminal."""
    for line in reversed(log.decode("utf-8", "replace").split("\n")):
        shown = visible(line)
        if shown:
            return shown
    return ""


def visible(line: str) -> str:
    """One line as it ends up on a terminal; no control characters, no escape sequences, bounded."""
    return _bounded(_overwritten(line).strip())


def indented(line: str) -> str:
    """The same with the blanks before it, which tell the lines of a traceback apart."""
    return _bounded(_overwritten(line).rstrip())


def _overwritten(line: str) -> str:
    cells: list[str] = []
    column = position = 0
    while position < len(line):
        escape = ESCAPE.match(line, position)
        if escape:
            column = _moved(cells, column, escape)
            position = escape.end()
        else:
            column = _written(cells, column, line[position])
            position += 1
    return "".join(cells)


def _written(cells: list[str], column: int, character: str) -> int:
    """Put one character into `cells`; the column after it."""
    if character == "\r":
        return 0
    if character == "\b":
        return max(0, column - 1)
    if character == "\t":
        character = " "
    if unicodedata.category(character) in INVISIBLE:
        return column
    cells.extend(" " * (column - len(cells)))
    cells[column : column + 1] = [character]
    return column + 1


def _moved(cells: list[str], column: int, escape: re.Match[str]) -> int:
    """Do what an escape sequence does within a line; the column after it."""
    verb, numbers = escape["verb"], escape["numbers"] or ""
    digits = numbers.split(";")[0]
    count = min(int(digits[:6]), _FARTHEST) if digits.isdecimal() else 0
    if verb == "K":
        _erase(cells, column, count)
    elif verb == "C":
        return min(_FARTHEST, column + max(1, count))
    elif verb == "D":
        return max(0, column - max(1, count))
    elif verb == "G":
        return max(0, count - 1)
    return column


def _erase(cells: list[str], column: int, mode: int) -> None:
    """0: to the end of the line, 1: up to the cursor, 2: all of it."""
    if mode == 0:
        del cells[column:]
    else:
        stop = len(cells) if mode == 2 else min(column + 1, len(cells))
        cells[:stop] = " " * stop


def _bounded(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
