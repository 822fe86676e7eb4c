"""A program's log as a person would see it, line by line.

Progress bars overwrite their line with carriage returns, terminals are told about colours and tab stops, and what was
printed is not always text.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator

LINE_LIMIT = 4 << 20
"""bytes; the rest of a longer line is passed over without being held in memory"""

_ESCAPE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # colours, cursor, tab stops
    r"|\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # titles
    r"|[ -/]*[0-~])"  # ESC H and its like
)
_END = re.compile(rb"[\r\n]")


def lines(stream: BinaryIO) -> Iterator[tuple[int, str]]:
    """Each piece between newlines and carriage returns with the number of the line that it stands on, from 1.

    Pieces that are blank are left out.
    """
    number = 1
    for piece, end in _pieces(stream):
        text = _ESCAPE.sub("", piece.decode("utf-8", "replace"))
        if text and not text.isspace():
            yield number, text
        number += end == b"\n"


def _pieces(stream: BinaryIO) -> Iterator[tuple[bytes, bytes]]:
    """Bytes and what ended them; the last ones have no end."""
    rest = b""
    while chunk := stream.read(1 << 16):
        start = 0
        for end in _END.finditer(chunk):
            yield (rest + chunk[start : end.start()])[:LINE_LIMIT], end[0]
            rest, start = b"", end.end()
        if len(rest) < LINE_LIMIT:
            rest += chunk[start:]
    if rest:
        yield rest[:LINE_LIMIT], b""
