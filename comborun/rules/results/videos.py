"""Which videos an attempt left, and whether each can be played. Pure.

An mp4 whose program was ended lacks its index, the `moov` box, and plays nowhere.
"""

from __future__ import annotations

import re
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO, Iterable, Tuple

    Row = Tuple[int, str, str]
    """bytes, a word of FAULTS, and the path"""

BOXES_AT_MOST = 10_000
"""outermost boxes; a finished video has a handful"""
WHOLE, EMPTY, CUT, NO_MOOV, NO_MP4 = "ok", "empty", "cut", "no_moov", "no_mp4"
FAULTS = {
    WHOLE: "",
    EMPTY: "empty",
    CUT: "cut off within its moov box",
    NO_MOOV: "no moov box: its program was ended before it closed the file",
    NO_MP4: "no mp4 file",
}
"""word of videos.tsv -> the fault in words"""
_TO_THE_END, _LONG = 0, 1


def fault(name: str, stream: BinaryIO, size: int) -> str:
    """The fault of a video of `size` bytes, as a word of FAULTS. Only mp4 files are checked."""
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
    """Length and kind of a box, or None."""
    if len(header) < 8:
        return None
    length, kind = struct.unpack(">I4s", header[:8])
    if length == _LONG:
        if len(header) < 16:
            return None
        length = struct.unpack(">Q", header[8:])[0]
    return (length, kind) if length == _TO_THE_END or length >= 8 else None


def render(rows: Iterable[Row]) -> str:
    """The text of videos.tsv. Names that hold a line break or TAB have no line."""
    return "".join(f"{size}\t{word}\t{path}\n" for size, word, path in rows if not re.search("[\x00-\x1f\x7f]", path))


def parse(text: str) -> list[Row]:
    """The rows of a videos.tsv. Lines that are cut off are skipped."""
    rows = (line.split("\t") for line in text.split("\n"))
    return [
        (int(row[0]), row[1], row[2])
        for row in rows
        if len(row) == 3 and row[0].isdecimal() and row[1] in FAULTS and row[2]
    ]
