"""The last part of the probe's answer: what `tail -v -c TAIL` printed for several logs.

The logs are untrusted: a program may print lines that look like the headers. So a piece is measured by the size that
the probe declared for its log, and only where a log may have grown since then is the next header searched for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_HEADER = re.compile(rb"(?:\A|\n)==> (?:[^\n]*/)?(sessions/[A-Za-z0-9_-]+/attempt-[0-9]+/log) <==\n")
_LONGEST_HEADER = 4096 + 256


def split_tails(stream: bytes, sizes: Mapping[str, int], bounds: Mapping[str, int]) -> dict[str, bytes]:
    """The last bytes of each log, by its path below the run directory; a log that could not be read is left out.

    `bounds` is how many bytes of each were sent at most.
    """
    pieces: dict[str, bytes] = {}
    remaining = dict(sizes)
    header = _find(stream, 0, len(stream), remaining)
    while header:
        path = header[1].decode()
        tail = bounds[path]
        shortest = min(remaining.pop(path), tail)
        following = _following(stream, header.end(), (shortest, tail), remaining)
        stop = following.start() if following else len(stream)
        pieces[path] = stream[header.end() : stop][:tail]
        header = following
    return pieces


def _following(
    stream: bytes, start: int, bounds: tuple[int, int], remaining: Mapping[str, int]
) -> re.Match[bytes] | None:
    """The header that ends a piece of at least and at most `bounds` bytes."""
    shortest, longest = bounds
    found = _find(stream, start + shortest, start + longest, remaining)
    return found or _find(stream, start, len(stream), remaining)  # it was cut shorter after its size was taken


def _find(stream: bytes, start: int, stop: int, remaining: Mapping[str, int]) -> re.Match[bytes] | None:
    """The first header of a log in `remaining` that begins between `start` and `stop`, both included."""
    for found in _HEADER.finditer(stream, start, min(len(stream), stop + _LONGEST_HEADER)):
        if found.start() > stop:
            return None
        if found[1].decode() in remaining:
            return found
    return None
