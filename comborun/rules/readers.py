"""From the bytes of a file to its rows: one small reader for each format, fed as the file grows. Pure.

A reader gives entries: the line (0: the file as a whole), a decoded row or the RefusedError that it is, a remark on a
row that counts all the same, and its number where the format says which episode it is.
"""

from __future__ import annotations

import re

from comborun.rules.counting import escape
from comborun.rules.episodes import ARRAYS, EPISODES, INSPECT, LINE_LIMIT, LOG_PATTERN, TABLE, WHOLE, decode
from comborun.rules.fields import NO_RECORD, TORN, UNREADABLE, Identity, RefusedError
from comborun.rules.patterns import LONGEST_LINE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable, Iterator, List, Optional, Tuple

    Decoded = Callable[[bytes], Tuple[List[Any], str]]
    Entry = Tuple[int, Any, str, Optional[int]]

WHOLE_MOST = 64 << 20
"""bytes of such a file"""
_CELLS = {"true": True, "false": False, "": None, "none": None, "null": None}
_GOOD = {"success", "succeeded", "successful", "pass", "passed", "true", "1", "yes", "ok", "done", "solved"}
_BAD = {"fail", "failed", "failure", "false", "0", "no", "timeout", "timed out"}
_DENIAL = re.compile(r"not? (?:an? )?|un")
_NUMBER = re.compile(r"[+-]?(\d+|\d*\.\d+|\d+\.\d*)([eE][+-]?\d{1,4})?")
VERDICT = "verdict"
"""the group of a pattern with the word that tells how an episode went"""


class Lines:
    """Splits bytes into lines; what a line says is up to the format."""

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self._rest = b""
        self._line = 0
        self._skipping = False

    def feed(self, data: bytes) -> Iterator[Entry]:
        """More bytes of the file; each is looked at once."""
        lines = (self._rest + data).split(b"\n") if self._rest else data.split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            self._line += 1
            if self._skipping:
                self._skipping = False
            elif line:
                yield from self.take(line, whole=True)
        if len(self._rest) >= LINE_LIMIT or self._skipping:
            if not self._skipping:
                yield self.refused(NO_RECORD, f"longer than {LINE_LIMIT >> 20} MiB", 1)
            self._skipping, self._rest = True, b""

    @property
    def pending(self) -> bool:
        """Whether something stands behind the last newline."""
        return bool(self._rest.strip())

    def finish(self) -> Iterator[Entry]:
        """What stands behind the last newline; nothing more is fed."""
        self._line += 1
        if self._rest.strip():
            yield from self.take(self._rest, whole=False)
        self._rest = b""

    def take(self, line: bytes, *, whole: bool) -> Iterator[Entry]:
        """The rows of one line; one that is not whole lacks its newline."""
        raise NotImplementedError

    def refused(self, reason: str, text: str, ahead: int = 0) -> Entry:
        return self._line + ahead, RefusedError(reason, text), "", None

    def row(self, value: Any, remark: str = "") -> Entry:
        return self._line, value, remark, None


def decode_line(line: bytes) -> tuple[list[Any], str]:
    """The JSON values of a line, and what is wrong after the last."""
    return decode(line.decode("utf-8", "replace"))


class JsonLines(Lines):
    """One object on a line. `decoded` may be faster than `decode_line`, and say the same."""

    def __init__(self, identity: Identity, decoded: Decoded = decode_line) -> None:
        super().__init__(identity)
        self._decoded = decoded

    def take(self, line: bytes, *, whole: bool) -> Iterator[Entry]:
        values, fault = self._decoded(line)
        remark = "more than one record on a line" if len(values) > 1 else ""
        if values and not whole and not fault:
            remark = "the last line lacks its newline; its record is whole and counts"
        for value in values:
            yield self.row(value, remark)
            remark = ""
        if fault:
            yield self.refused(NO_RECORD, fault) if whole else self.refused(TORN, "the last line is cut off")


