"""The result files of an attempt, read as they grow: each byte once, unless a file was written anew."""

from __future__ import annotations

import os
import stat

from comborun.rules import episodes, globs, tally
from comborun.rules.fields import FORMAT, UNREADABLE, Identity, RefusedError
from comborun.rules.readers import WHOLE_MOST
from comborun.rules.rows import Rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Sequence

_CHUNK = 1 << 20
_SAME = 64
"""bytes before the place up to which a file was read: if they differ, the file was rewritten"""
UTF16_MOST = 256 << 20
WHOLE_WHILE_RUNNING = 4 << 20
"""bytes of a document that is read again and again while its session runs"""


class Folder:
    """The output folder of one attempt."""

    def __init__(self, directory: str, patterns: Sequence[str], identity: Identity, kind: str, log: str = "") -> None:
        self._directory = directory
        self._patterns = patterns
        self._identity = identity
        self._kind = kind
        self._log = log
        """its path from the directory, where the grid's pattern finds records in its lines"""
        self._files: dict[str, _File] = {}
        self.found = 0
        """files that hold something"""

    def state(self) -> str:
        """How many files there are, their bytes and the newest change: the same text, the same counts."""
        seen = self._look().values()
        newest = max((status.st_mtime_ns for status in seen), default=0)
        return f"{len(seen)}:{sum(status.st_size for status in seen)}:{newest}"

    def _look(self) -> dict[str, os.stat_result]:
        """Paths that hold something, or nothing that could be read."""
        found = {}
        for path in [*filter(None, [self._log]), *globs.found(self._directory, self._patterns)]:
            try:
                found[path] = os.stat(f"{self._directory}/{path}")
            except OSError:
                if path == self._log:
                    continue
                found[path] = os.lstat(f"{self._directory}/{path}")
        return {path: status for path, status in found.items() if status.st_size}

    def read(self, over: bool = True) -> tally.Files:
        """All that the files say now; a large document is left alone until its session is `over`."""
        told, before, self._files = tally.Files(), self._files, {}
        for path, status in self._look().items():
            kind = episodes.LOG_PATTERN if path == self._log else self._kind
            file = before.get(path) or _File(f"{self._directory}/{path}", self._identity, kind)
            self._files[path] = file
            file.read(status, WHOLE_MOST if over else WHOLE_WHILE_RUNNING)
            if file.refused:
                told.refused.append((path, file.refused))
            elif file.rows:
                told.rows.append((path, file.rows))
            else:
                told.foreign.append((path, file.kind))
        self.found = len(self._files)
        return told


class _File:
    def __init__(self, path: str, identity: Identity, kind: str) -> None:
        self.kind = kind
        """its format, where only the report reads that"""
        self.rows: Rows | None = None
        """all so far, including what follows the last newline"""
        self.refused: RefusedError | None = None
        self._path = path
        self._identity = identity
        self._asked = kind
        self._seen: tuple[int, ...] = ()
        self._most = 0
        self._start_anew()

    def _start_anew(self) -> None:
        self._taken: Rows | None = None
        self._at = 0
        self._before = b""
        self._settled = False
        """its format is known and it is read in pieces"""

    def read(self, status: os.stat_result, most: int) -> None:
        """What is new in it; a document of more bytes than `most` waits."""
        seen = (status.st_ino, status.st_size, status.st_mtime_ns, most)
        if seen == self._seen:
            return
        self.refused = self.rows = None
        self._most = most
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                self._read(fd)
            finally:
                os.close(fd)
        except RefusedError as refused:
            self.refused = refused
        except OSError as error:
            dangling = os.path.islink(self._path) and not os.path.exists(self._path)
            why = "a link that leads nowhere" if dangling else f"can't be read: {error.strerror}"
            self.refused = RefusedError(UNREADABLE, why)
        self._seen = seen
        if self._taken:
            self.rows = self._taken.last()

    def _read(self, fd: int) -> None:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise RefusedError(UNREADABLE, "no file")
        if self._taken is None or status.st_ino != self._seen[0] or not self._goes_on(fd):
            self._start_anew()
            self._open(fd, status.st_size)
        while self._taken and (data := os.pread(fd, _CHUNK, self._at)):
            self._taken.feed(data)
            self._at += len(data)
            self._before = (self._before + data)[-_SAME:]

    def _goes_on(self, fd: int) -> bool:
        """Whether the bytes that were read before are unchanged."""
        return self._settled and os.pread(fd, len(self._before), self._at - len(self._before)) == self._before

    def _open(self, fd: int, size: int) -> None:
        """Find out what it is. Raises RefusedError for what nobody reads."""
        head = os.pread(fd, episodes.HEAD, 0)
        packing = episodes.packing(head)
        if packing and episodes.suffix_of(self._path) not in episodes.ARCHIVES:
            raise RefusedError(UNREADABLE, f"packed with {packing}: unpack it first")
        wide = b""
        if head.startswith(episodes.WIDE_MARKS):
            if size > UTF16_MOST:
                too_long = f"UTF-16 and longer than {UTF16_MOST >> 20} MiB: convert it to UTF-8 first"
                raise RefusedError(UNREADABLE, too_long)
            wide = os.pread(fd, size, 0).decode("utf-16", "replace").encode("utf-8", "replace")
            self._at, head = size, wide[: episodes.HEAD]
        elif head.startswith(episodes.MARK):
            self._at, head = len(episodes.MARK), head[len(episodes.MARK) :]
        found = self._sniff(head, size)
        if found in episodes.WHOLE:
            self.rows = self._whole(wide or os.pread(fd, WHOLE_MOST + 1, self._at), found)
            return
        self._settled = bool(found) and not wide
        if found is not None:
            self._taken = Rows(self._identity, found or episodes.JSONL_ROWS)
            self._taken.feed(wide)

    def _whole(self, data: bytes, kind: str) -> Rows:
        """The rows of a file that is read as a whole. Raises RefusedError where it has none."""
        rows = Rows(self._identity, kind)
        rows.feed(data)
        rows.finish()
        why = next(iter(rows.refused.items()), None)
        if why and rows.rows == 1 and not why[1].line:
            raise RefusedError(why[0], why[1].text)
        return rows

    def _sniff(self, head: bytes, size: int) -> str | None:
        """The format of its rows; empty: none was seen yet; None: only the report reads it. Raises RefusedError."""
        found = episodes.file_format(self._path, head, self._identity, self._asked)
        if found is None:
            raise RefusedError(FORMAT, episodes.UNKNOWN)
        if found in episodes.WHOLE and size > self._most:
            self.kind = found
            return None
        if found in episodes.READ_HERE or found == "":
            return found if found or size <= len(head) else episodes.JSONL_ROWS
        if found == episodes.SUMMARY:
            raise RefusedError(FORMAT, "a summary of other files, which is not read")
        self.kind = found
        return None
