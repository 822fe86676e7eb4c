"""What follows when a session of a dispatcher ends: its resources are free, the breaker counts it, it may run again."""

from __future__ import annotations

import os
import time

from comborun.host.admission.admission import GPU_MEMORY
from comborun.host.dispatch import sessions as states
from comborun.host.dispatch.run_policy import RunPolicy, failure_of
from comborun.host.dispatch.run_state import LocalState
from comborun.host.dispatch.sessions import Server, Session
from comborun.host.record.queue import DROPPED, SMOKE
from comborun.host.record.recounts import live_counts
from comborun.host.system.files import Json
from comborun.rules import records
from comborun.rules.events import Kind
from comborun.rules.facts import Fact
from comborun.rules.holds import Notice
from comborun.rules.names import AFTER
from comborun.rules.room.waits import Wait
from comborun.rules.vocabulary import outcome_of


class Ends:
    def __init__(self, run: LocalState, policy: RunPolicy) -> None:
        self._run = run
        self._policy = policy

    def free(self, session: Session) -> None:
        """Free its slot before its end is on record, unless the next end decides if anything starts at all."""
        if isinstance(session, Server):  # others get its room when it has ended
            return
        state, policy = session.state, self._policy
        limited = policy.failed and (self._run.configured("fail_fast") or self._run.configured("fail_fast_percent"))
        if (
            not isinstance(state, (states.Starting, states.Running, states.Orphaned))
            or policy.breaker.counts
            or limited
        ):
            return
        supervisor = state.supervisor if isinstance(state, states.Running) else ("", "")
        self.release(session, states.Closing(state.gpus, supervisor))

    def release(self, session: Session, state: states.State) -> None:
        """Move it to a state in which it holds nothing."""
        if session.state.takes_slot:
            self._run.admission.give_back(session.name)
        self._run.queue.set(session, state)

    def ended(self, session: Session, number: int) -> None:
        """Follow the end of an attempt, if there is one; once for each attempt."""
        name, before = session.name, session.state
        known = number == session.attempt and not isinstance(before, states.Granted)
        end = {} if known or number < session.attempt else self._run.attempts.end(session.path, number)
        if not end:
            return
        session.attempt = number
        self._run.waiting_changed |= isinstance(before, states.Queued) and before.why is not None
        self.release(session, states.Ended(end))
        if isinstance(session, Server):
            self._server_ended(session, end)
            return
        self._policy.report_end(name, number, end)
        if isinstance(before, states.Granted):
            self._update_breaker(session, before)
        if session.flag == DROPPED or (failure_of(end) and self.follow(session)):
            return
        if failure_of(end):
            self._policy.failed_for_good(session, self._run.queue)
        if session.flag == SMOKE:
            self._policy.judge_smoke(self._run.queue)

    def _server_ended(self, server: Server, end: Json) -> None:
        cause, code = end.get("cause", ""), end.get("code", "")
        self._run.events.write(Kind.ENDED, server.path, server.attempt, cause=cause, code=code)
        if cause not in ("stopped", "not_needed"):
            how = {"cause": cause, "exit_code": code, **records.how_ended(end)}
            what = Fact(Notice.SERVER_ENDED, server=server.name, **how)
            self._policy.report_server(server.path, server.attempt, what)

    def _update_breaker(self, session: Session, before: states.Granted) -> None:
        end, failure = session.end, failure_of(session.end)
        at = self._run.attempts.at(session.name, session.attempt).directory
        stopped = outcome_of(end) == "cancelled"
        crowded = self._run.admission.ended(session.name, before.gpus, at, failure, stopped=stopped)
        served = failure == "server_lost" and session.servers  # a server has a budget of its own
        counted = failure and isinstance(before, states.Lost) and before.counted
        if not (session.name == AFTER or crowded or served or counted):
            self.count(session.name, end, before.gpus)

    def count(self, name: str, end: Json, gpus: tuple[int, ...]) -> None:
        if self._policy.count(name, end, gpus, self._others_progress):
            self.close_gpus()
        self._run.waiting_changed = True

    def _others_progress(self, environment: str) -> bool:
        """Whether a session of another environment runs that has left records, and is not stalled."""
        for session in self._run.queue:
            if not session.state.takes_slot:
                continue
            at = self._run.attempts.at(session.name, session.attempt)
            other = self._policy.environment(session.name) != environment
            if other and not os.path.exists(at.stalled) and live_counts(at).records:
                return True
        return False

    def close_gpus(self) -> None:
        """Start nothing more on GPUs in quarantine."""
        self._run.admission.quarantine(map(int, self._policy.breaker.quarantine))

    # Another attempt

    def follow(self, session: Session, person: bool = False) -> bool:
        """Queue it once more if a user or the grid wants that. `person`: a user has just started the run."""
        due = self._policy.follows(session, person)
        if due is None:
            return False
        self._run.admission.again(session.name, alone=due.failure == GPU_MEMORY and due.times > 1)
        if due.failure:
            fields = {"class": due.failure, "wait_s": round(due.wait_s, 3)}
            self._run.events.write(Kind.RETRY, session.name, session.attempt, **fields)
            why = Fact(Wait.RETRY_AFTER, failure=due.failure, attempt=session.attempt)
            self.enqueue(session, states.Queued(why, time.monotonic() + due.wait_s, f"{time.time() + due.wait_s:.0f}"))
        else:
            self.start_again(session)
        return True

    def start_again(self, session: Session) -> None:
        self.enqueue(session, states.Queued(Fact(Wait.RETRY_ASKED, attempt=session.attempt)))

    def enqueue(self, session: Session, state: states.Queued) -> None:
        self._run.waiting_changed |= state.why is not None
        self._run.queue.set(session, states.Dropped() if session.flag == DROPPED else state)

    def on_retry(self, session: Session) -> None:
        """Follow a retry that a user may have asked for."""
        if not self._run.attempts.asked(session.name, session.attempt):
            return
        self._run.admission.again(session.name, alone=False)
        if isinstance(session.state, states.Queued):  # without more waiting
            session.state.not_before, session.state.until = None, ""
        elif isinstance(session.state, states.Ended):
            self._run.events.write(Kind.RETRY, session.name, session.attempt, asked=True)
            self.start_again(session)
