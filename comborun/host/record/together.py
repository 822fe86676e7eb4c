"""The sessions that share a process: their attempts beside those of the process, and their judgement.

A process is a session for the dispatcher and its supervisor. Each of its sessions has a folder of its own, and there an
attempt with the number of the process's, as soon as it has begun: claim, begin, end, and links to log and output.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from comborun.host.record import end_record, judging
from comborun.host.record.end_record import Ending
from comborun.host.record.judging import Judged, Rules, Watched
from comborun.host.system import files
from comborun.host.system.files import Json
from comborun.rules import records
from comborun.rules.endings.evidence import Evidence, fact
from comborun.rules.endings.failures import Failure
from comborun.rules.endings.process_starts import ALL_CHARGED, Start, is_complete
from comborun.rules.facts import Fact
from comborun.rules.names import TOGETHER, AttemptLayout, RunLayout, attempt_number
from comborun.rules.results.counts import Counts
from comborun.rules.results.result_files import Folder
from comborun.rules.run_files import attempts_of
from comborun.rules.vocabulary import Cause, Completeness, cause_of

_LINKED = ("log", "out", "stalled", "wrong_gpu", ".verdict")
"""what a session has from its process; of these some come later, or never"""
_NOT_SHARED = (records.JUDGING, TOGETHER, "first", "count")
"""fields of the claim of a process that its sessions have otherwise, or not at all"""


def judge(at: AttemptLayout, code: int | None) -> Judged:
    """As `judging.judge`, also for a process of several sessions."""
    process = Process(at)
    return process.judge(code) if process.names else judging.judge(at, code)


def write_end(at: AttemptLayout, ending: Ending, judged: Judged, reserved: bool = True) -> bool:
    """As `end_record.write_end`; the ends of the sessions of a process come first."""
    if judged.members:
        process = Process(at)
        if not process.write_ends(ending, judged):
            return False
        if judged.now is Completeness.COMPLETE:  # if it is not complete, another start of it has failed
            ending.signature = process.failure_of_others()
    return end_record.write_end(at, ending, judged, reserved)


class Process:
    """One attempt of a process, by its files."""

    def __init__(self, at: AttemptLayout, names: Sequence[str] = ()) -> None:
        self.at = at
        folder = os.path.dirname(at.directory)
        self.layout = RunLayout(os.path.dirname(os.path.dirname(folder)))
        self.number = attempt_number(os.path.basename(at.directory))
        self.data = files.read(self.layout.session_json(os.path.basename(folder)))
        self.names = list(names) or list(records.texts(files.read(at.claim), TOGETHER))
        self.ranks = records.integer(self.data, "ranks") or 0

    def rules(self, name: str) -> Rules:
        """How one of its sessions is judged; it follows a changed grid."""
        data = files.read(self.layout.session_json(name))
        first, count = (records.integer(data, key) or 0 for key in ("first", "count"))
        return Rules(data.get(records.JUDGING), first, count)

    def of(self, name: str) -> AttemptLayout:
        return self.layout.attempt(name, self.number)

    def begin(self, name: str, started: float | None = None) -> None:
        """Make the attempt of a session that has begun. Safe to repeat."""
        own = self.of(name)
        if os.path.exists(own.begin):
            return
        rules = self.rules(name)
        claim, begin = files.read(self.at.claim), files.read(self.at.begin)
        process = {key: value for key, value in claim.items() if key not in _NOT_SHARED}
        os.makedirs(own.directory, exist_ok=True)
        for link in _LINKED:
            if not os.path.islink(f"{own.directory}/{link}"):
                os.symlink(os.path.relpath(f"{self.at.directory}/{link}", own.directory), f"{own.directory}/{link}")
        files.write(own.claim, [*process.items(), *rules.fields()])
        if begin:
            first, count = rules.span
            more = {"first": first, "count": count, **({"started": round(started, 6)} if started else {})}
            files.write(own.begin, {**begin, **more}.items())

    def forget(self, name: str) -> None:
        """Remove the attempt of a session that did not begin after all. It has no end."""
        own = self.of(name)
        files.remove(own.begin, own.claim, own.counts, *(f"{own.directory}/{link}" for link in _LINKED))

    def judge(self, code: int | None) -> Judged:
        """The process: complete if all its sessions are, by this start or an earlier one. Each session is judged by
        the rows that name it.
        """
        found = {name: judging.judged(self.at, self.rules(name), code) for name in self.names}
        counts = total(one.counts for one in found.values())
        holders = Counter(path for one in found.values() for path in one.sources)
        for one in found.values():
            alone = all(holders[path] == 1 for path in one.sources)
            one.last = max(one.sources.values(), default=None) if alone else None
        done = [name for name, one in found.items() if one.completeness is Completeness.COMPLETE]
        others = [name for name in records.texts(self.data, TOGETHER) if name not in done]
        whole = all(is_complete(self._ends(name)) for name in others)
        some = Completeness.PARTIAL if counts.records or len(others) < len(self.names) else Completeness.NONE
        judged = Judged(counts, Completeness.COMPLETE if whole else some)
        judged.members = found
        judged.now = Completeness.COMPLETE if len(done) == len(found) else some
        return judged

    def _ends(self, name: str) -> Iterable[Json]:
        return (files.read(self.layout.attempt(name, number).end) for number in attempts_of(self.layout, name))

    def failure_of_others(self) -> str:
        """The class of the failure of a session that this start did not run; empty if there is none."""
        others = (name for name in records.texts(self.data, TOGETHER) if name not in self.names)
        ends = (end for name in others for end in self._ends(name))
        return next((end["class"] for end in ends if end.get("class")), "")

    # Its end

    def write_ends(self, ending: Ending, judged: Judged) -> bool:
        """Write the ends of its sessions that began; False if one can't be written. Safe to repeat."""
        found = judged.members
        complete = [name for name, one in found.items() if one.completeness is Completeness.COMPLETE]
        recorded = [name for name, one in found.items() if one.counts.records]
        start, lines = Start(self.names, complete, recorded, self.ranks), files.log_lines(self.at.log)
        if cause_of({"cause": ending.cause}) in ALL_CHARGED or (ending.cause == Cause.EXITED and ending.code == 0):
            charged = blamed = start.open
        else:
            charged = start.under_way(lines, {name: self._environment(name) for name in self.names})
            blamed = start.blamed(charged, lines)
        times = self._times(ending, found)
        for name in self.names:
            own = self.of(name)
            if name not in complete and name not in charged:
                self.forget(name)
            elif not os.path.exists(own.end):
                self.begin(name)
                judging.list_videos(own, self.rules(name), self._environment(name))
                end = self._ending(name, ending, charged, blamed)
                end.timed = name in times
                end.started, end.ended = times.get(name, (ending.started, ending.ended))
                if not end_record.write_end(own, end, found[name], reserved=False):
                    return False
        return True

    def _times(self, ending: Ending, found: Mapping[str, Judged]) -> dict[str, tuple[float | None, float]]:
        """From when to when each session ran, if its own files show that they ran one after another: each was seen to
        begin after the last record of the one before. Empty if they don't.
        """
        ran = sorted((one.last or 0.0, name) for name, one in found.items() if one.counts.records)
        if self.ranks > 1:
            return {}
        if len(self.names) == 1:
            return {self.names[0]: (ending.started, ending.ended)}
        times: dict[str, tuple[float | None, float]] = {}
        free = ending.started or 0.0
        for place, (last, name) in enumerate(ran):
            began = records.seconds(files.read(self.of(name).begin), "started") or 0.0
            if not (free <= began if place else free) or not free <= last <= ending.ended:
                return {}
            over = last if found[name].completeness is Completeness.COMPLETE else ending.ended
            times[name], free = (free, over), over
        return times

    def _environment(self, name: str) -> str:
        rules = self.rules(name)
        return next(iter(rules.results.environment.values), rules.environment)

    def _ending(self, name: str, ending: Ending, charged: Sequence[str], blamed: Sequence[str]) -> Ending:
        """How one of its sessions ended: as the process, unless another session ended that."""
        own = Ending(ending.cause, None, ending.code, ending.started, ending.ended)
        own.facts = list(ending.facts)
        own.signature = ending.signature
        if name not in blamed and blamed and name in charged:
            own.signature = Failure.KILLED.value
            own.facts = [fact(Evidence.ENDED_WITH, sessions=list(blamed))]
        elif name not in charged and charged:
            own.facts, own.signature = [fact(Evidence.ENDED_WITH, sessions=list(blamed))], ""
        return own


