"""The model servers of a run: started before their clients, again when they end, and ended after their last client.

A server is supervised like a session, below `servers/`; whether it is ready its own files say. A *kind* is what the
grid names; it has one server, or one for each GPU. What the files say counts: a dispatcher that was killed is followed
by one that finds the servers as they are, and the lock of each sees to it that there are never two.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import sys
import time

from comborun.host import files
from comborun.host.attempts import ENDED, LOST, ORPHANED, QUEUED, RUNNING, stopping
from comborun.host.server import ENDING, FAMILY, IDLE, LOADING, READY, STARTING, Server, launch_s
from comborun.rules.placement import Lack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Mapping, Sequence

    from comborun.host.admission import Admission
    from comborun.host.server import Desk


_LEFT = frozenset({QUEUED, STARTING, RUNNING, ORPHANED, "closing", LOST})
"""where a session is that may still ask its servers"""
_FINISH_S, _PAUSE_S = 60.0, 0.05


class Servers:
    """All of them, and which sessions ask which."""

    def __init__(self, run: str, admission: Admission, desk: Desk) -> None:
        self._run = run
        self._admission = admission
        self._desk = desk
        self._servers: dict[str, Server] = {}
        self._asks: dict[str, tuple[str, ...]] = {}
        """session -> the kinds that it asks"""
        self._given: dict[str, list[tuple[str, int]]] = {}
        """session -> name and attempt of those that its attempt was given"""
        self._waiting = ""
        """the server that waits for room which this run takes"""
        self._behind = False
        """sessions have all of that room, so clients of other servers wait behind it, too"""
        self._stuck = ""
        """why no more sessions of a kind can start"""
        self._due = math.inf

    @property
    def any(self) -> bool:
        return bool(self._servers)

    def is_server(self, name: str) -> bool:
        return name in self._servers

    def read(self) -> None:
        """As the files tell; again after an amendment."""
        for row in _rows(f"{self._run}/dispatch/servers.tsv"):
            if len(row) > 3 and re.fullmatch("[a-z0-9-]+", row[0]) and re.fullmatch("[a-z0-9-]+", row[1]):
                self._know([*row, *[""] * 9])
        if not self.any:
            return
        for row in _rows(f"{self._run}/dispatch/queue.tsv"):
            if len(row) > 11 and re.fullmatch("[a-z][a-z0-9-]*(,[a-z][a-z0-9-]*)*", row[11]):
                self._asks[row[0]] = tuple(row[11].split(","))
        self._admission.open()
        self._admission.barred = self.barred
        self.sweep()

    def _know(self, row: Sequence[str]) -> None:
        name, gpus, memory, cpus, host_memory, tokens, only = row[0], *row[3:9]
        new = name not in self._servers
        server = self._servers.setdefault(name, Server(name, self._desk))
        server.read(row)
        columns = (memory, cpus, host_memory, tokens, "-", "0", "0", only)
        self._admission.request(name, int(gpus) if gpus.isdecimal() else 0, columns)
        if new:
            self._adopt(server)

    def _adopt(self, server: Server) -> None:
        """What a former dispatcher has started."""
        attempts = self._desk.attempts
        server.attempt = attempts.latest(server.name, FAMILY)
        life = attempts.look(server.name, server.attempt, FAMILY).life if server.attempt else ENDED
        if life in (ENDED, QUEUED):
            return
        self._desk.journal(f"adopted server {server.name} {server.attempt} {life}")
        server.life = STARTING
        at = server.at()
        grant = files.read(at.grant)
        gpus = [int(gpu) for gpu in grant.get("gpus", "").split(",") if gpu.isdecimal()]
        self._admission.adopt(server.name, gpus, at.directory, grant)
        if life == STARTING and not os.path.exists(at.claim):
            self._open(server)  # if another one is on its way, one of them finds the claim
        else:
            server.expect()

    # The loop

    def descriptors(self) -> list[int]:
        return []

    def due(self) -> float:
        """When one that failed may start again."""
        return self._due

    def serve(self) -> bool:
        if time.monotonic() < self._due:
            return False
        self.sweep()
        return True

    def heard(self, name: str, attempt: int) -> None:
        """Its supervisor or its watch says something."""
        if self._servers[name].attempt == attempt:
            self.sweep()

    def sweep(self) -> None:
        """Look at all of them, and do what is due; reads nothing but files."""
        lives = self._desk.lives()
        wanted = {kind for session, kinds in self._asks.items() if lives.get(session) in _LEFT for kind in kinds}
        self._waiting, self._stuck, self._due = "", "", math.inf
        for server in self._servers.values():
            server.refused = None
            self._tend(server, server.kind in wanted)
        if self._stuck:
            self._halt(lives)

    def again(self) -> None:
        """Those that wait for room, before any session takes it."""
        refused = [server for server in self._servers.values() if server.refused]
        self._waiting = ""
        for server in refused:
            server.refused = None
            self._tend(server, wanted=True)

    def _tend(self, server: Server, wanted: bool) -> None:
        self._look(server)
        if not wanted:
            if server.life not in (IDLE, ENDING):
                self._end(server, "nobody is left who asks it")
        elif server.life == IDLE:
            self._start(server)

    def _look(self, server: Server) -> None:
        """Where it is, as its files tell."""
        before = server.life
        if before == IDLE:
            return
        seen = self._desk.attempts.look(server.name, server.attempt, FAMILY)
        if seen.life == ENDED:
            self._ended(server, seen.record)
        elif seen.life == LOST:
            self._bury(server)
        elif seen.life in (STARTING, QUEUED):
            self._overdue(server)
        elif before != ENDING:
            self._live(server, before, seen.life)

    def _live(self, server: Server, before: str, life: str) -> None:
        at = server.at()
        if stopping(at):
            self._end(server, "it was to end")
            return
        server.life = LOADING
        if os.path.exists(at.unhealthy):
            self._complain(server, f"the server {server.name} does not answer")
        elif os.path.exists(at.ready):
            server.life = READY
        if life == ORPHANED and (server.watcher is None or server.watcher.poll() is not None):
            server.watcher = self._desk.watch(server.name, server.attempt, FAMILY)
        if server.life != before:
            self._desk.journal(f"server {server.name} {server.attempt} {server.life}")

    # The start

    def _start(self, server: Server) -> None:
        """When it may, and there is room for it: the grant first, then the journal, then the window."""
        if self._desk.hold.kind or self._too_often(server):
            return
        number = server.attempt + 1
        at = server.at(number)
        gpus = self._admission.take(server.name, at.directory)
        if isinstance(gpus, Lack):
            self._refuse(server, gpus)
            return
        with contextlib.suppress(OSError):  # then the grant can't be written either
            os.makedirs(at.output, exist_ok=True)
        grant = {**self._admission.grant(server.name, gpus), "server": server.name}
        if not files.write(at.grant, grant.items()):
            self._admission.give_back(server.name)
            return
        server.attempt, server.life = number, STARTING
        self._desk.journal(f"serve {server.name} {number} {','.join(map(str, gpus))}")
        self._open(server)

    def _too_often(self, server: Server) -> bool:
        """Whether it has failed so often in a row that it is not started any more, or not yet."""
        count, left = server.failures()
        if count > server.restarts:
            self._stuck = f"the server {server.name} ended {count} times in a row ({server.how()})"
            self._stuck += f"; its log is servers/{server.name}/attempt-{server.attempt}/log"
            return True
        if left:
            self._due = min(self._due, time.monotonic() + left)
        return left > 0

    def _refuse(self, server: Server, lack: Lack) -> None:
        """It waits for room; sessions that would take that wait behind it."""
        server.refused = lack
        if lack.reason != "unknown" and not self._admission.possible(server.name):
            return  # others than this run are in the way
        if not self._waiting:
            self._waiting = server.name
            sessions_in_the_way = self._desk.busy or lack.reason == "unknown"
            # It may wait for what another server has: that ends when its clients have, and these must not wait for it.
            self._behind = bool(sessions_in_the_way) and self._admission.fits_beside(server.name, self._servers)

    def _open(self, server: Server) -> None:
        server.opening = self._desk.open_window(server.name, server.attempt)
        server.expect()

    def _overdue(self, server: Server) -> None:
        """It has not begun; if it comes late after all, it finds the claim and leaves."""
        code = server.opening.poll() if server.opening else None
        if code is not None:
            server.opening = None
        if not code and time.monotonic() < server.due:
            return
        late = f"it did not begin within {launch_s():g} s"
        note = f"its window was refused (code {code})" if code else late
        if self._desk.attempts.forestall(server.name, server.attempt, "launch_failed", note, FAMILY):
            self._look(server)
        else:
            server.expect()

    # The end

    def _ended(self, server: Server, end: Mapping[str, str]) -> None:
        server.life = IDLE
        self._admission.give_back(server.name)
        cause, code, note = end.get("cause", ""), end.get("code", ""), end.get("note", "")
        self._desk.journal(f"server-ended {server.name} {server.attempt} {cause} {code}")
        if cause not in ("stopped", "not_needed"):
            how = f"{cause}, code {code}" if code else cause
            self._complain(server, f"the server {server.name} ended ({how})" + (f": {note}" if note else ""))

    def _complain(self, server: Server, what: str) -> None:
        """Once for each attempt."""
        if server.complained != server.attempt:
            server.complained = server.attempt
            self._desk.notify("host", "", what)

    def _bury(self, server: Server) -> None:
        """In the background, as with a session."""
        if server.busy_ending():
            return
        self._desk.journal(f"server-lost {server.name} {server.attempt}")
        attempts, name, number = self._desk.attempts, server.name, server.attempt

        def bury() -> None:
            attempts.bury(name, number, FAMILY)
            files.tell(attempts.layout.fifo, f"ended {name} {number}")

        server.ender = self._desk.in_child(bury)
        if server.life != ENDING:
            server.life = LOADING  # not ready, whatever its files have said

    def _end(self, server: Server, why: str) -> None:
        """INT, TERM, KILL in the background."""
        if server.busy_ending():
            return
        self._desk.journal(f"server-end {server.name} {server.attempt} {why}")
        server.life = ENDING
        run, name = self._run, server.name
        server.ender = self._desk.in_child(lambda: _stop(run, name))

    def finish(self) -> None:
        """End all that live, and wait for it: the run is over, or nothing of it runs."""
        for server in self._servers.values():
            self._look(server)
            if server.life not in (IDLE, ENDING):
                self._end(server, "no session is left")
        deadline = time.monotonic() + _FINISH_S
        for server in self._servers.values():
            while server.life != IDLE and time.monotonic() < deadline:
                if not server.busy_ending():
                    self._look(server)
                time.sleep(_PAUSE_S)
            if server.life != IDLE:
                self._desk.journal(f"server-survives {server.name} {server.attempt}")

    def _halt(self, lives: Mapping[str, str]) -> None:
        """Nothing runs, and all that waits asks a server that can't be had."""
        if self._desk.busy:
            return
        there = {server.kind for server in self._servers.values() if server.life != IDLE}
        waiting = [session for session, life in lives.items() if life == QUEUED]
        if all(set(self._asks.get(session, ())) - there for session in waiting):
            self._desk.halt(self._stuck)

    # Their clients

    def grant(self, session: str, gpus: Sequence[int]) -> dict[str, object]:
        """Fields of its grant: where its servers are. Raises LookupError when one has gone meanwhile."""
        kinds = self._asks.get(session, ())
        if not kinds:
            return {}
        chosen = [(kind, self._of(kind, gpus[0] if gpus else None)) for kind in kinds]
        ready = [files.read(one.at().ready) for _, one in chosen]
        self._given[session] = [(one.name, one.attempt) for _, one in chosen]
        urls = {f"server_{kind}": record.get("url", "") for (kind, _), record in zip(chosen, ready)}
        return {**urls, "served_by": " ".join(f"{name}/{number}" for name, number in self._given[session])}

    def _of(self, kind: str, gpu: int | None) -> Server:
        """One that is ready: that of its GPU, else the one that serves the fewest. Raises LookupError."""
        ready = [one for one in self._servers.values() if one.kind == kind and one.life == READY]
        ready = [one for one in ready if one.gpu is None or gpu is None or one.gpu == gpu]
        if not ready:
            raise LookupError(kind)
        lives = self._desk.lives()
        running = [name for name in self._given if lives.get(name) in (STARTING, RUNNING, ORPHANED)]
        given = [(name, number) for session in running for name, number in self._given[session]]
        return min(ready, key=lambda one: given.count((one.name, one.attempt)))

    def outlive(self, session: str) -> bool:
        """Whether the servers that its attempt was given are all there still, be they dead inside or not."""
        given = self._given.get(session, [])
        lives = [self._desk.attempts.glance(name, number, FAMILY).life for name, number in given]
        return bool(lives) and all(life in (RUNNING, ORPHANED) for life in lives)

    def holds_back(self, session: str) -> bool:
        """Whether not all that it asks are ready somewhere, or a server that waits for room comes first."""
        kinds = self._asks.get(session, ())
        if set(kinds) - {server.kind for server in self._servers.values() if server.life == READY}:
            return True
        behind = bool(self._waiting) and (not kinds or self._behind)
        return behind and self._admission.contend(session, self._waiting, self.barred(session))

    def barred(self, session: str) -> set[int]:
        """GPUs on which a server that it asks is not ready."""
        kinds = self._asks.get(session, ())
        mine = [server for server in self._servers.values() if server.kind in kinds and server.life != READY]
        return {server.gpu for server in mine if server.gpu is not None}

    def waits(self, names: Sequence[str]) -> list[tuple[str, str, str, str]]:
        """Lines of dispatch/waiting: of servers, and of the sessions that wait for them."""
        refused = [(server.name, server.refused) for server in self._servers.values() if server.refused]
        lines = [(name, lack.reason, "", lack.why) for name, lack in refused]
        ready = {server.kind for server in self._servers.values() if server.life == READY}
        for name in names:
            missing = [kind for kind in self._asks.get(name, ()) if kind not in ready]
            if missing:
                lines.append((name, "server", "", missing[0]))
        return lines


def _stop(run: str, name: str) -> None:
    """In a process of its own."""
    program = f"{run}/lib/comborun_host"
    os.execv(sys.executable, [sys.executable, "-I", "-S", program, "stop", run, "--server", name])


def _rows(path: str) -> list[list[str]]:
    return [line.split("\t") for line in files.read_text(path, 1 << 26).split("\n") if line]
