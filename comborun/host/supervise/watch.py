"""The watches in a supervisor's process: over a command that makes no progress, and what they share with those over
model servers (host/supervise/health.py).

A watch is called at its deadlines and never blocks. It ends nothing by itself: it writes down why, and its supervisor
ends the command. Its timers count only time in which the supervisor ran: a clock change, a suspended machine or a
stopped supervisor (SIGSTOP) does not count as a stall.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Container, Iterable, Iterator
from itertools import islice

from comborun.host.record import clients, judging
from comborun.host.record.run_directory import stopping
from comborun.host.record.together import Process, WatchedProcess
from comborun.host.supervise.attempt import Attempt, Verdict
from comborun.host.system import descendants, files, process
from comborun.rules import counting, globs, records
from comborun.rules.endings import progress
from comborun.rules.endings.evidence import Evidence, fact
from comborun.rules.facts import Fact
from comborun.rules.names import AttemptLayout

_FIND_EVERY = 12
"""looks between two searches for new processes"""
_SHARE = 1000
"""a search may take this fraction of the time: 1 / _SHARE"""
_LONGEST_S = 300.0
"""between two searches, whatever they take"""
LOOKED_AT_MOST = 20_000
"""files and folders of an output folder that one look compares with those before"""


class Pace:
    """When to repeat a search that may take long (many processes, many files)."""

    def __init__(self) -> None:
        self._next = 0.0

    def due(self) -> bool:
        return time.monotonic() >= self._next

    def took(self, began: float) -> None:
        """Note a search that began at this time.process_time(): on a busy machine it waits more than it works."""
        self._next = time.monotonic() + min((time.process_time() - began) * _SHARE, _LONGEST_S)


class Activity:
    """The processes of an attempt, from look to look."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._pace = Pace()
        self._ticks: dict[int, int] = {}
        self._per_second = os.sysconf("SC_CLK_TCK")
        self._page_kib = os.sysconf("SC_PAGE_SIZE") // 1024
        self._found_at = math.inf
        """ticks since boot of the last search"""
        self.pids: list[int] = []
        self.peak_kib = self._resident_kib = 0
        self.stopped = 0
        """number of processes that a signal has stopped"""

    def find(self, *, now: bool = False) -> None:
        """Search /proc for new processes, not in every look; between two searches, only the descendants of this one.

        This process adopts what its descendants leave behind, so what has lost its marker is below it.
        """
        if now or self._pace.due():
            began, ticks = time.process_time(), time.clock_gettime(time.CLOCK_BOOTTIME) * self._per_second
            self.pids = sorted({*process.marked(self._attempt.marker), *self._below()})
            self._pace.took(began)
            looks = {pid: process.look(pid) for pid in self.pids}
            self._ticks.update((pid, 0) for pid, one in looks.items() if one and int(one.start) >= self._found_at)
            self._found_at = ticks
        else:
            self.pids = sorted({*self.pids, *self._below(self.pids)})

    def _below(self, known: Container[int] = ()) -> Iterator[int]:
        """The descendants of this process, without those of another attempt."""
        own = ("", self._attempt.marker)
        return (pid for pid in descendants.of_this_process() if pid in known or process.marker_of(pid) in own)

    def own_mib(self, limit: int) -> int:
        """MiB of main memory without shared pages; measured exactly only near the limit."""
        if self._resident_kib >> 10 <= limit:
            return 0
        return sum(map(process.own_kib, self.pids)) >> 10

    def look(self) -> float:
        """Seconds of CPU time that they and their dead children used, or waited for, since the last look."""
        before, self._ticks = self._ticks, {}
        ticks = resident = self.stopped = 0
        for pid in self.pids:
            one = process.look(pid)
            if not one:
                continue
            total = self._ticks[pid] = one.cpu + int(_waited(pid) * self._per_second)
            ticks += max(0, total - before.get(pid, total))
            resident += one.pages * self._page_kib
            self.stopped += one.state == "T"
        self.peak_kib, self._resident_kib = max(self.peak_kib, resident), resident
        return ticks / self._per_second


def _waited(pid: int) -> float:
    """Seconds that a process waited for a core. On a busy machine, waiting for a core counts as work."""
    fields = process.read(f"{pid}/schedstat").split()
    return int(fields[1]) / 1e9 if len(fields) > 1 else 0.0


