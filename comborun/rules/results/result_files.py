"""Counts the result files of an attempt as they grow.

Each byte is read once, unless a file was rewritten.
"""

from __future__ import annotations

import os
import stat
import zlib

from comborun.rules import globs
from comborun.rules.facts import Fact
from comborun.rules.results import formats, tally
from comborun.rules.results.fields import (
    ENVIRONMENT,
    FORMAT,
    INDEX,
    LOG,
    NO_RECORD,
    POLICY,
    TORN,
    TRAINING,
    UNREADABLE,
    Identity,
    RefusedError,
    unreadable,
)
from comborun.rules.results.readers import WHOLE_MOST
from comborun.rules.results.tally import Rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO, Iterable, Sequence

    from comborun.rules.names import AttemptLayout

CHUNK = 1 << 20
_SAME = 64
"""bytes before the place up to which a file was read: if they differ, the file was rewritten"""
WHOLE_WHILE_RUNNING = 4 << 20
"""bytes; a larger document is not read while its session runs"""
_ENDS = 4096
"""bytes of the beginning and of the end of a file that tell whether it has changed"""


class Folder:
    def __init__(self, directory: str, patterns: Sequence[str], identity: Identity, kind: str, log: str = "") -> None:
        self.directory = directory
        self.patterns = patterns
        self.identity = identity
        self.kind = kind
        self.log = log
        """path of the log if the records are its lines"""
        self._files: dict[str, _File] = {}
        self.found = 0
        """number of files that are not empty"""

    @classmethod
    def of_attempt(cls, at: AttemptLayout, identity: Identity) -> Folder:
        """What an attempt wrote that its rules read."""
        rules = identity.rules
        log = os.path.relpath(at.log, at.output) if rules.source == LOG else ""
        return cls(at.output, rules.files, identity, rules.format, log)

    def size(self, path: str) -> int:
        """Size of a file in bytes; 0 if it can't be read."""
        status = _status(f"{self.directory}/{path}")
        return status.st_size if status else 0

    def _look(self) -> dict[str, os.stat_result]:
        """Paths of files that are not empty, can't be read, or hold their result in their names."""
        paths = [*filter(None, [self.log]), *globs.found(self.directory, self.patterns)]
        seen = ((path, _status(f"{self.directory}/{path}", path != self.log and not _named(path))) for path in paths)
        return {path: status for path, status in seen if status and (status.st_size or _named(path))}

    def read(self, over: bool = True) -> tally.Files:
        """The rows of all files now. A large document waits until the session is `over`."""
        found, before, self._files = tally.Files(), self._files, {}
        looked = self._look()
        for path, status in looked.items():
            if _named(path):
                continue
            if self.kind == formats.NAMED:
                found.refused.append((path, RefusedError(NO_RECORD, "name_without_outcome")))
                continue
            kind = formats.LOG_PATTERN if path == self.log and self.identity.pattern else self.kind
            file = before.get(path) or _File(self.directory, path, self.identity, kind)
            self._files[path] = file
            file.read(status, over)
            if file.refused and (over or file.refused.reason != TORN):
                found.refused.append((path, file.refused))
            elif file.rows and not file.later:
                found.rows.append((path, file.rows))
            elif file.later:
                found.foreign.append((path, file.later))
        if any(map(_named, looked)):
            self._read_names(found, looked)
        self.found = len(looked)
        return found

    @property
    def counted(self) -> dict[str, float]:
        """The files with records that count, and when each last changed; seconds since 1970."""
        return {path: one.changed for path, one in self._files.items() if one.rows and one.rows.taken}

    def _read_names(self, found: tally.Files, paths: Iterable[str]) -> None:
        """Read episodes in the names of files, by the folder of their environment."""
        from comborun.rules.results.filename_results import Named, groups

        for folder, group in groups(paths).items():
            rows = Rows(Named(self.identity, folder, group))
            try:
                rows.finish()
            except Exception as error:  # noqa: BLE001
                found.refused.append((folder, unreadable(error)))
            else:
                found.rows.append((folder, rows))


def _status(place: str, link: bool = False) -> os.stat_result | None:
    """The status of a file, or None. With `link`, a link that leads nowhere has its own."""
    try:
        return os.lstat(place) if link and os.path.islink(place) and not os.path.exists(place) else os.stat(place)
    except OSError:  # it may have been removed
        return None


def _named(path: str) -> bool:
    """Whether a name may hold an episode's result: `success_obj_episode_7.mp4`."""
    return path.rpartition("/")[2].startswith(("success_obj_", "failure_obj_"))


