"""Looks at a run, the clock, and when the next look is due. The loop is in `watcher.py`.

Looking changes nothing on the host.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from threading import Event
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from comborun.clock import elapsed
from comborun.errors import HostError, RunGoneError, UserError
from comborun.monitor.classify import classify
from comborun.monitor.observe import History, Known, RunView, SavedLook, fold, is_due, load_run, observe, save
from comborun.monitor.snapshot import parse_snapshot
from comborun.monitor.status import UP, Link, RunStatus
from comborun.remote.runs import bring_records, copy_of
from comborun.remote.transport import LOCAL, Transport
from comborun.rules.names import RUN

if TYPE_CHECKING:
    from comborun.remote.fetch import FetchOptions

SHORTEST_S = 2.0
"""seconds between two looks, unless the interval is shorter"""
_LAST_RETRY_S = 60.0
_GONE_RETRY_S = 5.0
"""seconds between two looks for a folder that is gone: its host answers, so they cost little"""
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

    def wait(self, event: Event, seconds: float) -> bool:
        """Wait for an event, at most so many seconds; Ctrl-C ends it with KeyboardInterrupt."""
        return event.wait(seconds)


class Watched(Protocol):
    """What a watcher looks at: a run on a host (`Source`), or on several."""

    @property
    def transport(self) -> Transport: ...
    @property
    def view(self) -> RunView: ...
    @property
    def folder(self) -> Path:
        """The folder of its records on this machine."""

    def records(self, options: FetchOptions | None = None) -> Path:
        """That folder, after copying what is new. Raises HostError, UserError."""

    def at(self, session: str) -> Source:
        """The host where a session runs."""

    def by_host(self) -> Mapping[str, Source]: ...
    def end(self) -> Path | None: ...
    def fold(self, history: History) -> History: ...
    def renewed(self, history: History) -> Watched: ...
    def look(self, number: int, history: History, link: Link = UP) -> Look:
        """What the last look has shown."""


class Look(NamedTuple):
    """What is known after a look. Nothing of it ever changes; the next look is another object."""

    number: int
    """0 before the first answer; it grows with each look, also one without an answer"""
    view: RunView
    history: History
    """all attempts seen so far; with `view` what `explain` needs"""
    status: RunStatus
    """as of that look: its durations don't go on"""
    seen: float | None = None
    """time of the last answer, by the watcher's clock"""
    undecided: str = ""
    over: bool = False
    """whether the watcher has stopped looking"""
    parts: Mapping[str, Look] = MappingProxyType({})
    """of a run on several hosts what is known of each; its times are by that host's clock"""

    @property
    def away(self) -> bool:
        """Whether its host has not answered."""
        return not self.status.link.reachable

    def at(self, session: str) -> Look:
        """What is known of the host where a session runs."""
        host = next((one.host for one in self.status.every if one.name == session), "")
        return self.parts.get(host, self)

    def by_host(self) -> Mapping[str, Look]:
        return self.parts or {self.view.host: self}


class Source(NamedTuple):
    """A run on a host."""

    transport: Transport
    view: RunView

    def look(self, number: int, history: History, link: Link = UP) -> Look:
        return Look(number, self.view, history, classify(self.view, history, link=link))

    def at(self, session: str) -> Source:  # noqa: ARG002 - it has one host
        return self

    def by_host(self) -> dict[str, Source]:
        return {self.transport.host: self}

    def end(self) -> Path | None:
        """The file that appears at the end of a run on this machine; None if it is there, or elsewhere."""
        done = Path(self.view.directory, RUN.done)
        return done if self.transport.host == LOCAL and not done.exists() else None

    @property
    def folder(self) -> Path:
        return copy_of(self.transport.host, self.view.id, self.view.directory)

    def records(self, options: FetchOptions | None = None) -> Path:
        bring_records(self.transport, self.view.id, self.view.directory, options)
        return self.folder

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


def until_answered(act: Callable[[], T], clock: Clock, settings: Settings, tell: Callable[[Link], object]) -> T:
    """The result of `act`, repeated until it raises no HostError; each time `tell` gets the link."""
    link = UP
    while True:
        try:
            return act()
        except HostError as error:
            link = missed(link, error, clock)
        tell(link)
        clock.sleep(until_retry(link, settings))


def missed(before: Link, error: UserError, clock: Clock) -> Link:
    """The link after one more look without an answer."""
    since, gone = clock.now() if before.reachable else before.since, isinstance(error, RunGoneError)
    failures = before.failures + 1
    return Link(reachable=False, since=since, failures=failures, complaint=error.headline, gone=gone)


def once(source: Source) -> RunStatus:
    """The run as it is now. Raises HostError when the host can't be reached."""
    return classify(source.view, source.fold(History()))


def last_seen(look: SavedLook, link: Link, clock: Clock) -> RunStatus:
    """The saved status of a run, with its age; `link` says why there is no newer one."""
    return classify(look.view, recalled(look), link=link._replace(last_seen=max(0.0, clock.now() - look.at)))


def recalled(look: SavedLook) -> History:
    return fold(History(), parse_snapshot(look.answer), {session.name: session for session in look.view.plan.sessions})


def until_next(status: RunStatus, settings: Settings, calm: float) -> float:
    """Seconds until the next look. `calm`: seconds since a session began, ended or finished its work.

    So the time between looks doubles after a change: 2, 4, 8 ... seconds, up to the interval. If a session is expected
    to end earlier, the look is at that time.
    """
    if not status.link.reachable:
        return until_retry(status.link, settings)
    return min(settings.interval, max(shortest(len(status.sessions)), min(calm, due(status))))


def shortest(sessions: int) -> float:
    """The least seconds between two looks: looks at many sessions take the longer, here and on the host."""
    return SHORTEST_S * (1 + sessions // 100 / 2)


def until_retry(link: Link, settings: Settings) -> float:
    """Seconds until the next look after one without an answer."""
    pause = backoff(settings.interval, link.failures, settings.chance())
    return min(pause, _GONE_RETRY_S) if link.gone else pause


def backoff(interval: float, failures: int, chance: float) -> float:
    """Seconds until the next try with a host that doesn't answer, growing from try to try.

    `chance` is a random number from 0 to 1; the pause is between half and all of 2, 4, 8 ... seconds.
    """
    longest = min(interval, _LAST_RETRY_S, SHORTEST_S * 2.0 ** min(failures - 1, _MOST_DOUBLINGS))
    return longest * (0.5 + 0.5 * chance)


def due(status: RunStatus) -> float:
    """Seconds until the first session is expected to end or to start again; infinite if unknown.

    A session that is late counts as due after as many seconds as it has shown no progress.
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
