"""The sessions of a run on this machine: taken over as their files show them, and looked at while they live."""

from __future__ import annotations

import os
import signal

from comborun.host.dispatch import sessions as states
from comborun.host.dispatch.ends import Ends
from comborun.host.dispatch.launching import Launcher, complain, starting
from comborun.host.dispatch.run_policy import RunPolicy
from comborun.host.dispatch.run_state import LocalState
from comborun.host.dispatch.servers import Servers
from comborun.host.dispatch.sessions import Server, Session
from comborun.host.record.queue import DROPPED
from comborun.host.record.run_directory import AttemptState
from comborun.host.system import files, process
from comborun.rules import records
from comborun.rules.endings.evidence import Evidence, fact
from comborun.rules.events import Kind
from comborun.rules.facts import Fact
from comborun.rules.holds import Notice
from comborun.rules.vocabulary import Life


class Lifecycle:
    """Follows sessions between their starts and their ends, by their files."""

    def __init__(
        self, run: LocalState, policy: RunPolicy, ends: Ends, launcher: Launcher, servers: Servers, *, person: bool
    ) -> None:
        """`person`: a user has started this dispatcher."""
        self._run = run
        self._policy = policy
        self._ends = ends
        self._launcher = launcher
        self._servers = servers
        self._person = person

    # Adoption: at the start, after an amendment, and after a resume

    def adopt(self) -> None:
        """Take over every session in the state that its files show."""
        queue, vanished = self._run.queue, []
        for session in queue:
            vanished += self.adopt_one(session)
        self._policy.report_new_ends(list(queue))
        self._ends.close_gpus()
        self._judge_all(vanished)
        self._run.events.write(Kind.TAKEN_OVER, left=queue.left, busy=queue.busy)

    def reread(self) -> list[Session]:
        """Follow an amendment, or new rules for results. Returns the sessions that it took out of the queue."""
        vanished, dropped = [], []
        for session in list(self._run.queue):
            state = session.state
            if isinstance(state, states.Queued) and session.flag == DROPPED:
                self._run.waiting_changed |= bool(state.why)
                self._run.queue.set(session, states.Dropped())
                dropped.append(session)
            elif isinstance(state, states.New) or (isinstance(state, states.Dropped) and session.flag != DROPPED):
                vanished += self.adopt_one(session)
            elif isinstance(state, states.Ended):
                state.end = self._run.attempts.end(session.path, session.attempt)
                self._ends.on_retry(session)
            elif isinstance(state, states.Queued):
                self._ends.on_retry(session)
                self._end_without_work(session)
        self._judge_all(vanished)
        return dropped

    def _end_without_work(self, session: Session) -> None:
        """End a queued process whose remaining sessions are not in the grid any more."""
        attempts = self._run.attempts
        if session.attempt and session.name in attempts.processes and not attempts.next_start(session.name):
            self._run.queue.set(session, states.Ended(attempts.end(session.path, session.attempt)))

    def _judge_all(self, vanished: list[str]) -> None:
        queue = self._run.queue
        why = self._policy.too_many_failed(queue)
        if why and queue.left and not self._run.look_at_hold().kind:  # lifting a hold forgives failures
            self._run.halt(why)
        self._report_vanished(vanished)
        self._policy.judge_smoke(queue)

    def adopt_one(self, session: Session, again: bool = False) -> list[str]:
        """Take over a session; returns its name if it vanished. `again` gives an ended session a new attempt, whatever
        its outcome.
        """
        run, name, path = self._run, session.name, session.path
        session.attempt = number = run.attempts.latest(path)
        life = run.attempts.look(path, number).life if number else Life.QUEUED
        at = run.attempts.at(path, number)
        lapsed = life == Life.STARTING and run.admission.lapsed(name, at.directory)
        if lapsed and run.attempts.cancel_unstarted(path, number, "lost", fact(Evidence.ROOM_UNUSED)):
            life = Life.ENDED
        if life == Life.QUEUED:
            self._ends.enqueue(session, states.Queued())
        elif life == Life.ENDED:
            self._adopt_ended(session, again)
        else:
            grant = files.read(at.grant)
            gpus = records.integers(grant, "gpus")
            run.queue.set(session, _alive(life, gpus))
            run.admission.adopt(name, gpus, at.directory, grant)
            run.events.write(Kind.ADOPTED, path, number, life=life)
            if life == Life.STARTING and not os.path.exists(at.claim):
                self._launcher.start(session)
            elif life == Life.LOST:
                if self._person and not isinstance(session, Server):  # that asks for another attempt
                    for one in run.attempts.members(name):
                        if one == name or run.attempts.latest(one) == number:
                            run.attempts.ask(one, number, lost=True)
                self._finalize(session)
        return [name] if life == Life.LOST and not isinstance(session, Server) else []

    def _adopt_ended(self, session: Session, again: bool) -> None:
        self._run.queue.set(session, states.Ended(self._run.attempts.end(session.path, session.attempt)))
        if session.flag == DROPPED or isinstance(session, Server):
            return
        if again:
            self._ends.start_again(session)
        else:
            self._ends.follow(session, person=self._person)

    # Sessions without a message

    def look(self) -> None:
        """Look at all sessions that are neither queued nor ended, and at all model servers."""
        vanished: list[str] = []
        for session in list(self._run.queue.sessions.values()):
            if isinstance(session.state, states.Granted):
                try:
                    stalled = self._run.attempts.at(session.path, session.attempt).stalled
                    if os.path.exists(stalled):
                        self._policy.report_stall(session.name, session.attempt, files.read(stalled))
                    self._look_at(session, session.state, vanished)
                except (OSError, MemoryError):
                    raise
                except Exception as error:  # noqa: BLE001 - one session must not end all others
                    complain(f"{session.name}: {error!r}")
        self._report_vanished(vanished)
        self.look_at_servers()

    def look_at_servers(self) -> None:
        for server in self._run.queue.servers.values():
            if isinstance(server.state, states.Granted):
                self._look_at(server, server.state, [])
            if isinstance(server.state, states.Alive):
                self._servers.follow(server, server.state)

    def _look_at(self, session: Session, state: states.Granted, vanished: list[str]) -> None:
        if not self._is_handled(session, state):
            self._update(session, state, self._run.attempts.look(session.path, session.attempt), vanished)

    def _is_handled(self, session: Session, state: states.Granted) -> bool:
        """Whether its supervisor, or a finalizer, is writing its end."""
        if isinstance(state, states.Ending):
            return state.ender.poll() is None
        if isinstance(state, states.Lost):
            return state.finalizer is not None and state.finalizer.poll() is None
        if not isinstance(state, states.Running) or not state.supervisor[0]:
            return False
        pid, start = state.supervisor
        seen = process.look(pid)
        if not seen or not seen.lives or seen.start != start:
            return False
        if seen.state in "Tt":  # a stopped supervisor can't see that its command has ended
            begin = files.read(self._run.attempts.at(session.path, session.attempt).begin)
            command = begin.get("pid", ""), begin.get("pid_start", ""), begin.get("boot", "")
            if command[0] and not process.alive(*command):
                process.send(int(pid), signal.SIGCONT)
        return True

    def _update(self, session: Session, state: states.Granted, seen: AttemptState, vanished: list[str]) -> None:
        run, life = self._run, seen.life
        if life == Life.ENDED:
            self._ends.ended(session, session.attempt)
        elif life == Life.LOST:
            if not isinstance(state, states.Lost):
                vanished.append(session.name)
                lost = states.Lost(state.gpus, freed=not state.takes_slot, counted=len(vanished) > 1)
                run.queue.set(session, lost)
            self._finalize(session)
        elif life in (Life.STARTING, Life.QUEUED):
            if isinstance(state, states.Starting):
                self._launcher.overdue(session, state)
            elif life == Life.QUEUED and not isinstance(state, states.Ending):  # its files were removed
                self._launcher.start_over(session, state)
        elif not isinstance(state, (states.Closing, states.Ending)):
            self._note_alive(session, state, seen)

    def _note_alive(self, session: Session, state: states.Granted, seen: AttemptState) -> None:
        run = self._run
        of_life = _alive(seen.life, state.gpus)
        if type(state) is not type(of_life):
            kind = Kind.ORPHANED if isinstance(of_life, states.Orphaned) else Kind.STARTED
            run.events.write(kind, session.path, session.attempt)
            run.queue.set(session, of_life)
        now = session.state
        if isinstance(now, states.Running):
            now.supervisor = seen.record.get("supervisor", ""), seen.record.get("supervisor_start", "")
        elif isinstance(now, states.Orphaned) and (now.watcher is None or now.watcher.poll() is not None):
            now.watcher = run.run_program("orphan", session.path, session.attempt)  # no other process watches it

    def _finalize(self, session: Session) -> None:
        self._run.events.write(Kind.LOST, session.path, session.attempt)
        if isinstance(session.state, states.Lost):
            session.state.finalizer = self._run.finalize_lost(session.path, session.attempt)

    def _report_vanished(self, vanished: list[str]) -> None:
        if len(vanished) > 1:
            self._run.notices.tell("host", "", Fact(Notice.VANISHED, sessions=vanished))


def _alive(life: str, gpus: tuple[int, ...]) -> states.Granted:
    """The state of an attempt that was found in this life."""
    if life == Life.STARTING:
        return starting(gpus)
    if life == Life.RUNNING:
        return states.Running(gpus)
    return states.Orphaned(gpus) if life == Life.ORPHANED else states.Lost(gpus, freed=False, counted=True)
