"""Copies the files for a report from a host to this machine: only changed and complete files, in one round trip.

The mirror has the layout of the run directory. As on the host, an attempt's end means that its results are there, and
dispatch/done means that everything is. Files of attempts are never removed from the mirror, even if the host has lost
them. The dispatcher's files (dispatch/) follow the host.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Literal

from comborun.errors import HostError, UserError
from comborun.remote import program
from comborun.remote.mirror import (
    WAIT_S,
    FilePiece,
    HeldFile,
    Mirror,
    OccupiedError,
    PartialFile,
    Skipped,
    parse_answer,
    request,
)
from comborun.rules.names import NAME, RUN
from comborun.rules.vocabulary import amount
from comborun.text import GIB, MIB, clean

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from comborun.remote.transport import Completed, Transport


LIMIT = 8 * MIB
"""bytes of files in one answer, so that a slow link finishes within the deadline"""
MOST = 50 * GIB
"""most bytes of a mirror by default: a host must not fill this machine's disk"""
KEPT_FREE = GIB // 2
"""bytes that a fetch leaves free on the disk"""
_BLOCK = 4096
"""bytes on the disk of the smallest file"""
_TIMEOUT_S = 300.0
_TRIES = 3
_WATCHED_S = 10.0
"""seconds after which a fetch beside a live table stops, after at least one file"""
_WATCHED_ANSWER_S = 20.0
"""the deadline of its answers: a lost host must be noticed as early as by a look"""
_WATCHED_LIMIT = LIMIT // 32
"""bytes of files in its first answer; twice as many in the next, unless that one took long"""
_QUICK_S = 2.0
_SHARED_S = 1.0
"""seconds that it waits for another fetch into the same mirror"""


@dataclass(frozen=True)
class Fetched:
    files: int
    """number of new or changed files"""
    bytes: int
    """bytes sent; of a file that grew only the new end"""
    skipped: tuple[Skipped, ...] = ()
    """results that were not copied; a report must name them"""
    whole: bool = True
    """False: there is more to copy, and the next fetch continues"""


@dataclass(frozen=True)
class FetchOptions:
    limit: int = LIMIT
    most: int = MOST
    watched: bool = False
    """whether a live table is shown: stop after some seconds, and do not wait for another fetch into the mirror"""
    others: Collection[PurePosixPath] = ()
    """output files of attempts that are not results, such as videos"""
    progress: Callable[[int], object] = lambda _: None
    """gets the number of files so far"""
    received: Callable[[PurePosixPath, int, int], object] = lambda *_: None
    """gets a file, and how many of its bytes have come"""


EVERYTHING = FetchOptions()


def mirror_directory(host: str, run: str) -> Path:
    """The folder of a run's copy here. Raises HostError for a name that no run has: names come from hosts."""
    if not re.fullmatch(NAME, run):
        raise HostError(f"{host} named a run {run!r}, which is not a run's name")
    base = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(base).expanduser() / "comborun" / clean(host) / run


def fetch(transport: Transport, run_dir: str, mirror: Path, options: FetchOptions = EVERYTHING) -> Fetched:
    """Copy the records and results of a run directory into `mirror`, including those that links lead to.

    Raises HostError if the host can't be reached or the answer is cut off (complete files stay), and UserError if the
    mirror can't be written, or would hold more than `most` bytes. Two fetches into one mirror wait for each other.
    """
    copy = Mirror(mirror)
    try:
        with copy.locked(_SHARED_S if options.watched else WAIT_S):
            return _Fetching(transport, run_dir, copy, options).run()
    except OccupiedError:
        if options.watched:  # the other fetch copies the same
            return Fetched(0, 0, whole=False)
        raise


