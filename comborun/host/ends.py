"""What follows from the end of an attempt: another one, or the session's last word. And how sessions are taken up where
their files say that they are: at the start, when the grid was amended, and when a person asks for another attempt."""

from __future__ import annotations

import os
import time

from comborun.host import files
from comborun.host.attempts import outcome_of
from comborun.host.queue import BUSY, CLOSING, DROPPED, ENDED, LOST, NEW, QUEUED, SMOKE, STARTING, TAKES_SLOT
from comborun.rules import breaker, fail_fast, records
from comborun.rules.names import AFTER
from comborun.rules.tally import proven

TYPE_CHECKING = False
if TYPE_CHECKING:
    from comborun.host.dispatch import Dispatcher
    from comborun.host.queue import Session


class Ends:
    """How sessions end, and what that means for the others."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self.failed: set[str] = set()
        """sessions that ended for good without success, and were not forgiven"""
        self._smoke = False
        """the others wait for the smoke test"""

    # At the start

    def adopt(self) -> None:
        """Every session as its files tell."""
        queue = self._dispatcher.queue
        vanished: list[str] = []
        for session in queue:
            self.adopt_one(session, vanished)
        self.look_at_failures()
        self._tell_vanished(vanished)
        self.open_smoke()
        self._dispatcher.journal(f"adopted left={queue.left} busy={queue.busy}")

    def adopt_one(self, session: Session, vanished: list[str], again: bool = False) -> None:
        """`again` makes a new attempt of one that has ended, whatever its outcome."""
        dispatcher, name = self._dispatcher, session.name
        session.attempt = number = dispatcher.attempts.latest(name)
        look = dispatcher.attempts.look(name, number) if number else None
        life = look.life if look else QUEUED
        at = dispatcher.attempts.at(name, number)
        if life == STARTING and dispatcher.admission.lapsed(name, at.directory):
            note = "it was promised room, and nobody started it in time"
            if dispatcher.attempts.forestall(name, number, "lost", note):
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
                dispatcher.attempts.ask(name, number)
                self.bury(session)
            elif life == STARTING and not os.path.exists(at.claim):
                dispatcher.launcher.start(session)

    def _hold(self, session: Session, life: str) -> None:
        """It takes a slot, and the GPUs of its grant."""
        dispatcher = self._dispatcher
        at = dispatcher.attempts.at(session.name, session.attempt)
        grant = files.read(at.grant)
        session.gpus = session.had = gpus_of(grant)
        dispatcher.queue.set_life(session, life)
        dispatcher.admission.adopt(session.name, session.gpus, at.directory, grant)
        dispatcher.launcher.expect(session)

    def _adopt_ended(self, session: Session, again: bool) -> None:
        attempts, name, number = self._dispatcher.attempts, session.name, session.attempt
        end = attempts.end(name, number)
        session.outcome = word_of(end)
        self._dispatcher.queue.set_life(session, ENDED)
        if session.flag == DROPPED:
            return
        if session.outcome == "lost":
            attempts.ask(name, number)
        if again or session.outcome == "cancelled" or attempts.asked(name) >= number:
            self._again(session, f"asked for after attempt {number}")
            return
        due = attempts.due(name, number)
        if due:
            self._retry(session, due.failure, due.wait_s)
        else:
            self._count(session, end)

    # When one ends

    def ended(self, session: Session) -> None:
        """Its end is on disk."""
        if session.life == ENDED or session.retry_why:
            return  # it has been told already
        dispatcher, name, number = self._dispatcher, session.name, session.attempt
        end = dispatcher.attempts.end(name, number)
        if not end:
            return
        self.release(session, ENDED)
        session.undertaker = None
        session.outcome = word_of(end)
        failure = "" if session.outcome in ("succeeded", "cancelled") else end.get("class", "error")
        told = f"{session.outcome} {end.get('cause', '')} {end.get('code', '')} {failure}"
        dispatcher.journal(f"ended {name} {number} {told}")
        self._heed_machine(session, failure, end)
        if not failure or session.flag == DROPPED:
            self._for_good(session, end)
        elif dispatcher.attempts.asked(name) >= number:
            self._again(session, f"asked for after attempt {number}")
        else:
            due = dispatcher.attempts.due(name, number)
            if due:
                self._retry(session, due.failure, due.wait_s)
            else:
                self._for_good(session, end)

    def _heed_machine(self, session: Session, failure: str, end: dict[str, str]) -> None:
        """What its end tells of the machine, if it was started at all."""
        from comborun.host.admission import End

        dispatcher = self._dispatcher
        if session.had is None:
            return
        at = dispatcher.attempts.at(session.name, session.attempt).directory
        told = End(failure, session.outcome == "cancelled", records.seconds(end, "ended") or time.time())
        crowded = dispatcher.admission.ended(session.name, session.had, at, told)
        if session.name != AFTER and not crowded:
            self._break(session, failure, end.get("note", ""))
        session.had = None
        if failure == "disk_full":
            dispatcher.notices.tell("host", session.name, "its disk is full")

    def _break(self, session: Session, failure: str, note: str) -> None:
        """Tell the breaker."""
        dispatcher, gpus = self._dispatcher, session.had or ()
        if session.outcome == "succeeded":
            if dispatcher.breaker.succeeded(gpus):
                self._write_breaker()
            return
        if not failure or (failure == "server_lost" and session.served):
            return  # its server has a budget of its own
        if session.mute:
            session.mute = False
            return
        trips = dispatcher.breaker.heed(failure, gpus)
        for trip in trips:
            if trip.where == breaker.HOST:
                why = f"{failure} {trip.times} times in a row on this host"
                dispatcher.halt(f"{why}, at last: {note}" if note else why)
            else:
                self._quarantine(trip)
        self._write_breaker()

    def _quarantine(self, trip: breaker.Trip) -> None:
        dispatcher = self._dispatcher
        quarantined = dispatcher.breaker.quarantined(f"{time.time():.6f}")
        files.write_text(f"{dispatcher.run.dispatch}/quarantine", quarantined)
        dispatcher.journal(f"quarantine {trip.where} {trip.failure} {trip.times}")
        why = f"{trip.failure} {trip.times} times in a row there"
        dispatcher.notices.tell("host", "", f"GPU {trip.where} gets no new sessions: {why}")
        dispatcher.close_gpus()
        if len(dispatcher.breaker.quarantine) >= len(dispatcher.gpus_allowed):
            dispatcher.halt("no GPU is left: each is in quarantine")

    def _write_breaker(self) -> None:
        files.write_text(f"{self._dispatcher.run.dispatch}/breaker", self._dispatcher.breaker.rows())

    def wary(self) -> bool:
        """Whether the next end decides if anything starts at all: then a slot is free when the end is on record."""
        policy = self._dispatcher.policy
        return bool(self._dispatcher.breaker.counts) or bool(
            self.failed and (policy("fail_fast") or policy("fail_fast_percent"))
        )

    # Another attempt

    def _retry(self, session: Session, failure: str, wait_s: float) -> None:
        dispatcher = self._dispatcher
        # It waits for a server that is gone anyway; one that does not answer gets the time to be found out.
        if failure == "server_lost" and session.served and not dispatcher.servers.outlive(session.name):
            wait_s = 0.0
        dispatcher.journal(f"retry {session.name} {session.attempt} {failure} {wait_s * 1000:.0f} ms")
        at = dispatcher.attempts.at(session.name, session.attempt).directory
        dispatcher.admission.again(session.name, at, failure)
        session.retry_at = time.monotonic() + wait_s
        session.retry_until = f"{time.time() + wait_s:.0f}"
        self._again(session, f"{failure}, after attempt {session.attempt}")

    def _again(self, session: Session, why: str) -> None:
        """It has ended, and waits to start again."""
        session.retry_why = why
        self._dispatcher.waiting.stale = True
        self._wait(session)

    def _wait(self, session: Session) -> None:
        self._dispatcher.queue.set_life(session, DROPPED if session.flag == DROPPED else QUEUED)

    def asked(self, session: Session) -> None:
        """A person asked for another attempt."""
        dispatcher = self._dispatcher
        if dispatcher.attempts.asked(session.name) < session.attempt:
            return
        if session.life == QUEUED:  # without any more waiting
            session.retry_at, session.retry_until = None, ""
            dispatcher.admission.hurry(session.name)
        elif session.life == ENDED:
            dispatcher.journal(f"again {session.name} {session.attempt}")
            self.failed.discard(session.name)
            self._again(session, f"asked for after attempt {session.attempt}")

    def leave(self, session: Session) -> None:
        """It waits no more."""
        if session.retry_why:
            self._dispatcher.waiting.stale = True
        session.retry_at, session.retry_until, session.retry_why = None, "", ""

    def drop(self, session: Session) -> None:
        """It waits, and will not start."""
        self.leave(session)
        self._dispatcher.windows.forget(session.name)
        self._dispatcher.admission.forget(session.name)
        self._dispatcher.queue.set_life(session, DROPPED)

    def release(self, session: Session, life: str) -> None:
        """Its slot and its GPUs are free."""
        if session.life in TAKES_SLOT:
            self._dispatcher.admission.give_back(session.name)
            self._dispatcher.windows.heeded(session.name)
            session.gpus = ()
        self._dispatcher.queue.set_life(session, life)

    # The last word

    def _for_good(self, session: Session, end: dict[str, str]) -> None:
        if session.flag == DROPPED:
            return
        if session.outcome in fail_fast.FAILED:
            self._dispatcher.notices.tell("failed", session.name, f"{session.name} ended: {session.outcome}")
            self._count(session, end)
            self._check_failures()
        if session.flag == SMOKE:
            self._judge_smoke()

    def _count(self, session: Session, end: dict[str, str]) -> None:
        forgiven = self._dispatcher.holds.forgiven(end.get("ended", ""))
        if session.name != AFTER and session.outcome in fail_fast.FAILED and not forgiven:
            self.failed.add(session.name)

    def recount(self) -> None:
        """Some may be forgiven by now, or be no part of the run any more."""
        self.failed.clear()
        for session in self._dispatcher.queue:
            if session.life == ENDED and session.flag != DROPPED:
                self._count(session, self._dispatcher.attempts.end(session.name, session.attempt))

    def look_at_failures(self) -> None:
        """Not only when one ends. A hold needs no second reason: who lifts it forgives what had failed."""
        self._dispatcher.look_at_hold()
        if not self._dispatcher.hold.kind and self._dispatcher.queue.left:
            self._check_failures()

    def _check_failures(self) -> None:
        policy, total = self._dispatcher.policy, self._dispatcher.queue.size()
        why = fail_fast.reason(len(self.failed), total, policy("fail_fast"), policy("fail_fast_percent"))
        if why:
            self._dispatcher.halt(why)

    # The smoke test: sessions that try every combo for a few episodes go first

    def smoke_first(self, session: Session) -> bool:
        """Whether it waits until each of them has left a record."""
        return self._smoke and session.flag != SMOKE and session.name != AFTER

    @property
    def smoking(self) -> bool:
        return self._smoke

    def open_smoke(self) -> None:
        """Whenever the queue has been read."""
        self._smoke = any(session.flag == SMOKE for session in self._dispatcher.queue)
        if self._smoke:
            self._judge_smoke()

    def _judge_smoke(self) -> None:
        """When all of them have ended."""
        smokes = [session for session in self._dispatcher.queue if session.flag == SMOKE]
        if any(session.life != ENDED for session in smokes):
            return
        missing = [self._with_why(session) for session in smokes if not self._smoke_passed(session)]
        if missing:
            self._dispatcher.halt(f"the smoke test left no record: {', '.join(missing)}")
        else:
            self._smoke = False
            self._dispatcher.journal("smoke passed")

    def _with_why(self, session: Session) -> str:
        """Its name, and why the rows that it wrote don't count."""
        why = self._dispatcher.attempts.end(session.name, session.attempt).get("why", "")
        return f"{session.name} ({why})" if why else session.name

    def _smoke_passed(self, session: Session) -> bool:
        """What had ended when a person last said `resume` is let pass; one that was tried again is judged."""
        for number in range(session.attempt, 0, -1):
            end = self._dispatcher.attempts.end(session.name, number)
            if proven(end):
                return True
            if number == session.attempt and self._dispatcher.holds.forgiven(end.get("ended", "")):
                return True
        return False

    # Those that nobody saw end

    def bury(self, session: Session) -> None:
        """In the background, since what is left of it gets a moment to end."""
        dispatcher, name, number = self._dispatcher, session.name, session.attempt
        if session.life != CLOSING:  # a closing one has given back its slot already
            dispatcher.queue.set_life(session, LOST)
        session.supervisor = None
        dispatcher.journal(f"lost {name} {number}")

        def work() -> None:
            dispatcher.attempts.bury(name, number)
            files.tell(dispatcher.run.fifo, f"ended {name} {number}")

        session.undertaker = dispatcher.in_child(work)

    def see(self, session: Session, life: str, record: dict[str, str], vanished: list[str]) -> None:
        """What its files tell, of one of which no message came."""
        if life == ENDED:
            self.ended(session)
        elif life == LOST:
            if session.life != LOST:
                vanished.append(session.name)
            session.mute = session.mute or len(vanished) > 1
            self.bury(session)
        elif life in (STARTING, QUEUED):
            self._dispatcher.launcher.overdue(session)
        elif session.life != CLOSING:
            if session.life != life:
                self._dispatcher.journal(f"{life} {session.name} {session.attempt}")
            self._dispatcher.queue.set_life(session, life)
            if life == "orphaned":
                self._dispatcher.watch_orphan(session)
            else:
                session.supervisor = (record.get("supervisor", ""), record.get("supervisor_start", ""))

    def _tell_vanished(self, vanished: list[str]) -> None:
        if len(vanished) > 1:
            note = f"{len(vanished)} sessions vanished together: {' '.join(vanished)}"
            self._dispatcher.notices.tell("host", "", note)

    def sweep(self) -> None:
        """All that are neither queued nor ended, and of which no message came."""
        vanished: list[str] = []
        for session in list(self._dispatcher.queue.sessions.values()):
            if session.life in BUSY:
                self._dispatcher.look_at(session, vanished)
        self._tell_vanished(vanished)

    def reread(self) -> None:
        """The grid was amended, or a person let the run go on."""
        queue = self._dispatcher.queue
        vanished: list[str] = []
        for session in list(queue):
            if session.life == QUEUED and session.flag == DROPPED:
                self.drop(session)
            elif session.life == NEW or (session.life == DROPPED and session.flag != DROPPED):
                self.adopt_one(session, vanished)
            elif session.life in (QUEUED, ENDED):
                self.asked(session)
        self.recount()
        self.look_at_failures()


def gpus_of(grant: dict[str, str]) -> tuple[int, ...]:
    words = grant.get("gpus", "").split(",")
    return tuple(int(word) for word in words if word.isascii() and word.isdecimal() and len(word) < 5)


def word_of(end: dict[str, str]) -> str:
    """An outcome as one word, as the journal and `done` have it."""
    return outcome_of(end).replace(" ", "_")
