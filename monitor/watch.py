"""The loop of the monitor: look, show, wait, until the run has finished.

Watching changes nothing on the host. If the host doesn't answer, the last status stays on the screen with its age, and
the loop goes on. Ctrl-C (KeyboardInterrupt) only leaves the loop.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import NamedTuple, TypeVar

from comborun.clock import elapsed
from comborun.errors import HostError, RunGoneError
from comborun.monitor.classify import classify
from comborun.monitor.observe import History, Known, RunView, SavedLook, fold, is_due, load_run, observe, save
from comborun.monitor.screen import StatusScreen
from comborun.monitor.snapshot import parse_snapshot
from comborun.monitor.status import UP, Link, RunStatus
from comborun.remote.transport import LOCAL, Transport
from comborun.rules.names import RUN

SHORTEST_S = 2.0
"""seconds between two looks, unless the interval is shorter"""
_TICK_S = 1.0
_END_LOOK_S = 0.1
"""seconds between two looks at a file of this machine"""
_LAST_RETRY_S = 60.0
_MOST_DOUBLINGS = 10
T = TypeVar("T")


class Clock:
    """The clock of this machine. All times of the run are from the host's clock."""

    def now(self) -> float:
        return time.time()

    def elapsed(self) -> float:
        return elapsed()

    def sleep(self, seconds: float) -> None:
        """Wait; Ctrl-C ends it with KeyboardInterrupt."""
        time.sleep(seconds)


class Source(NamedTuple):
    transport: Transport
    view: RunView

    def end(self) -> Path | None:
        """The file that appears at the end of a run on this machine; None if it is there, or elsewhere."""
        done = Path(self.view.directory, RUN.done)
        return done if self.transport.host == LOCAL and not done.exists() else None

    def fold(self, history: History) -> History:
        """`history` with one more look. Raises HostError."""
        if history.snapshot is None or is_due(self.view):
            return self._look_at_all(history)
        folded = self._look(history, history.known(self.view.sessions))[0]
        done = folded.snapshot is not None and folded.snapshot.done
        return self._look_at_all(folded) if done and is_due(self.view, done=True) else folded

    def _look_at_all(self, history: History) -> History:
        answered, answer = self._look(history, History().known(self.view.sessions))
        save(self.view, answer)
        return answered

    def _look(self, history: History, known: Known) -> tuple[History, bytes]:
        answer = observe(self.transport, self.view.directory, known, self.view.tail)
        sessions = {session.name: session for session in self.view.plan.sessions}
        snapshot = parse_snapshot(answer)
        if self.transport.host != LOCAL:
            snapshot = replace(snapshot, ahead=snapshot.now - time.time())
        return fold(history, snapshot, sessions), answer

    def renewed(self, history: History) -> Source:
        """The run with its newest plan, if the last look reported one. Raises HostError."""
        newest = history.snapshot.plan if history.snapshot else None
        if newest is None or newest <= self.view.number:
            return self
        return Source(self.transport, load_run(self.transport, self.view.directory))


class Settings(NamedTuple):
    interval: float
    """most seconds from one look to the next"""
    chance: Callable[[], float] = random.random
    """random numbers from 0 to 1, so that many watchers don't retry at the same moment"""


class _Memory(NamedTuple):
    """The last answers, their times, and the state of the link. Times are of the clock's elapsed()."""

    history: History = History()
    seen: float | None = None
    """time of the last answer"""
    link: Link = UP
    lost: float = 0.0
    """when the link was lost"""
    undecided: str = ""
    """the answer of `react` to the last look"""

    def status(self, view: RunView, clock: Clock) -> RunStatus:
        """The run now. Its time goes on between two looks, and stands still while the host does not answer."""
        age = None if self.seen is None else clock.elapsed() - self.seen
        link, now = self.link._replace(last_seen=age), None
        if not link.reachable:
            link = link._replace(lasting=clock.elapsed() - self.lost)
        elif self.history.snapshot and age is not None:
            now = self.history.snapshot.now + age
        return replace(classify(view, self.history, now, link), undecided=self.undecided)


def watch(
    source: Source,
    screen: StatusScreen,
    clock: Clock,
    settings: Settings,
    react: Callable[[RunStatus], str] | None = None,
) -> RunStatus:
    """Show the run until it has finished. Returns the last status.

    `react` gets the status after each answered look. It returns why `stop_early` can't decide anything, or nothing. It
    may talk to the host for as long as a look may. After its HostError the next look is made at once.
    """
    memory, at_once = _Memory(), False
    changed, phases = clock.elapsed(), dict[str, tuple[object, ...]]()

    def show() -> RunStatus:
        status = memory.status(source.view, clock)
        screen.show(status)
        return status

    tick = show if screen.ticking else None
    try:
        while True:
            source, memory = _look(source, memory, clock)
            status = show()
            was_at_once, at_once = at_once, False
            if react and status.link.reachable:
                try:
                    with _ticking(tick):
                        memory = memory._replace(undecided=react(status))
                except HostError:
                    at_once = not was_at_once
                if memory.undecided != status.undecided:
                    status = show()
            if status.finished:
                break
            if at_once:
                continue
            before = phases
            if status.link.reachable:
                phases = {one.name: (one.life, one.attempt, not one.remaining) for one in status.every}
            if before != phases:  # the first look may show a run without changes for long
                ages = [0.0] if before else [one.seconds or 0.0 for one in status.every if one.alive]
                changed = clock.elapsed() - min(ages, default=status.seconds or 0.0)
            _wait(_until_next(status, settings, clock.elapsed() - changed), clock, tick, source.end())
    finally:
        screen.close()
    return status


