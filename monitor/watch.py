"""The loop: look, show, wait, until the run has finished.

Watching changes nothing on the host. A host that doesn't answer is a state of the link: what was last known stays on
the screen with its age, and the loop goes on. Ctrl-C (KeyboardInterrupt) leaves the loop and nothing else.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol, TypeVar

from comborun.errors import HostError
from comborun.monitor.classify import classify
from comborun.monitor.history import History, fold
from comborun.monitor.observe import RunView, load_run, observe
from comborun.monitor.pace import backoff, calm, due, pause
from comborun.monitor.showing.screen import Screen
from comborun.monitor.status import Link, RunStatus
from comborun.remote.transport import Transport

_TICK_S = 1.0
T = TypeVar("T")


class Clock(Protocol):
    """The watcher's own time. Nothing about the run is computed from it: that is the host's clock."""

    def now(self) -> float:
        """Seconds since 1970."""
        ...

    def elapsed(self) -> float:
        """Seconds since some moment; never goes back."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait; Ctrl-C ends it with KeyboardInterrupt."""
        ...


class SystemClock:
    def now(self) -> float:
        return time.time()

    def elapsed(self) -> float:
        """Counts while a laptop is asleep, where the system tells (Linux)."""
        if sys.platform == "linux":
            return time.clock_gettime(time.CLOCK_BOOTTIME)
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


@dataclass(frozen=True)
class Source:
    """A run that can be looked at."""

    transport: Transport
    view: RunView

    def fold(self, history: History) -> History:
        """`history` with one more look. Raises HostError."""
        known = history.known(self.view.sessions)
        snapshot = observe(self.transport, self.view.directory, known, self.view.tail)
        return fold(history, snapshot, {session.name: session for session in self.view.plan.sessions})

    def renewed(self, history: History) -> Source:
        """The run by its newest plan, where the last look tells of a newer one. Raises HostError."""
        told = history.snapshot.plan if history.snapshot else None
        if told is None or told <= self.view.number:
            return self
        return Source(self.transport, load_run(self.transport, self.view.directory))


@dataclass(frozen=True)
class Settings:
    interval: float
    """seconds from one look to the next, at most (pace.py)"""
    chance: Callable[[], float] = random.random
    """numbers from 0 to 1: so that not all watchers come back at once"""


@dataclass(frozen=True)
class _Memory:
    """What the loop knows: the last answers, when they came, and how the link is."""

    history: History = field(default_factory=History)
    seen: float | None = None
    """when the last answer came, on the clock's elapsed()"""
    link: Link = field(default_factory=Link)
    lost: float = 0.0
    """when the link was lost, on the clock's elapsed()"""
    undecided: str = ""
    """what `heed` had to say of the last look"""

    def status(self, view: RunView, clock: Clock) -> RunStatus:
        return replace(self._status(view, clock), undecided=self.undecided)

    def _status(self, view: RunView, clock: Clock) -> RunStatus:
        """The run now: while the host answers its time goes on between two looks; else it stands still."""
        snapshot = self.history.snapshot
        age = None if self.seen is None else clock.elapsed() - self.seen
        if not self.link.reachable:
            link = replace(self.link, last_seen=age, lasting=clock.elapsed() - self.lost)
            return classify(view, self.history, link=link)
        now = snapshot.now + age if snapshot and age is not None else None
        return classify(view, self.history, now, replace(self.link, last_seen=age))


def watch(
    source: Source, screen: Screen, clock: Clock, settings: Settings, heed: Callable[[RunStatus], str] | None = None
) -> RunStatus:
    """Show the run until it has finished; the last status.

    `heed` gets the status after each look that the host answered, and says why `stop_early` can decide nothing, if that
    is so. It may talk to the host: a HostError of it is the link's affair, and the next look will tell of that.
    """
    memory, begun = _Memory(), clock.elapsed()
    try:
        while True:
            source, memory = _look(source, memory, clock)
            status = memory.status(source.view, clock)
            screen.show(status)
            if heed and status.link.reachable:
                with suppress(HostError):
                    memory = replace(memory, undecided=heed(status))
                if memory.undecided != status.undecided:
                    status = memory.status(source.view, clock)
                    screen.show(status)
            if status.finished:
                break
            tick = partial(_redraw, screen, memory, source.view, clock) if screen.ticking else None
            _wait(_until_next(status, settings, clock.elapsed() - begun), clock, tick)
    finally:
        screen.close()
    return status


def until_answered(act: Callable[[], T], clock: Clock, settings: Settings, tell: Callable[[Link], object]) -> T:
    """What `act` gives as soon as the host lets it: each time when it raises HostError, `tell` hears of the link."""
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


def _until_next(status: RunStatus, settings: Settings, watched: float) -> float:
    if not status.link.reachable:
        return backoff(settings.interval, status.link.failures, settings.chance())
    return pause(settings.interval, calm(status, watched), due(status))


def _look(source: Source, memory: _Memory, clock: Clock) -> tuple[Source, _Memory]:
    try:
        history = source.fold(memory.history)
        source = source.renewed(history)
    except HostError as error:
        return source, _missed(memory, error, clock)
    return source, _Memory(history, clock.elapsed(), Link(), undecided=memory.undecided)


def _missed(memory: _Memory, error: HostError, clock: Clock) -> _Memory:
    before = memory.link
    since, lost = (clock.now(), clock.elapsed()) if before.reachable else (before.since, memory.lost)
    link = Link(reachable=False, since=since, failures=before.failures + 1, complaint=error.message.split("\n")[0])
    return replace(memory, link=link, lost=lost)


def _redraw(screen: Screen, memory: _Memory, view: RunView, clock: Clock) -> None:
    screen.show(memory.status(view, clock))


def _wait(seconds: float, clock: Clock, tick: Callable[[], None] | None) -> None:
    """Let time pass; `tick` is called about once a second on the way."""
    deadline = clock.elapsed() + seconds
    while (left := deadline - clock.elapsed()) > 0:
        clock.sleep(min(_TICK_S, left))
        if tick and clock.elapsed() < deadline:
            tick()