class _Fetching:
    def __init__(self, transport: Transport, run_dir: str, mirror: Mirror, options: FetchOptions) -> None:
        self._transport = transport
        self._run_dir = run_dir
        self._mirror = mirror
        self._options = options
        self._limit = _WATCHED_LIMIT if options.watched else options.limit
        self._held = mirror.inventory()
        self._size = sum(max(_BLOCK, held.size) for held in self._held.values())
        """bytes of the mirror on the disk"""
        self._taken = 0
        """the same of all files received, counting repeats"""
        self._draft: PartialFile | None = None
        self._doubts: Counter[PurePosixPath] = Counter()
        """file -> how often it did not arrive as announced"""
        self._files = 0
        self._bytes = 0
        self._skipped: dict[Skipped, None] = {}

    def run(self) -> Fetched:
        """Ask until the host has no more; beside a live table for a few seconds, and until one file is complete."""
        begun, more, late = time.monotonic(), True, False
        try:
            while more and not late:
                asked = time.monotonic()
                more = self._round()
                self._options.progress(self._files)
                if self._options.watched:
                    now = time.monotonic()
                    late = bool(self._files) and now > begun + _WATCHED_S
                    self._limit = min(LIMIT, 2 * self._limit) if now < asked + _QUICK_S else self._limit
        finally:
            self._drop()
        why = "it kept changing while it was copied"
        restless = [Skipped(path, why) for path, how in self._doubtful() if how == "skip"]
        return Fetched(self._files, self._bytes, (*self._skipped, *restless), whole=not more)

    def _round(self) -> bool:
        """Ask once and take the answer. Returns whether to ask again."""
        before = self._progress
        asked = time.time()
        done = self._ask()
        answered, answer = time.time(), parse_answer(done.stdout)
        if answer.now is not None:
            right = asked <= answer.now <= answered
            self._mirror.ahead = 0.0 if right else answer.now - (asked + answered) / 2
        for path in answer.gone:
            if path.parts[0] == "dispatch":  # what attempts have left stays
                (self._mirror.directory / path).unlink(missing_ok=True)
                self._held.pop(path, None)
        self._skipped.update(dict.fromkeys(answer.skipped))
        if self._draft and self._draft.first.path not in {piece.path for piece in answer.pieces}:
            self._drop()
        for piece in answer.pieces:
            self._receive(piece)
        if not answer.complete:
            raise HostError(
                f"the answer of {self._transport.host} was cut off",
                done.complaint or "the same command again continues",
            )
        again = answer.more or "whole" in dict(self._doubtful()).values()
        if again and self._progress == before:
            raise HostError(f"{self._transport.host} says that there is more of {self._run_dir}, and sends nothing")
        return again

    @property
    def _progress(self) -> tuple[object, ...]:
        return self._bytes, self._files, self._doubts.total(), self._draft

    def _ask(self) -> Completed:
        part = (self._draft.first, self._draft.size) if self._draft else None
        others = (path for path in self._options.others if path not in self._held)
        missing: dict[PurePosixPath, Literal["whole", "skip"]] = dict.fromkeys(others, "whole")
        done = program.run_packed(  # not the run's own program, which may be of another version
            self._transport,
            "fetch",
            self._run_dir,
            str(self._limit),
            stdin=request(self._held, {**missing, **dict(self._doubtful())}, part),
            timeout=_WATCHED_ANSWER_S if self._options.watched else _TIMEOUT_S,
            python=program.of_run(self._run_dir),
        )
        if not done.stdout.startswith(b"{"):
            raise HostError(
                f"{self._run_dir} could not be fetched from {self._transport.host}",
                done.complaint or f"exit code {done.code}",
            )
        return done

    def _doubtful(self) -> Iterator[tuple[PurePosixPath, Literal["whole", "skip"]]]:
        for path, times in self._doubts.items():
            yield path, "whole" if times < _TRIES else "skip"

    def _receive(self, piece: FilePiece) -> None:
        if self._too_early(piece.path):
            return
        if self._draft and self._draft.first.path != piece.path:
            self._drop()
        if self._draft is None:
            self._check_room(piece)
        draft = self._draft = self._draft or self._mirror.draft(piece)
        if piece.start != draft.size:
            self._drop()
            self._doubts[piece.path] += 1
            return
        draft.add(piece.data)
        self._options.received(draft.first.path, draft.size, draft.first.size)
        self._taken += max(_BLOCK, len(piece.data))
        self._bytes += len(piece.data)
        if draft.size < draft.first.size:
            return
        self._draft = None
        if not draft.finish():
            self._doubts[piece.path] += 1
            return
        self._doubts.pop(piece.path, None)
        self._size += max(_BLOCK, draft.first.size) - self._room_of(piece.path)
        self._held[piece.path] = HeldFile(draft.first.size, draft.first.changed)
        self._files += 1

    def _room_of(self, path: PurePosixPath) -> int:
        return max(_BLOCK, self._held[path].size) if path in self._held else 0

    def _check_room(self, piece: FilePiece) -> None:
        """Raise UserError before a file is written that would make the mirror, or the disk, too full."""
        coming, most = max(_BLOCK, piece.size), self._options.most
        if self._size + coming - self._room_of(piece.path) > most or self._taken + coming > 2 * most:
            raise UserError(
                f"the results of {PurePosixPath(self._run_dir).name} are more than {amount(most)},"
                f" which is the limit for one copy; the next file is {piece.path}",
                "combo report --max-size 200GiB copies more; complete files stay",
            )
        free = shutil.disk_usage(self._mirror.directory).free
        if free - piece.size < KEPT_FREE:
            raise UserError(
                f"the disk of {self._mirror.directory} has {amount(free)} left, and {piece.path} of"
                f" {amount(piece.size)} would leave less than {amount(KEPT_FREE)}",
                "make room, or put XDG_DATA_HOME on another disk; complete files stay",
            )

    def _too_early(self, path: PurePosixPath) -> bool:
        """Whether a file vouches for others that are not there yet."""
        if path == PurePosixPath(RUN.done):
            return bool(self._doubts)
        return (
            path.name == "end" and len(path.parts) == 4 and any(path.parent in doubt.parents for doubt in self._doubts)
        )

    def _drop(self) -> None:
        if self._draft:
            self._draft.drop()
        self._draft = None
