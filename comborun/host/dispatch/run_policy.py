"""Decides what follows from the ends of sessions for their run, with any engine."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from comborun.host.dispatch.run_state import RunState
from comborun.host.dispatch.sessions import Known
from comborun.host.record import attempt_lineage
from comborun.host.record.end_record import DONE
from comborun.host.record.queue import DROPPED, SMOKE
from comborun.host.record.run_directory import NextRetry, session_names
from comborun.host.record.totals import EPISODES, totals
from comborun.host.system import files
from comborun.host.system.files import Json
from comborun.rules import records
from comborun.rules.durations import time_run
from comborun.rules.endings.breaker import FAILED, Breaker, too_many
from comborun.rules.endings.failures import HOST, Failure
from comborun.rules.events import Kind
from comborun.rules.facts import Fact, data_of
from comborun.rules.holds import HoldReason, Notice
from comborun.rules.names import AFTER, RunLayout
from comborun.rules.results.counts import Counts, proven
from comborun.rules.vocabulary import Outcome, outcome_of

END, STALL, SERVER = "end", "stall", "server"


def failure_of(end: Json) -> str:
    """The class of a failure; empty for what succeeded, was stopped or is not needed."""
    return "" if outcome_of(end) in ("succeeded", "cancelled", "not_needed") else end.get("class") or "error"


class RunPolicy:
    """Retries, the breaker, fail-fast, the smoke test, `after` and the end of one run."""

    def __init__(self, run: RunState) -> None:
        self._run = run
        self._attempts = run.attempts
        self.breaker = Breaker(0)
        self.failed: set[str] = set()
        """sessions that ended for good without success and were not forgiven, at the last look"""
        self.smoke_waits = False
        """whether a session of the smoke test has left no record yet"""
        self._told = Told(self._run.layout)
        self._environments: dict[str, str] = {}

    def read(self) -> None:
        layout = self._run.layout
        rows, quarantine = files.read_text(layout.breaker), files.read_text(layout.quarantine)
        self.breaker = Breaker(self._run.configured("breaker"), rows, quarantine)

    # One end

    def follows(self, session: Known, person: bool = False) -> NextRetry | None:
        """The attempt that follows its latest one; None: that was the last. `person`: a user has just started the run,
        which asks again for cancelled and lost sessions.
        """
        name, number = session.name, session.attempt
        for one in self._attempts.members(name) if person else ():
            last = number if one == name else self._attempts.latest(one)
            end = session.end if one == name else self._attempts.end(one, last)
            if end and outcome_of(end) in ("cancelled", "lost") and self._attempts.retried_after(one) < last:
                self._attempts.ask(one, last)
        return self._attempts.follows(name, number)

    def report_new_ends(self, sessions: Collection[Known]) -> None:
        """Report, in order, the ends that came while no process watched the run.

        Forgiven ends don't count. A loss is an event of the machine and is handled where it is found.
        """
        for session, number, end in sorted(self._new_ends(sessions), key=lambda one: one[2].get("ended", "")):
            self.report_end(session.name, number, end)
            if end.get("cause") not in ("preempted", "lost") and not self._run.holds.forgiven(end.get("ended", "")):
                at = self._attempts.at(session.name, number)
                grant = {} if self._attempts.backend.elsewhere else files.read(at.grant)
                self.count(session.name, end, records.integers(grant, "gpus"))
            if failure_of(end) and number == session.attempt and session.over and session.flag != DROPPED:
                self.failed_for_good(session, sessions)

    def _new_ends(self, sessions: Iterable[Known]) -> Iterator[tuple[Known, int, Json]]:
        for session in sessions:
            for number in range(1, session.attempt + 1):
                known = self._told.knows(END, session.name, number)
                if end := {} if known else self._attempts.end(session.name, number):
                    yield session, number, end

    def report_end(self, name: str, number: int, end: Json) -> None:
        """Record that an end is told and counted, then send its notices; once for each attempt."""
        self._told.first(END, name, number)
        of_end = {key: end.get(key, "") for key in ("cause", "code")}
        fields: Json = {"outcome": outcome_of(end), **of_end, "class": failure_of(end)}
        self._run.events.write(Kind.ENDED, name, number, **fields)
        if end.get("cause") == "stalled":
            self.report_stall(name, number, end)
        if failure_of(end) == "disk_full":
            self._run.notices.tell("host", name, Fact(Notice.SESSION_DISK_FULL, session=name))

    def report_stall(self, name: str, number: int, record: Json) -> None:
        """Report a stall once for each attempt: when it is seen, or when it has ended the session."""
        if self._told.first(STALL, name, number):
            self._run.notices.tell("stalled", name, Fact(Notice.NO_PROGRESS, session=name, **records.how_ended(record)))

    def report_server(self, path: str, number: int, what: Fact) -> None:
        """Report a failure of a model server once for each attempt."""
        if self._told.first(SERVER, path, number):
            self._run.notices.tell("host", "", what)

    def failed_for_good(self, session: Known, sessions: Iterable[Known]) -> None:
        """Send the notice of a session that gets no further attempt, and apply fail-fast."""
        outcome = outcome_of(session.end)
        if outcome in FAILED:
            fact = Fact(Notice.SESSION_ENDED, session=session.name, outcome=outcome)
            self._run.notices.tell("failed", session.name, fact)
        if why := self.too_many_failed(sessions):
            self._run.halt(why)

    def count(self, name: str, end: Json, gpus: Sequence[int], others: Callable[[str], bool] = bool) -> bool:
        """Count an end for the breaker. True if that put a GPU into quarantine.

        `others`: whether sessions of other environments than this one make progress now; by default not.
        """
        if outcome_of(end) == "succeeded" or records.integer(end, DONE):  # what ended it is no fault of the machine
            if self.breaker.succeeded(gpus):
                self._write_breaker()
            return False
        closed = False
        failure, environment, before = failure_of(end), self.environment(name), set(self.breaker.closed)
        if name in self._attempts.processes:
            blamed = self._blamed(name, end)
            spared = lambda: self._untried(blamed) or others(blamed)  # noqa: E731
            tripped = self.breaker.record(failure, gpus, blamed, untried=spared)
        else:
            tripped = self.breaker.record(failure, gpus, environment, lambda: others(environment))
        if set(self.breaker.closed) != before:
            self._close(environment, failure)
        for place, times in tripped.items():
            if place == HOST:
                host = "" if self._attempts.backend.elsewhere else os.uname().nodename
                found = {"failure": failure, "times": times, "host": host}
                self._run.halt(Fact(HoldReason.FAILURES_IN_A_ROW, **found, **records.how_ended(end)))
                continue
            closed = True
            files.write_text(self._run.layout.quarantine, self.breaker.quarantined(f"{time.time():.6f}"))
            of_gpu: Json = {"gpu": int(place), "class": failure, "times": times}
            self._run.events.write(Kind.QUARANTINE, **of_gpu)
            self._run.notices.tell("host", "", Fact(Notice.QUARANTINED, gpu=int(place), failure=failure, times=times))
        self._write_breaker()
        if closed and len(self.breaker.quarantine) >= len(records.integers(self._attempts.policy, "gpus")):
            self._run.halt(Fact(HoldReason.NO_GPU_LEFT))
        return closed

    def _blamed(self, process: str, end: Json) -> str:
        """The environment that ended a start of a process of several; empty if it was not a single one."""
        number, failure = records.integer(end, "attempt") or 0, failure_of(end)
        members = self._attempts.members(process)
        failed = [one for one in members if failure_of(self._attempts.end(one, number)) == failure]
        return self.environment(failed[0]) if len(failed) == 1 else ""

    def _untried(self, environment: str) -> bool:
        """Whether a process has a session of another environment that never began: it runs before this one again."""
        members = (one for process in self._attempts.processes for one in self._attempts.members(process))
        return any(self.environment(one) != environment and not self._attempts.numbers(one) for one in members)

    def gpu_fell(self, gpu: int) -> bool:
        """Start nothing more on a GPU that the driver has lost. Returns whether that is news."""
        if str(gpu) in self.breaker.quarantine:
            return False
        reason = Fact(Notice.GPU_FELL, gpu=gpu)
        self.breaker.quarantine[str(gpu)] = Notice.GPU_FELL.value
        files.write_text(self._run.layout.quarantine, self.breaker.quarantined(f"{time.time():.6f}"))
        what: Json = {"gpu": gpu, "reason": reason, "class": Failure.GPU_FAULT.value}
        self._run.events.write(Kind.QUARANTINE, **what)
        self._run.notices.tell("host", "", reason)
        if len(self.breaker.quarantine) >= len(records.integers(self._attempts.policy, "gpus")):
            self._run.halt(Fact(HoldReason.NO_GPU_LEFT))
        return True

    def _close(self, environment: str, failure: str) -> None:
        files.write_text(self._run.layout.quarantine, self.breaker.quarantined(f"{time.time():.6f}"))
        what: Json = {"environment": environment, "failure": failure, "times": self.breaker.limit}
        self._run.events.write(Kind.CLOSED, **what)
        self._run.notices.tell("host", "", Fact(Notice.ENVIRONMENT_CLOSED, **what))

    def environment(self, name: str) -> str:
        """The environment of a session, by its session.json; empty if that can't be read."""
        if name not in self._environments:
            data: Json = files.read(self._run.layout.session_json(name))
            rules = data.get(records.JUDGING) or {}
            self._environments[name] = str(rules.get("environment") or "")
        return self._environments[name]

    def is_closed(self, session: Known) -> bool:
        """Whether its environment gets no new sessions."""
        return bool(self.breaker.closed) and self.environment(session.name) in self.breaker.closed

    def _write_breaker(self) -> None:
        files.write_text(self._run.layout.breaker, self.breaker.rows())

    # All sessions

    def too_many_failed(self, sessions: Iterable[Known]) -> Fact | None:
        """Why fail-fast halts the run; None if it does not."""
        kept = [one for one in sessions if one.flag != DROPPED and one.name != AFTER]
        self.failed = {
            one.name for one in kept if one.over and outcome_of(one.end) in FAILED and not self._forgiven(one)
        }
        return too_many(
            len(self.failed), len(kept), self._run.configured("fail_fast"), self._run.configured("fail_fast_percent")
        )

    def _forgiven(self, session: Known) -> bool:
        """Whether it had ended before a user last resumed the run."""
        return self._run.holds.forgiven(session.end.get("ended", ""))

    def judge_smoke(self, sessions: Iterable[Known]) -> None:
        """Check whether all sessions of the smoke test have left a record. Halt the run if one never will."""
        smokes = [session for session in sessions if session.flag == SMOKE]
        self.smoke_waits = not all(session.over for session in smokes)
        if self.smoke_waits:
            return
        if missing := [session for session in smokes if not self._proven(session)]:
            self.smoke_waits = True
            whys = [data_of(Counts.of(session.end).facts) for session in missing]
            names = [session.name for session in missing]
            self._run.halt(Fact(HoldReason.SMOKE_TEST_UNPROVEN, sessions=names, whys=whys))

    def smoke_first(self, session: Known) -> bool:
        """Whether it waits until each session of the smoke test has left a record."""
        return self.smoke_waits and session.flag != SMOKE and session.name != AFTER

    def _proven(self, session: Known) -> bool:
        ends = (self._attempts.end(session.name, number) for number in range(session.attempt, 0, -1))
        return self._forgiven(session) or any(map(proven, ends))

    # The end of the run

    def link_results(self, sessions: Iterable[Known]) -> None:
        """Fill the folder results/ with a link to every result file that counts."""
        names = [session.name for session in sessions if session.flag != DROPPED]
        attempt_lineage.link(self._attempts, [one for name in names for one in self._attempts.members(name)])

    def wants_after(self, sessions: Iterable[Known]) -> bool:
        """Whether `after` must run: once; again if it was lost or cancelled, or if sessions have ended since."""
        if not os.path.exists(self._run.layout.script(AFTER)):
            return False
        number = self._attempts.latest(AFTER)
        end = self._attempts.end(AFTER, number) if number else {}
        if not end or outcome_of(end) in ("lost", "cancelled"):
            return True
        begun = files.changed(self._attempts.at(AFTER, number).begin)
        return any(
            files.changed(self._attempts.at(one.name, one.attempt).end) > begun for one in sessions if one.attempt
        )

    def record_done(self, sessions: Iterable[Known]) -> bool:
        """Record that the run is done; False if that can't be written."""
        planned = [session for session in sessions if session.flag != DROPPED]
        outcomes = [one for session in planned if session.flag != SMOKE for one in self._outcomes(session)]
        smoke = [one for session in planned if session.flag == SMOKE for one in self._outcomes(session)]
        after = self._attempts.end(AFTER, self._attempts.latest(AFTER))
        counts = [(one.value, outcomes.count(one)) for one in Outcome]
        ended = [("after", outcome_of(after) if after else "")]
        tested = [("smoke", len(smoke)), ("smoke_succeeded", smoke.count(Outcome.SUCCEEDED))] if smoke else []
        sums = totals(self._attempts)
        now = round(time.time(), 6)
        took = [("seconds", self._seconds() or 0.0)]
        fields = [("at", now), *took, *counts, *((key, sums[key]) for key in EPISODES), *ended, *tested]
        return files.write(self._run.layout.done, fields)

    def _seconds(self) -> float | None:
        """How long the run took."""
        run = self._attempts
        ends = (run.end(name, number) for name in session_names(run.layout) for number in run.numbers(name))
        times = [(records.seconds(end, "started"), records.seconds(end, "ended")) for end in ends]
        return time_run((start, end) for start, end in times if start and end)

    def _outcomes(self, session: Known) -> list[Outcome]:
        """The outcome of a session, or of each that shares its process."""
        names, attempts = self._attempts.members(session.name), self._attempts
        if names == (session.name,):
            return [attempt_lineage.outcome(attempts, session.name, session.end)]
        return [attempt_lineage.outcome(attempts, name, attempts.end(name, attempts.latest(name))) for name in names]

    def report_done(self, sessions: Iterable[Known]) -> None:
        outcomes = [one for session in sessions if session.flag != DROPPED for one in self._outcomes(session)]
        self._run.events.write(Kind.DONE)
        fact = Fact(Notice.RUN_FINISHED, succeeded=outcomes.count(Outcome.SUCCEEDED), sessions=len(outcomes))
        self._run.notices.tell("finished", "", fact)


class Told:
    """What a run has told and counted already: dispatch/told.jsonl, a line for each end, each stall, and each attempt
    of a model server that failed.

    A line is written before the notice is sent and before the breaker counts: after a kill in between, nothing is told
    or counted twice.
    """

    def __init__(self, layout: RunLayout) -> None:
        self._path = layout.told
        rows = files.read_rows(self._path)
        self._known = {(row.get("what", ""), row.get("session", ""), row.get("attempt", "")) for row in rows}
        self._unwritten = ""

    def knows(self, what: str, session: str, attempt: int) -> bool:
        return (what, session, str(attempt)) in self._known

    def first(self, what: str, session: str, attempt: int) -> bool:
        """Record it. False if it was recorded before. On a full disk it is in memory only, until there is room."""
        if self.knows(what, session, attempt):
            return False
        self._known.add((what, session, str(attempt)))
        self._unwritten += json.dumps({"what": what, "session": session, "attempt": attempt}) + "\n"
        if files.append(self._path, self._unwritten):
            self._unwritten = ""
        elif not self._unwritten.startswith("\n"):
            self._unwritten = f"\n{self._unwritten}"  # a part of it may have been written
        return True
