"""A checkpoint on the disk, a file or a folder: what it is now, a link to it that nobody deletes, its digest."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import shutil
import stat
import threading
import time
from collections.abc import Callable, Iterator

from comborun.host.system import files, process
from comborun.rules.facts import Fact
from comborun.rules.following import SAFE, Why

_CLONE = 0x40049409
"""ioctl FICLONE: the copy shares its blocks, and later changes of one are not seen in the other"""
_CHUNK = 1 << 22


class FlawedError(Exception):
    """A checkpoint can't be taken; `fact` says why."""

    def __init__(self, why: Why, **fields: object) -> None:
        super().__init__(why)
        self.fact = Fact(why, **fields)


class Seen:
    """A checkpoint as it is at one moment."""

    def __init__(self, path: str) -> None:
        """Raises FlawedError for what is no file and no folder of files."""
        self.path = path
        try:
            self.top = os.lstat(path)
            self.marks = {name: _mark(path, name) for name in _names(path)}
        except FileNotFoundError:
            raise FlawedError(Why.GONE) from None
        except OSError as error:
            raise FlawedError(Why.UNREADABLE, error=error.strerror) from None
        self.size = sum(size for _, size, _ in self.marks.values())
        self.changed = max((changed for _, _, changed in self.marks.values()), default=self.top.st_mtime_ns)
        """when something in it was last written, in nanoseconds"""

    @property
    def mark(self) -> str:
        """Inode, size and time; of a folder with the number of its files."""
        return f"{self.top.st_ino}-{self.size}-{self.changed}-{len(self.marks)}"

    def place(self, name: str) -> str:
        return f"{self.path}/{name}" if name else self.path


def _names(path: str) -> Iterator[str]:
    """The names of its files below it; of a file the empty one."""
    if not stat.S_ISDIR(os.lstat(path).st_mode):
        yield ""
        return
    for folder, folders, names in os.walk(path):
        links = [name for name in folders if os.path.islink(f"{folder}/{name}")]
        yield from (os.path.relpath(f"{folder}/{name}", path) for name in (*names, *links))


def _mark(path: str, name: str) -> tuple[int, int, int]:
    found = os.lstat(f"{path}/{name}" if name else path)
    if not stat.S_ISREG(found.st_mode):
        raise FlawedError(Why.NO_FILE, what="a link" if stat.S_ISLNK(found.st_mode) else "no file", name=name)
    return found.st_ino, found.st_size, found.st_mtime_ns


def keep(seen: Seen, target: str) -> str:
    """Link all of it to `target`. Returns how it is kept. Raises FlawedError, and OSError if the disk is full."""
    if not seen.size:
        raise FlawedError(Why.EMPTY)
    try:
        hows = {_keep_file(seen, name, f"{target}/{name}" if name else target) for name in sorted(seen.marks)}
        files.sync(os.path.dirname(target))
    except FileNotFoundError:
        raise FlawedError(Why.GONE) from None
    except OSError as error:
        if files.no_room(error):
            raise
        raise FlawedError(Why.UNREADABLE, error=error.strerror) from None
    how = "hard link" if "hard link" in hows else "reflink"
    unchanged(seen, target, how)
    return how


def unchanged(seen: Seen, target: str, how: str) -> None:
    """Raise FlawedError if what is kept was written since it was seen. A clone keeps what it has."""
    if how != "reflink" and Seen(target).marks != seen.marks:
        raise FlawedError(Why.REWRITTEN)


def _keep_file(seen: Seen, name: str, target: str) -> str:
    """Raises OSError and FlawedError."""
    source = seen.place(name)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if _cloned(source, target, seen.marks[name]):
        return "reflink"
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as error:
        if error.errno == errno.EXDEV:
            raise FlawedError(Why.ELSEWHERE) from None
        if error.errno in (errno.EPERM, errno.EACCES) and seen.top.st_uid != os.geteuid():
            raise FlawedError(Why.FOREIGN, owner=process.owner(source)) from None
        raise
    return "hard link"


def _cloned(source: str, target: str, mark: tuple[int, int, int]) -> bool:
    """Whether `target` is now a copy that shares the blocks. Raises FlawedError if the file changed meanwhile."""
    try:
        given = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except PermissionError:
        return False
    try:
        made = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    except OSError:
        os.close(given)
        raise
    try:
        fcntl.ioctl(made, _CLONE, given)
        found = os.fstat(given)
    except OSError:
        os.unlink(target)
        return False
    finally:
        os.close(made)
        os.close(given)
    if (found.st_ino, found.st_size, found.st_mtime_ns) != mark:
        raise FlawedError(Why.REWRITTEN)
    return True


