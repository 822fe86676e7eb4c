"""What the host answers to a fetch: which files have changed, and their bytes.

Pure. Names come from the host and are not trusted: only what can be a file of a run directory gets through.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

from comborun.errors import HostError

if TYPE_CHECKING:
    from collections.abc import Iterator

_COMPONENT = rb"[^/\0.][^/\0]*"
_ATTEMPT = rb"sessions/[A-Za-z0-9_-]+/attempt-[1-9][0-9]{0,8}"
_ALLOWED = re.compile(
    rb"(?:id|digest|run\.json|plan-[0-9]{1,9}\.json|grid\.yaml|canary\.json"
    rb"|dispatch/(?:queue\.tsv|slots|multiplexer|stopped|journal|usage\.tsv|done)"
    rb"|" + _ATTEMPT + rb"/(?:claim|grant|begin|stop|end|log|videos\.tsv"
    rb"|out/" + _COMPONENT + rb"(?:/" + _COMPONENT + rb")*))"
)
_LARGEST = 1 << 60
_REASONS = {"broken": "a link that leads nowhere", "unreadable": "can't be read: Permission denied"}
"""the words of reporter/collect.py, so that the report is the same from a mirror"""


@dataclass(frozen=True)
class Piece:
    """A file that has changed, or a part of it."""

    path: PurePosixPath
    size: int
    changed: int
    """microseconds since 1970, on the host's clock"""
    start: int
    """where `data` belongs; what is before it is at the asker's"""
    sum: str
    """SHA-256 of all `size` bytes; `-` in what continues a piece"""
    data: bytes


class Skipped(NamedTuple):
    """A result that is not sent."""

    path: PurePosixPath
    reason: str


@dataclass(frozen=True)
class Answer:
    pieces: tuple[Piece, ...]
    """those that have arrived whole"""
    gone: tuple[PurePosixPath, ...]
    """what the asker has and the host has not"""
    skipped: tuple[Skipped, ...]
    differs: bool
    """what the asker holds to be final is not as it is here: nothing else was said"""
    more: bool
    complete: bool
    """False when the stream was cut off"""


def is_run_file(name: bytes) -> bool:
    """Whether a file of this name, relative to a run directory, may be fetched."""
    return _ALLOWED.fullmatch(name) is not None


def safe_path(name: str) -> PurePosixPath:
    """The path of a file of a run directory. Raises HostError for every other name."""
    if not is_run_file(os.fsencode(name)):
        raise HostError(f"the host named a file that no run has: {name!r}; nothing was written for it")
    return PurePosixPath(name)


def parse_answer(stream: bytes) -> Answer:
    """Read an answer as far as it goes. Raises HostError when it is none."""
    line, newline, data = stream.partition(b"\n")
    if not newline:
        return Answer((), (), (), differs=False, more=False, complete=False)
    try:
        head = json.loads(line)
        announced = list(head["pieces"])
        pieces = tuple(_pieces(announced, data))
        return Answer(
            pieces=pieces,
            gone=tuple(map(safe_path, head["gone"])),
            skipped=tuple(Skipped(safe_path(path), _REASONS.get(why, "not sent")) for path, why in head["skipped"]),
            differs=head["differs"] is True,
            more=head["more"] is True,
            complete=len(pieces) == len(announced),
        )
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise HostError(
            f"the host's answer to a fetch can't be read: {error!r:.200}", "was the run made by another comborun?"
        ) from error


def _pieces(announced: list[Any], data: bytes) -> Iterator[Piece]:
    """Share the bytes out among what was announced, as long as they last."""
    at = 0
    for path, size, changed, start, length, total in announced:
        numbers = size, abs(changed), start, length
        if not all(type(number) is int and 0 <= number < _LARGEST for number in numbers):
            raise ValueError(numbers)
        if not re.fullmatch("[0-9a-f]{64}|-", total):
            raise ValueError(total)
        safe = safe_path(path)
        if at + length > len(data):
            return
        yield Piece(safe, size, changed, start, total, data[at : at + length])
        at += length
