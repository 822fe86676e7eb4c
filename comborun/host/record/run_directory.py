"""The state of an attempt from its files, the end of a lost attempt, and whether another attempt follows."""

from __future__ import annotations

import math
import os
import re
import time

from comborun.host.record.backend import Backend
from comborun.host.record.deals import claiming
from comborun.host.system import descendants, files, ownership, process
from comborun.host.system.process import setting
from comborun.host.verb_errors import USAGE, Refusal
from comborun.rules import records, settings
from comborun.rules.endings import process_starts, retry
from comborun.rules.endings.evidence import Evidence, fact
from comborun.rules.host import Denial
from comborun.rules.machines import elsewhere
from comborun.rules.names import AFTER, DROPPED, NAME, SERVERS, TOGETHER, AttemptLayout, RunLayout, bare
from comborun.rules.results.counts import Counts
from comborun.rules.run_files import attempts_of
from comborun.rules.vocabulary import Cause, Completeness, Life, Outcome, outcome_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, Mapping

    from comborun.host.record import end_record
    from comborun.host.system.ownership import Root
    from comborun.rules.facts import Fact

_SESSION = re.compile(f"({SERVERS})?{NAME}")
NAMELESS_S = 900.0
"""seconds for which a stop counts if a full disk left its mark without a pid"""
_VALUE, _WORDS = re.compile("[0-9]{1,9}"), re.compile("[a-z0-9,]+")
_DEFAULTS = {
    "parallel": "1", "per_gpu": "0", "stagger_ms": "0", "attempts": "1", "gpus": "", "cpus": "0", "breaker": "3",
    "reserve_gpu_mib": "0", "reserve_memory_mib": "0", "fail_fast": "0",
    "fail_fast_percent": "0", "notify_every_ms": "600000", "notify_kinds": "finished,failed,stalled,host",
}  # fmt: skip


class AttemptState:
    """Where an attempt is, and the newest of its end, begin and claim."""

    __slots__ = ("life", "record")

    def __init__(self, life: Life, record: dict[str, str]) -> None:
        self.life = life
        self.record = record


class NextRetry:
    """Another attempt: the class of the failure (empty: a user asked for it), how often it came, the wait from now."""

    __slots__ = ("failure", "times", "wait_s")

    def __init__(self, failure: str, times: int, wait_s: float) -> None:
        self.failure = failure
        self.times = times
        self.wait_s = wait_s


