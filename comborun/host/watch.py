"""See to it that a command which makes no progress is noticed and, where limits are set, ended.

The watch lives in the supervisor's process and is called at its deadlines. It never blocks, and ends nothing by itself:
it writes down why and tells its supervisor. Time is what it lived through: a clock that is set, a machine that slept or
a supervisor that was stopped is no silence.
"""

from __future__ import annotations

import math
import os
import time

from comborun.host import activity, files, process, served
from comborun.host.attempts import stopping
from comborun.host.seat import Seat
from comborun.rules import counting, globs, names, progress, records, repetition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from comborun.host.driver import Question
    from comborun.host.judging import Watched

DEFAULT_LOOK_S = 5.0
_ASK_GPU_EVERY = 6
"""looks"""
_FIND_EVERY = 12
_BUSY_PERCENT = 2
"""of a GPU: what a context takes that does nothing"""


class Verdict:
    """Why a command is ended."""

    __slots__ = ("cause", "note")

    def __init__(self, cause: str, note: str) -> None:
        self.cause = cause
        self.note = note


class Job:
    """What is watched: one attempt of a session or a model server, and its rules."""

    def __init__(self, run: str, run_id: str, family: str, name: str, attempt: int) -> None:
        layout = names.RunLayout(run)
        self.run = run
        self.at = (layout.server_attempt if family == "servers" else layout.attempt)(name, attempt)
        self.out = self.at.output
        self.marker = f"{run_id}/{name}/{attempt}"
        self.pid = 0
        self.start = ""
        self.gpus: tuple[str, ...] = ()
        self.pinned = True
        self.limits = progress.Limits()
        self.unit = ""
        self.count = 0
        self.pattern = ""
        """of the lines that tell progress"""
        self.awaits = False
        """somebody waits for its first sign of progress"""
        self.served_by = ""
        """`NAME/ATTEMPT` of each model server that it was given"""
        self.judging: Watched | None = None
        """what its files say so far; None where there is nothing to judge"""
        self.tell: Callable[[str], object] = _nobody
        """says a word to the dispatcher"""

    @property
    def lives(self) -> bool:
        """Whether its command does."""
        seen = process.look(self.pid)
        return seen is not None and seen.start == self.start and seen.lives

    def end(self, reached: Verdict | None) -> Verdict | None:
        """The verdict, written down first so that nothing ends unexplained; None while somebody stops it already."""
        if reached is None or stopping(self.at):
            return None
        files.write(self.at.verdict, [("cause", reached.cause), ("note", reached.note)])
        return reached

    def clear(self) -> None:
        """Remove what is about a command that runs."""
        files.remove(self.at.watch, self.at.verdict, self.at.stalled)


def limits(*, hang: float = 120.0, stall: float = 0.0, most: float = 0.0) -> progress.Limits:
    """Those of a session; silence that nothing ends is told after COMBORUN_STALLED_S."""
    return progress.Limits(hang=hang, stall=stall, most=most, tell=setting("COMBORUN_STALLED_S", 1200.0))


def setting(name: str, default: float) -> float:
    """A number of the environment; what is none is the default."""
    found = records.seconds(os.environ, name)
    return default if found is None else found


def _nobody(_word: str) -> None:
    """Hears what is told where there is no dispatcher."""


class Clock:
    """Time that this process itself lived through, from look to look."""

    def __init__(self) -> None:
        self.every = max(0.02, setting("COMBORUN_WATCH_S", DEFAULT_LOOK_S))
        self.due = self._last = time.monotonic()

    def elapse(self) -> float:
        """Seconds since the last look, at most twice what it should be."""
        now = time.monotonic()
        elapsed, self._last = min(now - self._last, 2 * self.every + 1.0), now
        self.due = now + self.every
        return elapsed


class Memory:
    """The most memory that a session held, also for whoever has to bury it."""

    def __init__(self, job: Job, seen: activity.Activity) -> None:
        self._file = job.at.watch
        self._seen = seen
        self._written = -1

    def write(self) -> None:
        if self._seen.peak_kib != self._written and files.write_text(self._file, f"{self._seen.peak_kib}\n"):
            self._written = self._seen.peak_kib