class PollingWatch:
    """The timer of a watch, the processes that it sees, and its end."""

    def __init__(self, attempt: Attempt) -> None:
        self.attempt = attempt
        self.activity = Activity(attempt)
        self.over = False
        self.every = attempt.timing.watch_s
        self.looks = 0
        self.next = self._last = time.monotonic()

    @property
    def peak_kib(self) -> int:
        return self.activity.peak_kib

    def due(self) -> float:
        """The time of the next look, in time.monotonic()."""
        return math.inf if self.over else self.next

    def descriptors(self) -> list[int]:
        """Descriptors that call for an earlier look when they are readable."""
        return []

    def elapse(self) -> float:
        """Seconds since the last look, at most twice what it should be."""
        now = time.monotonic()
        elapsed, self._last = min(now - self._last, 2 * self.every + 1.0), now
        self.next = now + self.every
        self.looks += 1
        return elapsed

    def find(self, *, always: bool = False) -> None:
        """Look for new processes: often at first, then seldom."""
        if always or self.looks & (self.looks - 1) == 0 or self.looks % _FIND_EVERY == 0:
            self.activity.find()

    def end(self, reached: Verdict | None) -> Verdict | None:
        """Record the verdict and return it: nothing ends without a reason. None while a stop ends it already."""
        if reached is None or stopping(self.attempt.at):
            return None
        files.write(self.attempt.at.verdict, [("cause", reached[0]), (records.REASON, reached[1])])
        self.close()
        return reached

    # After the end of the command, while processes that it started go on

    def lacks_evidence(self) -> bool:
        return False

    def wrote(self) -> bool:
        """Whether results or the log have changed since the last look."""
        return False

    def close(self) -> None:
        """Stop watching: the command has ended, or will."""
        self.over = True


class Watch(PollingWatch):
    def __init__(self, attempt: Attempt) -> None:
        super().__init__(attempt)
        data = attempt.data
        hang, stall, most = data.get("hang_s", 120), data.get("stall_s", 0), data.get("max_s", 0)
        limits = progress.Limits(hang=hang, stall=stall, most=most, tell=attempt.timing.stalled_s)
        self._course = progress.ProgressWatch(limits, progress.Repetition(data.get("unit", ""), attempt.count))
        self._judging: judging.Watched | WatchedProcess | None = None
        if attempt.together:
            self._judging = WatchedProcess(Process(attempt.at, attempt.together), attempt.rules)
        elif "judging" in data:
            self._judging = judging.Watched(attempt.at, attempt.rules)
        self._changes = _Changes(attempt.at, self._judging)
        self._memory_mib = data.get("memory_mib", 0)
        """MiB of main memory that it may hold; 0: no limit"""
        self._awaited = bool(attempt.grant.get("await")) and not os.path.exists(attempt.at.progressed)
        self._served_by = attempt.grant.get("served_by", "")
        self._lost_for = 0.0
        self._told: Fact | None = None
        """the recorded reason why it looks stalled"""

    def look(self) -> Verdict | None:
        """Why the command must end; None while it goes on."""
        if self.over or time.monotonic() < self.next or not self.attempt.lives:
            return None
        self._look()
        return self.end(self._judge())

    def lacks_evidence(self) -> bool:
        return self._judging is not None and not self._judging.complete()

    def wrote(self) -> bool:
        results = self._changes.of_results(now=True)
        return self._changes.of_log(self._course.repetition) is not None or results

    def _look(self) -> None:
        course, elapsed = self._course, self.elapse()
        limit_is_near = course.limit_is_near(elapsed) and not self._told
        if limit_is_near:
            self.activity.find(now=True)
        else:
            self.find(always=course.silent * 2 >= course.limits.silence or self._memory_mib > 0)
        results = self._changes.of_results(now=limit_is_near)
        output = course.done and self._changes.of_output()
        news = self._changes.of_log(course.repetition)
        goes_on = course.look(elapsed, results=results, output=output, news=news, cpu=self.activity.look())
        if goes_on and self._told:
            files.remove(self.attempt.at.stalled)
            self._told = None
        if self._awaited and (results or news):
            self._first_sign()
        self._lost_for = self._lost_for + elapsed if self._unserved() else 0.0

    def _first_sign(self) -> None:
        """Report that the program has started well: a result, or a line of its log that shows progress."""
        if not self._changes.results:
            counted = counting.Counted(self.attempt.data.get("progress", ""), self.attempt.count)
            if not any(map(counted.counts, files.log_lines(self.attempt.at.log))):
                return
        if files.write(self.attempt.at.progressed, [("at", round(time.time(), 6))]):
            self._awaited = False
            self.attempt.tell("progressed")

    def _judge(self) -> Verdict | None:
        course, limits = self._course, self._course.limits
        if course.overtime:
            return "timed_out", fact(Evidence.RAN_TOO_LONG, limit_s=limits.most)
        if self._memory_mib and (held := self.activity.own_mib(self._memory_mib)) > self._memory_mib:
            return "host_memory", fact(Evidence.HELD_MEMORY, mib=held, limit_mib=self._memory_mib)
        late = self._lost_for >= self.attempt.timing.server_grace_s  # a program that notices it can say more
        if late and (why := self._unserved()):
            return "server_lost", why
        if course.asks_evidence:
            course.judged(complete=self._judging is not None and self._judging.complete())
            self._changes.of_output()
        if course.hung:
            return "hung", fact(Evidence.HUNG_AFTER_WORK, limit_s=limits.hang, files=self._changes.looked_at)
        return self._stalled()

    def _unserved(self) -> Fact | None:
        """Which of its model servers is gone."""
        return clients.lost(self.attempt.run_layout.directory, self._served_by) if self._served_by else None

    def _stalled(self) -> Verdict | None:
        """Report a stall; end the command only if a limit says so."""
        course = self._course
        if not course.stalled:
            return None
        if not self._told:
            self._told = course.why_stalled(self.activity.stopped)
            since = int(time.time() - course.silent)
            files.write(self.attempt.at.stalled, [("since", since), (records.REASON, self._told)])
        return ("stalled", self._told) if course.limits.stall else None


