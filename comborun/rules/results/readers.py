"""From the bytes of a file to its rows: what all readers share, for lines and for whole files. Pure.

A reader gives entries: the line (0: the whole file), its content, a remark (a fact), and the episode's number if the
format has one. The content is a decoded row, a Count, a RefusedError, or NOTHING if only the remark matters. Numbers
count from the first episode of the attempt.
"""

from __future__ import annotations

from comborun.rules.counting import escape
from comborun.rules.facts import Fact
from comborun.rules.results.episodes import LINE_LIMIT
from comborun.rules.results.fields import NO_RECORD, TORN, UNREADABLE, Identity, RefusedError
from comborun.rules.results.rates import Count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable, Iterator, List, Optional, Tuple

    Decoded = Callable[[bytes], Tuple[List[Any], str]]
    Entry = Tuple[int, Any, Optional[Fact], Optional[int]]

WHOLE_MOST = 64 << 20
"""bytes of such a file"""
SAMPLES = 20
"""rows of a file that are kept for proposals"""
NOTHING = object()
"""in an entry with only a remark"""
EPISODES_PER_COPY = 20
"""with so many episodes of each copy, the bias of the first K is too small to be seen"""


def stating(found: Count | None, line: int = 0) -> Iterator[Entry]:
    """The entry of a count."""
    yield line, found, found.complaint if found else None, None


class Reader:
    """Reads one file. `identity` is that of its session, in the words of the format."""

    def __init__(self, identity: Identity, path: str = "") -> None:
        self.identity = identity
        self.path = path
        """below the output folder; in some formats it holds an episode's number"""
        self.copies = 1
        """copies of the environment that run side by side. With several, episodes are numbered as they ended"""
        self.unpaired = ""
        """why neither index nor seed identifies the start of an episode; empty if one does"""
        self.over = False
        """whether the file is complete: its program has ended"""
        self.passed: list[dict[str, Any]] = []
        """the first rows that were passed over and look like episodes"""
        self.continues = False
        """whether its numbers continue in the file of a rebuilt scene"""

    def feed(self, data: bytes) -> Iterator[Entry]:
        """More bytes of the file; each is looked at once."""
        raise NotImplementedError

    @property
    def pending(self) -> bool:
        return True

    def finish(self) -> Iterator[Entry]:
        """The entries at the end of the file."""
        raise NotImplementedError

    def ended(self, copies: int, episodes: int) -> Iterator[Entry]:
        """Warns of the bias of the first episodes that ended, in several copies of an environment.

        A success ends early and a failure runs to its limit. So too many of the first K episodes that end are
        successes, the more so the more copies there are in relation to K.
        """
        self.copies = max(copies, self.copies)
        if copies > 1:
            self.unpaired = "its episodes are numbered in the order in which they ended"
        if copies > 1 and copies * EPISODES_PER_COPY > episodes:
            yield 0, NOTHING, Fact("first_to_end", episodes=episodes, copies=copies), None


def indexed(row: dict[str, Any], identity: Identity) -> dict[str, Any]:
    """The row with an index from elsewhere. Its own field of that name is kept under another name."""
    name = identity.episode.name
    return {f"record.{key}" if key == name else key: row[key] for key in row} if name in row else row


