"""The life of sessions in the dispatcher: adopt running ones, count and retry ended ones, finalize lost ones."""

from __future__ import annotations

import os
import signal
import time

from comborun.host import files, process
from comborun.host.attempts import word_of
from comborun.host.overseer import failure_of
from comborun.host.queue import BUSY, CLOSING, DROPPED, ENDED, LOST, NEW, ORPHANED, QUEUED, SMOKE, STARTING, TAKES_SLOT
from comborun.rules.names import AFTER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping

    from comborun.host.dispatch import Dispatcher
    from comborun.host.queue import Session


class Ends:
    """Handles the ends of sessions."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._attempts = dispatcher.attempts
        self._smoke = False
        """the others wait for the smoke test"""

    # Taken up: at the start, and when the grid was amended or a person let the run go on

    def adopt(self) -> None:
        """Every session as its files tell."""
        queue = self._dispatcher.queue
        vanished: list[str] = []
        for session in queue:
            self.adopt_one(session, vanished)
        self._look_at_all(vanished)
        self._dispatcher.journal(f"adopted left={queue.left} busy={queue.busy}")

    def reread(self) -> None:
        queue = self._dispatcher.queue
        vanished: list[str] = []
        for session in list(queue):
            if session.life == QUEUED and session.flag == DROPPED:
                self._drop(session)
            elif session.life == NEW or (session.life == DROPPED and session.flag != DROPPED):
                self.adopt_one(session, vanished)
            elif session.life in (QUEUED, ENDED):
                session.end = self._attempts.end(session.name, session.attempt)  # its files may be read otherwise now
                self.on_retry(session)
        self._look_at_all(vanished)

    def _look_at_all(self, vanished: list[str]) -> None:
        dispatcher = self._dispatcher
        why = dispatcher.too_many_failed(dispatcher.queue)
        if why and dispatcher.queue.left and not dispatcher.look_at_hold().kind:  # who lifts a hold forgives failures
            dispatcher.halt(why)
        self._tell_vanished(vanished)
        self._smoke = any(session.flag == SMOKE for session in dispatcher.queue)
        self._judge_smoke()

    def adopt_one(self, session: Session, vanished: list[str], again: bool = False) -> None:
        """`again` makes a new attempt of one that has ended, whatever its outcome."""
        dispatcher, name = self._dispatcher, session.name
        session.attempt = number = self._attempts.latest(name)
        life = self._attempts.look(name, number).life if number else QUEUED
        at = self._attempts.at(name, number)
        if life == STARTING and dispatcher.admission.lapsed(name, at.directory):
            note = "it was promised room, and nobody started it in time"
            if self._attempts.cancel_unstarted(name, number, "lost", note):
                life = ENDED
        if life == QUEUED:
            self._wait(session)
        elif life == ENDED:
            self._adopt_ended(session, again)
        else:
            self._hold(session, life)
            dispatcher.journal(f"adopted {name} {number} {life}")
            if life == LOST:  # only a person starts a dispatcher, and asks by that for what was lost without one
                vanished.append(name)
                session.mute = True
                self._attempts.ask(name, number)
                self.finalize_lost(session)
            elif life == STARTING and not os.path.exists(at.claim):
                dispatcher.launcher.start(session)

    def _hold(self, session: Session, life: str) -> None:
        """It takes a slot, and the GPUs of its grant."""
        dispatcher = self._dispatcher
        at = self._attempts.at(session.name, session.attempt)
        grant = files.read(at.grant)
        session.gpus = session.had = gpus_of(grant)
        dispatcher.queue.set_life(session, life)
        dispatcher.admission.adopt(session.name, session.gpus, at.directory, grant)
        dispatcher.launcher.expect(session)

    def _adopt_ended(self, session: Session, again: bool) -> None:
        session.end = self._attempts.end(session.name, session.attempt)
        self._dispatcher.queue.set_life(session, ENDED)
        if session.flag == DROPPED:
            return
        if again:
            self._again(session, f"asked for after attempt {session.attempt}")
        else:
            self._follow(session, person=True)

    # When one ends

    def ended(self, session: Session) -> None:
        """Its end is on disk."""
        if session.life == ENDED or session.retry_why:
            return  # it has been told already
        name, number = session.name, session.attempt
        end = self._attempts.end(name, number)
        if not end:
            return
        self.release(session, ENDED)
        session.undertaker, session.end = None, end
        self._dispatcher.tell_end(name, number, end)
        self._heed_machine(session)
        failed = bool(failure_of(end)) and session.flag != DROPPED
        if not (failed and self._follow(session)) and session.flag != DROPPED:
            self._for_good(session)

    def _heed_machine(self, session: Session) -> None:
        """What its end tells of the machine, if it was started at all."""
        dispatcher, end, had = self._dispatcher, session.end, session.had
        if had is None:
            return
        session.had = None
        failure = failure_of(end)
        at = self._attempts.at(session.name, session.attempt).directory
        stopped = word_of(end) == "cancelled"
        crowded = dispatcher.admission.ended(session.name, had, at, failure, stopped=stopped)
        if session.name == AFTER or crowded or (failure == "server_lost" and session.served):
            return  # a server has a budget of its own
        if failure and session.mute:
            session.mute = False
        elif dispatcher.count(end, had):
            dispatcher.close_gpus()
            if len(dispatcher.breaker.quarantine) >= len(dispatcher.gpus_allowed):
                dispatcher.halt("no GPU is left: each is in quarantine")

    def _for_good(self, session: Session) -> None:
        dispatcher = self._dispatcher
        if failure_of(session.end):
            dispatcher.tell_failure(session)
            if why := dispatcher.too_many_failed(dispatcher.queue):
                dispatcher.halt(why)
        if session.flag == SMOKE:
            self._judge_smoke()

    def next_end_decides(self) -> bool:
        """Whether the next end decides if anything starts at all: then a slot is free when the end is on record."""
        policy = self._dispatcher.policy
        limited = self._dispatcher.failed and (policy("fail_fast") or policy("fail_fast_percent"))
        return bool(self._dispatcher.breaker.counts or limited)

    def smoke_first(self, session: Session) -> bool:
        """Whether it waits until each session of the smoke test has left a record."""
        return self._smoke and session.flag != SMOKE and session.name != AFTER

    def _judge_smoke(self) -> None:
        self._smoke = self._smoke and not self._dispatcher.smoke_passed(self._dispatcher.queue)

    # Another attempt

    def _follow(self, session: Session, person: bool = False) -> bool:
        """Whether another attempt follows its end."""
        due = self._dispatcher.follows(session, person)
        if due and due.failure:
            self._retry(session, due.failure, due.wait_s)
        elif due:
            self._again(session, f"asked for after attempt {session.attempt}")
        return due is not None

    def _retry(self, session: Session, failure: str, wait_s: float) -> None:
        dispatcher = self._dispatcher
        # It waits for a server that is gone anyway; one that does not answer gets the time to be found out.
        if failure == "server_lost" and session.served and not dispatcher.servers.outlive(session.name):
            wait_s = 0.0
        dispatcher.journal(f"retry {session.name} {session.attempt} {failure} {wait_s * 1000:.0f} ms")
        dispatcher.admission.again(session.name, self._attempts.at(session.name, session.attempt).directory, failure)
        session.retry_at = time.monotonic() + wait_s
        session.retry_until = f"{time.time() + wait_s:.0f}"
        self._again(session, f"{failure}, after attempt {session.attempt}")

    def _again(self, session: Session, why: str) -> None:
        """It has ended, and waits to start again."""
        session.retry_why = why
        self._dispatcher.launcher.stale = True
        self._wait(session)

    def _wait(self, session: Session) -> None:
        self._dispatcher.queue.set_life(session, DROPPED if session.flag == DROPPED else QUEUED)

    def on_retry(self, session: Session) -> None:
        """Follow a retry that a user may have asked for."""
        dispatcher = self._dispatcher
        if self._attempts.retried_after(session.name) < session.attempt:
            return
        if session.life == QUEUED:  # without any more waiting
            session.retry_at, session.retry_until = None, ""
            dispatcher.admission.forget(session.name)
        elif session.life == ENDED:
            dispatcher.journal(f"again {session.name} {session.attempt}")
            self._again(session, f"asked for after attempt {session.attempt}")

    def leave(self, session: Session) -> None:
        """It waits no more."""
        self._dispatcher.launcher.stale |= bool(session.retry_why)
        session.retry_at, session.retry_until, session.retry_why = None, "", ""

    def _drop(self, session: Session) -> None:
        """It waits, and will not start."""
        self.leave(session)
        self._dispatcher.windows.forget(session.name)
        self._dispatcher.admission.forget(session.name)
        self._dispatcher.queue.set_life(session, DROPPED)

    def release(self, session: Session, life: str) -> None:
        """Its slot and its GPUs are free."""
        if session.life in TAKES_SLOT:
            self._dispatcher.admission.give_back(session.name)
            session.gpus = ()
        self._dispatcher.queue.set_life(session, life)

    # Those of which no message came

    def sweep(self) -> None:
        """Look at all that are neither queued nor ended."""
        vanished: list[str] = []
        for session in list(self._dispatcher.queue.sessions.values()):
            if session.life in BUSY:
                self._tell_stall(session)
                if not self._seen_to(session):
                    look = self._attempts.look(session.name, session.attempt)
                    self._see(session, look.life, look.record, vanished)
        self._tell_vanished(vanished)

    def _seen_to(self, session: Session) -> bool:
        """Whether its supervisor, or a finalizer, is writing its end."""
        if session.undertaker and session.undertaker.poll() is None:
            return True
        seen = process.look(session.supervisor[0]) if session.supervisor else None
        if not session.supervisor or not seen or not seen.lives or seen.start != session.supervisor[1]:
            return False
        if seen.state in "Tt":  # somebody has stopped it, and so it can't see that its command has ended
            begin = files.read(self._attempts.at(session.name, session.attempt).begin)
            command = begin.get("pid", ""), begin.get("pid_start", ""), begin.get("boot", "")
            if command[0] and not process.alive(*command):
                process.send(int(session.supervisor[0]), signal.SIGCONT)
        return True

    def _see(self, session: Session, life: str, record: Mapping[str, Any], vanished: list[str]) -> None:
        """What its files tell."""
        dispatcher = self._dispatcher
        if life == ENDED:
            self.ended(session)
        elif life == LOST:
            if session.life != LOST:
                vanished.append(session.name)
            session.mute = session.mute or len(vanished) > 1
            self.finalize_lost(session)
        elif life in (STARTING, QUEUED):
            dispatcher.launcher.overdue(session)
        elif session.life != CLOSING:
            if session.life != life:
                dispatcher.journal(f"{life} {session.name} {session.attempt}")
            dispatcher.queue.set_life(session, life)
            if life != ORPHANED:
                session.supervisor = (record.get("supervisor", ""), record.get("supervisor_start", ""))
            elif not session.watcher or session.watcher.poll() is not None:  # nobody else sees to it that it ends
                session.watcher = dispatcher.watch(session.name, session.attempt)

    def finalize_lost(self, session: Session) -> None:
        """In the background, since what is left of it gets a moment to end."""
        dispatcher, name, number = self._dispatcher, session.name, session.attempt
        if session.life != CLOSING:  # a closing one has given back its slot already
            dispatcher.queue.set_life(session, LOST)
        session.supervisor = None
        dispatcher.journal(f"lost {name} {number}")
        session.undertaker = dispatcher.finalize_lost(name, number)

    def _tell_stall(self, session: Session) -> None:
        stalled = self._attempts.at(session.name, session.attempt).stalled
        if os.path.exists(stalled):
            self._dispatcher.tell_stall(session.name, session.attempt, files.read(stalled).get("why", ""))

    def _tell_vanished(self, vanished: list[str]) -> None:
        if len(vanished) > 1:
            note = f"{len(vanished)} sessions vanished together: {' '.join(vanished)}"
            self._dispatcher.notices.tell("host", "", note)


def gpus_of(grant: Mapping[str, Any]) -> tuple[int, ...]:
    words = grant.get("gpus", "").split(",")
    return tuple(int(word) for word in words if word.isascii() and word.isdecimal() and len(word) < 5)