class _Changes:
    """Finds data that was written since the last look."""

    def __init__(self, at: AttemptLayout, judging: judging.Watched | WatchedProcess | None) -> None:
        self._at = at
        self._judging = judging
        self._pace = Pace()
        self._results = self._output = (0, 0, 0)
        self._log = (-1, -1)

    @property
    def results(self) -> int:
        return self._results[0]

    def of_results(self, *, now: bool) -> bool:
        """Whether results or other evidence have changed. Many files are checked less often, unless `now`.

        Without results, it looks for files that the grid does not read.
        """
        if self._judging is None or not (now or self._pace.due()):
            return False
        began = time.process_time()
        other, rules = self._judging.follow(), self._judging.rules
        found = globs.found(self._at.output, [*rules.results.files, *rules.evidence_files])
        before, self._results = self._results, _fingerprint(f"{self._at.output}/{path}" for path in found)
        other = other or before != self._results or not self._judging.folder.found
        if other:
            self._judging.look()
        if before != (0, 0, 0) or not found:  # the first reading loads the reader, which says nothing of the next ones
            self._pace.took(began)
        return before != self._results

    def of_output(self) -> bool:
        """Whether anything at all has changed in its folder, as far as one look goes: what is made in a folder changes
        that folder, too."""
        before, self._output = self._output, _fingerprint(islice(globs.below(self._at.output), LOOKED_AT_MOST))
        return before != self._output

    @property
    def looked_at(self) -> int | None:
        """How many files and folders were looked at; None: all."""
        return LOOKED_AT_MOST if self._output[0] >= LOOKED_AT_MOST else None

    def of_log(self, known: progress.Repetition) -> bool | None:
        """Whether its log says something new; None if it has not changed."""
        try:
            status = os.stat(self._at.log)
        except OSError:
            return None
        before, self._log = self._log, (status.st_size, status.st_mtime_ns)
        if before == self._log:
            return None
        end, cut = files.tail(self._at.log, progress.TAIL)
        return known.look(end, cut=cut)


def _fingerprint(paths: Iterable[str]) -> tuple[int, int, int]:
    """The number of files, their newest change, and their size: a change of any file changes it."""
    count = newest = size = 0
    for path in paths:
        try:
            status = os.stat(path)
        except OSError:
            continue
        count, newest, size = count + 1, max(newest, status.st_mtime_ns), size + status.st_size
    return count, newest, size
