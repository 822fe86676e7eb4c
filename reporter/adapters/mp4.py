"""Whether an mp4 was finished: a file whose program was ended lacks its index, the `moov` box, and plays nowhere."""

from __future__ import annotations

import struct
from typing import BinaryIO

BOXES_AT_MOST = 10_000
"""of the outermost; a finished video has a handful"""

CUT = "cut off within its moov box"
NO_MOOV = "no moov box: its program was ended before it closed the file"
NO_MP4 = "no mp4 file"
_TO_THE_END, _LONG = 0, 1


def fault(stream: BinaryIO, size: int) -> str:
    """What is wrong with a video of `size` bytes; empty when it can be played as far as its boxes tell."""
    if not size:
        return "empty"
    position, first = 0, b""
    for _ in range(BOXES_AT_MOST):
        stream.seek(position)
        box = _box(stream.read(16))
        if box is None:
            break
        length, kind = box
        first = first or kind
        if kind == b"moov":
            return "" if length == _TO_THE_END or position + length <= size else CUT
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
