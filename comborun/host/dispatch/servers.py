"""The model servers of a run: started before their clients, again when they end, and ended after their last client.

A server is supervised like a session, below `servers/`; its own files say whether it is ready. A *kind* is an entry of
the grid; it has one server, or one for each GPU. All state is in files, so a new dispatcher takes over the servers of a
killed one. Each server has a lock, so it never runs twice.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from dataclasses import dataclass

from comborun.host.engines import launch_s
from comborun.host.record import queue
from comborun.host.record.attempts import ENDED, LOST, ORPHANED, QUEUED, RUNNING, stopping
from comborun.host.system import files, machine
from comborun.host.system.process import setting
from comborun.rules import records
from comborun.rules.endings import breaker
from comborun.rules.facts import Fact
from comborun.rules.holds import HoldReason, Notice
from comborun.rules.names import SERVERS
from comborun.rules.room.placement import Blocker
from comborun.rules.room.waits import Wait

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Iterator, Mapping, Sequence

    from comborun.host.dispatch.lifecycle import Lifecycle
    from comborun.host.system.children import Opening
    from comborun.rules.names import AttemptLayout

IDLE, STARTING, LOADING, READY, ENDING = "idle", "starting", "loading", "ready", "ending"
_RESTARTS = 3
_FINISH_S, _PAUSE_S = 60.0, 0.05
_NAME = re.compile("[a-z0-9-]+")


@dataclass
class Server:
    """A server and its state: idle, starting, loading, ready, ending."""

    name: str
    kind: str
    gpu: int | None
    """the GPU whose sessions it serves; None: it is the only one of its kind"""
    restarts: int
    """most restarts in a row"""
    life: str = IDLE
    attempt: int = 0
    complained: int = 0
    """the attempt whose failure was reported"""
    refused: Blocker | None = None
    """what it waits for before it can start"""
    due: float = 0.0
    """when its begin is overdue"""
    opening: Opening | None = None
    watcher: Opening | None = None
    ender: Opening | None = None
    """the child that ends or finalizes it"""

    @property
    def path(self) -> str:
        return SERVERS + self.name

    @property
    def busy_ending(self) -> bool:
        return self.ender is not None and self.ender.poll() is None


class Servers:
    def __init__(self, run: Lifecycle) -> None:
        self._run = run
        self._attempts = run.attempts
        self._admission = run.admission
        self._admission.barred = self._barred
        self._servers: dict[str, Server] = {}
        self.kinds_of: dict[str, tuple[str, ...]] = {}
        """session -> the kinds of servers that it uses"""
        self._given: dict[str, list[tuple[str, int]]] = {}
        """session -> name and attempt of the servers that its attempt got"""
        self._stuck: Fact | None = None
        """why no more sessions of a kind can start"""

    def read(self) -> None:
        """Read servers.jsonl; again after an amendment."""
        for fields in files.read_rows(self._run.layout.server_table):
            if _NAME.fullmatch(queue.text(fields, "name")) and _NAME.fullmatch(queue.text(fields, "kind")):
                self._know(fields)
        if self._servers:
            self._admission.open()
            self.sweep()

    def _know(self, row: Mapping[str, Any]) -> None:
        name, restarts = row["name"], records.integer(row, "restarts")
        self._admission.register(name, queue.request(row))
        fields = row["kind"], records.integer(row, "gpu"), _RESTARTS if restarts is None else restarts
        if name in self._servers:
            server = self._servers[name]
            server.kind, server.gpu, server.restarts = fields
        else:
            server = self._servers[name] = Server(name, *fields)
            self._adopt(server)

    def _adopt(self, server: Server) -> None:
        server.attempt = self._attempts.latest(server.path)
        life = self._attempts.look(server.path, server.attempt).life if server.attempt else ENDED
        if life in (ENDED, QUEUED):
            return
        self._run.journal(f"adopted server {server.name} {server.attempt} {life}")
        server.life = STARTING
        at = self._at(server)
        grant = files.read(at.grant)
        self._admission.adopt(server.name, records.integers(grant, "gpus"), at.directory, grant)
        if life == STARTING and not os.path.exists(at.claim):
            self._open(server)  # if another one is starting, one of them finds the claim
        else:
            server.due = time.monotonic() + launch_s()

    def _at(self, server: Server, number: int = 0) -> AttemptLayout:
        """The files of an attempt; by default of the latest one."""
        return self._attempts.at(server.path, number or server.attempt)

    # The loop

    def on_message(self, name: str, attempt: int) -> bool:
        """Follow a message about a server; False if it is about something else."""
        server = self._servers.get(name)
        if server and server.attempt == attempt:
            self.sweep()
        return server is not None

    def sweep(self) -> None:
        """Look at all servers and do what is due. Reads only files."""
        left = {name for name, session in self._run.queue.sessions.items() if session.life in queue.LEFT}
        wanted = {kind for name, kinds in self.kinds_of.items() if name in left for kind in kinds}
        self._stuck = None
        for server in self._servers.values():
            server.refused = None
            self._tend(server, server.kind in wanted)
        if self._stuck and not self._run.queue.busy:
            self._halt(self._stuck)

    def _halt(self, why: Fact) -> None:
        """Halt if nothing runs and all that wait need a server that can't be had."""
        there = {server.kind for server in self._servers.values() if server.life != IDLE}
        waiting = [session.name for session in self._run.queue.sessions.values() if session.life == QUEUED]
        if all(set(self.kinds_of.get(name, ())) - there for name in waiting):
            self._run.halt(why)

    def again(self) -> None:
        """Try to start servers that wait for room, before any session takes it."""
        for server in [server for server in self._servers.values() if server.refused]:
            server.refused = None
            self._tend(server, wanted=True)

    def keep(self) -> None:
        """Reserve what servers wait for, so that no session takes it in this round."""
        others = [server.name for server in self._servers.values() if server.life != IDLE]
        for server in self._servers.values():
            if server.refused:
                self._admission.keep(server.name, others)

    def _tend(self, server: Server, wanted: bool) -> None:
        self._look(server)
        if server.life == IDLE and wanted:
            self._start(server)
        elif server.life not in (IDLE, ENDING) and not wanted:
            self._end(server, "nobody is left who asks it")

    def _look(self, server: Server) -> None:
        if server.life == IDLE:
            return
        seen = self._attempts.look(server.path, server.attempt)
        if seen.life == ENDED:
            self._ended(server, seen.record)
        elif seen.life == LOST:
            self._finalize_lost(server)
        elif seen.life in (STARTING, QUEUED):
            self._overdue(server)
        elif server.life != ENDING:
            self._live(server, seen.life)

    def _live(self, server: Server, life: str) -> None:
        at, before = self._at(server), server.life
        if stopping(at):
            self._end(server, "it was to end")
            return
        server.life = LOADING
        if os.path.exists(at.unhealthy):
            self._complain(server, Fact(Notice.SERVER_SILENT, server=server.name))
        elif os.path.exists(at.ready):
            server.life = READY
        if life == ORPHANED and (server.watcher is None or server.watcher.poll() is not None):
            server.watcher = self._run.watch(server.path, server.attempt)
        if server.life != before:
            self._run.journal(f"server {server.name} {server.attempt} {server.life}")

    # The start

    def _start(self, server: Server) -> None:
        """Start it if it may start and there is room: first the grant, then the journal, then the window."""
        if self._run.hold.kind or self._too_often(server):
            return
        number = server.attempt + 1
        at = self._at(server, number)
        gpus = self._admission.take(server.name, at.directory)
        if isinstance(gpus, Blocker):
            server.refused = gpus
            return
        with contextlib.suppress(OSError):  # in that case the grant fails too
            os.makedirs(at.output, exist_ok=True)
        grant = {**self._admission.grant(server.name, gpus), "server": server.name}
        if not files.write(at.grant, grant.items()):
            self._admission.give_back(server.name)
            return
        server.attempt, server.life = number, STARTING
        self._run.journal(f"serve {server.name} {number} {','.join(map(str, gpus))}")
        self._open(server)

    def _too_often(self, server: Server) -> bool:
        """Whether it has failed so often in a row that it is not started any more, or not yet."""
        count, last = breaker.failures(self._past(server))
        if count > server.restarts:
            end = files.read(self._at(server).end)
            how = {"cause": end.get("class") or end.get("cause", ""), "exit_code": end.get("code", "")}
            attempt = {"attempt": server.attempt, "note": end.get("note", "")}
            self._stuck = Fact(HoldReason.SERVER_ENDS, server=server.name, times=count, **how, **attempt)
            return True
        wait = breaker.restart_wait_s(count, setting("COMBORUN_SERVER_WAIT_MS", 2000) / 1000)
        return 0 < last + wait - time.time() <= wait  # a clock that was set back makes no wait longer

    def _past(self, server: Server) -> Iterator[tuple[float | None, float | None]]:
        """When each attempt failed and became ready, newest first; from files alone, as retries are."""
        for number in range(server.attempt, 0, -1):
            end = files.read(self._at(server, number).end)
            by_hand = end.get("cause") in ("stopped", "not_needed") or self._run.holds.forgiven(end.get("ended", ""))
            ready = files.read(self._at(server, number).ready)
            yield None if by_hand else records.seconds(end, "ended"), records.seconds(ready, "at")

    def _open(self, server: Server) -> None:
        words = self._run.program("session", server.path, server.attempt, self._run.engine.kind)
        (server.opening,) = self._run.open_windows([(server.name, server.attempt, words)])
        server.due = time.monotonic() + launch_s()

    def _overdue(self, server: Server) -> None:
        """Handle a server that did not begin in time. If it begins later, it finds the claim and leaves."""
        code = server.opening.poll() if server.opening else None
        if code is not None:
            server.opening = None
        if not code and time.monotonic() < server.due:
            return
        if code and machine.limit_reached():
            self._open(server)  # and it is looked at again later
            return
        late = f"it did not begin within {launch_s():g} s"
        note = f"its window was refused (code {code})" if code else late
        if self._attempts.cancel_unstarted(server.path, server.attempt, "launch_failed", note):
            self._look(server)
        else:
            server.due = time.monotonic() + launch_s()

    # The end

    def _ended(self, server: Server, end: Mapping[str, Any]) -> None:
        server.life = IDLE
        self._admission.give_back(server.name)
        cause, code, note = end.get("cause", ""), end.get("code", ""), end.get("note", "")
        self._run.journal(f"server-ended {server.name} {server.attempt} {cause} {code}")
        if cause not in ("stopped", "not_needed"):
            self._complain(
                server, Fact(Notice.SERVER_ENDED, server=server.name, cause=cause, exit_code=code, note=note)
            )

    def _complain(self, server: Server, what: Fact) -> None:
        """Send a notice about its failure, once for each attempt."""
        if server.complained != server.attempt:
            server.complained = server.attempt
            self._run.notices.tell("host", "", what)

    def _finalize_lost(self, server: Server) -> None:
        """Write the end of a lost server in the background."""
        if server.busy_ending:
            return
        self._run.journal(f"server-lost {server.name} {server.attempt}")
        server.ender = self._run.finalize_lost(server.path, server.attempt)
        if server.life != ENDING:
            server.life = LOADING  # not ready, even if its files say so

    def _end(self, server: Server, why: str) -> None:
        """Send INT, TERM and KILL in the background."""
        if not server.busy_ending:
            self._run.journal(f"server-end {server.name} {server.attempt} {why}")
            server.life = ENDING
            server.ender = self._run.run_program("stop", "--server", server.name)

    def finish(self) -> None:
        """End all live servers and wait for that: the run is over, or none of its sessions runs."""
        for server in self._servers.values():
            self._look(server)
            if server.life not in (IDLE, ENDING):
                self._end(server, "no session is left")
        deadline = time.monotonic() + _FINISH_S
        for server in self._servers.values():
            while server.life != IDLE and time.monotonic() < deadline:
                if not server.busy_ending:
                    self._look(server)
                time.sleep(_PAUSE_S)
            if server.life != IDLE:
                self._run.journal(f"server-survives {server.name} {server.attempt}")

    # Their clients

    def grant(self, session: str, gpus: Sequence[int]) -> dict[str, object]:
        """Fields of a session's grant: the addresses of its servers. Raises LookupError if one is gone."""
        kinds = self.kinds_of.get(session, ())
        if not kinds:
            return {}
        chosen = [(kind, self._of(kind, gpus[0] if gpus else None)) for kind in kinds]
        self._given[session] = [(one.name, one.attempt) for _, one in chosen]
        urls = {f"server_{kind}": files.read(self._at(one).ready).get("url", "") for kind, one in chosen}
        return {**urls, "served_by": " ".join(f"{name}/{number}" for name, number in self._given[session])}

    def _of(self, kind: str, gpu: int | None) -> Server:
        """A ready server: the one of its GPU, else the one that serves the fewest. Raises LookupError."""
        ready = [one for one in self._servers.values() if one.kind == kind and one.life == READY]
        ready = [one for one in ready if one.gpu is None or gpu is None or one.gpu == gpu]
        if not ready:
            raise LookupError(kind)
        sessions = self._run.queue.sessions
        running = [name for name in self._given if sessions[name].life in (STARTING, RUNNING, ORPHANED)]
        given = [one for name in running for one in self._given[name]]
        return min(ready, key=lambda one: given.count((one.name, one.attempt)))

    def _ready(self) -> set[str]:
        return {server.kind for server in self._servers.values() if server.life == READY}

    def holds_back(self, session: str) -> bool:
        """Whether one of its servers is ready nowhere."""
        kinds = self.kinds_of.get(session, ())
        return bool(kinds) and bool(set(kinds) - self._ready())

    def _barred(self, session: str) -> set[int]:
        """GPUs on which one of its servers is not ready."""
        kinds = self.kinds_of.get(session, ())
        mine = [server for server in self._servers.values() if server.kind in kinds and server.life != READY]
        return {server.gpu for server in mine if server.gpu is not None}

    def waits(self, names: Iterable[str]) -> list[tuple[str, Fact]]:
        """What servers wait for, and sessions that wait for a server."""
        waits = [(server.name, server.refused.fact) for server in self._servers.values() if server.refused]
        ready = self._ready()
        missing = [(name, [kind for kind in self.kinds_of.get(name, ()) if kind not in ready]) for name in names]
        return waits + [(name, Fact(Wait.SERVER_NOT_READY, server=kinds[0])) for name, kinds in missing if kinds]
