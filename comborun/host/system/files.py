"""Files of a run on the host: records that are complete or absent, claims that are made once, locks."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import stat
import time
from collections.abc import Iterable, Mapping

from comborun.rules import counting, records
from comborun.rules.facts import Fact
from comborun.rules.host import FolderFlaw
from comborun.rules.names import DEFAULT_ROOT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict

    Json = Dict[str, Any]
else:
    Json = dict
"""a JSON object, for annotations: what starts often does without typing"""

RECORD_MOST = 1 << 20
"""bytes of a record; a longer file is not ours"""
TABLE_MOST = 1 << 26
"""of a table"""
_CHUNK = 1 << 18
_LOCK_PAUSE_S = 0.02
_HIGH = 200
"""inherited descriptors of ours get numbers from here on: scripts use low ones"""


def read_bytes(path: str, most: int = RECORD_MOST) -> bytes:
    """The content of a file; empty if it is absent, unreadable, not a regular file, or longer than `most` bytes."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return b""
    data = bytearray()
    try:
        while len(data) <= most and (more := os.read(fd, _CHUNK)):
            data += more
    except OSError:
        return b""
    finally:
        os.close(fd)
    return bytes(data) if len(data) <= most else b""


def read_text(path: str, most: int = RECORD_MOST) -> str:
    return read_bytes(path, most).decode("utf-8", "surrogateescape")


def read_line(path: str) -> str:
    """The first line of a file without its newline; empty without one."""
    return read_text(path).partition("\n")[0]


def tail(path: str, most: int) -> tuple[bytes, bool]:
    """The last bytes of a file, and whether more come before them; empty if it can't be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return b"", False
    try:
        start = max(0, os.fstat(fd).st_size - most)
        return os.pread(fd, most, start), start > 0
    except OSError:  # a pipe, a folder
        return b"", False
    finally:
        os.close(fd)


def log_lines(path: str, longest: int = counting.LONGEST_LINE) -> list[str]:
    end, cut = tail(path, counting.TAIL)
    return list(counting.lines(end, cut=cut, longest=longest))


def size(path: str) -> int:
    return _status(path, "st_size")


def changed(path: str) -> int:
    """When a file was last changed, in ns since 1970; 0 without one."""
    return _status(path, "st_mtime_ns")


def _status(path: str, field: str) -> int:
    try:
        value: int = getattr(os.stat(path), field)
    except OSError:
        return 0
    return value


def entries(folder: str) -> list[str]:
    """The names in a folder, sorted; empty if it can't be read."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def read(path: str) -> dict[str, str]:
    """The fields of a record; empty if it is absent, torn or foreign."""
    text = read_text(path)
    return records.parse(text) if text else {}


def read_rows(path: str) -> list[Json]:
    """The records of a table, one a line; other lines are skipped."""
    return [fields for fields in map(records.parse, read_text(path, TABLE_MOST).split("\n")) if fields]


def write(path: str, fields: Iterable[tuple[str, object]]) -> bool:
    """Write a record (pairs of key and value), whole or not at all. False if that fails."""
    return write_text(path, records.render(fields))


def write_rows(path: str, rows: Iterable[Mapping[str, object]]) -> bool:
    """Write a table of records, one a line, whole or not at all. False if that fails."""
    return write_text(path, "".join(records.render(row.items()) for row in rows))


def write_text(path: str, text: str, mode: int = 0o666, *, synced: bool = False) -> bool:
    """Write a file, whole or not at all; `synced`: whatever the power does. False if that fails; then nothing is left
    of it.
    """
    temporary = draft(path)
    try:
        _put(temporary, os.O_CREAT | os.O_TRUNC, text, mode, synced=synced)
        os.replace(temporary, path)
    except OSError:
        remove(temporary)
        return False
    return True


