"""The result files of an attempt, read as they grow: each byte once, unless a file was written anew."""

from __future__ import annotations

import os
import stat

from comborun.rules import episodes, formats, globs, tally
from comborun.rules.fields import FORMAT, TORN, UNREADABLE, Identity, RefusedError
from comborun.rules.readers import WHOLE_MOST
from comborun.rules.rows import Rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO, Iterable, Sequence

_CHUNK = 1 << 20
_SAME = 64
"""bytes before the place up to which a file was read: if they differ, the file was rewritten"""
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
        """its path from the directory, where the records are lines of it"""
        self._files: dict[str, _File] = {}
        self.found = 0
        """files that hold something"""

    def state(self) -> str:
        """How many files there are, their bytes and the newest change: the same text, the same counts."""
        seen = self._look().values()
        newest = max((status.st_mtime_ns for status in seen), default=0)
        return f"{len(seen)}:{sum(status.st_size for status in seen)}:{newest}"

    def _look(self) -> dict[str, os.stat_result]:
        """Paths that hold something, or nothing that could be read, or that say all by their names."""
        found = {}
        for path in [*filter(None, [self._log]), *globs.found(self._directory, self._patterns)]:
            try:
                found[path] = os.stat(f"{self._directory}/{path}")
            except OSError:
                if path != self._log and not _named(path):
                    found[path] = os.lstat(f"{self._directory}/{path}")
        return {path: status for path, status in found.items() if status.st_size or _named(path)}

    def read(self, over: bool = True) -> tally.Files:
        """All that the files say now; a large document is left alone until its session is `over`."""
        found, before, self._files = tally.Files(), self._files, {}
        looked = self._look()
        for path, status in looked.items():
            if _named(path):
                continue
            kind = episodes.LOG_PATTERN if path == self._log and self._identity.pattern else self._kind
            file = before.get(path) or _File(self._directory, path, self._identity, kind)
            self._files[path] = file
            file.read(status, over)
            if file.refused and (over or file.refused.reason != TORN):
                found.refused.append((path, file.refused))
            elif file.rows and not file.later:
                found.rows.append((path, file.rows))
            elif file.later:
                found.foreign.append((path, file.later))
        found.rows += self._told_by_names(looked)
        self.found = len(looked)
        return found

    def _told_by_names(self, paths: Iterable[str]) -> list[tuple[str, Rows]]:
        """Episodes that are names of files, by the folder of each environment."""
        if not any(map(_named, paths)):
            return []
        from comborun.rules.named import Named, groups

        found = []
        for folder, group in groups(paths).items():
            rows = Rows(Named(self._identity, folder, group))
            rows.finish()
            found.append((folder, rows))
        return found


def _named(path: str) -> bool:
    """Whether a name may be that of an episode: `success_obj_episode_7.mp4`."""
    return path.rpartition("/")[2].startswith(("success_obj_", "failure_obj_"))


class _File:
    def __init__(self, directory: str, path: str, identity: Identity, kind: str) -> None:
        self.later = ""
        """why nothing of it counts now, though it is no fault"""
        self.rows: Rows | None = None
        """all so far, including what follows the last newline"""
        self.refused: RefusedError | None = None
        self._path = path
        self._place = f"{directory}/{path}"
        self._identity = identity
        self._asked = kind
        self._seen: tuple[object, ...] = ()
        self._start_anew()

    def _start_anew(self) -> None:
        self._taken: Rows | None = None
        self._at = 0
        self._before = b""
        self._settled = False
        """its format is known and it is read in pieces"""

    def read(self, status: os.stat_result, over: bool) -> None:
        """What is new in it; a large document waits until its session is `over`."""
        seen = (status.st_ino, status.st_size, status.st_mtime_ns, over)
        if seen == self._seen:
            return
        self.refused, self.rows, self.later = None, None, ""
        try:
            with open(self._place, "rb", buffering=0, opener=_unhindered) as stream:
                self._read(stream, over)
        except RefusedError as refused:
            self.refused = refused
        except OSError as error:
            dangling = os.path.islink(self._place) and not os.path.exists(self._place)
            why = "a link that leads nowhere" if dangling else f"can't be read: {error.strerror}"
            self.refused = RefusedError(UNREADABLE, why)
        self._seen = seen
        if self._taken:
            self.rows = self._taken.last()

    def _read(self, stream: BinaryIO, over: bool) -> None:
        status = os.fstat(stream.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise RefusedError(UNREADABLE, "no file")
        if self._taken is None or status.st_ino != self._seen[0] or not self._goes_on(stream.fileno()):
            self._start_anew()
            self._open(stream, over)
        while self._taken and (data := os.pread(stream.fileno(), _CHUNK, self._at)):
            self._taken.feed(data)
            self._at += len(data)
            self._before = (self._before + data)[-_SAME:]

    def _goes_on(self, fd: int) -> bool:
        """Whether the bytes that were read before are unchanged."""
        return self._settled and os.pread(fd, len(self._before), self._at - len(self._before)) == self._before

    def _open(self, stream: BinaryIO, over: bool) -> None:
        """Find out its format. Raises RefusedError if no reader reads it."""
        try:
            file = formats.look(stream, self._path, self._identity, self._asked)
        except RefusedError as refused:
            if over or refused.reason != FORMAT or not episodes.is_log(self._path):
                raise
            return  # a log may say later what it is
        size = os.fstat(stream.fileno()).st_size
        if file.kind == episodes.TRAINING:
            self.later = "a training: it has no episodes to count"
            return
        if file.kind in formats.WHOLE and not over and size > WHOLE_WHILE_RUNNING:
            self.later = f"larger than {WHOLE_WHILE_RUNNING >> 20} MiB: it is counted when its session has ended"
            return
        rows, self._at = Rows(file.reader(self._identity, self._path)), file.start
        rows.feed(file.text)
        if file.kind in formats.WHOLE:
            rows.feed(os.pread(stream.fileno(), WHOLE_MOST + 1, self._at) if self._at < size else b"")
            self.rows = _finished(rows)
            return
        self._taken = rows
        self._settled = not file.text and bool(file.kind or size > episodes.HEAD)


def _unhindered(path: str, flags: int) -> int:
    """A pipe is not waited for."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


def _finished(rows: Rows) -> Rows:
    """The rows of a file that is read as a whole. Raises RefusedError where it has none."""
    rows.finish()
    why = next(iter(rows.refused.items()), None)
    if why and rows.rows == 1 and not why[1].line:
        raise RefusedError(why[0], why[1].text)
    return rows
