"""Which model servers a run needs, and whom they serve. A server is a session that becomes ready and has clients.

It starts before its clients, starts again when it ends, and is ended after its last client. Its own files say whether
it is ready. A *kind* is an entry of the grid; it has one server, or one for each GPU.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence

from comborun.host.dispatch.run_policy import RunPolicy
from comborun.host.dispatch.run_state import LocalState
from comborun.host.dispatch.sessions import Alive, Ending, Granted, Queued, Server, Session
from comborun.host.record import queue
from comborun.host.record.run_directory import stopping
from comborun.host.system import files
from comborun.host.system.process import setting
from comborun.rules import records
from comborun.rules.endings import breaker
from comborun.rules.events import Kind
from comborun.rules.facts import Fact
from comborun.rules.holds import HoldReason, Notice, ServerStop
from comborun.rules.names import SERVER, AttemptLayout
from comborun.rules.room.waits import Wait

_RESTARTS = 3


class Servers:
    def __init__(self, run: LocalState, policy: RunPolicy) -> None:
        self._run = run
        self._policy = policy
        run.admission.barred = self._barred
        self._servers = run.queue.servers
        self._given: dict[str, list[tuple[str, int]]] = {}
        """session -> name and attempt of the servers that its attempt got"""
        self._stuck: Fact | None = None
        """why no more sessions of a kind can start"""

    def read(self) -> list[Server]:
        """Read servers.jsonl; again after an amendment. Returns the servers that it did not know."""
        new = []
        for row in files.read_rows(self._run.layout.server_table):
            name, kind = queue.text(row, "name"), queue.text(row, "kind")
            if not (SERVER.fullmatch(name) and SERVER.fullmatch(kind)):
                continue
            self._run.admission.register(name, queue.request(row))
            if name not in self._servers:
                self._servers[name] = Server(name)
                new.append(self._servers[name])
            server, restarts = self._servers[name], records.integer(row, "restarts")
            server.kind, server.gpu = kind, records.integer(row, "gpu")
            server.restarts = _RESTARTS if restarts is None else restarts
        if self._servers:
            self._run.admission.open()
        return new

    def sweep(self) -> None:
        """Decide which servers must start, and end those without clients. Reads only files."""
        if not self._servers:
            return
        wanted = {kind for one in self._run.queue.sessions.values() if one.state.left for kind in one.servers}
        self._stuck = None
        for server in self._servers.values():
            server.due = not server.lives and server.kind in wanted and not self._too_often(server)
            if not server.due:
                server.refused = None
            if server.kind not in wanted:
                self.end(server, ServerStop.UNUSED)
        if self._stuck and not self._run.queue.busy:  # halt if all that wait need a server that can't be had
            there = {server.kind for server in self._servers.values() if server.lives}
            waiting = [one for one in self._run.queue.sessions.values() if isinstance(one.state, Queued)]
            if all(set(session.servers) - there for session in waiting):
                self._run.halt(self._stuck)

    def reserve(self) -> None:
        """Reserve what servers wait for, so that no session takes it in this round."""
        others = [server.name for server in self._servers.values() if server.lives]
        for server in self._servers.values():
            if server.refused:
                self._run.admission.reserve(server.name, others)

    def follow(self, server: Server, state: Alive) -> None:
        """Find out whether a server that lives is ready, or was told to end."""
        at, before = self._at(server), state.ready
        if stopping(at):
            self.end(server, ServerStop.ORDERED)
            return
        unhealthy = os.path.exists(at.unhealthy)
        state.ready = not unhealthy and os.path.exists(at.ready)
        if unhealthy:
            self._policy.report_server(server.path, server.attempt, Fact(Notice.SERVER_SILENT, server=server.name))
        if state.ready != before:
            self._run.events.write(Kind.READY if state.ready else Kind.LOADING, server.path, server.attempt)

    def end(self, server: Server, why: ServerStop) -> None:
        """Send INT, TERM and KILL in the background, if it lives."""
        if isinstance(server.state, Granted) and not isinstance(server.state, Ending):
            self._run.events.write(Kind.ENDING, server.path, server.attempt, reason=Fact(why))
            ender = self._run.run_program("stop", "--server", server.name)
            self._run.queue.set(server, Ending(server.state.gpus, ender))

    # Restarts

    def _too_often(self, server: Server) -> bool:
        """Whether it has failed so often in a row that it is not started any more, or not yet."""
        count, last = breaker.failures(self._past(server))
        if count > server.restarts:
            end = files.read(self._at(server).end)
            cause = {"cause": end.get("class") or end.get("cause", ""), "exit_code": end.get("code", "")}
            attempt = {"attempt": server.attempt, **records.how_ended(end)}
            self._stuck = Fact(HoldReason.SERVER_ENDS, server=server.name, times=count, **cause, **attempt)
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

    def _at(self, server: Server, number: int = 0) -> AttemptLayout:
        """The files of an attempt; by default of the latest one."""
        return self._run.attempts.at(server.path, number or server.attempt)

    # Their clients

    def grant(self, session: Session, gpus: Sequence[int]) -> dict[str, object]:
        """Fields of a session's grant: the addresses of its servers. Raises LookupError if one is gone."""
        if not session.servers:
            return {}
        chosen = [(kind, self._of(kind, gpus[0] if gpus else None)) for kind in session.servers]
        self._given[session.name] = [(one.name, one.attempt) for _, one in chosen]
        urls = {f"server_{kind}": files.read(self._at(one).ready).get("url", "") for kind, one in chosen}
        return {**urls, "served_by": " ".join(f"{name}/{number}" for name, number in self._given[session.name])}

    def _of(self, kind: str, gpu: int | None) -> Server:
        """A ready server: the one of its GPU, else the one that serves the fewest. Raises LookupError."""
        ready = [one for one in self._servers.values() if one.kind == kind and one.ready]
        ready = [one for one in ready if one.gpu is None or gpu is None or one.gpu == gpu]
        if not ready:
            raise LookupError(kind)
        sessions = self._run.queue.sessions
        running = [name for name in self._given if sessions[name].state.takes_slot]
        given = [one for name in running for one in self._given[name]]
        return min(ready, key=lambda one: given.count((one.name, one.attempt)))

    def _ready(self) -> set[str]:
        return {server.kind for server in self._servers.values() if server.ready}

    def holds_back(self, session: Session) -> bool:
        """Whether one of its servers is ready nowhere."""
        return bool(session.servers) and bool(set(session.servers) - self._ready())

    def _barred(self, session: str) -> set[int]:
        """GPUs on which one of its servers is not ready."""
        kinds = self._run.queue[session].servers if session in self._run.queue.sessions else ()
        mine = [server for server in self._servers.values() if server.kind in kinds and not server.ready]
        return {server.gpu for server in mine if server.gpu is not None}

    def waits(self, names: Iterable[str]) -> list[tuple[str, Fact]]:
        """What servers wait for, and sessions that wait for a server."""
        waits = [(server.name, server.refused.fact) for server in self._servers.values() if server.refused]
        ready = self._ready()
        missing = [(name, [kind for kind in self._run.queue[name].servers if kind not in ready]) for name in names]
        return waits + [(name, Fact(Wait.SERVER_NOT_READY, server=kinds[0])) for name, kinds in missing if kinds]