def _put(path: str, flags: int, text: str, mode: int = 0o666, *, synced: bool = False) -> None:
    """Open a file and write all of a text, in one write if possible. Raises OSError."""
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC | flags, mode)
    try:
        write_all(fd, text.encode("utf-8", "surrogateescape"))
        if synced:
            os.fsync(fd)
    finally:
        os.close(fd)


def draft(path: str) -> str:
    """A temporary name beside a file that is ours alone: two nodes may write the same file with equal pids."""
    folder, name = os.path.split(path)
    host = "".join(char if char.isalnum() else "-" for char in os.uname().nodename)
    return os.path.join(folder, f".{name}.{host}.{os.getpid()}")


def write_all(fd: int, data: bytes) -> None:
    """Write every byte. Raises OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def append(path: str, text: str = "") -> bool:
    """Add lines to a file in one write; the file is made if it is missing. False if that fails.

    Adding nothing works even on a full disk.
    """
    try:
        add(path, text)
    except OSError:
        return False
    return True


def add(path: str, text: str) -> None:
    """The same. Raises OSError."""
    _put(path, os.O_CREAT | os.O_APPEND, text)


def overwrite(path: str, text: str) -> bool:
    """Write a file in place, to use the blocks that it has, and cut the rest off. False if that fails."""
    data = text.encode("utf-8", "surrogateescape")
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            write_all(fd, data)
            os.ftruncate(fd, len(data))
        finally:
            os.close(fd)
    except OSError:
        return False
    return True


def no_room(error: BaseException | None) -> str:
    """What the system says where the disk or a quota is full, also if a refusal came of it; empty for other errors."""
    while error is not None and not isinstance(error, OSError):
        error = error.__context__
    return error.strerror or "" if error and error.errno in (errno.ENOSPC, errno.EDQUOT) else ""


def create(path: str, text: str = "") -> bool:
    """Make a new file; False if it exists. Raises OSError for another reason."""
    try:
        _put(path, os.O_CREAT | os.O_EXCL, text)
    except FileExistsError:
        return False
    return True


def create_whole(path: str, text: str, *, synced: bool = False) -> bool:
    """Make a file by a hard link: complete at once, on any node, and `synced` whatever the power does. False if it
    exists. Raises OSError if it can't be written.
    """
    own = draft(path)
    try:
        _put(own, os.O_CREAT | os.O_TRUNC, text, synced=synced)
        return _linked(own, path)
    finally:
        remove(own)


def _linked(own: str, path: str) -> bool:
    try:
        os.link(own, path)
    except OSError:  # a file server that repeats the call may say that the name exists although this draft got it
        try:
            return os.path.samefile(own, path)
        except OSError:
            return False
    return True


def remove(*paths: str) -> None:
    """Remove files, if they exist."""
    for path in paths:
        try:
            os.unlink(path)
        except OSError:
            continue


def home(path: str) -> str:
    """The path for one with ~, also where HOME is not set."""
    return os.path.expanduser(path) if path == "~" or path.startswith("~/") else path


def own_folder(path: str, mode: int = 0o755) -> Fact | None:
    """Make a folder that only this user may write. Returns why that fails, or None."""
    try:
        if not os.path.lexists(path):
            os.makedirs(path, exist_ok=True)
            os.chmod(path, mode)
        found = os.lstat(path)
    except OSError as error:
        return Fact(FolderFlaw.NOT_MADE, path=path, error=error.strerror)
    if found.st_uid != os.getuid():
        return Fact(FolderFlaw.FOREIGN, path=path)
    if not stat.S_ISDIR(found.st_mode):
        return Fact(FolderFlaw.NO_FOLDER, path=path)
    return Fact(FolderFlaw.OPEN, path=path, mode=f"{found.st_mode & 0o777:o}") if found.st_mode & 0o022 else None


LEASES, PORTS = ("COMBORUN_LEASES", "comborun"), ("COMBORUN_PORTS", "comborun-ports")
FIFOS = ("COMBORUN_FIFOS", "comborun-fifos")
_NO_FIFO = (errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EOPNOTSUPP)
"""variable and name of the folders in which all runs of this user on this machine agree"""


def shared_folder(which: tuple[str, str], mode: int = 0o755) -> tuple[str, Fact | None]:
    """Such a folder, made if it is missing, and why it can't be used, or None.

    A name in /tmp is free for everybody. If another user has it, all our runs use one below the default root instead.
    """
    path = usual_folder(which)
    flaw = own_folder(path, mode)
    if flaw and flaw.code == FolderFlaw.FOREIGN:
        path = instead_of(which)
        flaw = own_folder(path, mode)
    return path, flaw


def usual_folder(which: tuple[str, str]) -> str:
    variable, name = which
    return os.environ.get(variable) or f"/tmp/{name}-{os.getuid()}"  # noqa: S108 - `own_folder` checks whose it is


def instead_of(which: tuple[str, str]) -> str:
    return os.path.expanduser(f"{DEFAULT_ROOT}/.{which[1]}-{os.uname().nodename}")


def make_fifo(path: str) -> str:
    """Make a FIFO, and return where it is: on a file system without FIFOs (sshfs, some network disks) on this machine,
    and a file in its place says where. No link says it: sshfs follows none that leads out. Raises OSError.
    """
    try:
        os.mkfifo(path)
    except OSError as error:
        folder, flaw = shared_folder(FIFOS, 0o700) if error.errno in _NO_FIFO else ("", None)
        local = f"{folder}/{os.path.abspath(path).strip('/').replace('/', '_')[-200:]}"
        if flaw or not folder:
            raise OSError(error.errno, error.strerror, path) from None  # mkfifo(3) does not name it
        remove(local)
        os.mkfifo(local)
        if write_text(path, f"{local}\n"):
            return local
        remove(local)
        raise OSError(error.errno, error.strerror, path) from None
    return path


def fifo_at(path: str) -> str:
    """Where the FIFO of this path is; empty without one."""
    local = path if _is_fifo(path) else read_line(path)
    return local if local and _is_fifo(local) else ""


def _is_fifo(path: str) -> bool:
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def remove_fifos(*paths: str) -> None:
    """Remove FIFOs, wherever they are."""
    for path in paths:
        remove(path, fifo_at(path))


def sync(path: str) -> None:
    """Sync a file, or the names in a folder, to the disk. Raises OSError."""
    fd = os.open(path or ".", os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def lock(path: str, wait_s: float = 0.0) -> int:
    """Take a lock within `wait_s` seconds. Returns the descriptor that holds it; -1 if another process holds the lock.

    Raises OSError if the file can't be made.
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
    try:
        if take_lock(fd, wait_s):
            return fd
    except OSError:
        os.close(fd)
        raise
    os.close(fd)
    return -1


def take_lock(fd: int, wait_s: float = 0.0) -> bool:
    """Lock an open file within `wait_s` seconds; False if another process holds the lock. Raises OSError."""
    deadline = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_LOCK_PAUSE_S)  # flock(2) has no timeout, and an alarm would affect the whole process
        else:
            return True


def leads_to(path: str, fd: int) -> bool:
    """Whether a path leads to this open file."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(fd))
    except OSError:
        return False


def inheritable(fd: int) -> int:
    """The same open file under a high number, which a command inherits."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    high = fcntl.fcntl(fd, fcntl.F_DUPFD, _HIGH if most == resource.RLIM_INFINITY else min(_HIGH, most // 2))
    os.close(fd)
    return high


def held(path: str) -> bool:
    """Whether a process holds the lock; False without the file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    else:
        return False
    finally:
        os.close(fd)


def tell(fifo: str, text: str) -> bool:
    """Write a line to a FIFO if it has a reader; never waits. False if it has none."""
    try:
        fd = os.open(fifo_at(fifo), os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)  # O_RDWR: opens without a reader
    except OSError:
        return False
    try:
        os.write(fd, text.encode("utf-8", "surrogateescape") + b"\n")
    except OSError:
        return False
    finally:
        os.close(fd)
    return True
