"""Probes a host in one round trip and keeps the answers, so that the next probe sends only what is new.

The last answer is kept on this machine, too. It is shown while the host does not answer."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from comborun.errors import HostError, RunGoneError, UserError
from comborun.model.plan import Plan, Session
from comborun.monitor.progress import LogProgress, Observation, Workload, counted
from comborun.monitor.snapshot import Attempt, Snapshot
from comborun.remote import program
from comborun.remote.runs import SentPlan, copy_of, read_plan
from comborun.remote.transport import LOCAL, Transport
from comborun.rules import counting
from comborun.rules.names import AFTER
from comborun.rules.vocabulary import Completeness

TAIL = 400
"""bytes requested from the end of a log: enough for a line and the progress bar drawn over it"""
LONG_TAIL = 4096
"""the same if a pattern finds progress in it; the probe sends less if many sessions run"""
LONGEST_TAIL = 16384
"""the same for a bar that starts again: the bars below it are drawn much more often"""
ANSWER_S = 20.0
"""How long a whole look may take. A link that is cut in the middle of an answer is noticed after this time."""
_MORE_S = 0.002
"""for each session: of 50,000 a look takes four seconds of a core"""
Known = tuple[int, ...]
"""For each session in queue order (then `after`): the highest attempt whose end is known, 0 for none."""
_NONE: Mapping[str, Session] = MappingProxyType({})


class RunView(NamedTuple):
    id: str
    host: str
    directory: str
    plan: Plan
    """the newest plan: a changed grid amends its run"""
    number: int = 1
    """of that plan"""

    @property
    def sessions(self) -> tuple[str, ...]:
        """Names in the order of the probe: the queue's, then `after`."""
        return (*(session.name for session in self.plan.sessions), *((AFTER,) if self.plan.after else ()))

    @property
    def tail(self) -> int:
        rules = [session.progress for session in self.plan.sessions]
        if any(one.each for one in rules):
            return LONGEST_TAIL
        return LONG_TAIL if any(one.pattern for one in rules) else TAIL


def observe(transport: Transport, run_dir: str, known: Known, tail: int = TAIL) -> bytes:
    """Look at a run once. Raises HostError when the host can't be reached or can't answer."""
    asked = ",".join(map(str, known))
    limit = ANSWER_S + _MORE_S * len(known)
    answer = program.run(transport, run_dir, "probe", asked, str(tail), timeout=limit)
    if answer.code == program.NO_RUN:  # its file system may return
        raise RunGoneError(f"the folder {run_dir} on {transport.host} is gone")
    program.refuse(transport, run_dir, answer)
    if answer.code != 0:
        complaint = answer.complaint.rpartition("\n")[2] or f"exit code {answer.code}"
        raise HostError(f"the probe of {run_dir} on {transport.host} failed: {complaint}")
    return answer.stdout


def load_run(transport: Transport, run_dir: str, sent: SentPlan | None = None) -> RunView:
    """Read a run's id and its newest plan. Raises UserError if the directory is not a run, HostError for the link."""
    try:
        name, plan, number = read_plan(transport, run_dir, sent)
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"the plan of {run_dir} on {transport.host} can't be read: {error!r}",
            "was it written by another version of comborun?",
        ) from error
    except OSError:
        raise UserError(
            f"{run_dir} on {transport.host} is not a run directory",
            "a run is a folder below ~/comborun (or the grid's `root:`) that holds `id` and `plan-1.json`",
        ) from None
    return RunView(name, transport.host, run_dir, plan, number)


class History(NamedTuple):
    """The last probe, and all attempts seen so far, by session, oldest first."""

    snapshot: Snapshot | None = None
    attempts: Mapping[str, tuple[Attempt, ...]] = MappingProxyType({})

    def of(self, session: str) -> tuple[Attempt, ...]:
        return self.attempts.get(session, ())

    def known(self, sessions: Sequence[str]) -> Known:
        return tuple(max((one.number for one in self.of(name) if one.end), default=0) for name in sessions)