class _File:
    def __init__(self, directory: str, path: str, identity: Identity, kind: str) -> None:
        self.later: Fact | None = None
        """why nothing counts yet; this is not an error"""
        self.rows: Rows | None = None
        """all rows so far, including the text after the last newline"""
        self.refused: RefusedError | None = None
        self._path = path
        self._place = f"{directory}/{path}"
        self._identity = identity
        self._asked = kind
        self._seen: tuple[object, ...] = ()
        self.changed = 0.0
        self._start_anew()

    def _start_anew(self) -> None:
        self._taken: Rows | None = None
        self._at = 0
        self._before = b""
        self._settled = False
        """whether its format is known, so that it is read in pieces"""

    def read(self, status: os.stat_result, over: bool) -> None:
        """Read what is new. A large document waits until the session is `over`."""
        seen = (status.st_ino, status.st_size, status.st_mtime_ns, over)
        if seen == self._seen:
            return
        self.refused, self.rows, self.later = None, None, None
        try:
            with open(self._place, "rb", buffering=0, opener=unhindered) as stream:
                self._read(stream, over)
            if self._taken:
                self._taken.reader.over = over
                self.rows = self._taken.last()
                self._taken = None if over else self._taken
        except RefusedError as refused:
            self.refused = refused
        except OSError as error:
            dangling = os.path.islink(self._place) and not os.path.exists(self._place)
            code = "dangling_link" if dangling else "unreadable_file"
            self.refused = RefusedError(UNREADABLE, code, **({} if dangling else {"error": error.strerror}))
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001
            self.refused, self.rows = unreadable(error), None
            self._start_anew()
        self._seen, self.changed = seen, status.st_mtime

    def _read(self, stream: BinaryIO, over: bool) -> None:
        status = os.fstat(stream.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise RefusedError(UNREADABLE, "no_file")
        if self._taken is None or status.st_ino != self._seen[0] or not self._goes_on(stream.fileno()):
            self._start_anew()
            self._open(stream, over)
        while self._taken and (data := os.pread(stream.fileno(), CHUNK, self._at)):
            self._taken.feed(data)
            self._at += len(data)
            self._before = (self._before + data)[-_SAME:]

    def _goes_on(self, fd: int) -> bool:
        """Whether the bytes that were read earlier are unchanged."""
        return self._settled and os.pread(fd, len(self._before), self._at - len(self._before)) == self._before

    def _open(self, stream: BinaryIO, over: bool) -> None:
        """Find out its format. Raises RefusedError if no reader reads it."""
        try:
            file = formats.look(stream, self._path, self._identity, self._asked)
        except RefusedError as refused:
            if over or refused.reason != FORMAT or not formats.is_log(self._path):
                raise
            return  # the kind of a log may show later
        size = os.fstat(stream.fileno()).st_size
        if file.kind == TRAINING:
            self.later = Fact("training")
            return
        if (file.kind in formats.WHOLE or file.content) and not over and size > WHOLE_WHILE_RUNNING:
            self.later = Fact("counted_at_the_end", most_mib=WHOLE_WHILE_RUNNING >> 20)
            return
        rows, self._at = Rows(file.reader(self._identity, self._path)), file.start
        if file.content:
            file.content.seek(file.start)
            rows.feed(file.content.read())
            self.rows = _finished(rows)
            return
        if file.kind in formats.WHOLE:
            rows.feed(os.pread(stream.fileno(), WHOLE_MOST + 1, self._at) if self._at < size else b"")
            self.rows = _finished(rows)
            return
        self._taken = rows
        self._settled = bool(file.kind or size > formats.HEAD)


def unhindered(path: str, flags: int) -> int:
    """Opens a file without waiting for a pipe."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


def _finished(rows: Rows) -> Rows:
    """The rows of a file that is read as a whole. Raises RefusedError where it has none."""
    rows.finish()
    reason, one = next(iter(rows.refused.items()), ("", None))
    if one and one.why and rows.rows == 1 and not one.line and reason not in (POLICY, ENVIRONMENT, INDEX):
        raise RefusedError(reason, one.why.code, **one.why.fields)
    return rows


def fingerprint(directory: str, patterns: Sequence[str]) -> str:
    """Number, size and checksum of the result files; of each file the beginning and the end are read."""
    count = size = check = 0
    for path in globs.found(directory, patterns):
        try:
            with open(f"{directory}/{path}", "rb", opener=unhindered) as stream:
                length = os.fstat(stream.fileno()).st_size
                ends = (os.pread(stream.fileno(), _ENDS, max(0, at)) for at in (0, length - _ENDS))
                check = zlib.crc32(b"".join((os.fsencode(path), *ends)), check)
        except OSError:
            continue
        count, size = count + 1, size + length
    return f"{count} {size} {check:08x}"


def changed(directory: str, patterns: Sequence[str], before: str, since: float) -> bool:
    """Whether result files have another `fingerprint` than before. They are opened only if one has changed since then,
    in seconds since 1970, or another number or size shows it.
    """
    if not before:
        return False
    found = [status for path in globs.found(directory, patterns) if (status := _status(f"{directory}/{path}"))]
    if f"{len(found)} {sum(one.st_size for one in found)}" != before.rpartition(" ")[0]:
        return True
    newest = max((one.st_mtime for one in found), default=0.0)
    return newest > since and fingerprint(directory, patterns) != before
