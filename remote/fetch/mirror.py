"""A copy of a run directory on this machine: what it holds, and how whole files get into it.

A file's size and its time of change, kept as the host told them, say whether it is still the same, so the copy needs
no index. Times are in microseconds: file systems on laptops keep no finer ones.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import secrets
import time
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from comborun.errors import UserError
from comborun.remote.fetch.answer import is_run_file
from comborun.remote.fetch.request import Held
from comborun.rules.names import RUN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from comborun.remote.fetch.answer import Piece

_LOCK = ".fetch.lock"
_DRAFT = ".fetch-"
_CHUNK = 1 << 20
_WAIT_S = 600.0


class Draft:
    """A file on its way: begun with what the mirror has of it, grown piece by piece, renamed when it is whole."""

    def __init__(self, target: Path, first: Piece) -> None:
        self.target = target
        self.first = first
        """what announced it: size, time and sum of the whole"""
        self.size = 0
        self._path = target.with_name(f"{_DRAFT}{secrets.token_hex(6)}")
        self._sum = hashlib.sha256()
        self._file = self._path.open("xb")
        if first.start:
            self._copy(first.start)

    def _copy(self, length: int) -> None:
        with contextlib.suppress(FileNotFoundError, IsADirectoryError), self.target.open("rb") as old:
            while self.size < length and (chunk := old.read(min(_CHUNK, length - self.size))):
                self.add(chunk)

    def add(self, data: bytes) -> None:
        self._file.write(data)
        self._sum.update(data)
        self.size += len(data)

    def finish(self) -> bool:
        """Rename it into place if it is what was announced; the draft is gone in any case."""
        self._file.close()
        if self.size != self.first.size or self._sum.hexdigest() != self.first.sum:
            self.drop()
            return False
        changed = self.first.changed * 1000
        os.utime(self._path, ns=(changed, changed))
        if self.target.is_dir():
            _put_aside(self.target)
        self._path.replace(self.target)
        return True

    def drop(self) -> None:
        self._file.close()
        self._path.unlink(missing_ok=True)


class Mirror:
    """One copy. Use it under `locked()`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._inside: set[Path] = set()

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Alone with the mirror. Raises UserError when another fetch does not let go of it, or nobody can write."""
        with _explained(self.directory):
            self.directory.mkdir(parents=True, exist_ok=True)
            lock = (self.directory / _LOCK).open("ab")
        with lock:
            _acquire(lock.fileno(), self.directory)
            with _explained(self.directory):
                yield

    def inventory(self) -> dict[PurePosixPath, Held]:
        """Every file that could have been fetched. Drafts that a killed fetch left are removed on the way."""
        held: dict[PurePosixPath, Held] = {}
        for folder, names, files in os.walk(self.directory):
            below = PurePosixPath(Path(folder).relative_to(self.directory))
            names[:] = [name for name in names if below.parts or name in {"sessions", "dispatch"}]
            for name in files:
                path = Path(folder, name)
                if name.startswith(_DRAFT):
                    path.unlink(missing_ok=True)
                elif is_run_file(os.fsencode(below / name)) and not path.is_symlink():
                    status = path.stat()
                    held[below / name] = Held(status.st_size, status.st_mtime_ns // 1000)
        return held

    def queue(self) -> tuple[str, ...]:
        """The sessions in queue order."""
        try:
            text = (self.directory / RUN.queue).read_text("utf-8", "replace")
        except OSError:
            return ()
        return tuple(line.partition("\t")[0] for line in text.splitlines())

    def draft(self, piece: Piece) -> Draft:
        target = self.directory / piece.path
        folder = target.parent
        if folder not in self._inside:
            self._make_way(folder)
            folder.mkdir(parents=True, exist_ok=True)
            if not folder.resolve().is_relative_to(self.directory.resolve()):
                raise UserError(f"{folder} leads out of {self.directory}", "remove that link")
            self._inside.add(folder)
        return Draft(target, piece)

    def _make_way(self, folder: Path) -> None:
        """A result that was a file may be a folder now: what it was stays, under a hidden name."""
        for place in (folder, *folder.parents):
            if place == self.directory:
                return
            if place.is_file() and not place.is_symlink():
                _put_aside(place)

    def remove(self, path: PurePosixPath) -> None:
        (self.directory / path).unlink(missing_ok=True)


def _put_aside(place: Path) -> None:
    place.rename(place.with_name(f".was-{place.name}-{secrets.token_hex(3)}"))


def _acquire(descriptor: int, directory: Path) -> None:
    deadline = time.monotonic() + _WAIT_S
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise UserError(f"another fetch holds {directory}", "wait for it, or end it") from None
            time.sleep(0.05)


@contextlib.contextmanager
def _explained(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(f"{directory} can't be written: {error}", "is the disk full? is it yours?") from error
