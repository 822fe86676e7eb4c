"""Starts sessions as slots, resources and waits allow, and checks that they begin.

The intent is on disk before the act: the grant, then the journal, then the window. Each start that fails uses up one of
a few tries of the same attempt; after the last one the launch has failed. If two windows open for one attempt, the
second finds the claim and leaves.
"""

from __future__ import annotations

import math
import os
import time

from comborun.host import engines
from comborun.host.admission.admission import WAITS_MOST
from comborun.host.record import attempt_lineage
from comborun.host.record.queue import QUEUED, STARTING
from comborun.host.system import files, machine
from comborun.rules import records
from comborun.rules.facts import Fact
from comborun.rules.holds import HoldReason
from comborun.rules.room.waits import Wait
from comborun.words import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator

    from comborun.host.dispatch.dispatcher import Dispatcher
    from comborun.host.record.queue import Session

BUDGET = 6
_REFUSED, _OVERDUE = 1, 2
"""what a refused and an overdue start cost of the budget"""
_FIRST_WAIT_S = 0.1
_ROOM_S = 2.0
"""between two looks for room on a machine that starts no more processes"""
_SLOTS_MOST = 6
"""digits"""


class Launcher:
    """Starts the next session, tracks windows that are being opened, and knows what other sessions wait for."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self.slots = 1
        self.nobody = False
        """whether all queued sessions are held back, even if there is room"""
        self.due = math.inf
        """the time when the next waiting session may start"""
        self.opening: set[str] = set()
        """sessions whose window is not known to be open"""
        self.lacks: Fact | None = None
        """why this machine starts nothing more"""
        self._room_at = 0.0
        self._again: set[str] = set()
        self._waiting: list[dict[str, object]] | None = None

    # Who starts

    def fill(self) -> None:
        dispatcher, now = self._dispatcher, time.monotonic()
        self.nobody, self.due = False, math.inf
        if dispatcher.look_at_hold().kind:
            return
        if self.lacks and not self._room(now):
            return
        self._read_slots()
        if dispatcher.queue.busy < self.slots:
            dispatcher.admission.round()
            dispatcher.servers.keep()
        while dispatcher.queue.busy < self.slots and not self.lacks:
            pick = dispatcher.admission.pick((one.name for one in self.eligible(now)), self._folder)
            if pick is None:
                self.nobody = dispatcher.admission.nobody
                break
            session = dispatcher.queue[pick.name]
            if pick.never:
                self.give_up(session, session.attempt + 1, say(pick.never))
            elif not self._first(session, pick.gpus):
                dispatcher.admission.give_back(session.name)
                break
        if not dispatcher.queue.busy:
            self._stuck(now)

    def _room(self, now: float) -> bool:
        """Whether a machine that started nothing more does so again."""
        if now >= self._room_at:
            self._note_lack(machine.limit_reached())
        self.due, self.nobody = self._room_at, bool(self.lacks)
        return not self.lacks

    def _note_lack(self, lack: Fact | None) -> None:
        if lack and lack != self.lacks:
            self._dispatcher.journal(f"no-room {say(lack)}")
            self._dispatcher.windows.make_room()
        self._dispatcher.waiting_changed |= lack != self.lacks
        self.lacks = lack
        self._room_at = time.monotonic() + _ROOM_S

    def eligible(self, now: float) -> Iterator[Session]:
        """Sessions that wait only for their turn, in order."""
        dispatcher = self._dispatcher
        for session in dispatcher.queue.waiting():
            if dispatcher.smoke_first(session) or dispatcher.servers.holds_back(session.name):
                continue
            if session.retry_at is not None:
                if now < session.retry_at:
                    self.due = min(self.due, session.retry_at)
                    continue
                session.retry_at = None
                self._dispatcher.waiting_changed = True
            yield session

    def _folder(self, name: str) -> str:
        return self._dispatcher.attempts.at(name, self._dispatcher.queue[name].attempt + 1).directory

    def _read_slots(self) -> None:
        """Read the number of slots. The file may be edited at any moment; other text than a number changes nothing."""
        text = files.read_line(self._dispatcher.layout.slots).strip()
        if text.isascii() and text.isdecimal() and len(text) <= _SLOTS_MOST:
            self.slots = int(text)

    def _stuck(self, now: float) -> None:
        """Halt if nothing runs and quarantine leaves a session too few GPUs."""
        dispatcher = self._dispatcher
        if not dispatcher.breaker.quarantine or any(one.retry_at is not None for one in dispatcher.queue.waiting()):
            return
        for session in self.eligible(now):
            wants, usable = dispatcher.admission.wants(session.name), dispatcher.admission.usable(session.name)
            if wants > usable:
                fields = {"gpus": wants, "usable": usable, "allowed": len(dispatcher.gpus_allowed)}
                dispatcher.halt(Fact(HoldReason.TOO_FEW_GPUS_LEFT, session=session.name, **fields))
                return

    # How it starts

    def _first(self, session: Session, gpus: tuple[int, ...]) -> bool:
        """Grant an attempt and start it; False if the grant can't be written, and nothing starts."""
        dispatcher, number = self._dispatcher, session.attempt + 1
        at = dispatcher.attempts.at(session.name, number)
        try:
            os.makedirs(at.output, exist_ok=True)
            granted = files.write(at.grant, self._grant(session, gpus).items())
        except (OSError, LookupError):
            granted = False
        if not granted:
            dispatcher.complain(f"can't write {at.grant}; is the disk full?")
            return False
        dispatcher.stop_waiting(session)
        session.attempt, session.gpus, session.granted_gpus = number, gpus, gpus
        session.budget, session.supervisor = BUDGET, None
        dispatcher.journal(f"launch {session.name} {number} {','.join(map(str, gpus))}")
        dispatcher.queue.set_life(session, STARTING)
        if dispatcher.windows.go(session):
            dispatcher.expect(session)
        else:
            self.start(session)
        dispatcher.admission.begun(session.name, gpus)
        return True

    def _grant(self, session: Session, gpus: tuple[int, ...]) -> dict[str, object]:
        tail = attempt_lineage.tail(self._dispatcher.attempts, session.name) if session.attempt else None
        missing = {"first": tail[0], "count": tail[1]} if tail else {}
        servers = self._dispatcher.servers.grant(session.name, gpus)
        return {**self._dispatcher.admission.grant(session.name, gpus), **missing, **servers}

    def start(self, session: Session) -> None:
        """Open a window for the attempt that was granted."""
        self._dispatcher.expect(session)
        if not self._dispatcher.windows.open([(session, session.attempt)]):
            self.refused(session, "its window can't be opened")

    # Whether it begins

    def check(self) -> None:
        """Handle refused windows, and retry those that are due."""
        dispatcher, now = self._dispatcher, time.monotonic()
        for name in list(self.opening):
            session = dispatcher.queue.sessions[name]
            code = session.opening.poll() if session.opening else 0
            if code is None:
                continue
            self.opening.discard(name)
            session.opening = None
            if code and not dispatcher.windows.begun(name):  # that of another window may have failed
                dispatcher.windows.forget(name)
                self.refused(session, f"{dispatcher.engine.kind} refused (code {code}; dispatch/out has its words)")
        for name in list(self._again):
            session = dispatcher.queue.sessions[name]
            if session.again_at is not None and session.life == STARTING and now < session.again_at:
                self.due = min(self.due, session.again_at)
                continue
            self._again.discard(name)
            wanted, session.again_at = session.again_at is not None and session.life == STARTING, None
            if wanted:
                self.start(session)

    def refused(self, session: Session, why: str) -> None:
        """Try it again after a wait that grows; on a machine that starts nothing more, when it does again."""
        if lack := machine.limit_reached(why):
            self._note_lack(lack)
            self._take_back(session)
            return
        if session.life != STARTING or session.again_at is not None:
            return
        if self._spend(session, _REFUSED, why):
            self.later(session, _FIRST_WAIT_S * (1 << max(0, BUDGET - session.budget - 1)))

    def _take_back(self, session: Session) -> None:
        """It waits as if its attempt had not been granted."""
        dispatcher, at = self._dispatcher, self._dispatcher.attempts.at(session.name, session.attempt)
        if session.life != STARTING or os.path.exists(at.claim):
            return
        files.remove(at.grant)
        dispatcher.windows.forget(session.name)
        session.attempt, session.gpus, session.again_at = session.attempt - 1, (), None
        dispatcher.queue.set_life(session, QUEUED)
        dispatcher.admission.give_back(session.name)

    def later(self, session: Session, wait_s: float = _FIRST_WAIT_S) -> None:
        """Start it again when its former window is surely gone."""
        session.again_at = time.monotonic() + wait_s
        self._again.add(session.name)

    def overdue(self, session: Session) -> None:
        """Start it again if it takes too long to begin."""
        if time.monotonic() < session.due:
            return
        if session.opening:
            session.opening.kill()
        session.opening = session.again_at = None
        self.opening.discard(session.name)
        self._dispatcher.windows.forget(session.name)
        if self._spend(session, _OVERDUE, f"it did not begin within {engines.launch_s():g} s"):
            self.start(session)

    def _spend(self, session: Session, cost: int, why: str) -> bool:
        session.budget = (session.budget or BUDGET) - cost
        self._dispatcher.journal(f"never-began {session.name} {session.attempt} {why}")
        if session.budget > 0:
            return True
        self.give_up(session, session.attempt, why)
        return False

    def give_up(self, session: Session, attempt: int, note: str) -> None:
        """Record that its launch has failed, unless it has begun after all. On a full disk it tries again later."""
        if self._dispatcher.attempts.cancel_unstarted(session.name, attempt, "launch_failed", note):
            if session.attempt != attempt:
                self._dispatcher.stop_waiting(session)
                session.attempt = attempt
            self._dispatcher.ended(session)
        else:
            session.budget = BUDGET
            self._dispatcher.expect(session)

    # Who waits for more than its turn

    def write_waiting(self) -> None:
        """Write dispatch/waiting if it changes; the dispatcher never reads it."""
        self._dispatcher.waiting_changed = False
        waits = [
            {"session": name, **({"until": until} if until else {}), records.REASON: fact}
            for name, until, fact in self._waits()
        ]
        if waits == self._waiting:
            return
        self._waiting = waits
        if waits:
            files.write_text(self._dispatcher.layout.waiting, "".join(records.render(wait.items()) for wait in waits))
        else:
            files.remove(self._dispatcher.layout.waiting)

    def _waits(self) -> list[tuple[str, str, Fact]]:
        """Session or server, until when if that is known, and why.

        A session that has ended and starts again is listed as such, whatever else it waits for: its files alone look as
        if it were over.
        """
        dispatcher = self._dispatcher
        retries, others, names = [], [], []
        for session in dispatcher.queue:
            if session.life != QUEUED:
                continue
            if session.retry_why:
                retries.append((session.name, session.retry_until, session.retry_why))
            if dispatcher.smoke_first(session):
                others.append((session.name, Fact(Wait.SMOKE_TEST_FIRST)))
            elif session.retry_at is None:
                names.append(session.name)
        if self.lacks:
            limit = Fact(Wait.NO_PROCESSES, limit=self.lacks.as_data())
            others += [(name, limit) for name in names[:WAITS_MOST]]
        else:
            others += dispatcher.admission.waits(names)
        return retries + [(name, "", fact) for name, fact in others + dispatcher.servers.waits(names)]
