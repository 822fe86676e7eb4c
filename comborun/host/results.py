"""The result files of an attempt, read as they grow: each byte once, unless a file was written anew."""

from __future__ import annotations

import os
import stat

from comborun.rules import episodes, globs, tally
from comborun.rules.episodes import FORMAT, UNREADABLE, RefusedError
from comborun.rules.rows import Rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Sequence

_CHUNK = 1 << 20
_SAME = 64
"""bytes before the place up to which a file was read, by which a file that was written anew is known"""
UTF16_MOST = 256 << 20


def holds(path: str) -> bool:
    """Whether a file has something in it."""
    try:
        return os.stat(path).st_size > 0
    except OSError:
        return False


class Folder:
    """The output folder of one attempt."""

    def __init__(self, directory: str, patterns: Sequence[str], identity: episodes.Identity, kind: str) -> None:
        self._directory = directory
        self._patterns = patterns
        self._identity = identity
        self._kind = kind
        self._files: dict[str, _File] = {}
        self.found = 0
        """files that hold something"""

    def state(self) -> str:
        """How many files there are, their bytes and the newest change: the same text, the same counts."""
        seen = [status for _, status in self._look()]
        newest = max((status.st_mtime_ns for status in seen), default=0)
        return f"{len(seen)}:{sum(status.st_size for status in seen)}:{newest}"

    def _look(self) -> list[tuple[str, os.stat_result]]:
        """Paths that hold something, or nothing that could be read."""
        found = []
        for path in globs.found(self._directory, self._patterns):
            try:
                status = os.stat(f"{self._directory}/{path}")
            except OSError:
                status = os.lstat(f"{self._directory}/{path}")
            if status.st_size:
                found.append((path, status))
        return found

    def read(self) -> tally.Files:
        """All that the files say now."""
        seen = self._look()
        self.found = len(seen)
        self._files = {
            path: self._files.get(path) or _File(f"{self._directory}/{path}", self._identity, self._kind)
            for path, _ in seen
        }
        told = tally.Files()
        for path, status in seen:
            file = self._files[path]
            try:
                rows = file.read(status)
            except RefusedError as refused:
                told.refused.append((path, refused))
                continue
            if rows is None:
                told.foreign.append((path, file.kind))
            else:
                told.rows.append((path, rows))
        return told


class _File:
    def __init__(self, path: str, identity: episodes.Identity, kind: str) -> None:
        self._path = path
        self._identity = identity
        self._kind = kind
        self.kind = ""
        """a format that only the report reads"""
        self._seen: tuple[int, ...] = ()
        self._shown: Rows | None = None
        self._refused: RefusedError | None = None
        self._start_anew()

    def _start_anew(self) -> None:
        self._rows: Rows | None = None
        self._at = 0
        self._before = b""
        self._settled = False

    def read(self, status: os.stat_result) -> Rows | None:
        """Its rows so far; None where only the report reads its format. Raises RefusedError."""
        seen = (status.st_ino, status.st_size, status.st_mtime_ns)
        if seen != self._seen:
            self._refused = None
            try:
                self._read()
            except RefusedError as refused:
                self._refused = refused
            self._seen = seen
            self._shown = self._rows.last() if self._rows else None
        if self._refused:
            raise self._refused
        return self._shown

    def _read(self) -> None:
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            dangling = os.path.islink(self._path) and not os.path.exists(self._path)
            told = "a link that leads nowhere" if dangling else f"can't be read: {error.strerror}"
            raise RefusedError(UNREADABLE, told) from None
        try:
            self._read_open(fd)
        except OSError as error:
            raise RefusedError(UNREADABLE, f"can't be read: {error.strerror}") from None
        finally:
            os.close(fd)

    def _read_open(self, fd: int) -> None:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise RefusedError(UNREADABLE, "no file")
        if self._rows is None or status.st_ino != self._seen[0] or not self._goes_on(fd):
            self._start_anew()
            if not self._open(fd, status.st_size):
                return
        assert self._rows is not None
        while True:
            data = os.pread(fd, _CHUNK, self._at)
            if not data:
                return
            self._rows.feed(data)
            self._at += len(data)
            self._before = (self._before + data)[-_SAME:]

    def _goes_on(self, fd: int) -> bool:
        """Whether what was read before is still there."""
        return self._settled and os.pread(fd, len(self._before), self._at - len(self._before)) == self._before

    def _open(self, fd: int, size: int) -> bool:
        """Find out what it is; False when nothing more is to be read of it in pieces."""
        head = os.pread(fd, episodes.HEAD, 0)
        packing = episodes.packing(head)
        if packing:
            raise RefusedError(UNREADABLE, f"packed with {packing}: unpack it first")
        wide, text = head.startswith(episodes.WIDE_MARKS), ""
        if wide:
            if size > UTF16_MOST:
                raise RefusedError(
                    UNREADABLE, f"UTF-16 and longer than {UTF16_MOST >> 20} MiB: convert it to UTF-8 first"
                )
            text = b"".join(iter(lambda: os.read(fd, _CHUNK), b"")).decode("utf-16", "replace")
            head = text[: episodes.HEAD].encode("utf-8", "replace")
        elif head.startswith(episodes.MARK):
            self._at, head = len(episodes.MARK), head[len(episodes.MARK) :]
        found = self._sniff(fd, head, size)
        self._settled = found != "" and not wide
        if found is None:
            return False
        self._rows = Rows(self._identity, found or episodes.JSONL_ROWS)
        if wide:
            self._rows.feed(text.encode("utf-8", "replace"))
        return not wide

    def _sniff(self, fd: int, head: bytes, size: int) -> str | None:
        """The format of its rows; empty: none was seen yet; None: only the report reads it. Raises RefusedError."""
        name = os.path.basename(self._path)
        found = episodes.file_format(self._path, head, self._identity, self._kind)
        if found is None:
            text = ""
            if size <= episodes.DOCUMENT_MOST and episodes.suffix_of(name) in episodes.DOCUMENTS:
                text = os.pread(fd, size, 0).decode("utf-8", "replace")
            raise RefusedError(FORMAT, episodes.describe(text))
        if found in episodes.ROW_FORMATS or found == "":
            return found if found or size <= len(head) else episodes.JSONL_ROWS
        if found == episodes.SUMMARY:
            raise RefusedError(FORMAT, "a summary of other files, which is not read")
        self.kind = found
        return None
