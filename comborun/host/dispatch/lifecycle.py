"""The life of the sessions of a run on this machine: adopted, followed to their ends, tried again.

Its subclass, the dispatcher, starts them.
"""

from __future__ import annotations

import os
import signal
import time

from comborun.host import engines
from comborun.host.admission.admission import GPU_MEMORY, Admission
from comborun.host.dispatch.run_policy import Overseer, failure_of
from comborun.host.record.attempts import word_of
from comborun.host.record.queue import (
    BUSY,
    CLOSING,
    DROPPED,
    ENDED,
    LOST,
    NEW,
    ORPHANED,
    QUEUED,
    SMOKE,
    STARTING,
    TAKES_SLOT,
    Queue,
)
from comborun.host.system import children, files, process
from comborun.rules import records
from comborun.rules.facts import Fact
from comborun.rules.holds import HoldReason, Notice
from comborun.rules.names import AFTER, bare, window
from comborun.rules.room.waits import Wait

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping, Sequence

    from comborun.host.dispatch.launching import Launcher
    from comborun.host.dispatch.windows import Windows
    from comborun.host.record.attempts import RunDirectory
    from comborun.host.record.queue import Session
    from comborun.host.system.children import Child, Opening


class Lifecycle(Overseer):
    """The sessions of a run, and what happens to them. The dispatcher gives it what starts them."""

    launcher: Launcher
    windows: Windows

    def __init__(self, attempts: RunDirectory, multiplexer: str) -> None:
        super().__init__(attempts)
        self.engine = engines.engine(multiplexer, attempts.path)
        self.queue = Queue()
        self.gpus_allowed: tuple[int, ...] = ()
        self.admission = Admission(attempts.path, attempts.id, self.journal, self.notices.tell)
        self.children: list[Child] = []
        """forked processes that are not known to have ended"""
        self.waiting_changed = False
        """whether dispatch/waiting must be written before the next sweep"""

    # Adoption: at the start, after an amendment, and after a resume

    def adopt(self) -> None:
        """Take over every session in the state that its files show."""
        queue = self.queue
        vanished: list[str] = []
        for session in queue:
            self.adopt_one(session, vanished)
        self.report_new_ends(list(queue))
        self._judge_all(vanished)
        self.journal(f"adopted left={queue.left} busy={queue.busy}")

    def reread_sessions(self) -> None:
        queue = self.queue
        vanished: list[str] = []
        for session in list(queue):
            if session.life == QUEUED and session.flag == DROPPED:
                self._drop(session)
            elif session.life == NEW or (session.life == DROPPED and session.flag != DROPPED):
                self.adopt_one(session, vanished)
            elif session.life in (QUEUED, ENDED):
                session.end = self.attempts.end(session.name, session.attempt)  # its files may be read by new rules
                self.on_retry(session)
        self._judge_all(vanished)

    def _judge_all(self, vanished: list[str]) -> None:
        why = self.too_many_failed(self.queue)
        if why and self.queue.left and not self.look_at_hold().kind:  # lifting a hold forgives failures
            self.halt(why)
        self._report_vanished(vanished)
        self.judge_smoke(self.queue)

    def adopt_one(self, session: Session, vanished: list[str], again: bool = False) -> None:
        """`again` gives an ended session a new attempt, whatever its outcome."""
        name = session.name
        session.attempt = number = self.attempts.latest(name)
        life = self.attempts.look(name, number).life if number else QUEUED
        at = self.attempts.at(name, number)
        if life == STARTING and self.admission.lapsed(name, at.directory):
            note = "it was promised room, and nobody started it in time"
            if self.attempts.cancel_unstarted(name, number, "lost", note):
                life = ENDED
        if life == QUEUED:
            self._enqueue(session)
        elif life == ENDED:
            self._adopt_ended(session, again)
        else:
            self._take_slot(session, life)
            self.journal(f"adopted {name} {number} {life}")
            if life == LOST:  # a user has started this dispatcher, which asks for another attempt
                vanished.append(name)
                session.loss_counted = True
                self.attempts.ask(name, number)
                self._finalize(session)
            elif life == STARTING and not os.path.exists(at.claim):
                self.launcher.start(session)

    def _take_slot(self, session: Session, life: str) -> None:
        at = self.attempts.at(session.name, session.attempt)
        grant = files.read(at.grant)
        session.gpus = session.granted_gpus = records.integers(grant, "gpus")
        self.queue.set_life(session, life)
        self.admission.adopt(session.name, session.gpus, at.directory, grant)
        self.expect(session)

    def _adopt_ended(self, session: Session, again: bool) -> None:
        session.end = self.attempts.end(session.name, session.attempt)
        self.queue.set_life(session, ENDED)
        if session.flag == DROPPED:
            return
        if again:
            self._start_again(session, Fact(Wait.RETRY_ASKED, attempt=session.attempt))
        else:
            self._follow(session, person=True)

    # When one ends

    def ended(self, session: Session) -> None:
        if session.life == ENDED or session.retry_why:
            return  # it was handled before
        name, number = session.name, session.attempt
        end = self.attempts.end(name, number)
        if not end:
            return
        self.release(session, ENDED)
        session.finalizer, session.end = None, end
        self.report_end(name, number, end)
        self._update_breaker(session)
        failed = bool(failure_of(end)) and session.flag != DROPPED
        if not (failed and self._follow(session)) and session.flag != DROPPED:
            self._ended_for_good(session)

    def _update_breaker(self, session: Session) -> None:
        """Count its end for the breaker, if it was started at all."""
        end, gpus = session.end, session.granted_gpus
        if gpus is None:
            return
        session.granted_gpus = None
        failure = failure_of(end)
        at = self.attempts.at(session.name, session.attempt).directory
        stopped = word_of(end) == "cancelled"
        crowded = self.admission.ended(session.name, gpus, at, failure, stopped=stopped)
        if session.name == AFTER or crowded or (failure == "server_lost" and session.served):
            return  # a server has a budget of its own
        if failure and session.loss_counted:
            session.loss_counted = False
        else:
            self.count(end, gpus)

    def count(self, end: Mapping[str, Any], gpus: Sequence[int]) -> bool:
        closed = super().count(end, gpus)
        if closed:
            self.close_gpus()
            if len(self.breaker.quarantine) >= len(self.gpus_allowed):
                self.halt(Fact(HoldReason.NO_GPU_LEFT))
        return closed

    def _ended_for_good(self, session: Session) -> None:
        if failure_of(session.end):
            self.failed_for_good(session, self.queue)
        if session.flag == SMOKE:
            self.judge_smoke(self.queue)

    def next_end_decides(self) -> bool:
        """Whether the next end decides if anything starts at all. If so, a slot is free only after the end is on
        record.
        """
        policy = self.policy
        limited = self.failed and (policy("fail_fast") or policy("fail_fast_percent"))
        return bool(self.breaker.counts or limited)

    # Another attempt

    def _follow(self, session: Session, person: bool = False) -> bool:
        due = self.follows(session, person)
        if due:
            self.admission.again(session.name, alone=due.failure == GPU_MEMORY and due.times > 1)
        if due and due.failure:
            self._retry(session, due.failure, due.wait_s)
        elif due:
            self._start_again(session, Fact(Wait.RETRY_ASKED, attempt=session.attempt))
        return due is not None

    def _retry(self, session: Session, failure: str, wait_s: float) -> None:
        self.journal(f"retry {session.name} {session.attempt} {failure} {wait_s * 1000:.0f} ms")
        session.retry_at = time.monotonic() + wait_s
        session.retry_until = f"{time.time() + wait_s:.0f}"
        self._start_again(session, Fact(Wait.RETRY_AFTER, failure=failure, attempt=session.attempt))

    def _start_again(self, session: Session, why: Fact) -> None:
        session.retry_why = why
        self.waiting_changed = True
        self._enqueue(session)

    def _enqueue(self, session: Session) -> None:
        self.queue.set_life(session, DROPPED if session.flag == DROPPED else QUEUED)

    def on_retry(self, session: Session) -> None:
        """Follow a retry that a user may have asked for."""
        if self.attempts.retried_after(session.name) < session.attempt:
            return
        self.admission.again(session.name, alone=False)
        if session.life == QUEUED:  # without more waiting
            session.retry_at, session.retry_until = None, ""
        elif session.life == ENDED:
            self.journal(f"again {session.name} {session.attempt}")
            self._start_again(session, Fact(Wait.RETRY_ASKED, attempt=session.attempt))

    def stop_waiting(self, session: Session) -> None:
        self.waiting_changed |= session.retry_why is not None
        session.retry_at, session.retry_until, session.retry_why = None, "", None

    def _drop(self, session: Session) -> None:
        self.stop_waiting(session)
        self.windows.forget(session.name)
        self.queue.set_life(session, DROPPED)

    def release(self, session: Session, life: str) -> None:
        if session.life in TAKES_SLOT:
            self.admission.give_back(session.name)
            session.gpus = ()
        self.queue.set_life(session, life)

    # Sessions without a message

    def look_at_sessions(self) -> None:
        """Look at all sessions that are neither queued nor ended."""
        vanished: list[str] = []
        for session in list(self.queue.sessions.values()):
            if session.life in BUSY:
                self._report_stall(session)
                if not self._is_handled(session):
                    look = self.attempts.look(session.name, session.attempt)
                    self._update(session, look.life, look.record, vanished)
        self._report_vanished(vanished)

    def _is_handled(self, session: Session) -> bool:
        """Whether its supervisor, or a finalizer, is writing its end."""
        if session.finalizer and session.finalizer.poll() is None:
            return True
        seen = process.look(session.supervisor[0]) if session.supervisor else None
        if not session.supervisor or not seen or not seen.lives or seen.start != session.supervisor[1]:
            return False
        if seen.state in "Tt":  # a stopped supervisor can't see that its command has ended
            begin = files.read(self.attempts.at(session.name, session.attempt).begin)
            command = begin.get("pid", ""), begin.get("pid_start", ""), begin.get("boot", "")
            if command[0] and not process.alive(*command):
                process.send(int(session.supervisor[0]), signal.SIGCONT)
        return True

    def _update(self, session: Session, life: str, record: Mapping[str, Any], vanished: list[str]) -> None:
        if life == ENDED:
            self.ended(session)
        elif life == LOST:
            if session.life != LOST:
                vanished.append(session.name)
            session.loss_counted = session.loss_counted or len(vanished) > 1
            self._finalize(session)
        elif life in (STARTING, QUEUED):
            self.launcher.overdue(session)
        elif session.life != CLOSING:
            if session.life != life:
                self.journal(f"{life} {session.name} {session.attempt}")
            self.queue.set_life(session, life)
            if life != ORPHANED:
                session.supervisor = (record.get("supervisor", ""), record.get("supervisor_start", ""))
            elif not session.watcher or session.watcher.poll() is not None:  # no other process watches it
                session.watcher = self.watch(session.name, session.attempt)

    def _finalize(self, session: Session) -> None:
        """Write its end in the background, since its processes get some time to end."""
        name, number = session.name, session.attempt
        if session.life != CLOSING:  # a closing session has freed its slot already
            self.queue.set_life(session, LOST)
        session.supervisor = None
        self.journal(f"lost {name} {number}")
        session.finalizer = self.finalize_lost(name, number)

    def _report_stall(self, session: Session) -> None:
        stalled = self.attempts.at(session.name, session.attempt).stalled
        if os.path.exists(stalled):
            self.report_stall(session.name, session.attempt, files.read(stalled).get("why", ""))

    def _report_vanished(self, vanished: list[str]) -> None:
        if len(vanished) > 1:
            self.notices.tell("host", "", Fact(Notice.VANISHED, sessions=vanished))

    def close_gpus(self) -> None:
        self.admission.quarantine(map(int, self.breaker.quarantine))

    # Processes

    def expect(self, session: Session) -> None:
        session.due = time.monotonic() + engines.launch_s()

    def open_windows(self, commands: Sequence[tuple[str, int, Sequence[str]]]) -> list[Opening]:
        """Open a window for each attempt of a session, which runs a command."""
        run = self.attempts.id
        return self.engine.start([(window(name, attempt, run), words) for name, attempt, words in commands])

    def watch(self, name: str, attempt: int) -> Opening:
        return self.run_program("orphan", name, attempt)

    def run_program(self, verb: str, *words: object) -> Opening:
        return children.background(self.program(verb, *words), self.layout.out)

    def finalize_lost(self, name: str, number: int) -> Child:
        """Write the end of a lost attempt; this may take seconds."""

        def work() -> None:
            self.attempts.finalize_lost(name, number)
            files.tell(self.layout.fifo, f"ended {bare(name)} {number}")

        try:
            child = children.fork(work)
        except OSError:  # it is still lost at the next look
            return children.Child(0, children.NOT_RUN)
        self.children.append(child)
        return child