def until_answered(act: Callable[[], T], clock: Clock, settings: Settings, tell: Callable[[Link], object]) -> T:
    """The result of `act`, repeated until it raises no HostError; each time `tell` gets the link."""
    memory = _Memory()
    while True:
        try:
            return act()
        except HostError as error:
            memory = _missed(memory, error, clock)
        tell(memory.link)
        _wait(backoff(settings.interval, memory.link.failures, settings.chance()), clock, None)


def once(source: Source) -> RunStatus:
    """The run as it is now. Raises HostError when the host can't be reached."""
    return classify(source.view, source.fold(History()))


def last_seen(look: SavedLook, complaint: str, clock: Clock) -> RunStatus:
    """The saved status of a run, with its age."""
    view, now = look.view, clock.now()
    sessions = {session.name: session for session in view.plan.sessions}
    history = fold(History(), parse_snapshot(look.answer), sessions)
    age = max(0.0, now - look.at)
    return classify(
        view, history, link=Link(reachable=False, since=now, last_seen=age, failures=1, complaint=complaint)
    )


def _until_next(status: RunStatus, settings: Settings, calm: float) -> float:
    """Seconds until the next look. `calm`: seconds since a session began, ended or finished its work.

    So the time between looks doubles after a change: 2, 4, 8 ... seconds, up to the interval. If a session is expected
    to end earlier, the look is at that time.
    """
    if not status.link.reachable:
        return backoff(settings.interval, status.link.failures, settings.chance())
    return min(settings.interval, max(SHORTEST_S, min(calm, due(status))))


def _look(source: Source, memory: _Memory, clock: Clock) -> tuple[Source, _Memory]:
    try:
        history = source.fold(memory.history)
        source = source.renewed(history)
    except HostError as error:
        return source, _missed(memory, error, clock)
    return source, _Memory(history, clock.elapsed(), undecided=memory.undecided)


def _missed(memory: _Memory, error: HostError, clock: Clock) -> _Memory:
    before = memory.link
    since, lost = (clock.now(), clock.elapsed()) if before.reachable else (before.since, memory.lost)
    failures, gone = before.failures + 1, isinstance(error, RunGoneError)
    link = Link(reachable=False, since=since, failures=failures, complaint=error.headline, gone=gone)
    return memory._replace(link=link, lost=lost)


def _wait(seconds: float, clock: Clock, tick: Callable[[], object] | None, end: Path | None = None) -> None:
    """Wait, at most until the file `end` exists; `tick` is called about once a second."""
    deadline = clock.elapsed() + seconds
    ticked = clock.elapsed()
    while (left := deadline - clock.elapsed()) > 0 and not (end and end.exists()):
        clock.sleep(min(_END_LOOK_S if end else _TICK_S, left))
        if tick and ticked + _TICK_S <= clock.elapsed() < deadline:
            ticked = clock.elapsed()
            tick()


@contextmanager
def _ticking(tick: Callable[[], object] | None) -> Iterator[None]:
    """`tick` once a second while something else goes on, such as a fetch."""
    over = Event()

    def work() -> None:
        while tick and not over.wait(_TICK_S):
            tick()

    thread = Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def backoff(interval: float, failures: int, chance: float) -> float:
    """Seconds until the next try with a host that doesn't answer, growing from try to try.

    `chance` is a random number from 0 to 1; the pause is between half and all of 2, 4, 8 ... seconds.
    """
    longest = min(interval, _LAST_RETRY_S, SHORTEST_S * 2.0 ** min(failures - 1, _MOST_DOUBLINGS))
    return longest * (0.5 + 0.5 * chance)


def due(status: RunStatus) -> float:
    """Seconds until the first session is expected to end or to start again; infinite if unknown. A session
    that is late counts as due after as many seconds as it has shown no progress.
    """
    now = status.now
    if now is None:
        return math.inf
    ends = [
        max(session.expected.likeliest - now, now - (session.latest.progressed or session.started or now))
        for session in status.busy
        if session.remaining and session.expected
    ]
    retries = [session.waiting.until - now for session in status.sessions if session.waiting and session.waiting.until]
    return min([*ends, *(left for left in retries if left > 0)], default=math.inf)
