"""What a file of this machine holds when it is shipped: its bytes, with CRLF turned to LF where they are text."""

from __future__ import annotations

import codecs
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

CHUNK = 1 << 20


@dataclass(frozen=True)
class Content:
    size: int
    """bytes as shipped"""
    sha256: str
    converted: bool
    """whether CRLF becomes LF"""


def measure(path: Path) -> Content:
    """Read a file once, a chunk at a time. Raises OSError."""
    plain, lines = _Sum(), _Sum()
    decoder = codecs.getincrementaldecoder("utf-8")()
    text = True

    def seen(chunks: Iterable[bytes]) -> Iterator[bytes]:
        nonlocal text
        for chunk in chunks:
            plain.add(chunk)
            text = text and b"\0" not in chunk and _decodes(decoder, chunk)
            if text:
                yield chunk

    for chunk in to_lf(seen(read_chunks(path))):
        lines.add(chunk)
    converted = text and _decodes(decoder, b"", final=True) and lines.size != plain.size
    chosen = lines if converted else plain
    return Content(chosen.size, chosen.digest, converted)


def contents(path: Path, *, converted: bool) -> Iterator[bytes]:
    """The bytes that are shipped, a chunk at a time. Raises OSError."""
    chunks = read_chunks(path)
    return to_lf(chunks) if converted else chunks


def read_chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            yield chunk


def to_lf(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """CRLF as LF, wherever the chunks are cut; a CR that stands alone stays."""
    held = b""
    for chunk in chunks:
        whole = held + chunk
        held = b"\r" if whole.endswith(b"\r") else b""
        yield (whole[:-1] if held else whole).replace(b"\r\n", b"\n")
    if held:
        yield held


def _decodes(decoder: codecs.IncrementalDecoder, chunk: bytes, *, final: bool = False) -> bool:
    try:
        decoder.decode(chunk, final)
    except UnicodeDecodeError:
        return False
    return True


class _Sum:
    def __init__(self) -> None:
        self.size = 0
        self._hash = hashlib.sha256()

    def add(self, chunk: bytes) -> None:
        self.size += len(chunk)
        self._hash.update(chunk)

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()