def fold(history: History, snapshot: Snapshot, sessions: Mapping[str, Session] = _NONE) -> History:
    """Add a snapshot. Ended attempts stay; the snapshot has all others, so it replaces them.

    `sessions` are the plan's, by name: they say how progress is read from a log.
    """
    attempts = {name: {one.number: one for one in seen if one.end} for name, seen in history.attempts.items()}
    before = {(one.session, one.number): one for seen in history.attempts.values() for one in seen}
    for one in snapshot.attempts:
        session, earlier = sessions.get(one.session), before.get((one.session, one.number))
        kept = one
        if earlier:
            kept = one._replace(tail=one.tail or earlier.tail, counter=earlier.counter, progressed=earlier.progressed)
        if session:
            late = earlier is None and history.snapshot is None
            counter = _counter(kept, session, snapshot.now, late=late)
            kept = kept._replace(counter=counter)
        if kept.done > (earlier.done if earlier else 0):
            kept = kept._replace(progressed=one.end.ended if one.end else snapshot.now)
        attempts.setdefault(one.session, {})[one.number] = kept
    ordered = {name: tuple(seen[number] for number in sorted(seen)) for name, seen in attempts.items() if seen}
    return History(snapshot, MappingProxyType(ordered))


def _counter(one: Attempt, session: Session, now: float, *, late: bool) -> LogProgress:
    """The progress in its log, including this look; `late`: this is the first look at the run."""
    begin, rules = one.begin, session.progress
    first, count = (begin.first, begin.count) if begin and begin.count else (session.first, session.count)
    workload = Workload(first - session.results.base, count)
    if rules.each and workload.count and one.end and one.end.completeness is Completeness.COMPLETE:
        return LogProgress(workload.count)  # perhaps no look has seen the bar at its end
    if not one.tail:
        return one.counter
    started = begin.started if begin else None
    age = max(0.0, (one.end.ended if one.end else now) - started) if started else 0.0
    cut = one.log_size != len(one.tail)  # a log that grew meanwhile may be cut, too
    return counted(one.counter, counting.lines(one.tail, cut=cut), rules, workload, Observation(age, late=late and cut))


# The last complete look, saved on this machine
_LOOK = ".look"
_EVERY_S = 60.0
_SESSIONS = 1000
"""the time between complete looks grows by a minute for so many sessions"""


class SavedLook(NamedTuple):
    view: RunView
    answer: bytes
    """the answer to a probe that requested everything"""
    at: float
    """seconds since 1970, on this machine's clock"""


def is_due(view: RunView, *, done: bool = False) -> bool:
    """Whether the next look should request everything, so that it can be saved; `done`: it is the last one."""
    if view.host == LOCAL:
        return False
    try:
        age = time.time() - _place(view.host, view.id, view.directory).stat().st_mtime
    except FileNotFoundError:
        return True
    except (OSError, HostError):  # it can't be saved
        return False
    return done or not 0 <= age < _EVERY_S * (1 + len(view.plan.sessions) / _SESSIONS)


def save(view: RunView, answer: bytes) -> None:
    """Save a complete look at a run. A full disk is not an error."""
    if view.host == LOCAL:
        return
    try:
        place = _place(view.host, view.id, view.directory)
        place.parent.mkdir(parents=True, exist_ok=True)
        draft = place.with_name(f"{_LOOK}-{os.getpid()}")
        head = {"directory": view.directory, "number": view.number, "at": time.time(), "plan": view.plan.to_json()}
        draft.write_bytes(json.dumps(head).encode() + b"\n" + answer)
        draft.replace(place)
    except (OSError, HostError):
        return


def last_look(host: str, run: str, directory: str) -> SavedLook | None:
    try:
        head, _, answer = _place(host, run, directory).read_bytes().partition(b"\n")
        fields = json.loads(head)
        view = RunView(run, host, fields["directory"], Plan.from_json(fields["plan"]), int(fields["number"]))
        return SavedLook(view, answer, float(fields["at"]))
    except (OSError, ValueError, KeyError, TypeError, HostError):
        return None


def _place(host: str, run: str, directory: str) -> Path:
    return copy_of(host, run, directory) / _LOOK
