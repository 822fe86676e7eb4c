"""Result files as people's programs and shells leave them -> UTF-8 without a mark in front."""

from __future__ import annotations

import io
from typing import BinaryIO

from comborun.rules.episodes import MARK, WIDE_MARKS, packing

UTF16_LIMIT = 256 << 20
"""bytes; what is not UTF-8 has to be held in memory as a whole"""


class NotPlainError(Exception):
    """The file is no text that could be read."""


def plain(stream: BinaryIO) -> BinaryIO:
    """The stream from behind its byte order mark, UTF-16 turned into UTF-8; raises NotPlainError for what is packed."""
    start = stream.read(8)
    if name := packing(start):
        raise NotPlainError(f"packed with {name}: unpack it first")
    if start.startswith(WIDE_MARKS):
        stream.seek(0)
        return _from_utf16(stream)
    stream.seek(len(MARK) if start.startswith(MARK) else 0)
    return stream


def _from_utf16(stream: BinaryIO) -> BinaryIO:
    content = stream.read(UTF16_LIMIT + 1)
    if len(content) > UTF16_LIMIT:
        raise NotPlainError(f"UTF-16 and longer than {UTF16_LIMIT >> 20} MiB: convert it to UTF-8 first")
    return io.BytesIO(content.decode("utf-16", "replace").encode("utf-8", "replace"))