class RunDirectory:
    def __init__(self, path: str) -> None:
        """Raises LookupError if this is not a run directory."""
        self.path = os.path.abspath(path)
        self.layout = RunLayout(self.path)
        self.at = self.layout.attempt
        self.id = files.read_line(self.layout.id).strip()
        if not self.id:
            raise LookupError(f"{path} is not a run directory")
        self.backend = Backend(self.layout)
        self.policy: dict[str, str] = {}
        self.planned: dict[str, str] = {}
        """the policy as the grid has it, without what a person has changed since"""
        self._processes: dict[str, tuple[str, ...]] | None = None
        self.read_policy()

    def read_policy(self) -> None:
        """Read the policy: the grid's, and what a person has changed. A missing or malformed value gets its default."""
        self._processes = None
        self.policy = dict(_DEFAULTS)
        for key, value in files.read(self.layout.policy).items():
            if isinstance(value, str) and (_WORDS if key in ("gpus", "notify_kinds") else _VALUE).fullmatch(value):
                self.policy[key] = value
        self.planned = dict(self.policy)
        self.policy.update(settings.in_force(files.read(self.layout.settings), self.planned))

    def marker(self, name: str, number: int) -> str:
        return f"{self.id}/{bare(name)}/{number}"

    @property
    def processes(self) -> dict[str, tuple[str, ...]]:
        """The processes of several sessions, each with the sessions that the grid still has, in order."""
        if self._processes is None:
            self._processes = processes(self.layout)
        return self._processes

    def members(self, name: str) -> tuple[str, ...]:
        """The sessions that a process runs; its own name for one of a single session."""
        return self.processes.get(name, (name,))

    def process_of(self, name: str) -> str:
        """The process that runs a session; mostly its own."""
        return next((one for one, names in self.processes.items() if name in names), name)

    def roots(self, name: str, number: int) -> list[Root]:
        """What all processes of an attempt descend from."""
        at = self.at(name, number)
        return ownership.roots(self.marker(name, number), files.read(at.claim), files.read(at.begin))

    def check_names(self, names: Iterable[str]) -> None:
        """Raises Refusal if a name is not a session's."""
        for name in names:
            if not _SESSION.fullmatch(name) or not os.path.isdir(self.layout.session(name)):
                raise Refusal(USAGE, Denial.NO_SESSION, session=name)

    def latest(self, name: str) -> int:
        """The highest attempt; 0 when there is none."""
        return max(self.numbers(name), default=0)

    def numbers(self, name: str) -> list[int]:
        """Its attempts, lowest first."""
        return attempts_of(self.layout, name)

    def glance(self, name: str, number: int) -> AttemptState:
        """The state as far as it shows without testing a lock. An attempt that nobody granted (0, say) is queued."""
        at = self.at(name, number)
        end = self._own_end(at)
        if end:
            return AttemptState(Life.ENDED, end)
        begin = files.read(at.begin)
        if begin:
            return AttemptState(self.backend.life(at, begin), begin)
        if os.path.exists(at.claim):
            claim = files.read(at.claim)  # empty if the disk was full
            return AttemptState(Life.LOST if self.backend.life(at, claim) == Life.LOST else Life.STARTING, claim)
        return AttemptState(Life.STARTING if files.size(at.grant) else Life.QUEUED, {})

    def look(self, name: str, number: int) -> AttemptState:
        """The state. An attempt that `glance` calls lost is orphaned while a process holds the session's lock."""
        seen = self.glance(name, number)
        if seen.life != Life.LOST or self.backend.elsewhere:
            return seen
        at = self.at(name, number)
        if files.held(self.layout.session_lock(self.process_of(name))):
            # A child of the command holds it, the begin was not recorded, or it is being claimed just now.
            claimed = files.size(at.claim) or os.path.exists(at.begin)
            return AttemptState(Life.ORPHANED if claimed else Life.STARTING, seen.record)
        end = self._own_end(at)  # it may have been written meanwhile
        return AttemptState(Life.ENDED, end) if end else seen

    def end(self, name: str, number: int) -> dict[str, str]:
        """Its end record; empty while there is none."""
        return self._own_end(self.at(name, number))

    def _own_end(self, at: AttemptLayout) -> dict[str, str]:
        """The end that belongs to the claim's start: an earlier start of a requeued task may still write."""
        end = files.read(at.end)
        if end and (self.backend.elsewhere or "nonce" in end):
            return end if end.get("nonce", "") == files.read(at.claim).get("nonce", "") else {}
        return end

    def cancel_unstarted(self, name: str, number: int, cause: str, reason: Fact | str) -> bool:
        """End an attempt before it begins; False if it has been claimed, runs on another box, or nothing can be
        written.
        """
        from comborun.host.record import end_record, judging

        at = self.at(name, number)
        if cause != Cause.LOST.value and name in self.processes:  # what never began and was lost simply runs
            for one in self.next_start(name):
                self.cancel_unstarted(one.name, number, cause, reason)
        try:
            os.makedirs(at.directory, exist_ok=True)
            with claiming(self.layout, self.process_of(name)):
                if not files.create(at.claim):  # a late session finds the claim and leaves
                    return False
        except (OSError, Refusal):
            return False
        nothing = judging.Judged(Counts(), Completeness.NONE)
        # In its own draft: its supervisor may be reserving room just now.
        if end_record.write_end(at, end_record.Ending(cause, reason), nothing, reserved=False):
            return True
        files.remove(at.claim)  # without a record nothing is decided
        return False

    def finalize_lost(self, name: str, number: int, within_s: float | None = None) -> bool:
        """End the remaining processes of a lost attempt, judge it, write its end; False if that can't be written.

        Takes as long as its processes take to end, and `within_s` seconds at most for reading its files.
        """
        from comborun.host.record import judging, recounts
        from comborun.host.record.together import write_end

        at = self.at(name, number)
        claim, begin = files.read(at.claim), files.read(at.begin)
        ending, grace = self._lost(at, claim, begin)
        ending.started = records.seconds(begin, "started")
        self.backend.freeze(at)
        if not self.backend.elsewhere and (begin or claim).get("boot") == process.boot_id():
            descendants.end_container(
                files.read(self.layout.session_json(name)).get("container", ""), self.marker(name, number)
            )
            survivors = descendants.sweep(self.marker(name, number), grace, self.roots(name, number))
            ending.add(fact(Evidence.SURVIVORS, pids=survivors) if survivors else None)
        far = self.backend.elsewhere or elsewhere(begin or claim, process.machine())
        fd = -1 if far else _lock(self.layout.session_lock(name))
        try:  # two processes may finalize it at once
            if self._own_end(at):
                return True
            try:
                judged = recounts.judged(at, None, recounts.AT_END_S if within_s is None else within_s)
            except (OSError, MemoryError):
                raise
            except Exception as error:  # noqa: BLE001 - an end without counts is better than none
                judged = judging.Judged(judging.uncounted(error), Completeness.NONE)
            if not write_end(at, ending, judged, reserved=fd >= 0):
                return False
            files.remove(at.verdict, at.stalled, at.signalled)
            return True
        finally:
            if fd >= 0:
                os.close(fd)

    def _lost(
        self, at: AttemptLayout, claim: Mapping[str, str], begin: Mapping[str, str]
    ) -> tuple[end_record.Ending, float]:
        """The cause if it is known, and the seconds in which its remaining processes may end by themselves."""
        from comborun.host.record import end_record

        if stopping(at):
            return end_record.Ending(Cause.STOPPED.value), 0.0
        verdict = files.read(at.verdict)
        if verdict:
            ending = end_record.Ending(verdict.get("cause", Cause.LOST.value), verdict.get("note", ""))
            ending.facts += records.ending(verdict)
            ending.add(fact(Evidence.SUPERVISOR_DIED))
            return ending, 0.0
        grace = 0.0 if self.backend.elsewhere else setting("COMBORUN_GRACE_S", 5.0)
        cause, facts = self.backend.why(claim, begin)
        ending = end_record.Ending(cause)
        ending.facts += facts
        return ending, grace

    # Whether another attempt follows

    def retried_after(self, name: str) -> int:
        """The number of the attempt after which a user asked for a retry; 0: none."""
        asked = files.read(self.layout.retry_request(name))
        number = records.integer(asked, "attempt") or 0
        moot = asked.get("unless") == Outcome.SUCCEEDED and outcome_of(self.end(name, number)) == Outcome.SUCCEEDED
        return 0 if moot else number

    def ask(self, name: str, number: int, *, lost: bool = False) -> bool:
        """Ask for another attempt after that one, with fresh budgets. `lost`: that one has no end yet; if it turns out
        to be complete, there is no other attempt.
        """
        fields = [("attempt", number), ("at", round(time.time(), 6))]
        return files.write(
            self.layout.retry_request(name), [*fields, *([("unless", Outcome.SUCCEEDED.value)] if lost else [])]
        )

    def follows(self, name: str, number: int) -> NextRetry | None:
        """What follows an ended attempt: one that a user asked for, or a retry; None: nothing."""
        if name in self.processes:
            return self._process_follows(name, number)
        return NextRetry("", 0, 0.0) if self.retried_after(name) >= number else self.due(name, number)

    def asked(self, name: str, number: int) -> bool:
        """Whether a user asked for an attempt after this one; of a process, for one of its sessions."""
        if name not in self.processes:
            return self.retried_after(name) >= number
        return any(self.retried_after(one) >= (self.latest(one) or math.inf) for one in self.members(name))

    # A process of several sessions

    def next_start(self, name: str) -> list[process_starts.Candidate]:
        """The sessions of a process that its next start runs, in order; none: nothing is left to do."""
        found = (self._candidate(one, place) for place, one in enumerate(self.members(name)))
        return process_starts.chosen([one for one in found if one])

    def _candidate(self, name: str, place: int) -> process_starts.Candidate | None:
        numbers = self.numbers(name)
        if not numbers:
            return process_starts.Candidate(name, place)
        follows = self.follows(name, numbers[-1]) if self.end(name, numbers[-1]) else None
        if follows is None:
            return None
        since = self.retried_after(name)
        crashes = process_starts.crashes(self.end(name, one) for one in numbers if one > since)
        return process_starts.Candidate(name, place, crashes, follows.wait_s)

    def _process_follows(self, name: str, number: int) -> NextRetry | None:
        start = self.next_start(name)
        if not start:
            return None
        failure = self.end(name, number).get("class", "")
        return NextRetry(failure, max(one.crashes for one in start), max(one.wait_s for one in start))

    def due(self, name: str, number: int) -> NextRetry | None:
        """The automatic retry after an ended attempt, or None."""
        end = self.end(name, number)
        found = outcome_of(end) if end else None
        if found not in retry.AGAIN or (name == AFTER and found is not Outcome.LOST):
            return None
        failure = end.get("class", "error")
        if not failure:
            return None
        budgets = retry.Budgets.of_policy(self.policy)
        numbers = range(self.retried_after(name) + 1, number + 1)
        ends = (files.read(self.at(name, one).end) for one in numbers)
        used = retry.spent(budgets, [(end.get("cause", ""), end.get("class", "error")) for end in ends], failure)
        if not used.left:
            return None
        wait = retry.wait_s(budgets, failure, used.failures)
        ended = records.seconds(end, "ended")
        left = wait if ended is None else ended + wait - time.time()
        return NextRetry(failure, used.failures, min(max(left, 0.0), wait))  # even if the clock was changed