class Watch:
    """The watch over one session's command."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._clock = Clock()
        self._activity = activity.Activity(job.marker)
        self._memory = Memory(job, self._activity)
        self._course = progress.Course(job.limits, repetition.Repetition(job.unit, job.count))
        self._seat = _seat(job)
        self._changes = Changes(job)
        self._awaited = job.awaits and not os.path.exists(job.at.progressed)
        self._question: Question | None = None
        self._answered = False
        """the driver was asked about its GPUs when it had been silent for too long"""
        self._lost_for = 0.0
        self._looks = 0
        self._told = ""
        """why it looks stalled, as on record"""
        self._over = False

    @property
    def peak_kib(self) -> int:
        return self._activity.peak_kib

    def due(self) -> float:
        """When to look again, in time.monotonic()."""
        if self._over:
            return math.inf
        return min(self._clock.due, self._seat.due, self._question.due() if self._question else math.inf)

    def descriptors(self) -> list[int]:
        """Those that are worth an earlier look when they are readable."""
        if self._over:
            return []
        return [*self._seat.descriptors(), *(self._question.descriptors() if self._question else ())]

    def writing(self) -> list[int]:
        return []

    def look(self) -> Verdict | None:
        """Why the command is to be ended; None while it goes on."""
        if self._over:
            return None
        self._seat.look(self._course.awake, self._job.at)
        due = time.monotonic() >= self._clock.due
        if not (self._hear_gpu() or due) or not self._job.lives:
            return None
        if due:
            self._see()
        reached = self._job.end(self._judge())
        if reached:
            self.close()
        return reached

    def close(self, *, clear: bool = False) -> None:
        """The command has ended, or will: nothing is asked any more. `clear`: and its end is on record."""
        if clear:
            self._job.clear()
        self._over = True
        self._seat.close()
        if self._question:
            self._question.close()
            self._question = None

    def _see(self) -> None:
        self._looks += 1
        course, elapsed = self._course, self._clock.elapse()
        ripe = course.ripe(elapsed) and not self._told
        if self._looks & (self._looks - 1) == 0 or self._looks % _FIND_EVERY == 0 or course.asks_gpu:
            self._activity.find(now=ripe)
        results = self._changes.of_results(now=ripe)
        output = course.done and self._changes.of_output()
        news = self._changes.of_log(course.repetition)
        cpu = self._activity.look()
        if course.look(progress.Seen(elapsed, results=results, output=output, news=news, cpu=cpu)):
            self._goes_on()
        if self._awaited and (results or news):
            self._first_sign()
        self._memory.write()
        self._lose_server(elapsed)
        if self._job.gpus and course.asks_gpu and self._looks % _ASK_GPU_EVERY == 0:
            self._ask_gpu()

    def _first_sign(self) -> None:
        """That the program is past its start: a result, or a line of its log that tells progress."""
        if not self._changes.results:
            end, cut = activity.tail(self._job.at.log, int(setting("COMBORUN_LOG_TAIL", counting.TAIL)))
            counted = counting.Counted(self._job.pattern, self._job.count)
            if not counted.there(list(counting.lines(end, cut=cut))):
                return
        if files.write(self._job.at.progressed, [("at", round(time.time(), 6))]):
            self._awaited = False
            self._job.tell("progressed")

    def _ask_gpu(self) -> None:
        if not self._question:
            from comborun.host.driver import Question

            self._question = Question(["pmon", "-c", "1", "-s", "u"])

    def _hear_gpu(self) -> bool:
        """Whether an answer has come."""
        if not (self._question and self._question.look()):
            return False
        lines, self._question = list(self._question.lines), None
        self._answered = self._course.stalled
        if works(lines, self._activity.pids):
            self._course.used_gpu()
            self._goes_on()
        return True

    def _goes_on(self) -> None:
        if self._course.silent:  # its GPU works, and its log complains in a loop
            return
        self._answered = False
        if self._told:
            files.remove(self._job.at.stalled)
            self._told = ""

    def _judge(self) -> Verdict | None:
        course, limits = self._course, self._course.limits
        if course.overtime:
            return Verdict("timed_out", f"it ran longer than {limits.most:g} s")
        late = self._lost_for >= setting("COMBORUN_SERVER_GRACE_S", 10.0)  # a program that notices it says more
        if late and (why := self._unserved()):
            return Verdict("server_lost", why)
        if course.asks_evidence:
            course.judged(complete=self._job.judging is not None and self._job.judging.complete())
            self._changes.of_output()
        if course.hung:
            return Verdict("hung", f"it did not end within {limits.hang:g} s after its work was done")
        return self._stalled()

    def _lose_server(self, elapsed: float) -> None:
        self._lost_for = self._lost_for + elapsed if self._job.served_by and self._unserved() else 0.0

    def _unserved(self) -> str:
        """Why what it still does is worth nothing: a model server that it was given is gone, whoever answers now."""
        return served.lost(self._job.run, self._job.served_by)

    def _stalled(self) -> Verdict | None:
        """First it is told, and ended only where a limit says so."""
        course = self._course
        if not course.stalled:
            return None
        if not self._told:
            if self._job.gpus and course.asks_gpu and not self._answered:
                self._ask_gpu()
                return None
            self._told = records.clean(course.why_stalled(self._activity.stopped))
            since = int(time.time() - course.silent)
            files.write(self._job.at.stalled, [("since", since), ("why", self._told)])
        return Verdict("stalled", self._told) if course.limits.stall else None


class Changes:
    """What has been written since the last look."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._pace = activity.Pace()
        self._results = self._output = (0, 0, 0)
        self._log = (-1, -1)

    @property
    def results(self) -> int:
        """Files of results and other evidence."""
        return self._results[0]

    def of_results(self, *, now: bool) -> bool:
        """Whether there are other results, or other evidence; many files are looked at less often, unless `now`."""
        judging = self._job.judging
        if judging is None or not (now or self._pace.due()):
            return False
        began = time.process_time()
        patterns = [*judging.rules.files, *judging.rules.evidence_files]
        paths = (f"{self._job.out}/{path}" for path in globs.found(self._job.out, patterns))
        before, self._results = self._results, activity.fingerprint(paths)
        if before != self._results:
            judging.look()
        self._pace.took(began)
        return before != self._results

    def of_output(self) -> bool:
        """Whether anything at all has changed in its folder."""
        before, self._output = self._output, activity.fingerprint(activity.below(self._job.out))
        return before != self._output

    def of_log(self, known: repetition.Repetition) -> bool | None:
        """Whether its log says something new; None where it has not changed."""
        try:
            status = os.stat(self._job.at.log)
        except OSError:
            return None
        before, self._log = self._log, (status.st_size, status.st_mtime_ns)
        if before == self._log:
            return None
        end, cut = activity.tail(self._job.at.log, repetition.TAIL)
        return known.look(end, cut=cut)


def works(lines: Iterable[str], pids: Sequence[int]) -> bool:
    """Whether a GPU works for one of these processes, by the rows of `pmon`: index, pid, type, percent."""
    for index, pid, _, percent in (line.split()[:4] for line in lines if len(line.split()) > 3):
        numbers = index.isdecimal() and pid.isdecimal() and percent.isdecimal()
        if numbers and int(pid) in pids and int(percent) > _BUSY_PERCENT:
            return True
    return False


def _seat(job: Job) -> Seat:
    """Only where there is something to go wrong, and somebody to ask."""
    there = job.pinned and any(
        os.access(f"{folder}/nvidia-smi", os.X_OK) for folder in os.environ.get("PATH", "").split(os.pathsep)
    )
    first = setting("COMBORUN_SEAT_S", 60.0) or 60.0
    most = setting("COMBORUN_FOREIGN_MIB", 512.0)
    return Seat(job.marker, job.gpus if there else (), first=first, most=int(most))
