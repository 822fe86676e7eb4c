"""Sends what a mirror lacks of a run's records and results: `fetch RUN LIMIT`.

Standard input is a JSON document of what the mirror has (remote/fetch/request.py). The answer is one line of JSON that
announces every piece, then the bytes of all pieces. Nothing is announced that has not been read.

Order is a promise: an attempt's end comes after its results, dispatch/done after everything, and neither is sent
unless it was there before the rest was looked for.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import sys

from comborun.host import files, refusal
from comborun.host.refusal import Refusal
from comborun.rules import globs, records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator

_CHUNK = 1 << 20
_FIRST = ("id", "digest", "run.json", "grid.yaml", "canary.json", "dispatch/queue.tsv")
_DISPATCH = ("slots", "multiplexer", "stopped", "journal", "usage.tsv")
_RECORDS = ("claim", "grant", "begin", "stop", "videos.tsv")
_GROW = re.compile(r".*\.jsonl|dispatch/(journal|usage\.tsv)", re.DOTALL)
"""what is written at its end only, so that its new bytes are enough"""


def main(arguments: list[str]) -> int:
    """The program's verb."""
    return refusal.answer("fetch", fetch, arguments)


def fetch(arguments: list[str]) -> int:
    """Answer what standard input asks."""
    run, limit = arguments[0], int(arguments[1])
    if os.path.isdir(run):
        os.chdir(run)
    if not (os.path.isfile("id") and os.path.isdir("sessions")):
        raise Refusal(refusal.NO_RUN, f"{run} is no run directory")
    head, pieces = Answer(json.load(sys.stdin), limit).give()
    sys.stdout.buffer.write(json.dumps(head).encode() + b"\n")
    for piece in pieces:
        sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()
    return 0


