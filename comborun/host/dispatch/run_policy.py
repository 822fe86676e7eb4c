"""Decides what follows from the ends of sessions for their run, with any engine."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import time

from comborun.host.dispatch.notices import Notices
from comborun.host.record import attempt_lineage
from comborun.host.record.attempts import Due, word_of
from comborun.host.record.holds import Hold, Holds
from comborun.host.record.queue import DROPPED, SMOKE
from comborun.host.system import files
from comborun.host.system.files import TABLE_MOST
from comborun.rules import records
from comborun.rules.endings.breaker import FAILED, HOST, Breaker, too_many
from comborun.rules.facts import Fact
from comborun.rules.holds import HALTED, HoldReason, Notice
from comborun.rules.names import AFTER
from comborun.rules.results.counts import proven
from comborun.words import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Collection, Iterable, Iterator, Mapping, Sequence

    from comborun.host.record.attempts import RunDirectory
    from comborun.host.record.queue import Known

_COUNTED = ("succeeded", "partial", "failed", "cancelled", "lost", "not_needed")


def failure_of(end: Mapping[str, Any]) -> str:
    """The class of a failure; empty for what succeeded, was stopped or is not needed."""
    return "" if word_of(end) in ("succeeded", "cancelled", "not_needed") else end.get("class") or "error"


class Overseer:
    """Retries, holds, the breaker, fail-fast, the smoke test, `after` and the end of one run."""

    def __init__(self, attempts: RunDirectory) -> None:
        self.attempts = attempts
        self.layout = attempts.layout
        self.holds = Holds(self.layout)
        self.hold = Hold()
        self.notices = Notices(attempts, self.journal)
        self.breaker = Breaker(0)
        self.failed: set[str] = set()
        """sessions that ended for good without success and were not forgiven, at the last look"""
        self.smoke_waits = False
        """whether a session of the smoke test has left no record yet"""
        self._stalls: set[tuple[str, int]] = set()
        self.halted_why: Fact | None = None
        """why the run is halted, if that could not be written yet"""
        self._journal = os.open(self.layout.journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)

    def read(self) -> None:
        self.attempts.read_policy()
        self.holds.read_resumed()
        folder = self.layout.dispatch
        rows, quarantine = files.read_text(f"{folder}/breaker"), files.read_text(f"{folder}/quarantine")
        self.breaker = Breaker(self.policy("breaker"), rows, quarantine)
        self.notices.open()

    def policy(self, key: str) -> int:
        return records.integer(self.attempts.policy, key) or 0

    def journal(self, words: str) -> None:
        with contextlib.suppress(OSError):  # a full disk; no decision depends on the journal
            os.write(self._journal, f"{time.time():.6f} {words}\n".encode("utf-8", "surrogateescape"))

    # Holds

    def look_at_hold(self) -> Hold:
        self.hold = self.holds.look()
        if self.halted_why and not self.hold.kind:  # on a full disk it is in memory only, until there is room
            self.hold = Hold(HALTED, self.halted_why)
            if self.holds.order(HALTED, self.halted_why):
                self.halted_why = None
        return self.hold

    def program(self, verb: str, *words: object) -> list[str]:
        return [sys.executable, "-I", "-S", self.layout.program, verb, self.layout.directory, *map(str, words)]

    def halt(self, why: Fact) -> None:
        """Start nothing new until a user resumes the run. The first reason is kept, and so is a user's hold."""
        if self.halted_why or self.holds.look().kind:
            return
        if not self.holds.order(HALTED, why):
            self.halted_why = why
        self.hold = Hold(HALTED, why)
        self.journal(f"halted {say(why)}")
        self.notices.tell("host", "", Fact(Notice.RUN_HALTED, reason=why.as_data()))

    # One end

    def follows(self, session: Known, person: bool = False) -> Due | None:
        """The attempt that follows its latest one; None: that was the last. `person`: a user has just started the run,
        which asks again for cancelled and lost sessions.
        """
        name, number = session.name, session.attempt
        if person and word_of(session.end) in ("cancelled", "lost") and self.attempts.retried_after(name) < number:
            self.attempts.ask(name, number)
        return self.attempts.follows(name, number)

    def report_new_ends(self, sessions: Collection[Known]) -> None:
        """Report, in order, the ends that came while no process watched the run.

        Forgiven ends don't count. A loss is an event of the machine and is handled where it is found.
        """
        known = re.findall(r"^\S+ ended (\S+ [0-9]+) ", files.read_text(self.layout.journal, TABLE_MOST), re.MULTILINE)
        for session, number, end in sorted(self._ends(sessions, set(known)), key=lambda one: one[2].get("ended", "")):
            self.report_end(session.name, number, end)
            if end.get("cause") not in ("preempted", "lost") and not self.holds.forgiven(end.get("ended", "")):
                at = self.attempts.at(session.name, number)
                self.count(end, () if self.attempts.nodes else records.integers(files.read(at.grant), "gpus"))
            if failure_of(end) and number == session.attempt and session.over and session.flag != DROPPED:
                self.failed_for_good(session, sessions)

    def _ends(self, sessions: Iterable[Known], known: Collection[str]) -> Iterator[tuple[Known, int, dict[str, Any]]]:
        for session in sessions:
            for number in range(1, session.attempt + 1):
                end = self.attempts.end(session.name, number) if f"{session.name} {number}" not in known else {}
                if end:
                    yield session, number, end

    def report_end(self, name: str, number: int, end: Mapping[str, Any]) -> None:
        """Write an end into the journal and send its notices; once for each attempt."""
        entry = name, number, word_of(end), end.get("cause", ""), end.get("code", ""), failure_of(end)
        self.journal(" ".join(map(str, ("ended", *entry))))
        if end.get("cause") == "stalled":
            self.report_stall(name, number, end.get("note", ""))
        if failure_of(end) == "disk_full":
            self.notices.tell("host", name, Fact(Notice.SESSION_DISK_FULL, session=name))

    def report_stall(self, name: str, number: int, why: str) -> None:
        """Report a stall once for each attempt: when it is seen, or when it has ended the session."""
        if (name, number) not in self._stalls:
            self._stalls.add((name, number))
            self.notices.tell("stalled", name, Fact(Notice.NO_PROGRESS, session=name, note=why))

    def failed_for_good(self, session: Known, sessions: Iterable[Known]) -> None:
        """Send the notice of a session that gets no further attempt, and apply fail-fast."""
        outcome = word_of(session.end)
        if outcome in FAILED:
            self.notices.tell("failed", session.name, Fact(Notice.SESSION_ENDED, session=session.name, outcome=outcome))
        if why := self.too_many_failed(sessions):
            self.halt(why)

    def count(self, end: Mapping[str, Any], gpus: Sequence[int]) -> bool:
        """Count an end for the breaker. True if that put a GPU into quarantine."""
        if word_of(end) == "succeeded":
            if self.breaker.succeeded(gpus):
                self._write_breaker()
            return False
        closed = False
        failure = failure_of(end)
        for place, times in self.breaker.record(failure, gpus).items():
            if place == HOST:
                host, note = "" if self.attempts.nodes else os.uname().nodename, end.get("note", "")
                self.halt(Fact(HoldReason.FAILURES_IN_A_ROW, failure=failure, times=times, host=host, note=note))
                continue
            closed = True
            files.write_text(f"{self.layout.dispatch}/quarantine", self.breaker.quarantined(f"{time.time():.6f}"))
            self.journal(f"quarantine {place} {failure} {times}")
            self.notices.tell("host", "", Fact(Notice.QUARANTINED, gpu=place, failure=failure, times=times))
        self._write_breaker()
        return closed

    def _write_breaker(self) -> None:
        files.write_text(f"{self.layout.dispatch}/breaker", self.breaker.rows())

    # All sessions

    def too_many_failed(self, sessions: Iterable[Known]) -> Fact | None:
        """Why fail-fast halts the run; None if it does not."""
        kept = [one for one in sessions if one.flag != DROPPED and one.name != AFTER]
        self.failed = {one.name for one in kept if one.over and word_of(one.end) in FAILED and not self._forgiven(one)}
        return too_many(len(self.failed), len(kept), self.policy("fail_fast"), self.policy("fail_fast_percent"))

    def _forgiven(self, session: Known) -> bool:
        """Whether it had ended before a user last resumed the run."""
        return self.holds.forgiven(session.end.get("ended", ""))

    def judge_smoke(self, sessions: Iterable[Known]) -> None:
        """Check whether all sessions of the smoke test have left a record. Halt the run if one never will."""
        smokes = [session for session in sessions if session.flag == SMOKE]
        self.smoke_waits = not all(session.over for session in smokes)
        if self.smoke_waits:
            return
        if missing := [session for session in smokes if not self._proven(session)]:
            self.smoke_waits = True
            names, whys = [one.name for one in missing], [one.end.get("why", "") for one in missing]
            self.halt(Fact(HoldReason.SMOKE_TEST_UNPROVEN, sessions=names, whys=whys))

    def smoke_first(self, session: Known) -> bool:
        """Whether it waits until each session of the smoke test has left a record."""
        return self.smoke_waits and session.flag != SMOKE and session.name != AFTER

    def _proven(self, session: Known) -> bool:
        ends = (self.attempts.end(session.name, number) for number in range(session.attempt, 0, -1))
        return self._forgiven(session) or any(map(proven, ends))

    # The end of the run

    def link_results(self, sessions: Iterable[Known]) -> None:
        """Fill the folder results/ with a link to every result file that counts."""
        attempt_lineage.link(self.attempts, [session.name for session in sessions if session.flag != DROPPED])

    def wants_after(self, sessions: Iterable[Known]) -> bool:
        """Whether `after` must run: once; again if it was lost or cancelled, or if sessions have ended since."""
        if not os.path.exists(self.layout.script(AFTER)):
            return False
        number = self.attempts.latest(AFTER)
        end = self.attempts.end(AFTER, number) if number else {}
        if not end or word_of(end) in ("lost", "cancelled"):
            return True
        begun = files.changed(self.attempts.at(AFTER, number).begin)
        return any(
            files.changed(self.attempts.at(one.name, one.attempt).end) > begun for one in sessions if one.attempt
        )

    def record_done(self, sessions: Iterable[Known]) -> bool:
        """Record that the run is done; False if that can't be written."""
        planned = [session for session in sessions if session.flag != DROPPED]
        outcomes = [word_of(session.end) for session in planned if session.flag != SMOKE]
        smoke = [word_of(session.end) for session in planned if session.flag == SMOKE]
        after = self.attempts.end(AFTER, self.attempts.latest(AFTER))
        counts = [(one, outcomes.count(one)) for one in _COUNTED]
        fields = [("at", round(time.time(), 6)), *counts, ("after", word_of(after) if after else "")]
        if smoke:
            fields += [("smoke", len(smoke)), ("smoke_succeeded", smoke.count("succeeded"))]
        return files.write(self.layout.done, fields)

    def report_done(self, sessions: Iterable[Known]) -> None:
        outcomes = [word_of(session.end) for session in sessions if session.flag != DROPPED]
        self.journal("done")
        fact = Fact(Notice.RUN_FINISHED, succeeded=outcomes.count("succeeded"), sessions=len(outcomes))
        self.notices.tell("finished", "", fact)
