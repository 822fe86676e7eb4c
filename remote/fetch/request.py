"""What fetch.sh is told: which files this machine has, and how it wants some of them. Pure."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Literal

from comborun.layout import AFTER, RUN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from remote.fetch.answer import Piece


@dataclass(frozen=True)
class Held:
    """What the asker has of a file."""

    size: int
    changed: int
    """microseconds since 1970, on the host's clock"""


@dataclass(frozen=True)
class Request:
    """What the asker has, and how it wants some files."""

    held: Mapping[PurePosixPath, Held]
    queue: tuple[str, ...]
    """the sessions in queue order, as far as the asker knows it"""
    again: Mapping[PurePosixPath, Literal["whole", "skip"]]
    part: tuple[Piece, int] | None = None
    """what announced a file of which only this many bytes have come"""

    def encode(self, *, trusting: bool) -> bytes:
        """Standard input for fetch.sh. With `trusting`, one digest stands for all attempts that have their end."""
        ends = [_ends(name, self.held) for name in (*self.queue, AFTER)] if trusting else []
        final = {
            RUN.attempt(name, number).directory
            for name, last in zip((*self.queue, AFTER), ends, strict=False)
            for number in range(1, last + 1)
        }
        closed = {path: held for path, held in self.held.items() if not final.isdisjoint(path.parents)}
        lines = [*self._open(closed), b"."]
        if closed:
            lines = [b"known " + b",".join(b"%d" % last for last in ends), b"closed " + digest(closed).encode(), *lines]
        return b"\n".join(lines) + b"\n"

    def _open(self, closed: Iterable[PurePosixPath]) -> Iterator[bytes]:
        for path in self.held.keys() - closed:
            held = self.held[path]
            yield b"have %d,%d %s" % (held.size, held.changed, _word(path))
        for path, how in self.again.items():
            yield b"again %s %s" % (how.encode(), _word(path))
        if self.part:
            first, come = self.part
            yield b"part %d,%d,%d %s" % (come, first.size, first.changed, _word(first.path))


def digest(held: Mapping[PurePosixPath, Held]) -> str:
    """One SHA-256 over names, sizes and times, as fetch.sh makes it with `stat | sort | sha256sum`."""
    lines = (b"%d %s %s\0" % (entry.size, _stamp(entry.changed), os.fsencode(path)) for path, entry in held.items())
    return hashlib.sha256(b"".join(sorted(lines))).hexdigest()


def _stamp(changed: int) -> bytes:
    seconds, micros = divmod(abs(changed), 1_000_000)
    return b"%s%d.%06d" % (b"-" if changed < 0 else b"", seconds, micros)


def _ends(name: str, held: Mapping[PurePosixPath, Held]) -> int:
    """How many attempts of a session, from the first on, have their end."""
    number = 0
    while RUN.attempt(name, number + 1).end in held:
        number += 1
    return number


def _word(path: PurePosixPath) -> bytes:
    return os.fsencode(path).replace(b"%", b"%25").replace(b"\n", b"%0A")
