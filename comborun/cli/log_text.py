"""Logs as text for people: of a line that was drawn over and over, the last drawing, once."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING, NamedTuple

from comborun.rules.counting import shown
from comborun.text import harmless

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from comborun.remote.logs import LogPiece

_CLEAR = "\r\x1b[K"


class _Log:
    """The part of one log that is not a whole line yet."""

    def __init__(self) -> None:
        self.attempt = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    def lines(self, data: bytes) -> list[str]:
        """The lines that these bytes complete."""
        *whole, rest = (self._rest + self._decoder.decode(data)).split("\n")
        self._rest = "\r".join(rest.split("\r")[-2:])  # a newline may follow the last carriage return
        return [_safe(line) for line in whole]

    @property
    def drawn(self) -> str:
        """What stands in the line that has no end yet."""
        return _safe(self._rest)

    def end(self) -> list[str]:
        """That line, as a whole one: nothing more comes."""
        last, self._rest = self.drawn, ""
        return [last] if last else []


def _safe(line: str) -> str:
    return harmless(shown(line) or line.strip("\r"), keep="\t")


class NamedLine(NamedTuple):
    session: str
    text: str


def named_lines(pieces: Iterable[LogPiece]) -> Iterator[NamedLine]:
    """The lines of several logs. An attempt without a newline at its end is not joined with the next one."""
    logs: dict[str, _Log] = {}
    for piece in pieces:
        name = piece.log.session
        log = logs.setdefault(name, _Log())
        last = log.end() if log.attempt not in (0, piece.log.attempt) else []
        log.attempt = piece.log.attempt
        lines = [*last, *log.lines(piece.data), *(log.end() if piece.log.ended else ())]
        yield from (NamedLine(name, line) for line in lines)
    for name, log in logs.items():
        yield from (NamedLine(name, line) for line in log.end())


def drawn(pieces: Iterable[LogPiece], width: int) -> Iterator[str]:
    """What to write to a terminal for one log: whole lines, and a line that has no end yet in place."""
    log, open_line = _Log(), False
    for piece in pieces:
        last = log.end() if log.attempt not in (0, piece.log.attempt) else []
        log.attempt = piece.log.attempt
        for line in (*last, *log.lines(piece.data)):
            yield f"{_CLEAR if open_line else ''}{line}\n"
            open_line = False
        if log.drawn and piece.data:
            yield f"{_CLEAR if open_line else ''}{log.drawn[: max(1, width - 1)]}"
            open_line = True
    if open_line:
        yield f"{_CLEAR}{log.drawn}\n"
