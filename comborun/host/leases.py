"""What the runs of this user on this host have promised, so that two of them never promise the same.

A folder of the user that everybody may read; a file for each run, under one lock while anybody decides. A promise is
over when its attempt has an end, or nothing of it lives, whoever has crashed.

    comborun-leases 1
    run=ID user=NAME dispatcher=PID start=TICKS boot=ID
    WHO GPUS MIB ALONE CPUS CORES MEMORY_MIB TOKENS GROUP SINCE FOLDER            with tabs between them; - is nothing
    .
"""

from __future__ import annotations

import os
import re
import stat
import time

from comborun.host import files, process
from comborun.rules.placement import Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, Sequence

_LOCK_S, _LOCKED_PAUSE_S = 0.5, 1.0
_START_S = 60
"""in which a session begins, or its promise is over where its dispatcher is dead"""
_REWRITE_S = 3600
"""what lies in /tmp for days is removed"""
_SWEEP_S = 5.0
"""for so long it counts whether anything of a session that seems gone was seen"""


class Promise:
    """What somebody was promised, and for which attempt."""

    __slots__ = ("alone", "at", "cores", "gpus", "request", "run", "since", "who")

    def __init__(self, who: str, request: Request, gpus: Sequence[int], at: str, *, run: str = "") -> None:
        self.who = who
        self.request = request
        self.gpus = tuple(gpus)
        self.at = at
        """the attempt's folder"""
        self.run = run
        """empty: this one"""
        self.alone = request.alone
        """it has its GPUs to itself"""
        self.cores: tuple[int, ...] = ()
        self.since = int(time.time())

    @property
    def marker(self) -> str:
        """What its processes carry; the run's id stands before the name."""
        return f"{self.who}/{self.at.rpartition('-')[2] or 0}"

    def line(self) -> str:
        asked = self.request
        columns = (
            *(self.who, _list(self.gpus), asked.gpu_memory, int(self.alone), asked.cpus, _list(self.cores)),
            *(asked.memory, _list(asked.tokens), asked.group or "-", self.since, self.at or "-"),
        )
        return "\t".join(map(str, columns)) + "\n"


_COLUMNS = re.compile(
    r"([A-Za-z0-9_@.-]+)\t(-|[0-9]{1,4}(?:,[0-9]{1,4})*)\t([0-9]{1,9})\t([01])\t([0-9]{1,9})\t(-|[0-9,]+)\t"
    r"([0-9]{1,9})\t([A-Za-z0-9_,-]+)\t([A-Za-z0-9_-]+)\t([1-9][0-9]{0,11})\t(/.*)"
)
_HEAD = re.compile(r"run=([A-Za-z0-9_.-]+) .*dispatcher=([0-9]+) start=([0-9]+) boot=([a-z0-9-]+)")


def parse(line: str, run: str) -> Promise | None:
    """A line of another run's file; None: it is none."""
    match = _COLUMNS.fullmatch(line)
    if not match:
        return None
    who, gpus, mib, alone, cpus, cores, memory, tokens, group, since, at = match.groups()
    request = Request(
        gpus=len(_numbers(gpus)),
        gpu_memory=int(mib),
        cpus=int(cpus),
        memory=int(memory),
        tokens=() if tokens == "-" else filter(None, tokens.split(",")),
        group="" if group == "-" else group,
        alone=alone == "1",
    )
    promise = Promise(who, request, _numbers(gpus), at, run=run)
    promise.cores, promise.since = _numbers(cores), int(since)
    return promise


def _list(values: Iterable[object]) -> str:
    return ",".join(map(str, values)) or "-"


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(",") if number.isdecimal())


