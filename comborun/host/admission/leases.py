"""The lease files of this user's runs on this host: two runs never lease the same resource.

One folder per user, readable by everybody, with a JSON file for each run, written under one lock. A lease ends
with its attempt, or when none of its processes lives, so a crash leaves no lease behind.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Iterable

from comborun.host.system import files, process
from comborun.host.system.ownership import members, roots
from comborun.rules.facts import Fact
from comborun.rules.machines import MACHINE
from comborun.rules.names import AttemptLayout, attempt_number
from comborun.rules.room.ledger import Lease
from comborun.rules.room.waits import Wait
from comborun.rules.vocabulary import Life

_LOCK_S, _LOCKED_PAUSE_S = 0.5, 1.0
_START_S = 60
"""seconds in which a session must begin, else its lease ends if its dispatcher is dead"""
_SWEEP_S = 5.0
"""seconds for which the result of a search for a vanished session's processes is kept"""


class Leases:
    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.folder = files.usual_folder(files.LEASES)
        self.others: list[Lease] = []
        """valid leases of other runs"""
        self._own = process.identity()
        self._fd = -1
        self._locked_at = -_LOCKED_PAUSE_S
        self._swept: dict[str, tuple[float, bool]] = {}
        self._opened = False

    def enter(self) -> Fact | None:
        """Take the lock and read all leases. Returns why that fails, or None."""
        if flaw := self._open():
            return Fact(Wait.LEASES_UNUSABLE, flaw=flaw.as_data())
        busy = Fact(Wait.LEASES_LOCKED, folder=self.folder)
        if time.monotonic() - self._locked_at <= _LOCKED_PAUSE_S:
            return busy  # a stopped process may hold it; sessions without a lease go on
        before = os.umask(0o022)
        try:
            self._fd = files.lock(f"{self.folder}/lock", _LOCK_S)
        except OSError:
            self._opened = False
            return Fact(Wait.LEASES_UNWRITABLE, folder=self.folder)
        finally:
            os.umask(before)
        if self._fd < 0:
            self._locked_at = time.monotonic()
            return busy
        if not files.leads_to(f"{self.folder}/lock", self._fd):  # the file was replaced, and others lock the new one
            self.leave()
            return busy
        self.read()
        return None

    def leave(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def _open(self) -> Fact | None:
        """Open the folder. Returns why it is missing, or writable by others; None if it is fine."""
        if self._opened:
            return None
        self.folder, flaw = files.shared_folder(files.LEASES)
        self._opened = flaw is None
        return flaw

    def read(self) -> None:
        self.others = []
        if not self._open():
            for name in files.entries(self.folder):
                if name.endswith(".lease") and name != f"{self.run_id}.lease":
                    self._read(f"{self.folder}/{name}", name[: -len(".lease")])

    def _read(self, path: str, run: str) -> None:
        """Read the file of another run. A file of another user or boot is skipped."""
        try:
            found = os.lstat(path)
            document = json.loads(files.read_text(path))
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid() or document["boot"] != self._own["boot"]:
                return
            dispatcher = process.named({**document, "pid": document["dispatcher"]})
            leases = [Lease.of(run, one) for one in document["promises"]]
        except (OSError, ValueError, TypeError, KeyError):
            return
        living = [lease for lease in leases if self._lives(lease, dispatcher)]
        self.others += living
        if not living and not dispatcher and self._fd >= 0:
            files.remove(path)

    def _lives(self, lease: Lease, dispatcher: bool) -> bool:
        at, marker = AttemptLayout(lease.at), lease.marker
        life = Life.ENDED if os.path.exists(at.end) else _life(lease.at)
        if life in (Life.RUNNING, Life.ORPHANED, Life.ENDED):
            return life is not Life.ENDED
        if life is Life.STARTING:
            return dispatcher or os.path.exists(at.claim) or time.time() - lease.since < _START_S
        if dispatcher and life is Life.QUEUED and os.path.isdir(os.path.dirname(lease.at)):
            return True  # its grant is being written
        seen_at, lives = self._swept.get(marker, (-_SWEEP_S, False))
        if time.monotonic() - seen_at >= _SWEEP_S:
            known = roots(marker, files.read(at.claim), files.read(at.begin))
            lives = bool(members(marker, known))
            self._swept[marker] = time.monotonic(), lives
        return lives

    def write(self, leases: Iterable[Lease]) -> bool:
        """Write our own file, under the lock; it is new and complete, or unchanged."""
        path, rows = f"{self.folder}/{self.run_id}.lease", [lease.as_data() for lease in leases]
        if not rows:
            files.remove(path)
            return not os.path.exists(path)
        head = {"dispatcher": self._own["pid"], **{key: self._own[key] for key in ("start", *MACHINE)}}
        before = os.umask(0o022)  # everybody may read it
        written = files.write_text(path, json.dumps({**head, "promises": rows}) + "\n", 0o644)
        os.umask(before)
        return written


def lapsed(at: str) -> bool:
    """Whether an attempt was so slow to begin that another run may have its lease."""
    try:
        files_of = AttemptLayout(at)
        return not os.path.exists(files_of.claim) and time.time() - os.stat(files_of.grant).st_mtime >= _START_S
    except OSError:
        return False


def _life(at: str) -> Life:
    """The life of an attempt of any run, by its folder."""
    from comborun.host.record.run_directory import RunDirectory

    try:
        run, family, name, attempt = at.rsplit("/", 3)
        name = name if family == "sessions" else f"{family}/{name}"
        return RunDirectory(run).glance(name, attempt_number(attempt)).life
    except (LookupError, ValueError):
        return Life.QUEUED
