"""Finds the lines of a log in which a program counts its episodes.

A grid's `progress: {pattern: ...}` is trusted. Without one, a counter is trusted only if its total is the planned
number, and that number is not small.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

FEWEST_GUESSED = 10
"""planned episodes; a smaller total proves nothing, since loading four shards of a checkpoint also counts up to 4"""
TAIL = 131072
"""bytes at the end of a log that are searched for a counter"""
LONGEST_LINE = 1000
"""characters of a line that are looked at"""
_BAR = (
    r"^\s*\[\s*([0-9]{1,15})/([0-9]{1,15})\]"  # [   7/100] stairs_rough_ep0006  FELL
    r"|\|\s*([0-9]{1,15})/([0-9]{1,15})\s*\[[0-9]+:[0-9]"  # 7%|▋    | 7/100 [00:12<02:33, 1.65s/it]
)
_ESCAPE = r"""(?x)
      \x1b\[ (?P<numbers>[0-?]*) [ -/]* (?P<verb>[@-~])     # control sequence
    | \x1b[\]PX^_] [^\x07\x1b]* (?:\x07|\x1b\\|\Z|(?=\x1b)) # title, device and other strings
    | \x1b\[ [0-?]* [ -/]* \Z                               # cut off
    | \x1b [ -/]* [0-~]?                                    # everything else that starts with ESC
"""
_GOES_ON_BY_ITSELF = r"(?<![0-9.:])[0-9]+[.:][0-9.:]*"
"""a clock or a rate"""


def escape() -> re.Pattern[str]:
    return re.compile(_ESCAPE)


def with_line_ends(data: bytes) -> bytes:
    """A log in which a carriage return or a NUL ends a line, too, as a newline does."""
    return data.replace(b"\r", b"\n").replace(b"\0", b"\n")


def shown(line: str) -> str:
    """What a line shows that was drawn over and over, after a carriage return each time: the last drawing."""
    return next((drawn for drawn in reversed(line.split("\r")) if drawn.strip()), "")


def lines(tail: bytes, *, cut: bool = False, longest: int = LONGEST_LINE) -> Iterator[str]:
    """The lines of a log's end, without escape codes. A carriage return also ends a line. `cut`: the first line is not
    whole.
    """
    pieces = with_line_ends(tail).split(b"\n")
    for piece in pieces[1:] if cut else pieces:
        text = piece.decode("utf-8", "replace")
        yield (escape().sub("", text) if "\x1b" in text else text)[:longest]


def guess(line: str, count: int) -> int | None:
    """The number of episodes that a bar or a bracket up to `count` shows."""
    if count < FEWEST_GUESSED or f"/{count}" not in line:
        return None
    match = re.search(_BAR, line)
    if not match:
        return None
    done, total = (int(text) for text in match.groups() if text is not None)
    return done if total == count and done <= total else None


class Counted:
    """Finds what one program counts: by the grid's pattern, else by a bar up to the planned number."""

    def __init__(self, pattern: str, count: int) -> None:
        self._count = count
        self._guesses = not pattern
        try:
            self._pattern = re.compile(pattern) if pattern else None
        except (re.error, RecursionError, OverflowError):
            self._pattern = None  # this older Python can't read the pattern, so nothing is found

    def counts(self, line: str) -> list[str]:
        """The counters in a line, without clocks and rates, which change even if nothing happens."""
        if self._pattern:
            return [re.sub(_GOES_ON_BY_ITSELF, "", match.group()) for match in self._pattern.finditer(line)]
        done = guess(line, self._count) if self._guesses else None
        return [] if done is None else [str(done)]

    def advanced(self, log: Sequence[str]) -> int:
        """The number of lines up to the last one whose counter has changed."""
        before, last = None, 0
        for number, line in enumerate(log, 1):
            for count in self.counts(line):
                if count != before:
                    last = number
                before = count
        return last