class Leases:
    """The folder, seen from one run."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.folder = os.environ.get("COMBORUN_LEASES") or f"/tmp/comborun-{os.getuid()}"  # noqa: S108
        self.others: list[Promise] = []
        """what other runs have promised, as far as it still holds"""
        self.torn = ""
        """a run whose file has no end, and whose dispatcher lives: it writes it anew"""
        self.news = False
        """they say something else than at the look before"""
        self.trouble = ""
        self._pid, self._start, self._boot = process.identity()
        self._fd = -1
        self._locked_at = -_LOCKED_PAUSE_S
        self._written_at = 0.0
        self._swept: dict[str, tuple[float, bool]] = {}
        self._opened = False

    def enter(self) -> str:
        """Decide alone, by what the others have promised; why that can't be, empty when it can."""
        why = self.lock()
        if not why and self.torn:
            self.leave()
            why = f"what the run {self.torn} has promised can't be read to its end"
        return why

    def lock(self) -> str:
        """Take the lock and read; why that can't be, empty when it can."""
        if not self._opened and not self._open():
            return self.trouble
        busy = f"another run holds {self.folder}/lock"
        if time.monotonic() - self._locked_at <= _LOCKED_PAUSE_S:
            return busy  # a stopped process keeps it: those that need no lease go on
        before = os.umask(0o022)
        try:
            self._fd = files.lock(f"{self.folder}/lock", _LOCK_S)
        except OSError:
            self._opened = False
            return f"can't write in {self.folder}"
        finally:
            os.umask(before)
        if self._fd < 0:
            self._locked_at = time.monotonic()
            return busy
        if not _same(self._fd, f"{self.folder}/lock"):  # somebody has tidied up, and others lock another file
            self.leave()
            return busy
        self.read()
        return ""

    def leave(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def _open(self) -> bool:
        """Whether the folder is there, and ours alone to write."""
        self.trouble = ""
        before = os.umask(0o022)
        try:
            os.makedirs(self.folder, exist_ok=True)
            found = os.lstat(self.folder)
        except OSError:
            found = None
        finally:
            os.umask(before)
        if found is None or not stat.S_ISDIR(found.st_mode):
            self.trouble = f"there is no folder {self.folder}, and none can be made"
        elif found.st_uid != os.getuid():
            self.trouble = f"{self.folder} belongs to somebody else"
        elif found.st_mode & 0o022:
            self.trouble = f"others may write in {self.folder} (mode {found.st_mode & 0o777:o})"
        self._opened = not self.trouble
        return self._opened

    def read(self) -> None:
        """What the other runs have promised."""
        before = {promise.line() for promise in self.others}
        self.others, self.torn = [], ""
        if self._opened or self._open():
            for name in sorted(_names(self.folder)):
                if name.endswith(".lease") and name != f"{self.run_id}.lease":
                    self._read(f"{self.folder}/{name}", name[: -len(".lease")])
        self.news = {promise.line() for promise in self.others} != before

    def _read(self, path: str, run: str) -> None:
        try:
            found = os.lstat(path)
        except OSError:
            return
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid():
            return
        lines = files.read_text(path).split("\n")
        head = _HEAD.fullmatch(lines[1]) if len(lines) > 1 else None
        if not head or head.group(1) != run or head.group(4) != self._boot:
            return
        dispatcher = process.alive(head.group(2), head.group(3), head.group(4))
        if dispatcher and lines[-2:] != [".", ""]:
            self.torn = run
        promises = [promise for line in lines[2:] if (promise := parse(line, run))]
        living = [promise for promise in promises if self._lives(promise, dispatcher)]
        self.others += living
        if not living and not dispatcher and self._fd >= 0:
            files.remove(path)

    def _lives(self, promise: Promise, dispatcher: bool) -> bool:
        """Whether it still holds."""
        at, marker = promise.at, f"{promise.run}/{promise.marker}"
        if os.path.exists(f"{at}/end"):
            return False
        life = _life(at)
        if life in {"running", "orphaned"}:
            return True
        if life == "ended":
            return False
        if life == "starting":
            return dispatcher or os.path.exists(f"{at}/claim") or time.time() - promise.since < _START_S
        if dispatcher and life == "queued" and os.path.isdir(os.path.dirname(at)):
            return True  # its grant is being written
        seen_at, lives = self._swept.get(marker, (-_SWEEP_S, False))
        if time.monotonic() - seen_at >= _SWEEP_S:
            lives = bool(process.marked(marker))
            self._swept[marker] = time.monotonic(), lives
        return lives

    def write(self, promises: Iterable[Promise]) -> bool:
        """Our own file, while we hold the lock: complete, or what it was before."""
        path, lines = f"{self.folder}/{self.run_id}.lease", "".join(promise.line() for promise in promises)
        if not lines:
            files.remove(path)
            return not os.path.exists(path)
        user = re.sub(r"\s", "", os.environ.get("USER", "")) or os.getuid()
        head = f"run={self.run_id} user={user} dispatcher={self._pid} start={self._start} boot={self._boot}"
        before = os.umask(0o022)  # everybody may read it
        written = files.write_text(path, f"comborun-leases 1\n{head}\n{lines}.\n", 0o644)
        os.umask(before)
        if written:
            self._written_at = time.monotonic()
        return written

    @property
    def old(self) -> bool:
        """Whether our file is so old that it should be written again."""
        return time.monotonic() - self._written_at > _REWRITE_S


def lapsed(at: str) -> bool:
    """Whether a promise has not begun for so long that another run may have what it was promised."""
    try:
        return not os.path.exists(f"{at}/claim") and time.time() - os.stat(f"{at}/grant").st_mtime >= _START_S
    except OSError:
        return False


def _life(at: str) -> str:
    """Where an attempt of whichever run is in its life, by its folder."""
    from comborun.host.attempts import QUEUED, RunDirectory

    run, family, name, attempt = at.rsplit("/", 3)
    try:
        return RunDirectory(run).glance(name, int(attempt.rpartition("-")[2]), family).life
    except (LookupError, ValueError):
        return QUEUED


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _same(fd: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except OSError:
        return False
