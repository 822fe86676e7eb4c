"""Which videos an attempt left, and whether each can be played. Pure.

An mp4 whose program was ended lacks its index, the `moov` box, and plays nowhere.
"""

from __future__ import annotations

import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO, Iterable, Tuple

    Row = Tuple[int, str, str]
    """bytes, a word of FAULTS, and the path"""

BOXES_AT_MOST = 10_000
"""of the outermost; a finished video has a handful"""
WHOLE, EMPTY, CUT, NO_MOOV, NO_MP4 = "ok", "empty", "cut", "no_moov", "no_mp4"
FAULTS = {
    WHOLE: "",
    EMPTY: "empty",
    CUT: "cut off within its moov box",
    NO_MOOV: "no moov box: its program was ended before it closed the file",
    NO_MP4: "no mp4 file",
}
"""words of videos.tsv -> what is wrong"""
_TO_THE_END, _LONG = 0, 1


def fault(name: str, stream: BinaryIO, size: int) -> str:
    """What is wrong with a video of `size` bytes, as a word of FAULTS; files of other kinds are not looked into."""
    if not size:
        return EMPTY
    return _mp4(stream, size) if name.lower().endswith(".mp4") else WHOLE


def _mp4(stream: BinaryIO, size: int) -> str:
    position, first = 0, b""
    for _ in range(BOXES_AT_MOST):
        stream.seek(position)
        box = _box(stream.read(16))
        if box is None:
            break
        length, kind = box
        first = first or kind
        if kind == b"moov":
            return WHOLE if length == _TO_THE_END or position + length <= size else CUT
        if length == _TO_THE_END or position + length >= size:
            break
        position += length
    return NO_MOOV if first == b"ftyp" else NO_MP4


def _box(header: bytes) -> tuple[int, bytes] | None:
    """Length and kind of a box; None where there is none."""
    if len(header) < 8:
        return None
    length, kind = struct.unpack(">I4s", header[:8])
    if length == _LONG:
        if len(header) < 16:
            return None
        length = struct.unpack(">Q", header[8:])[0]
    return (length, kind) if length == _TO_THE_END or length >= 8 else None


def render(rows: Iterable[Row]) -> tuple[str, int]:
    """The text of videos.tsv, and how many it has no line for: a line break or TAB is in their names."""
    lines, unlisted = [], 0
    for size, word, path in rows:
        if any(ord(char) < 32 or ord(char) == 127 for char in path):
            unlisted += 1
        else:
            lines.append(f"{size}\t{word}\t{path}\n")
    return "".join(lines), unlisted


def parse(text: str) -> list[Row]:
    """The rows of a videos.tsv; what is no such line was cut off, and is passed over."""
    rows = (line.split("\t") for line in text.split("\n"))
    return [
        (int(row[0]), row[1], row[2])
        for row in rows
        if len(row) == 3 and row[0].isdecimal() and row[1] in FAULTS and row[2]
    ]
