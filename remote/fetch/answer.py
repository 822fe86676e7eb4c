"""What fetch.sh answers: which files have changed, and their bytes, in frames that any name and any byte survive.

Pure. Names come from the host and are not trusted: only what can be a file of a run directory gets through.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import NamedTuple

from comborun.errors import HostError

HEAD = b"comborun-fetch 1"

_COMPONENT = rb"[^/\0.][^/\0]*"
_ATTEMPT = rb"sessions/[A-Za-z0-9_-]+/attempt-[1-9][0-9]{0,8}"
_ALLOWED = re.compile(
    rb"(?:id|digest|run\.json|plan-[0-9]{1,9}\.json|grid\.yaml|canary\.json"
    rb"|dispatch/(?:queue\.tsv|slots|multiplexer|stopped|journal|usage\.tsv|done)"
    rb"|" + _ATTEMPT + rb"/(?:claim|grant|begin|stop|end|log|videos\.tsv"
    rb"|out/" + _COMPONENT + rb"(?:/" + _COMPONENT + rb")*))"
)


@dataclass(frozen=True)
class Piece:
    """A file that has changed, or a part of it. `data` is None when it did not arrive as it was announced."""

    path: PurePosixPath
    size: int
    changed: int
    """microseconds since 1970, on the host's clock"""
    start: int
    """where `data` belongs; what is before it is at the asker's"""
    sum: str
    """SHA-256 of all `size` bytes; `-` in what continues a piece"""
    data: bytes | None


class Skipped(NamedTuple):
    """A result that is not sent."""

    path: PurePosixPath
    reason: str


@dataclass(frozen=True)
class Answer:
    pieces: tuple[Piece, ...]
    gone: tuple[PurePosixPath, ...]
    """what the asker has and the host has not"""
    skipped: tuple[Skipped, ...]
    differs: bool
    """what the asker holds to be final is not as it is here: nothing else was said"""
    more: bool
    complete: bool
    """False when the stream was cut off"""


@dataclass(frozen=True)
class _Announced:
    path: PurePosixPath
    size: int
    changed: int
    start: int
    length: int
    sum: str

    def piece(self, data: bytes | None) -> Piece:
        return Piece(self.path, self.size, self.changed, self.start, self.sum, data)


def is_run_file(name: bytes) -> bool:
    """Whether a file of this name, relative to a run directory, may be fetched."""
    return _ALLOWED.fullmatch(name) is not None


def safe_path(name: bytes) -> PurePosixPath:
    """The path of a file of a run directory. Raises HostError for every other name."""
    if not is_run_file(name):
        raise HostError(f"the host named a file that no run has: {os.fsdecode(name)!r}; nothing was written for it")
    return PurePosixPath(os.fsdecode(name))


def parse_answer(stream: bytes, mark: bytes) -> Answer:
    """Read an answer as far as it goes. Raises HostError when it is none."""
    reader = _Reader(stream, mark)
    if reader.word() != HEAD:
        raise HostError(
            "the host's answer to a fetch can't be read", "was the run made by another version of comborun?"
        )
    reader.read()
    return reader.answer()


class _Reader:
    def __init__(self, stream: bytes, mark: bytes) -> None:
        self._stream = stream
        self._mark = mark
        self._at = 0
        self._pieces: list[Piece] = []
        self._announced: list[_Announced] = []
        self._gone: list[PurePosixPath] = []
        self._skipped: list[Skipped] = []
        self._differs = False
        self._over: bytes | None = None

    def answer(self) -> Answer:
        return Answer(
            pieces=tuple(self._pieces),
            gone=tuple(self._gone),
            skipped=tuple(self._skipped),
            differs=self._differs,
            more=self._over == b"1",
            complete=self._over is not None,
        )

    def word(self) -> bytes | None:
        """The next word, without the NUL that ends it; None at the end."""
        end = self._stream.find(b"\0", self._at)
        if end < 0:
            return None
        word, self._at = self._stream[self._at : end], end + 1
        return word

    def read(self) -> None:
        while self._over is None and (line := self.word()) is not None:
            verb, _, rest = line.partition(b" ")
            match verb:
                case b"file":
                    self._announced.append(_announced(rest))
                case b"data":
                    if not self._data():
                        return
                case b"gone":
                    self._gone.append(safe_path(rest.partition(b" ")[2]))
                case b"skipped":
                    reason, _, name = rest.partition(b" ")
                    self._skipped.append(Skipped(safe_path(name), _REASONS.get(reason, "not sent")))
                case b"differs":
                    self._differs = True
                case b"over":
                    self._over = rest
                case _:
                    raise HostError(f"the host's answer to a fetch holds a word that nobody knows: {verb[:40]!r}")

    def _data(self) -> bool:
        """Share the bytes out among the announced files; False when the stream ends within them."""
        begin, length = self._at, sum(entry.length for entry in self._announced)
        end = begin + length
        whole = self._stream.startswith(self._mark, end)
        if not whole and (end := self._stream.find(self._mark, begin)) < 0:
            return False
        for entry in self._announced:
            data = self._stream[begin : begin + entry.length] if whole else None
            self._pieces.append(entry.piece(data))
            begin += entry.length
        self._announced = []
        self._at = end + len(self._mark)
        return True


_REASONS = {b"broken": "a link that leads nowhere", b"unreadable": "can't be read: Permission denied"}
"""the words of reporter/collect.py, so that the report is the same from a mirror"""


def _announced(text: bytes) -> _Announced:
    numbers, _, name = text.partition(b" ")
    match = re.fullmatch(rb"([0-9]{1,18}),(-?[0-9]{1,18}),([0-9]{1,18}),([0-9]{1,18}),([0-9a-f]{64}|-)", numbers)
    if not match:
        raise HostError(f"the host announced a file in a way that can't be read: {text[:200]!r}")
    size, changed, start, length = map(int, match.groups()[:4])
    return _Announced(safe_path(name), size, changed, start, length, match[5].decode())
