"""A copy of a run directory on this machine, and the messages that are exchanged with the host about it.

A copied file has the size and the time of change of the original, which show whether it is still the same. So the copy
needs no index. Times are in microseconds, because file systems on laptops keep no finer ones. Names come from the host
and are not trusted: only names that a run directory can have are accepted.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import secrets
import time
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from comborun.errors import HostError, UserError
from comborun.rules.names import FETCHED, FETCHED_RECORDS, FETCHED_STATE, MOVE, NAME, NUMBER, RUN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


_COMPONENT = r"[^/\0.][^/\0]*"
_NAMES = "|".join(map(re.escape, (*FETCHED, *FETCHED_STATE, RUN.done)))
_PLAN = re.escape(RUN.plan("N")).replace("N", NUMBER)
_ALLOWED = re.compile(
    rf"{_NAMES}|{_PLAN}|{RUN.moves}/{MOVE.pattern}|{RUN.attempt(NAME, NUMBER).directory}/"
    rf"(?:{'|'.join(FETCHED_RECORDS)}|end|log|out/{_COMPONENT}(?:/{_COMPONENT})*)"
)
_LARGEST = 1 << 60
_LATEST = 1 << 36
"""seconds since 1970, in the year 4147"""
_REASONS = {"broken": "a link that leads nowhere", "unreadable": "can't be read: Permission denied"}
"""the same words as in reporter/collect.py, so that the report is the same from a mirror"""


@dataclass(frozen=True)
class FilePiece:
    path: PurePosixPath
    size: int
    changed: int
    """microseconds since 1970, on the host's clock"""
    start: int
    """offset of `data`; the mirror has the bytes before it"""
    sum: str
    """SHA-256 of all `size` bytes; `-` in later parts"""
    data: bytes


class Skipped(NamedTuple):
    path: PurePosixPath
    reason: str


@dataclass(frozen=True)
class FetchAnswer:
    pieces: tuple[FilePiece, ...]
    """pieces that arrived complete"""
    gone: tuple[PurePosixPath, ...]
    """files of the mirror that the host no longer has"""
    skipped: tuple[Skipped, ...]
    more: bool
    complete: bool
    """whether the stream was not cut off"""
    now: float | None = None
    """seconds since 1970 on the host's clock; None from an older comborun"""


def is_run_file(name: str) -> bool:
    """Whether a file with this name in a run directory may be fetched."""
    return _ALLOWED.fullmatch(name) is not None


def safe_path(name: str) -> PurePosixPath:
    """The path of a file of a run directory. Raises HostError for every other name."""
    if not is_run_file(name):
        raise HostError(f"the host named a file that no run has: {name!r}; nothing was written for it")
    return PurePosixPath(name)


def parse_answer(stream: bytes) -> FetchAnswer:
    """Read an answer, perhaps cut off. Raises HostError if it is none."""
    line, newline, data = stream.partition(b"\n")
    if not newline:
        return FetchAnswer((), (), (), more=False, complete=False)
    try:
        head = json.loads(line)
        announced = list(head["pieces"])
        pieces = tuple(_pieces(announced, data))
        return FetchAnswer(
            pieces=pieces,
            gone=tuple(map(safe_path, head["gone"])),
            skipped=tuple(Skipped(safe_path(path), _REASONS.get(why, "not sent")) for path, why in head["skipped"]),
            more=head["more"] is True,
            complete=len(pieces) == len(announced),
            now=_moment(head.get("now")),
        )
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise HostError(
            f"the host's answer to a fetch can't be read: {error!r:.200}", "was the run made by another comborun?"
        ) from error


def _moment(told: object) -> float | None:
    """A time that a host told; None for what is no time."""
    return float(told) if isinstance(told, int | float) and 0 < told < _LATEST else None


def _pieces(announced: list[Any], data: bytes) -> Iterator[FilePiece]:
    """Assign the bytes to the announced pieces, as long as they last."""
    at = 0
    for path, size, changed, start, length, total in announced:
        numbers = size, abs(changed), start, length
        if not all(type(number) is int and 0 <= number < _LARGEST for number in numbers):
            raise ValueError(numbers)
        if not re.fullmatch("[0-9a-f]{64}|-", total):
            raise ValueError(total)
        safe = safe_path(path)
        if at + length > len(data):
            return
        yield FilePiece(safe, size, changed, start, total, data[at : at + length])
        at += length


class HeldFile(NamedTuple):
    size: int
    changed: int
    """microseconds since 1970, on the host's clock"""