class Table(Lines):
    """Comma, semicolon or TAB between the cells, and a header. Comments before it are passed over."""

    def __init__(self, identity: Identity) -> None:
        super().__init__(identity)
        self._header: list[str] = []
        self._between = ","
        self._open = b""

    def take(self, line: bytes, *, whole: bool) -> Iterator[Entry]:
        line = self._open + line
        self._open = line + b"\n" if line.count(b'"') % 2 and len(line) < LINE_LIMIT else b""
        if not whole:
            yield self.refused(TORN, "the last line is cut off: it lacks its newline")
        elif not self._open:
            yield from self._cells(line.decode("utf-8", "replace").rstrip("\r"))

    def _cells(self, line: str) -> Iterator[Entry]:
        if not self._header:
            if line.startswith("#") or not line.strip():
                return
            self._between = max("\t;,", key=line.count)
            self._header = [name.strip() for name in _split(line, self._between)]
            return
        cells = _split(line, self._between)
        if not line.strip():
            return
        if len(cells) != len(self._header):
            yield self.refused(NO_RECORD, f"{len(cells)} cells, where the header has {len(self._header)}")
        else:
            yield self.row({name: cell(text) for name, text in zip(self._header, cells)})


def _split(line: str, between: str) -> list[str]:
    import csv

    csv.field_size_limit(LINE_LIMIT)
    try:
        return next(csv.reader([line], delimiter=between), [])
    except csv.Error:
        return [line]


def cell(text: str) -> Any:
    """What stands in a cell: a number, true or false, nothing, or text."""
    text = text.strip()
    if text.lower() in _CELLS:
        return _CELLS[text.lower()]
    if len(text) < 400 and _NUMBER.fullmatch(text):
        return int(text) if text.lstrip("+-").isdigit() else float(text)
    return float("nan") if text.lower() == "nan" else text


class LogPattern(Lines):
    """Lines of a log that match the grid's pattern: its groups are the fields. `verdict` holds a word."""

    def __init__(self, identity: Identity) -> None:
        super().__init__(identity)
        self._pattern = re.compile(identity.pattern)
        self._escape = escape()
        self._count = 0

    def take(self, line: bytes, *, whole: bool) -> Iterator[Entry]:
        text = line.decode("utf-8", "replace")
        for piece in text.split("\r"):
            found = self._pattern.search((self._escape.sub("", piece) if "\x1b" in piece else piece)[:LONGEST_LINE])
            if found and whole:
                order = None if "episode" in found.re.groupindex else self._count
                yield self._line, self._row(found.groupdict()), "", order
                self._count += 1

    def _row(self, groups: dict[str, Any]) -> dict[str, Any]:
        row = {name: cell(text) for name, text in groups.items() if text is not None and name != VERDICT}
        word = str(groups.get(VERDICT) or "").strip().lower()
        if word:
            row[self.identity.success.name] = _verdict(word)
        return row


def _verdict(word: str) -> bool | str:
    """`not solved` and `unsolved` deny what follows; another word stays as it is, so that `success` may test it."""
    denial = _DENIAL.match(word)
    bare = word[denial.end() :] if denial else word
    return (bare in _GOOD) is not bool(denial) if bare in _GOOD | _BAD else word


class Whole:
    """A file that is read once all of it is there."""

    def __init__(self, identity: Identity, read: Callable[[bytes, Identity], Iterable[Entry]]) -> None:
        self.identity = identity
        self._read = read
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> Iterator[Entry]:
        self._size += len(data)
        if self._size <= WHOLE_MOST:
            self._data.append(data)
        return iter(())

    pending = True

    def finish(self) -> Iterator[Entry]:
        """All its rows, or why there are none."""
        if self._size > WHOLE_MOST:
            yield 0, RefusedError(UNREADABLE, f"larger than {WHOLE_MOST >> 20} MiB"), "", None
            return
        try:
            yield from self._read(b"".join(self._data), self.identity)
        except RefusedError as refused:
            yield 0, refused, "", None
        except (RecursionError, MemoryError):
            yield 0, RefusedError(NO_RECORD, "nested too deeply"), "", None


def reader(kind: str, identity: Identity, decoded: Decoded = decode_line) -> Lines | Whole:
    """What reads a format; any other has one object on a line, which `decoded` decodes."""
    if kind in WHOLE:
        from comborun.rules import arrays, documents

        return Whole(identity, {ARRAYS: arrays.read, INSPECT: documents.inspect, EPISODES: documents.read}[kind])
    growing = {TABLE: Table, LOG_PATTERN: LogPattern}
    return growing[kind](identity) if kind in growing else JsonLines(identity, decoded)
