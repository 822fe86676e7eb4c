"""`fetch RUN LIMIT`: sends the records and results of a run that a mirror lacks.

Standard input is a compressed JSON document of what the mirror has (remote/mirror.py). The answer is one line of JSON
that announces every piece, then the bytes of all pieces. Only pieces that have been read are announced.

The order is a promise: an attempt's end comes after its results, dispatch/done after everything. Both are sent only if
they existed before the search for the rest.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import sys
import time
import zlib

from comborun.host import verb_errors
from comborun.host.record.run_directory import processes, session_names
from comborun.host.system import files
from comborun.host.system.files import Json
from comborun.host.verb_errors import Refusal
from comborun.rules import globs, records
from comborun.rules.host import Denial
from comborun.rules.names import (
    FETCHED,
    FETCHED_RECORDS,
    FETCHED_STATE,
    MOVE,
    NAME,
    NUMBER,
    RUN,
    AttemptLayout,
    plan_number,
)
from comborun.rules.results.fields import LOG, ResultRules
from comborun.rules.run_files import attempts_of, shares_output

_CHUNK = 1 << 20
_ASKED = re.compile(rf"{RUN.attempt(NAME, NUMBER).output}/.+")
"""files that may be requested by name: videos"""
_LOG_MOST = 1 << 20
"""bytes; a longer log of a failure is not sent with the records. The report shows its last lines"""
_GROW = re.compile(r".*\.jsonl", re.DOTALL)
"""files that only grow, so that sending their new bytes is enough"""


def main(arguments: list[str]) -> int:
    return verb_errors.answer("fetch", fetch, arguments)


def fetch(arguments: list[str]) -> int:
    run, limit = arguments[0], int(arguments[1])
    if os.path.isdir(run):
        os.chdir(run)
    if not (os.path.isfile("id") and os.path.isdir("sessions")):
        raise Refusal(verb_errors.NO_RUN, Denial.NO_RUN, path=run)
    head, pieces = Answer(json.loads(zlib.decompress(sys.stdin.buffer.read())), limit).give()
    sys.stdout.buffer.write(json.dumps(head).encode() + b"\n")
    for piece in pieces:
        sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()
    return 0


class Answer:
    """One answer. Paths are relative to the run, which is the working directory."""

    def __init__(self, asked: Json, room: int) -> None:
        self._have: dict[str, list[int]] = asked["have"]
        self._again: dict[str, str] = asked["again"]
        self._part: tuple[str, int, int, int] | None = asked["part"]
        self._room = room
        self._found: dict[str, os.stat_result] = {}
        self._skipped: list[tuple[str, str]] = []
        self._announced: list[list[object]] = []
        self._pieces: list[bytes] = []

    def give(self) -> tuple[Json, list[bytes]]:
        """The line that announces everything, and the bytes."""
        done = [RUN.done] if os.path.exists(RUN.done) else []
        moves = sorted(filter(MOVE.fullmatch, files.entries(RUN.moves)))
        self._add(*FETCHED, *sorted(filter(plan_number, os.listdir("."))), *(f"{RUN.moves}/{name}" for name in moves))
        for name in (*processes(RUN), *session_names(RUN)):
            for number in attempts_of(RUN, name):
                self._attempt(RUN.attempt(name, number))
        for path, how in self._again.items():
            if how == "whole" and _ASKED.fullmatch(path) and ".." not in path.split("/"):
                self._result(path)
        self._add(*FETCHED_STATE, *done)
        more = self._choose()
        gone = [path for path in self._have if path not in self._found]
        head = {
            "pieces": self._announced,
            "gone": gone,
            "skipped": self._skipped,
            "more": more,
            "now": time.time(),
        }
        return head, self._pieces

    def _attempt(self, at: AttemptLayout) -> None:
        """Add the files of an attempt: results, then records, the end last."""
        end = [at.end] if os.path.isfile(at.end) else []
        rules = _rules(files.read(at.claim))
        shared = shares_output(at)  # they come with the attempt of the process
        for name in () if shared else globs.found(at.output, rules.files):
            path = f"{at.output}/{name}"
            if not os.path.exists(path):
                self._skipped.append((path, "broken"))
            elif os.path.getsize(path):
                self._result(path)
        if not shared and (rules.source == LOG or (end and _tells_of_a_failure(at))):
            self._result(at.log)
        self._add(*(f"{at.directory}/{record}" for record in FETCHED_RECORDS), *end)

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
        """Add existing files of our own; a link is not one."""
        for path in paths:
            if not os.path.islink(path):
                self._result(path)

    def _choose(self) -> bool:
        """Read the pieces of this answer, in order, until it is full. Returns whether there is more."""
        if self._part and self._go_on(*self._part):
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
        """Continue a file whose beginning was sent, unless it is shorter now. Returns whether there is more of it."""
        data = b""
        if path in self._found and self._found[path].st_size >= size:
            with open(path, "rb") as file:
                file.seek(start)
                data = file.read(min(size - start, self._room))
        if data:
            self._announce([path, size, changed, start, len(data), "-"], data)
        return bool(data) and start + len(data) < size

    def _take(self, path: str, status: os.stat_result, held: int) -> bool:
        """Read one file: all of it, its new end, or what fits if it is the first. Returns whether there is more."""
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
            return False  # it was removed; the next answer says so
        self._announce([path, size, changed_at(status), start, len(data), digest], data)
        return start + len(data) < size

    def _announce(self, piece: list[object], data: bytes) -> None:
        self._announced.append(piece)
        self._pieces.append(data)
        self._room -= len(data)


def _rules(claim: Json) -> ResultRules:
    """The rules of results in a claim; the former version has them beside its other fields."""
    judging = claim.get(records.JUDGING)
    if isinstance(judging, dict):
        return ResultRules.of(judging.get("results", {"files": []}))
    return ResultRules.of(claim if "files" in claim else {"files": []})


def _tells_of_a_failure(at: AttemptLayout) -> bool:
    """Whether an attempt has failed, and its log is short enough to be sent."""
    failed = bool(files.read(at.end).get("class"))
    return failed and os.path.isfile(at.log) and os.path.getsize(at.log) <= _LOG_MOST


def changed_at(status: os.stat_result) -> int:
    """Microseconds since 1970: file systems on laptops store no finer times."""
    return status.st_mtime_ns // 1000


def _summed(path: str, size: int, start: int, length: int) -> tuple[int, str, bytes]:
    """The number of bytes among the first `size` ones, their SHA-256, and the bytes to send, in one pass."""
    digest, data, at = hashlib.sha256(), [], 0
    with open(path, "rb") as file:
        while chunk := file.read(min(size - at, _CHUNK)):
            digest.update(chunk)
            data.append(chunk[max(0, start - at) : max(0, start + length - at)])
            at += len(chunk)
    return at, digest.hexdigest(), b"".join(data)
