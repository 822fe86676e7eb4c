"""Receives what a launch sends: stages it below the root, syncs it to the disk, then renames it into place."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import zlib

from comborun.host import files, refusal
from comborun.host.refusal import Refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

_DAY_S = 86400.0
_WAIT_S = 30.0
_SYNCS_AT_ONCE = 8
"""parallel syncs share commits of the file system's journal: 800 folders take 0.1 s instead of 0.4"""


def answered(verb: str, act: Callable[[], Any]) -> int:
    """Print what `act` returns as one JSON document; returns the exit code. A signal that ends us also cleans up."""
    for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: sys.exit(143))

    def work(_arguments: list[str]) -> int:
        sys.stdout.write(json.dumps(act()) + "\n")
        return 0

    return refusal.answer(verb, work, [])


def received(digest: str) -> Any:
    """The compressed JSON document on standard input, checked by its SHA-256."""
    data = sys.stdin.buffer.read()
    if hashlib.sha256(data).hexdigest() != digest:
        raise Refusal(76, "the data arrived changed")
    return json.loads(zlib.decompress(data))


def home(path: str) -> str:
    """The path for one with ~."""
    return os.environ["HOME"] + path[1:] if path == "~" or path.startswith("~/") else path


def to_disk(paths: Iterable[str]) -> None:
    """Sync files and folders to the disk. A synced folder holds its names. Raises OSError."""
    from concurrent.futures import ThreadPoolExecutor  # slow to import, and no look needs it

    all_of_them = list(paths)
    try:
        with ThreadPoolExecutor(_SYNCS_AT_ONCE) as pool:
            for _ in pool.map(files.sync, all_of_them):
                pass
    except RuntimeError:  # no thread can start: `ulimit -u`
        for path in all_of_them:
            files.sync(path)


class Staging:
    """A folder below `<root>/.incoming`; it is removed at the end unless it was renamed."""

    def __init__(self, root: str) -> None:
        root = home(root)
        try:
            os.umask(0o022)
            os.makedirs(f"{root}/.incoming", exist_ok=True)
            self.root = os.path.realpath(root)
            _tidy(f"{self.root}/.incoming")
            self.folder = tempfile.mkdtemp(dir=f"{self.root}/.incoming")
            os.chmod(self.folder, 0o755)  # noqa: S103 - as folders of a run are
        except OSError as error:
            raise Refusal(73, f"can't make the folder {root}: {error.strerror}") from None
        self._lock = -1

    def __enter__(self) -> Staging:  # noqa: PYI034 - Python 3.8 has no Self
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        if self._lock >= 0:
            os.close(self._lock)

    def fill(self, entries: Iterable[tuple[str, str, bool]]) -> None:
        """Write files: path below the folder, text, whether it is a program."""
        place = self.folder
        made = {place}
        try:
            for path, text, program in entries:
                place = f"{self.folder}/{path}"
                parent = os.path.dirname(place)
                if parent not in made:
                    os.makedirs(parent, exist_ok=True)
                    made.add(parent)
                descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o755 if program else 0o644)
                try:
                    files.write_all(descriptor, text.encode("utf-8", "surrogateescape"))
                finally:
                    os.close(descriptor)
        except OSError as error:
            raise written(error, place) from None

    def to_disk(self) -> None:
        """Sync everything in it to the disk."""
        paths = [self.folder]
        for folder, folders, names in os.walk(self.folder):
            paths += [f"{folder}/{name}" for name in (*folders, *names)]
        try:
            to_disk(paths)
        except OSError as error:
            raise written(error, self.folder) from None

    def lock(self) -> None:
        """Hold the root's lock until the end."""
        self._lock = files.lock(f"{self.root}/.lock", _WAIT_S)
        if self._lock < 0:
            raise Refusal(75, f"another launch holds {self.root}/.lock")


def written(error: OSError, path: str) -> Refusal:
    return Refusal(74, f"can't write {path}: {error.strerror}: is the disk full?")


def _tidy(folder: str) -> None:
    """Remove the remains of launches that were killed more than a day ago."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.stat(follow_symlinks=False).st_mtime < time.time() - _DAY_S:
                shutil.rmtree(entry.path, ignore_errors=True)