def request(
    held: Mapping[PurePosixPath, HeldFile],
    again: Mapping[PurePosixPath, Literal["whole", "skip"]],
    part: tuple[FilePiece, int] | None = None,
) -> bytes:
    """Standard input for the host. `part`: the announcement of an unfinished file, and the number of its bytes here."""
    first, come = part or (None, 0)
    document = {
        "have": {str(path): at for path, at in held.items()},
        "again": {str(path): how for path, how in again.items()},
        "part": first and (str(first.path), come, first.size, first.changed),
    }
    return zlib.compress(json.dumps(document, separators=(",", ":")).encode())


_LOCK = ".fetch.lock"
_DRAFT = ".fetch-"
_AHEAD = ".fetch.ahead"
_CHUNK = 1 << 20
WAIT_S = 600.0


class PartialFile:
    """A file in transfer: starts with the mirror's part of it, grows piece by piece, and is renamed when complete."""

    def __init__(self, target: Path, first: FilePiece) -> None:
        self.target = target
        self.first = first
        """its announcement: size, time and sum of the whole"""
        self.size = 0
        self._path = target.with_name(f"{_DRAFT}{secrets.token_hex(6)}")
        self._sum = hashlib.sha256()
        self._file = self._path.open("xb")
        if first.start:
            with contextlib.suppress(FileNotFoundError, IsADirectoryError), target.open("rb") as old:
                while self.size < first.start and (chunk := old.read(min(_CHUNK, first.start - self.size))):
                    self.add(chunk)

    def add(self, data: bytes) -> None:
        self._file.write(data)
        self._sum.update(data)
        self.size += len(data)

    def finish(self) -> bool:
        """Rename it into place if it is as announced; the draft is removed in any case."""
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


class OccupiedError(UserError):
    """Another fetch holds the mirror."""


class Mirror:
    """The copy of one run. Use it under `locked()`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._inside: set[Path] = set()

    @contextlib.contextmanager
    def locked(self, patience: float = WAIT_S) -> Iterator[None]:
        """Raises OccupiedError if another fetch holds it for too long, UserError if it can't be written."""
        with _explained(self.directory):
            self.directory.mkdir(parents=True, exist_ok=True)
            lock = (self.directory / _LOCK).open("ab")
        with lock:
            _acquire(lock.fileno(), self.directory, time.monotonic() + patience)
            with _explained(self.directory):
                yield

    def inventory(self) -> dict[PurePosixPath, HeldFile]:
        """All files of the mirror that a fetch may have made. Removes drafts of a killed fetch."""
        held: dict[PurePosixPath, HeldFile] = {}
        for folder, names, files in os.walk(self.directory):
            below = PurePosixPath(Path(folder).relative_to(self.directory))
            names[:] = [name for name in names if below.parts or name in {"sessions", "dispatch", "boxes"}]
            for name in files:
                path = Path(folder, name)
                if name.startswith(_DRAFT):
                    path.unlink(missing_ok=True)
                elif is_run_file(str(below / name)) and not path.is_symlink():
                    status = path.stat()
                    held[below / name] = HeldFile(status.st_size, status.st_mtime_ns // 1000)
        return held

    @property
    def ahead(self) -> float:
        """By how many seconds the host's clock was ahead of this machine's at the last fetch; 0 where nobody knows."""
        try:
            return float((self.directory / _AHEAD).read_text("utf-8"))
        except (OSError, ValueError):
            return 0.0

    @ahead.setter
    def ahead(self, seconds: float) -> None:
        if seconds != self.ahead:
            (self.directory / _AHEAD).write_text(f"{seconds}\n", "utf-8")

    def draft(self, piece: FilePiece) -> PartialFile:
        target = self.directory / piece.path
        folder = target.parent
        if folder not in self._inside:
            self._make_way(folder)
            folder.mkdir(parents=True, exist_ok=True)
            if not folder.resolve().is_relative_to(self.directory.resolve()):
                raise UserError(f"{folder} leads out of {self.directory}", "remove that link")
            self._inside.add(folder)
        return PartialFile(target, piece)

    def _make_way(self, folder: Path) -> None:
        """Hide an old file whose name is now that of a folder on the host."""
        for place in (folder, *folder.parents):
            if place == self.directory:
                return
            if place.is_file() and not place.is_symlink():
                _put_aside(place)


def _put_aside(place: Path) -> None:
    place.rename(place.with_name(f".was-{place.name}-{secrets.token_hex(3)}"))


def _acquire(descriptor: int, directory: Path, deadline: float) -> None:
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise OccupiedError(f"another fetch holds {directory}", "wait for it, or end it") from None
            time.sleep(0.05)


@contextlib.contextmanager
def _explained(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(f"{directory} can't be written: {error}", "is the disk full? is it yours?") from error