def digest_of(seen: Seen, told: Callable[[int], object] = int) -> str:
    """SHA-256: of a file that of `sha256sum`, of a folder that of its files' names and digests. Raises OSError.

    `told` gets the number of bytes of each part that was read.
    """
    if "" in seen.marks:
        return _digest(seen.path, told)
    lines = (f"{_digest(seen.place(name), told)}  {name}\n" for name in sorted(seen.marks))
    return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def _digest(path: str, told: Callable[[int], object]) -> str:
    found = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            found.update(chunk)
            told(len(chunk))
    return found.hexdigest()


class Reading(threading.Thread):
    """Reads what is kept whole, for its digest, while the follower goes on, which calls `then` at its end. Raises
    OSError.
    """

    def __init__(self, path: str, size: int, then: Callable[[Reading], None]) -> None:
        super().__init__(daemon=True)
        self.path, self.size, self.then = path, size, then
        self.began = time.monotonic()
        self.read = 0
        """bytes until now"""
        self.digest = ""
        self.flawed: FlawedError | None = None
        """why there is no digest"""
        self.fd, self._end = os.pipe()
        """readable at the end"""
        try:
            self.start()
        except RuntimeError as error:  # the user has no process left
            raise OSError(str(error)) from None

    def run(self) -> None:
        def told(size: int) -> None:
            self.read += size

        try:
            self.digest = digest_of(Seen(self.path), told)
        except FlawedError as flawed:
            self.flawed = flawed
        except OSError as error:
            self.flawed = FlawedError(Why.UNREADABLE, error=error.strerror)
        finally:
            os.close(self._end)

    def finish(self) -> None:
        self.join()
        os.close(self.fd)


def room_for(seen: Seen, folder: str, floor: int, owed: int) -> None:
    """Raise FlawedError unless `floor` bytes would stay free; 0 means twice the checkpoint's size.

    The training may delete its own names of this checkpoint and of those that are kept already (`owed` bytes). That
    frees nothing, since links keep the blocks.
    """
    disk = os.statvfs(folder)
    free, needed = disk.f_bavail * disk.f_frsize, (floor or 2 * seen.size) + seen.size + owed
    if free < needed:
        raise FlawedError(Why.NO_ROOM, free=free, needed=needed)


def safe(path: str) -> None:
    """Raise FlawedError for a path that would end a quote in a script."""
    if not SAFE.fullmatch(path):
        raise FlawedError(Why.NAME, path=path)


def mark_of(path: str) -> str:
    """The mark of what is there; of what can't be read as one its inode, size and time; `gone` of nothing."""
    try:
        return Seen(path).mark
    except FlawedError:
        try:
            found = os.lstat(path)
        except OSError:
            return "gone"
        return f"{found.st_ino}-{found.st_size}-{found.st_mtime_ns}"


def numbers_of(mark: str) -> tuple[int, int, int, int]:
    """Inode, size, time and number of files of a mark; 0 for what it does not say."""
    inode, size, changed, count = (int(one) if one.isdecimal() else 0 for one in (*mark.split("-"), "", "", "")[:4])
    return inode, size, changed, count


def same_file(mark: str, path: str) -> bool:
    """Whether a path leads to the file or folder of that mark, whatever was written into it since."""
    return mark.partition("-")[0] == mark_of(path).partition("-")[0]


def added_to(path: str, mark: str, kept: str) -> bool:
    """Whether something was written into what is at a path since it had that mark and was kept.

    What was deleted there says nothing, and neither does another file or folder that has taken its name.
    """
    if not same_file(mark, path):
        return False
    try:
        now, then = Seen(path).marks, Seen(kept).marks
    except FlawedError as flawed:
        return flawed.fact.code == Why.NO_FILE
    written = numbers_of(mark)[2]
    return any(name not in then or size != then[name][1] or at > written for name, (_, size, at) in now.items())


def is_rest(mark: str, known: str) -> bool:
    """Whether a folder with this mark is what is left of the known one, from which files are being deleted."""
    (top, size, changed, count), had = numbers_of(mark), numbers_of(known)
    return top == had[0] and size <= had[1] and changed <= had[2] and count < had[3]


def remove(path: str) -> None:
    shutil.rmtree(path, ignore_errors=True)