class Answer:
    """One answer. Paths are relative to the run, which is the working directory."""

    def __init__(self, asked: dict[str, Any], room: int) -> None:
        self._have: dict[str, list[int]] = asked["have"]
        self._again: dict[str, str] = asked["again"]
        self._asked = asked
        self._room = room
        self._found: dict[str, os.stat_result] = {}
        self._skipped: list[tuple[str, str]] = []
        self._announced: list[list[Any]] = []
        self._pieces: list[bytes] = []

    def give(self) -> tuple[dict[str, Any], list[bytes]]:
        """The line that announces everything, and the bytes."""
        done = [path for path in ("dispatch/done",) if os.path.exists(path)]
        names = _sessions()
        known = {**dict(zip(names, self._asked["known"])), "after": self._asked["after"]}
        if self._asked["closed"]:
            for name in names:
                self._attempts(name, 1, known.get(name, 0))
            if _digest(self._found) != self._asked["closed"]:
                return {"pieces": [], "gone": [], "skipped": self._skipped, "differs": True, "more": False}, []
        closed, self._found = self._found, {}
        self._add(*_FIRST, *sorted(name for name in os.listdir(".") if re.fullmatch(r"plan-[0-9]{1,9}\.json", name)))
        for name in names:
            self._attempts(name, known.get(name, 0) + 1)
        self._add(*(f"dispatch/{name}" for name in _DISPATCH), *done)
        more = self._choose()
        gone = [path for path in self._have if path not in self._found and path not in closed]
        head = {"pieces": self._announced, "gone": gone, "skipped": self._skipped, "differs": False, "more": more}
        return head, self._pieces

    def _attempts(self, name: str, number: int, last: int = 1 << 30) -> None:
        while number <= last:
            at = f"sessions/{name}/attempt-{number}"
            if not any(os.path.exists(f"{at}/{record}") for record in ("claim", "grant", "end")):
                return
            self._attempt(at)
            number += 1

    def _attempt(self, at: str) -> None:
        """Its results, then its records, the end last."""
        end = [f"{at}/end"] if os.path.isfile(f"{at}/end") else []
        claim = files.read_text(f"{at}/claim")
        for name in globs.found(f"{at}/out", records.parse_all(claim, "results")):
            path = f"{at}/out/{name}"
            if not os.path.exists(path):
                self._skipped.append((path, "broken"))
            elif os.path.getsize(path):
                self._result(path)
        if "log=1" in claim.split("\n"):
            self._result(f"{at}/log")
        self._add(*(f"{at}/{record}" for record in _RECORDS), *end)

    def _result(self, path: str) -> None:
        try:
            status = os.stat(path)
        except OSError:
            return
        if not os.access(path, os.R_OK):
            self._skipped.append((path, "unreadable"))
        elif stat.S_ISREG(status.st_mode):
            self._found[path] = status

    def _add(self, *paths: str) -> None:
        """Files of our own that are there; a link is none of them."""
        for path in paths:
            if not os.path.islink(path):
                self._result(path)

    def _choose(self) -> bool:
        """Read what goes into this answer, in order, until there is no room; whether there is more."""
        part = self._asked["part"]
        if part and self._go_on(*part):
            return True
        for path, status in self._found.items():
            held = self._have.get(path, [0, 0])
            if self._again.get(path) == "skip" or held == [status.st_size, changed_at(status)]:
                continue
            if self._announced and path == self._announced[0][0]:
                continue
            if self._take(path, status, held[0]):
                return True
        return False

    def _go_on(self, path: str, start: int, size: int, changed: int) -> bool:
        """Send more of the file whose beginning has come, unless it is shorter now; whether there is more of it."""
        data = b""
        if path in self._found and self._found[path].st_size >= size:
            data = _read(path, start, min(size - start, self._room))
        if data:
            self._announce([path, size, changed, start, len(data), "-"], data)
        return bool(data) and start + len(data) < size

    def _take(self, path: str, status: os.stat_result, held: int) -> bool:
        """Read one file: all of it, its new end, or what there is room for if it is first; whether there is more."""
        grows = _GROW.fullmatch(path) and path not in self._again and held < status.st_size
        start = held if grows else 0
        length = status.st_size - start
        if length > self._room:
            if self._announced:
                return True
            length = self._room
        try:
            size, digest, data = _summed(path, status.st_size, start, length)
        except OSError:
            return False  # it is gone; the next answer says so
        self._announce([path, size, changed_at(status), start, len(data), digest], data)
        return start + len(data) < size

    def _announce(self, piece: list[Any], data: bytes) -> None:
        self._announced.append(piece)
        self._pieces.append(data)
        self._room -= len(data)


def changed_at(status: os.stat_result) -> int:
    """Microseconds since 1970: file systems on laptops keep no finer times."""
    return status.st_mtime_ns // 1000


def _sessions() -> list[str]:
    """In queue order; `after` last."""
    rows = files.read_text("dispatch/queue.tsv", 1 << 30).splitlines()
    names = [name for name in (row.split("\t")[0] for row in rows) if re.fullmatch("[A-Za-z0-9_-]+", name)]
    return names + (["after"] if os.path.isdir("sessions/after") else [])


def _digest(found: dict[str, os.stat_result]) -> str:
    """One SHA-256 over names, sizes and times, as remote/fetch/request.py makes it."""
    lines = sorted(b"%d %d %s\0" % (at.st_size, changed_at(at), os.fsencode(path)) for path, at in found.items())
    return hashlib.sha256(b"".join(lines)).hexdigest()


def _read(path: str, start: int, length: int) -> bytes:
    with open(path, "rb") as file:
        file.seek(start)
        return file.read(length)


def _summed(path: str, size: int, start: int, length: int) -> tuple[int, str, bytes]:
    """How many of the first `size` bytes there are, their SHA-256, and those that are sent, all from one pass."""
    digest, data, at = hashlib.sha256(), [], 0
    with open(path, "rb") as file:
        for chunk in _chunks(file, size):
            digest.update(chunk)
            data.append(chunk[max(0, start - at) : max(0, start + length - at)])
            at += len(chunk)
    return at, digest.hexdigest(), b"".join(data)


def _chunks(file: Any, size: int) -> Iterator[bytes]:
    while size:
        chunk = file.read(min(size, _CHUNK))
        if not chunk:
            return
        yield chunk
        size -= len(chunk)
