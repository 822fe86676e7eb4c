"""Logs in parts, and the lines of a log that hold a word: a short script on the host for each, shared by all pages."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

from comborun.errors import HostError
from comborun.remote.logs import log_part
from comborun.rules.names import RunLayout
from comborun.text import harmless

if TYPE_CHECKING:
    from comborun.monitor.watch import Source

T = TypeVar("T")
PART = 64 << 10
"""bytes of one part"""
_BLOCK = 1 << 20
"""bytes of one part of a whole log"""
_SHARED_S = 0.9
"""seconds for which pages that ask the same share an answer"""
_KEPT = 64
"""answers that are kept"""
_FOUND_MOST = 200
"""lines that a search finds at most"""
_LINE_MOST = 400
"""characters of each"""
_SEARCH = """
[[ -f $1 && ! -L $1 ]] || exit 4
LC_ALL=C.UTF-8 grep -a -n -i -F -m "$3" -e "$2" -- "$1" | cut -b -2000
"""


class Part(NamedTuple):
    start: int
    end: int
    """offsets of its bytes"""
    size: int
    """of the whole log"""
    text: str


class Line(NamedTuple):
    number: int
    text: str


class Logs:
    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: dict[tuple[object, ...], tuple[float, object]] = {}

    def part(self, source: Source, name: str, attempt: int, start: int, most: int = PART) -> Part | None:
        """A part from offset `start` on; -1: the last one. None if there is no log. Raises HostError."""

        def read() -> Part | None:
            found = log_part(source.transport, source.view.directory, name, attempt, start, most)
            if not found:
                return None
            begun, size, data = found
            if start < 0 and begun and b"\n" in data:  # begin with a whole line
                cut = data.index(b"\n") + 1
                begun, data = begun + cut, data[cut:]
            decoder = codecs.getincrementaldecoder("utf-8")("replace")
            text = decoder.decode(data)
            held = len(decoder.getstate()[0])  # bytes of a last character that is not all there yet
            return Part(begun, begun + len(data) - held, size, harmless(text, keep="\n\r\t"))

        return self._shared((name, attempt, start, most), read)

    @staticmethod
    def whole(source: Source, name: str, attempt: int) -> Iterator[bytes]:
        """The whole log as it is now, as bytes; nothing if there is none. Raises HostError."""
        start = 0
        while part := log_part(source.transport, source.view.directory, name, attempt, start, _BLOCK):
            yield part.data
            start += len(part.data)
            if not part.data or start >= part.size:
                return

    def search(self, source: Source, name: str, attempt: int, word: str) -> list[Line]:
        """The first lines that hold a word, in any case. Raises HostError."""

        def find() -> list[Line]:
            path = RunLayout(source.view.directory).attempt(name, attempt).log
            done = source.transport.run(_SEARCH, path, word, str(_FOUND_MOST), timeout=20.0)
            if done.code not in (0, 1, 4):
                raise HostError(f"the log of {name} can't be searched", done.complaint)
            rows = (line.partition(":") for line in done.text.split("\n"))
            numbered = ((number, text) for number, _, text in rows if number.isdecimal())
            return [Line(int(number), harmless(text, keep="\t")[:_LINE_MOST]) for number, text in numbered]

        return self._shared((name, attempt, "search", word), find)

    def _shared(self, key: tuple[object, ...], read: Callable[[], T]) -> T:
        with self._lock:  # pages that ask the same meanwhile wait for the answer
            at, kept = self._kept.get(key, (-1e9, None))
            if monotonic() - at < _SHARED_S:
                return cast(T, kept)
            found = read()
            self._kept[key] = monotonic(), found
            while len(self._kept) > _KEPT:
                del self._kept[next(iter(self._kept))]
            return found
