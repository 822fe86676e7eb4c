"""Puts the user's own files on the host. Deletes nothing, writes through no link, and renames the files into place only
when all of them are complete.

`sync look`: standard input is a list of folders with paths below them; the answer is what is at each path.
`sync receive ROOT`: standard input is a line that lists what follows, then the bytes of all files.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys

from comborun.host.system import files
from comborun.host.system.files import Json
from comborun.host.verb_errors import CANT_WRITE, Refusal, answered, holding, unwritable
from comborun.host.verbs.publish import to_disk
from comborun.rules.facts import Fact
from comborun.rules.host import Denial, FolderFlaw

_CHUNK = 1 << 20
_WAIT_S = 60.0
_DRAFT = ".comborun-sync-"


def main(arguments: list[str]) -> int:
    if arguments[0] == "look":
        return answered("sync", _look)
    return answered("sync", lambda: _receive(arguments[1]))


def _look() -> list[str | Fact]:
    """What is at each path: `-` nothing, `f MODE SHA256` a file, `l TARGET` a link, or a fact: what is in the way."""
    folders = [(_folder(folder), paths) for folder, paths in json.load(sys.stdin)]
    ways: dict[str, Fact | None] = {}
    return [_state(folder, path, ways) for folder, paths in folders for path in paths]


def _folder(text: str) -> str:
    return files.home(text).rstrip("/") or "/"


def _state(folder: str, path: str, ways: dict[str, Fact | None]) -> str | Fact:
    place = f"{folder}/{path}"
    if why := in_the_way(folder, path, ways):
        return why
    try:
        status = os.lstat(place)
        if stat.S_ISLNK(status.st_mode):
            return f"l {os.readlink(place)}"
        with open(place, "rb") as file:
            digest = hashlib.sha256()
            for chunk in iter(lambda: file.read(_CHUNK), b""):
                digest.update(chunk)
        return f"f {stat.S_IMODE(status.st_mode):o} {digest.hexdigest()}"
    except (FileNotFoundError, PermissionError):
        return "-"
    except OSError as error:
        return Fact(Denial.PATH_UNUSABLE, path=place, error=error.strerror)


def in_the_way(folder: str, path: str, ways: dict[str, Fact | None]) -> Fact | None:
    """Why no file can be put at a path; None if one can. `ways` caches the results for folders."""
    if not path or path.startswith("/") or ".." in path.split("/"):
        raise Refusal(65, Denial.ELSEWHERE, path=path)
    if os.path.lexists(folder) and not os.path.isdir(folder):
        return Fact(FolderFlaw.NO_FOLDER, path=folder)
    parts = path.split("/")
    for length in range(1, len(parts)):
        parent = "/".join((folder, *parts[:length]))
        if parent not in ways:
            ways[parent] = _why_not_through(parent)
        if why := ways[parent]:
            return why
    place = f"{folder}/{path}"
    if os.path.islink(place) or os.path.isfile(place) or not os.path.exists(place):
        return None
    return Fact(Denial.FOLDER_IN_THE_WAY if os.path.isdir(place) else Denial.NO_FILE, path=place)


def _why_not_through(parent: str) -> Fact | None:
    if os.path.islink(parent):
        return Fact(Denial.LINK_IN_THE_WAY, path=parent)
    blocked = os.path.exists(parent) and not os.path.isdir(parent)
    return Fact(FolderFlaw.NO_FOLDER, path=parent) if blocked else None


def _receive(root: str) -> dict[str, int]:
    with holding(f"{root}/.sync.lock", _WAIT_S):
        return _Receiving().place()


class _Receiving:
    """Receives all files under temporary names beside their places; removes those that were not renamed."""

    def __init__(self) -> None:
        self._stream = sys.stdin.buffer
        self._drafts: list[tuple[str, str]] = []
        self._folders: dict[str, str] = {}
        self._ways: dict[str, Fact | None] = {}

    def place(self) -> dict[str, int]:
        """Rename all files into place, after every byte has arrived and was checked."""
        try:
            line = self._stream.readline()
            if not line.endswith(b"\n"):
                raise Refusal(65, Denial.DATA_CUT)
            for item in json.loads(line):
                self._take(item)
            to_disk(draft for draft, _ in self._drafts if not os.path.islink(draft))
            for draft, place in self._drafts:
                os.rename(draft, place)
            placed, self._drafts = len(self._drafts), []
            to_disk(self._folders)
        except OSError as error:
            raise unwritable(str(error.filename2 or error.filename or "the files of sync"), error) from None
        finally:
            for draft, _ in self._drafts:
                if os.path.lexists(draft):
                    os.unlink(draft)
        return {"placed": placed}

    def _take(self, item: Json) -> None:
        folder, path = _folder(item["folder"]), item["path"]
        if why := in_the_way(folder, path, self._ways):
            raise Refusal(77, why)
        place = f"{folder}/{path}"
        draft = f"{self._clean(os.path.dirname(place))}/{_DRAFT}{os.getpid()}-{len(self._drafts)}"
        self._drafts.append((draft, place))
        if "target" in item:
            os.symlink(item["target"], draft)
        else:
            self._write(draft, item)

    def _clean(self, folder: str) -> str:
        """Make the folder if it is missing; under the lock, remove the remains of an interrupted launch there."""
        if folder not in self._folders:
            self._folders[folder] = folder
            try:
                os.makedirs(folder, exist_ok=True)
            except OSError as error:
                raise Refusal(CANT_WRITE, FolderFlaw.NOT_MADE, path=folder, error=error.strerror) from None
            for name in os.listdir(folder):
                if name.startswith(_DRAFT):
                    os.unlink(f"{folder}/{name}")
        return folder

    def _write(self, draft: str, item: Json) -> None:
        digest, left = hashlib.sha256(), item["size"]
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            while left:
                chunk = self._stream.read(min(left, _CHUNK))
                if not chunk:
                    raise Refusal(65, Denial.DATA_CUT)
                digest.update(chunk)
                file.write(chunk)
                left -= len(chunk)
            os.fchmod(file.fileno(), item["mode"] & 0o777)
        if digest.hexdigest() != item["sha256"]:
            raise Refusal(76, Denial.DATA_CHANGED)