def processes(run: RunLayout) -> dict[str, tuple[str, ...]]:
    """The processes of several sessions, each with the sessions that the grid still has, in order."""
    if f'"{TOGETHER}"' not in files.read_text(run.queue, most=1 << 26):
        return {}
    rows = ((str(row.get("name")), row) for row in files.read_rows(run.queue))
    return {
        name: tuple(one for one in records.texts(row, TOGETHER) if one not in records.texts(row, DROPPED))
        for name, row in rows
        if records.texts(row, TOGETHER)
    }


def session_names(run: RunLayout) -> list[str]:
    """The sessions of a run in order, `after` last. A process of several is not among them, its sessions are."""
    rows = files.read_rows(run.queue)
    named = (name for row in rows for name in records.texts(row, TOGETHER) or (str(row.get("name", "")),))
    found = [name for name in named if re.fullmatch(NAME, name)]
    return [*found, AFTER] if os.path.isdir(run.session(AFTER)) else found


def stopping(at: AttemptLayout) -> bool:
    """Whether a stop is ending it or has signalled it. The mark of a stop that died before its first signal is void."""
    try:
        age = time.time() - os.stat(at.stop).st_mtime
    except OSError:
        return False
    mark = files.read(at.stop)
    if "pid" not in mark:
        return age < NAMELESS_S
    return mark.get("signalled") == "1" or process.named(mark)


def _lock(path: str) -> int:
    try:
        return files.lock(path, 5.0)
    except OSError:
        return -1