class WatchedProcess:
    """The counts of a process that runs, and of each of its sessions; as `judging.Watched` for one session."""

    def __init__(self, process: Process, rules: Rules) -> None:
        self.rules = rules
        self._process = process
        self._watched = {name: Watched(process.at, process.rules(name)) for name in process.names}
        self._claimed = self._changes()
        self._told: dict[str, str] = {}

    @property
    def folder(self) -> Folder:
        return next(iter(self._watched.values())).folder

    def _changes(self) -> list[int]:
        return [files.changed(self._process.layout.session_json(name)) for name in self._process.names]

    def follow(self) -> bool:
        """Take over the rules of a changed grid. Returns whether there are any."""
        before, self._claimed = self._claimed, self._changes()
        if before == self._claimed:
            return False
        self._watched = {name: Watched(self._process.at, self._process.rules(name)) for name in self._process.names}
        return True

    def look(self) -> Counts:
        """The counts now, kept in a file for each session that has records: it has begun."""
        found = {name: one.count() for name, one in self._watched.items()}
        for name, counts in found.items():
            if not counts.records and not os.path.exists(self._process.of(name).begin):
                continue
            text = records.render(counts.pairs())
            if text != self._told.get(name):
                self._process.begin(name, time.time())
                self._told[name] = text if files.write_text(self._process.of(name).counts, text) else ""
        return total(found.values())

    def complete(self) -> bool:
        return all(one.complete() for one in self._watched.values())


def total(counts: Iterable[Counts]) -> Counts:
    """The sums of several sessions, without marks: their episodes have the same numbers."""
    found = Counts()
    seen: list[Fact] = []
    for one in counts:
        found.records += one.records
        found.successes += one.successes
        found.failures += one.failures
        found.rows = found.rows + one.rows
        found.countable = found.countable and one.countable
        seen += [reason for reason in one.facts if reason not in seen]
    found.facts = tuple(seen[:3])
    return found