class Lines(Reader):
    """Splits bytes into lines; each format reads them in its own way."""

    def __init__(self, identity: Identity, path: str = "") -> None:
        super().__init__(identity, path)
        self._rest = b""
        self._line = 0
        self._skipping = False
        self.taken: Callable[[int, list[bytes]], bool] | None = None
        """takes whole lines together, of which the first has this number; False if each must be read by itself"""

    def feed(self, data: bytes) -> Iterator[Entry]:
        lines = (self._rest + data).split(b"\n") if self._rest else data.split(b"\n")
        self._rest = lines.pop()
        if lines and self.taken and not self._skipping and self.taken(self._line + 1, lines):
            self._line += len(lines)
            lines = []
        for line in lines:
            self._line += 1
            if self._skipping:
                self._skipping = False
            elif line:
                yield from self.take(line, whole=True)
        if len(self._rest) >= LINE_LIMIT or self._skipping:
            if not self._skipping:
                yield from self.too_long(self._rest)
            self._skipping, self._rest = True, b""

    @property
    def pending(self) -> bool:
        return bool(self._rest.strip())

    def finish(self) -> Iterator[Entry]:
        """The text behind the last newline."""
        if self._rest.strip():
            self._line += 1
            yield from self.take(self._rest, whole=False)
        self._rest = b""

    def take(self, line: bytes, *, whole: bool) -> Iterable[Entry]:
        """The rows of one line. A line that is not whole lacks its newline."""
        raise NotImplementedError

    def too_long(self, beginning: bytes) -> Iterator[Entry]:
        """The entry of a line beyond the limit, which is skipped."""
        del beginning
        yield self._line + 1, RefusedError(NO_RECORD, "line_too_long", most_mib=LINE_LIMIT >> 20), None, None

    def refused(self, reason: str, code: str, **fields: Any) -> Entry:
        return self._line, RefusedError(reason, code, **fields), None, None

    def row(self, value: Any, remark: Fact | None = None, order: int | None = None) -> Entry:
        return self._line, value, remark, order


class LogLines(Lines):
    """The lines of a log as a person would see them: split at newlines and carriage returns, without terminal codes.
    Text beyond the limit is skipped.
    """

    def __init__(self, identity: Identity, path: str = "") -> None:
        super().__init__(identity, path)
        self._escape = escape()

    def take(self, line: bytes, *, whole: bool) -> Iterator[Entry]:
        del whole
        for piece in line.decode("utf-8", "replace").split("\r"):
            text = self._escape.sub("", piece) if "\x1b" in piece else piece
            if text and not text.isspace():
                yield from self.hear(text)

    def hear(self, text: str) -> Iterator[Entry]:
        raise NotImplementedError

    def too_long(self, beginning: bytes) -> Iterator[Entry]:
        self._line += 1
        yield from self.take(beginning, whole=True)
        self._line -= 1


class Whole(Reader):
    """Reads a file when it is complete."""

    def __init__(
        self, identity: Identity, path: str, read: Callable[[Whole], Iterable[Entry]], place: str = ""
    ) -> None:
        super().__init__(identity, path)
        self.place = place
        """where the file is; empty: not known"""
        self._read = read
        self.general: Callable[[Whole], Iterable[Entry]] | None = None
        """reads what its own format finds nothing in"""
        self._pieces: list[bytes] = []
        self._size = 0

    @property
    def data(self) -> bytes:
        return b"".join(self._pieces)

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")

    def feed(self, data: bytes) -> Iterator[Entry]:
        self._size += len(data)
        if self._size <= WHOLE_MOST:
            self._pieces.append(data)
        return iter(())

    def finish(self) -> Iterator[Entry]:
        """All rows, or why there are none."""
        if self._size > WHOLE_MOST:
            yield 0, RefusedError(UNREADABLE, "file_too_large", most_mib=WHOLE_MOST >> 20), None, None
            return
        identity, found = self.identity, self._entries(self._read)
        if self.general and not (_holds(found) or any(_torn(value) for _, value, _, _ in found)):
            own, self.identity = self.identity, identity  # what its format does not find may lie elsewhere in it
            general = self._entries(self.general)
            if _holds(general) or not found:
                found = general
            else:
                self.identity = own
        yield from found

    def _entries(self, read: Callable[[Whole], Iterable[Entry]]) -> list[Entry]:
        try:
            return list(read(self))
        except RefusedError as refused:
            return [(0, refused, None, None)]
        except (RecursionError, MemoryError):
            return [(0, RefusedError(NO_RECORD, "nested_too_deeply"), None, None)]


def _holds(entries: Iterable[Entry]) -> bool:
    return any(isinstance(value, (dict, Count)) for _, value, _, _ in entries)


def _torn(value: object) -> bool:
    return isinstance(value, RefusedError) and value.reason == TORN
