"""What the host is told: which files this machine has, and how it wants some of them. Pure."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Literal

from comborun.rules.names import AFTER, RUN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comborun.remote.fetch.answer import Piece


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
        """Standard input for the host. With `trusting`, one digest stands for all attempts that have their end."""
        ends = {name: _ends(name, self.held) for name in (*self.queue, AFTER)} if trusting else {}
        final = {
            PurePosixPath(RUN.attempt(name, number).directory)
            for name, last in ends.items()
            for number in range(1, last + 1)
        }
        closed = {path: held for path, held in self.held.items() if not final.isdisjoint(path.parents)}
        first, come = self.part or (None, 0)
        document = {
            "known": [ends.get(name, 0) for name in self.queue] if closed else [],
            "after": ends.get(AFTER, 0),
            "closed": digest(closed) if closed else "",
            "have": {str(path): (at.size, at.changed) for path, at in self.held.items() if path not in closed},
            "again": {str(path): how for path, how in self.again.items()},
            "part": first and (str(first.path), come, first.size, first.changed),
        }
        return json.dumps(document, separators=(",", ":")).encode()


def digest(held: Mapping[PurePosixPath, Held]) -> str:
    """One SHA-256 over names, sizes and times, as host/fetch.py makes it."""
    lines = (b"%d %d %s\0" % (entry.size, entry.changed, os.fsencode(path)) for path, entry in held.items())
    return hashlib.sha256(b"".join(sorted(lines))).hexdigest()


def _ends(name: str, held: Mapping[PurePosixPath, Held]) -> int:
    """How many attempts of a session, from the first on, have their end."""
    number = 0
    while PurePosixPath(RUN.attempt(name, number + 1).end) in held:
        number += 1
    return number
