"""Starts sessions as slots, resources and waits allow, and checks that they begin.

The intent is on disk before the act: the grant, then the event, then the window. Each start that fails uses up one of
a few tries of the same attempt; after the last one the launch has failed. If two windows open for one attempt, the
second finds the claim and leaves.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Iterable, Iterator

from comborun.host.admission.admission import WAITS_MOST
from comborun.host.dispatch.ends import Ends
from comborun.host.dispatch.run_policy import RunPolicy
from comborun.host.dispatch.run_state import LocalState
from comborun.host.dispatch.servers import Servers
from comborun.host.dispatch.sessions import Dropped, Granted, Queued, Server, Session, Starting
from comborun.host.dispatch.windows import Refused, Windows
from comborun.host.record import attempt_lineage
from comborun.host.record.deals import runs_here
from comborun.host.system import files, machine
from comborun.rules import records
from comborun.rules.endings.evidence import Evidence, fact
from comborun.rules.events import Kind
from comborun.rules.facts import Fact
from comborun.rules.holds import HoldReason
from comborun.rules.names import TOGETHER
from comborun.rules.room.capacity import Blocker
from comborun.rules.room.waits import Wait

BUDGET, _OF_SERVER = 6, 2
"""of an attempt of a session, and of a model server, which has restarts besides"""
_REFUSED, _OVERDUE = 1, 2
"""what a refused and an overdue start cost of the budget"""
_FIRST_WAIT_S = 0.1
_ROOM_S = 2.0
"""between two looks for room on a machine that starts no more processes"""
_WAITING_S, _WAITING_SHARE = 0.02, 20
"""what takes longer to write than so many seconds takes at most one part in so many of the time"""
_SLOTS_MOST = 6
"""digits"""


def launch_s() -> float:
    """Seconds in which a window must begin."""
    return float(os.environ.get("COMBORUN_LAUNCH_S") or 20)


def starting(gpus: tuple[int, ...], budget: int = BUDGET) -> Starting:
    """The state of an attempt that was granted just now."""
    return Starting(gpus, budget, time.monotonic() + launch_s())


class Launcher:
    """Starts the next session, sees to it that it begins, and knows what other sessions wait for."""

    def __init__(self, run: LocalState, policy: RunPolicy, ends: Ends, windows: Windows, servers: Servers) -> None:
        self._run = run
        self._policy = policy
        self._ends = ends
        self._windows = windows
        self._servers = servers
        self.slots = 1
        self.due = math.inf
        """the time when the next waiting session may start"""
        self._held_back = False
        """whether all queued sessions are held back, even if there is room"""
        self._lacks: Fact | None = None
        """why this machine starts nothing more"""
        self._room_at = 0.0
        self._again: dict[str, Session] = {}
        """sessions whose window is opened again after a wait"""
        self._waiting: list[dict[str, object]] | None = None
        self._waiting_due = 0.0
        """when it may be written again"""

    # Who starts

    def fill(self) -> None:
        run, now = self._run, time.monotonic()
        self._held_back, self.due = False, math.inf
        if run.look_at_hold().kind:
            return
        if self._lacks and not self._room(now):
            return
        self._read_slots()
        self._serve()
        if run.queue.busy < self.slots:
            run.admission.round()
            self._servers.reserve()
        folder = lambda name: run.attempts.at(name, run.queue[name].attempt + 1).directory  # noqa: E731
        while run.queue.busy < self.slots and not self._lacks:
            pick = run.admission.pick((one.name for one in self._eligible(now)), folder)
            if pick is None:
                self._held_back = run.admission.nobody
                break
            session = run.queue[pick.name]
            if pick.never:
                if not self._give_up(session, session.attempt + 1, pick.never):
                    break
            elif not self._first(session, pick.gpus):
                run.admission.give_back(session.name)
                break
        if not run.queue.busy:
            self._stuck(now)

    def _room(self, now: float) -> bool:
        """Whether a machine that started nothing more does so again."""
        if now >= self._room_at:
            self._note_lack(machine.limit_reached())
        self.due, self._held_back = self._room_at, bool(self._lacks)
        return not self._lacks

    def _note_lack(self, lack: Fact | None) -> None:
        if lack and lack != self._lacks:
            self._run.events.write(Kind.NO_ROOM, reason=lack)
            self._windows.make_room()
        self._run.waiting_changed |= lack != self._lacks
        self._lacks = lack
        self._room_at = time.monotonic() + _ROOM_S

    def _eligible(self, now: float) -> Iterator[Session]:
        """Sessions that wait only for their turn, in order."""
        for session, state in self._run.queue.waiting():
            if self._policy.smoke_first(session) or self._servers.holds_back(session):
                continue
            if self._policy.is_closed(session):
                continue
            if state.not_before is not None:
                if now < state.not_before:
                    self.due = min(self.due, state.not_before)
                    continue
                state.not_before = None
                self._run.waiting_changed = True
            yield session

    def ahead(self, most: int) -> list[Session]:
        """The first sessions that wait only for their turn; none while nothing may start."""
        if self._run.hold.kind or self._held_back:
            return []
        return [session for _, session in zip(range(most), self._eligible(time.monotonic()))]

    def _serve(self) -> None:
        """Start the model servers that are due, before any session takes their room."""
        for server in [one for one in self._run.queue.servers.values() if one.due]:
            gpus = self._run.admission.lease(
                server.name, self._run.attempts.at(server.path, server.attempt + 1).directory
            )
            server.refused = gpus if isinstance(gpus, Blocker) else None
            if not isinstance(gpus, Blocker) and not self._first(server, gpus):
                self._run.admission.give_back(server.name)

    def _read_slots(self) -> None:
        """Read the number of slots. The file may be edited at any moment; other text than a number changes nothing."""
        text = files.read_line(self._run.layout.slots).strip()
        if text.isascii() and text.isdecimal() and len(text) <= _SLOTS_MOST:
            self.slots = int(text)

    def _stuck(self, now: float) -> None:
        """Halt if nothing runs and quarantine leaves a session too few GPUs, or no environment is left that is open."""
        run, breaker = self._run, self._policy.breaker
        waiting = [(one, state) for one, state in run.queue.waiting() if not self._policy.is_closed(one)]
        if not waiting and breaker.closed and any(True for _ in run.queue.waiting()):
            environments, failures = list(breaker.closed), list(breaker.closed.values())
            run.halt(Fact(HoldReason.ENVIRONMENTS_CLOSED, environments=environments, failures=failures))
            return
        if any(state.not_before is not None for _, state in waiting) or not breaker.quarantine:
            return
        for session in self._eligible(now):
            wants, usable = run.admission.wants(session.name), run.admission.usable(session.name)
            if wants > usable:
                fields = {"gpus": wants, "usable": usable, "allowed": len(run.admission.book.capacity.gpus)}
                run.halt(Fact(HoldReason.TOO_FEW_GPUS_LEFT, session=session.name, **fields))
                return

    # How it starts

    def _first(self, session: Session, gpus: tuple[int, ...]) -> bool:
        """Grant an attempt and start it; False if the grant can't be written, and nothing starts."""
        run, number = self._run, session.attempt + 1
        at = run.attempts.at(session.path, number)
        try:
            os.makedirs(at.output, exist_ok=True)
            granted = files.write(at.grant, self._grant(session, gpus).items())
        except (OSError, LookupError):
            granted = False
        if not granted:
            complain(f"can't write {at.grant}; is the disk full?")
            return False
        run.waiting_changed |= isinstance(session.state, Queued) and bool(session.state.why)
        session.attempt = number
        run.events.write(Kind.GRANTED, session.path, number, gpus=gpus)
        run.queue.set(session, starting(gpus, _OF_SERVER if isinstance(session, Server) else BUDGET))
        if not self._windows.go(session):
            self.start(session)
        if isinstance(session, Server):
            session.due = False
        else:
            run.admission.begun(session.name, gpus)
        return True

    def _grant(self, session: Session, gpus: tuple[int, ...]) -> dict[str, object]:
        if isinstance(session, Server):
            return {**self._run.admission.grant(session.name, gpus), "server": session.name}
        if session.name in self._run.attempts.processes:
            names = [one.name for one in self._run.attempts.next_start(session.name)]
            granted = self._run.admission.grant(session.name, gpus)
            return {**granted, TOGETHER: names, **self._servers.grant(session, gpus)}
        tail = attempt_lineage.tail(self._run.attempts, session.name) if session.attempt else None
        missing = {"first": tail[0], "count": tail[1]} if tail else {}
        servers = self._servers.grant(session, gpus)
        return {**self._run.admission.grant(session.name, gpus), **missing, **servers}

    def start(self, session: Session) -> None:
        """Open a window for the attempt that was granted."""
        if isinstance(session.state, Starting):
            session.state.due = time.monotonic() + launch_s()
        if not self._windows.open([(session, session.attempt)]):
            self.refused(session, fact(Evidence.WINDOW_REFUSED, engine=self._run.engine.kind))

    def start_over(self, session: Session, state: Granted) -> None:
        """Start an attempt again whose files were removed."""
        fresh = starting(state.gpus)
        self._run.queue.set(session, fresh)
        if self._spend(session, fresh, _OVERDUE, fact(Evidence.FILES_REMOVED)):
            self.start(session)

    # Whether it begins

    def check(self) -> None:
        """Handle refused windows, and retry those that are due."""
        now = time.monotonic()
        refused, again = self._windows.refusals()
        self.refuse(refused)
        for session in again:
            self.later(session)
        for name, session in list(self._again.items()):
            state = session.state
            again_at = state.again_at if isinstance(state, Starting) else None
            if again_at is not None and now < again_at:
                self.due = min(self.due, again_at)
                continue
            del self._again[name]
            if isinstance(state, Starting) and again_at is not None:
                state.again_at = None
                self.start(session)

    def refuse(self, sessions: Iterable[Refused]) -> None:
        for session, why, error in sessions:
            self.refused(session, why, error)

    def refused(self, session: Session, why: Fact, error: int = 0) -> None:
        """Try it again after a wait that grows; on a machine that starts nothing more, when it does again. One that
        was given to another box just then does not start here.

        `error`: the number of the system's error, or 0.
        """
        state = session.state
        if lack := machine.limit_reached(error):
            self._note_lack(lack)
            if isinstance(state, Starting):
                self._take_back(session)
        elif isinstance(state, Starting) and not runs_here(self._run.layout, session.name):
            self._take_back(session)
        elif isinstance(state, Starting) and state.again_at is None and self._spend(session, state, _REFUSED, why):
            self.later(session, _FIRST_WAIT_S * (1 << max(0, BUDGET - state.budget - 1)))

    def _take_back(self, session: Session) -> None:
        """It waits as if its attempt had not been granted."""
        at = self._run.attempts.at(session.path, session.attempt)
        if os.path.exists(at.claim):
            return
        files.remove(at.grant)
        self._windows.forget(session.name)
        session.attempt -= 1
        self._ends.release(session, Queued() if runs_here(self._run.layout, session.name) else Dropped())

    def later(self, session: Session, wait_s: float = _FIRST_WAIT_S) -> None:
        """Start it again when its former window is surely gone."""
        if isinstance(session.state, Starting):
            session.state.again_at = time.monotonic() + wait_s
            self._again[session.name] = session

    def overdue(self, session: Session, state: Starting) -> None:
        """Start it again if it takes too long to begin."""
        if time.monotonic() < state.due:
            return
        state.again_at = None
        self._windows.give_up(session.name)
        if not runs_here(self._run.layout, session.name):
            self._take_back(session)
        elif self._spend(session, state, _OVERDUE, fact(Evidence.NOT_BEGUN, within_s=launch_s())):
            self.start(session)

    def _spend(self, session: Session, state: Starting, cost: int, why: Fact) -> bool:
        state.budget -= cost
        self._run.events.write(Kind.NOT_BEGUN, session.path, session.attempt, reason=why)
        if state.budget > 0:
            return True
        if not self._give_up(session, session.attempt, why):  # it has begun after all, or the disk is full
            state.budget, state.due = BUDGET, time.monotonic() + launch_s()
        return False

    def _give_up(self, session: Session, attempt: int, why: Fact) -> bool:
        """Record that its launch has failed; False if that is not so, or can't be written."""
        written = self._run.attempts.cancel_unstarted(session.path, attempt, "launch_failed", why)
        if written:
            self._ends.ended(session, attempt)
        return written

    # Who waits for more than its turn

    def write_waiting(self, *, last: bool = False) -> None:
        """Write dispatch/waiting if it changes; the dispatcher never reads it.

        Of very many sessions that takes long: then it is not done again soon, unless it is the last time.
        """
        began = time.monotonic()
        if began < self._waiting_due and not last:
            return
        self._run.waiting_changed = False
        waits = [
            {"session": name, **({"until": until} if until else {}), records.REASON: fact}
            for name, until, fact in self._waits()
        ]
        if waits != self._waiting:
            self._waiting = waits
            if waits:
                files.write_rows(self._run.layout.waiting, waits)
            else:
                files.remove(self._run.layout.waiting)
        took = time.monotonic() - began
        self._waiting_due = began + _WAITING_SHARE * took if took > _WAITING_S else 0.0

    def _waits(self) -> list[tuple[str, str, Fact]]:
        """Session or server, until when if that is known, and why.

        A session that has ended and starts again is listed as such, whatever else it waits for: its files alone look as
        if it were over.
        """
        retries, others, names, closed = [], [], [], []
        for session in self._run.queue:
            state = session.state
            if session.name in self._run.attempts.processes:
                retries += self._of_process(session)
            if not isinstance(state, Queued):
                continue
            if state.why:
                retries.append((session.name, state.until, state.why))
            if self._policy.smoke_first(session):
                others.append((session.name, Fact(Wait.SMOKE_TEST_FIRST)))
            elif self._policy.is_closed(session):
                environment = self._policy.environment(session.name)
                failure = self._policy.breaker.closed[environment]
                closed.append((session.name, Fact(Wait.ENVIRONMENT_CLOSED, environment=environment, failure=failure)))
            elif state.not_before is None:
                names.append(session.name)
        if self._lacks:
            limit = Fact(Wait.NO_PROCESSES, limit=self._lacks.as_data())
            others += [(name, limit) for name in names[:WAITS_MOST]]
        else:
            others += self._run.admission.waits(names)
        return retries + [(name, "", fact) for name, fact in others + self._servers.waits(names) + closed]

    def _of_process(self, session: Session) -> list[tuple[str, str, Fact]]:
        """What the sessions of a process wait for that have ended and start again, or come later in a start."""
        attempts, state = self._run.attempts, session.state
        if isinstance(state, Queued):
            names = [one.name for one in attempts.next_start(session.name) if attempts.latest(one.name)]
            return [(name, state.until, state.why) for name in names if state.why]
        if not isinstance(state, Granted):
            return []
        later, again = Wait.LATER_IN_PROCESS, Wait.AGAIN_IN_PROCESS
        waits = []
        for name in attempts.members(session.name):
            number = attempts.latest(name)
            if number != session.attempt and not (number and attempts.follows(name, number) is None):
                waits.append((name, "", Fact(again if number else later, process=session.name)))
        return waits


def complain(text: str) -> None:
    """Write a line to dispatch/out if there is room."""
    with contextlib.suppress(OSError):
        os.write(2, f"dispatch: {text}\n".encode("utf-8", "surrogateescape"))
