"""A command that runs, from its start to the end record: its window, its watch, signals, and what ends it."""

from __future__ import annotations

import signal
import time

from comborun.host.record import judging
from comborun.host.record.run_directory import stopping
from comborun.host.supervise.attempt import Attempt, Place, StopSequence, Verdict
from comborun.host.supervise.ending import Finishing
from comborun.host.supervise.window import Window
from comborun.host.system import descendants, files, process
from comborun.host.verb_errors import complain
from comborun.rules import records
from comborun.rules.endings.evidence import Evidence, fact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Sequence

    from comborun.host.supervise.display import Display
    from comborun.host.supervise.health import Health
    from comborun.host.supervise.watch import Watch
    from comborun.host.system.events import Events
    from comborun.rules.facts import Fact

_WINDOW_S = 2.0
"""seconds for the last lines to reach a slow window"""
_TRIES = 60
_START_S = 0.02
"""seconds in which the next session starts: writing an end meanwhile would take cores from it"""


def watch_over(attempt: Attempt) -> Watch | Health:
    if "ready" in attempt.data:
        from comborun.host.supervise.health import Health

        return Health(attempt)
    from comborun.host.supervise.watch import Watch

    return Watch(attempt)


class RunningCommand:
    """`begin`: the fields of the begin record, which is written again later if the disk is full."""

    def __init__(self, attempt: Attempt, place: Place, events: Events, begin: Sequence[tuple[str, object]]) -> None:
        self._attempt = attempt
        self._place = place
        self._slurm = place.engine == "slurm"
        self._events = events
        self._begin = begin
        self._begun = files.write(attempt.at.begin, begin)
        if attempt.together:
            self._begin_first()
        self._window = Window(place.shown, skips=place.engine != "none")
        self._watch: Watch | Health | None = None
        self._stop_sequence = StopSequence(attempt)
        self._verdict: Verdict | None = None
        self.interrupted: Fact | None = None
        """who told the supervisor to end"""

    def _begin_first(self) -> None:
        """Make the attempts of the sessions that its process begins with."""
        from comborun.host.record.together import Process
        from comborun.rules.endings.process_starts import Start

        own = Process(self._attempt.at, self._attempt.together)
        try:
            for name in Start(own.names, (), (), own.ranks).first():
                own.begin(name)
        except OSError as error:  # they follow at its end
            complain(f"session: {self._attempt.name}: {error}")

    def until_ended(self, display: Display | None) -> int:
        """Show the log, watch the command and forward signals until it ends; returns its exit code."""
        every = self._attempt.timing.watch_s
        look_again = time.monotonic() + min(every, 1.0)  # a command of one second needs no watch
        stop_sequence, pid = self._stop_sequence, self._attempt.pid
        while pid not in self._events.status:
            watch = self._watch
            descriptors = [*self._window.descriptors(), *(watch.descriptors() if watch else ())]
            due = watch.due() if watch else look_again
            self._events.wait(min(look_again, self._window.deadline, stop_sequence.due, due), descriptors)
            self._forward()
            if pid in self._events.status:
                continue
            self._window.show()
            stop_sequence.advance()
            if watch and not self._verdict:
                self._look(watch)
            if time.monotonic() >= look_again:
                look_again = time.monotonic() + every
                self._once_in_a_while()
        if self._events.status[pid] == 0:
            self._follow_children(display.server if display else 0)
        if display:
            display.reaped(self._events.status)
        return self._events.status[pid]

    def _follow_children(self, ours: int) -> None:
        """Go on while processes that the command has left write, and its evidence is not complete: a launcher that
        returns at once. `ours`: the display, or 0.
        """
        attempt = self._attempt
        left = descendants.Leftovers(attempt.marker, self._events.until, attempt.roots)
        if self._verdict or not {*left.find()} - {ours}:
            return
        watch = self._watch = self._watch or watch_over(attempt)
        files.append(attempt.at.follows)
        quiet_s, written, last = attempt.timing.left_s, False, time.monotonic()
        while not (self.interrupted or stopping(attempt.at)) and {*left.find()} - {ours} and watch.lacks_evidence():
            now = time.monotonic()
            if watch.wrote():
                written, last = True, now
            if now - last >= (attempt.data.get("stall_s") or quiet_s if written else quiet_s):
                return
            self._events.wait(min(now + 1.0, self._window.deadline), self._window.descriptors())
            self._forward()
            self._window.show()
            self._once_in_a_while()

    def finish(self, code: int, display: Display | None, missing: Fact | None) -> None:
        """Report the free slot first, because another session may wait for it. Then judge, and write the end.

        `missing`: why the command could not be started.
        """
        attempt, told_to_end = self._attempt, bool(self.interrupted or self._verdict)
        finishing = Finishing(attempt, self._events, code, at_once=told_to_end)
        descendants.end_container(attempt.data.get("container", ""), attempt.marker)
        attempt.tell("free")
        self._events.wait(time.monotonic() + _START_S)
        if self._watch:
            self._watch.close()
        if display:
            display.close()
        self._window.show()
        self._patiently(lambda: finishing.see(self._place, missing, self.interrupted, self._verdict))
        self._patiently(finishing.sweep)
        if fault := self._patiently(lambda: finishing.judge(self._watch.peak_kib if self._watch else 0)):
            self._patiently(lambda: finishing.give_up(fault))
        attempt.tell("ended")

    def close(self) -> None:
        """Show the rest of the log."""
        self._window.close(_WINDOW_S if self._place.engine != "none" else 3600.0)

    def _forward(self) -> None:
        for number in self._events.received:
            if number == signal.SIGUSR1:
                self._warned()
                continue
            by = "window" if number == signal.SIGINT else "signal"
            self.interrupted = fact(Evidence.INTERRUPTED, by=by)
            judging.note_signal(self._attempt.at)
            process.send_all(self._attempt.pid, number)
            if number == signal.SIGTERM and self._slurm:
                self._stop_sequence.skip_to_kill()  # Slurm kills it soon, and judging takes time too
        self._events.received.clear()

    def _warned(self) -> None:
        """Slurm's time limit is near."""
        if self._slurm and not self._verdict:
            self._verdict = cause, reason = "timed_out", fact(Evidence.SLURM_TIME_LIMIT)
            files.write(self._attempt.at.verdict, [("cause", cause), (records.REASON, reason)])
            self._stop_sequence.begin()

    def _once_in_a_while(self) -> None:
        said = self._place.heartbeat()
        if said == "closed":
            process.send_all(self._attempt.pid, signal.SIGKILL)  # its output no longer counts
        elif said == "stop" and not (self.interrupted or self._stop_sequence.begun):
            self._stop_sequence.begin()
        if not self._begun:
            self._begun = files.write(self._attempt.at.begin, self._begin)
        if self._watch is None:
            try:
                self._watch = watch_over(self._attempt)
            except (OSError, MemoryError):
                return  # later

    def _look(self, watch: Watch | Health) -> None:
        if time.monotonic() < watch.due() and not watch.descriptors():
            return
        try:
            self._verdict = watch.look()
        except (OSError, MemoryError) as error:
            complain(f"session: the watch can't look just now: {str(error) or 'no memory'}")
        except Exception as error:  # noqa: BLE001 - the session goes on without it
            complain(f"session: the watch of {self._attempt.name} fails: {error!r}")
        if self._verdict:
            self._stop_sequence.begin()

    def _patiently(self, act: Callable[[], None]) -> Exception | None:
        """Call `act`; without memory or descriptors try again every second, for a minute. Returns what else fails."""
        for left in reversed(range(_TRIES)):
            try:
                act()
            except (OSError, MemoryError) as error:
                if not left:
                    raise
                complain(f"session: {self._attempt.name} waits to write its end: {str(error) or 'no memory'}")
                self._events.until(1.0, lambda: False)
            except Exception as error:  # noqa: BLE001
                complain(f"session: {self._attempt.name}: {error!r}")
                return error
            else:
                return None
        return None
