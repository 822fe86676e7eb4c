"""One watcher, many views: one look per host and interval, and everybody who shows the run subscribes to it.

The watcher looks, and keeps the newest status with the age of the last contact. Views only read: another one costs the
host nothing. Every method of `Watcher` but `run` may be called from any thread.

    watcher = Watcher(source, Clock(), Settings(60), react)
    watcher.start()                              # or run(), in this thread
    look = watcher.wait(after=0, seconds=10)     # the first look; number 0 is the plan, before any answer
    look.status, watcher.link()                  # facts as of that look; the ages now
    watcher.order(lambda source: ...)            # an order to the host, after which the watcher looks at once
    watcher.close()

If the host doesn't answer, the last status stays, with its age, and the watcher goes on trying.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from threading import Condition, Event, Thread
from typing import TypeVar

from comborun.errors import HostError
from comborun.monitor.observe import History
from comborun.monitor.screen import StatusScreen
from comborun.monitor.status import UP, Link, RunStatus
from comborun.monitor.watch import Clock, Look, Settings, Watched, missed, until_next
from comborun.monitor.wording import urgency, visible
from comborun.remote.transport import LOCAL
from comborun.rules.facts import Fact

SILENT_S = 3.0
"""seconds without an answer after which a look is said to wait"""
_BACK_S, _MOST_BACK = 600.0, 4
"""it is said for so many seconds what happened while a host did not answer"""
_END_LOOK_S = 0.1
"""seconds between two looks at a file of this machine"""
_LINK_LOOK_S = 1.0
"""seconds between two checks of a connection, which ask the host nothing"""
T = TypeVar("T")


class Watcher:
    def __init__(
        self,
        source: Watched,
        clock: Clock,
        settings: Settings,
        react: Callable[[RunStatus], str] | None = None,
    ) -> None:
        """`react` gets the status after each answered look. It returns why `stop_early` can't decide anything, or
        nothing. It may talk to the host for as long as a look may. After its HostError the next look is made at once.
        """
        self.source = source
        """the host, and the run with its newest plan"""
        self._clock = clock
        self._settings = settings
        self._react = react
        self._lost = 0.0
        """when the link was lost"""
        self._asked: float | None = None
        """when the look in progress began"""
        self._changed = clock.elapsed()
        """when a session last began, ended or finished its work"""
        self._phases: dict[str, tuple[object, ...]] = {}
        """session -> its state, its attempt, and whether its work is done"""
        self._back: list[tuple[Fact, float]] = []
        """that a host was away, and when it came back"""
        self._subscribers: list[Callable[[], object]] = []
        self._news = Condition()
        self._wanted = Event()
        self._closed = False
        self._thread: Thread | None = None
        self.failure: Exception | None = None
        """why the watcher's thread ended before the run did: an error that no further look mends"""
        self.look = source.look(0, History())
        """the newest look"""

    # For views, from any thread

    def link(self) -> Link:
        """The state of the link now: the age of the last contact, and for how long a look has waited for its answer."""
        look, now = self.look, self._clock.elapsed()
        link = look.status.link._replace(last_seen=None if look.seen is None else now - look.seen)
        asked = self._asked
        waits = 0.0 if asked is None else now - asked
        link = link._replace(silent=waits if waits >= SILENT_S else 0.0)
        return link if link.reachable else link._replace(lasting=now - self._lost)

    def passed(self) -> float:
        """Seconds by which durations of the newest look have grown; 0 while the host does not answer."""
        look = self.look
        return self._clock.elapsed() - look.seen if look.seen is not None and look.status.link.reachable else 0.0

    def wait(self, after: int, seconds: float) -> Look:
        """The newest look, as soon as its number is higher than `after`, at the latest after so many seconds."""
        with self._news:
            self._news.wait_for(lambda: self.look.number > after or self.look.over, seconds)
            return self.look

    def subscribe(self, tell: Callable[[], object]) -> Callable[[], None]:
        """`tell` is called, in the watcher's thread, after each look. Returns a function that ends this."""
        self._subscribers.append(tell)

        def end() -> None:
            with suppress(ValueError):
                self._subscribers.remove(tell)

        return end

    def refresh(self) -> None:
        """Look at once."""
        self._wanted.set()

    def order(self, act: Callable[[Watched], T]) -> T:
        """The result of `act`, an order to the host, in the caller's thread; then the watcher looks at once."""
        try:
            return act(self.source)
        finally:
            self.refresh()

    def start(self) -> None:
        """Look in a thread of its own, until the run has finished or `close`."""

        def work() -> None:
            try:
                self.run()
            except Exception as error:  # noqa: BLE001  whoever shows the run raises it
                self.failure = error
                self._publish(self.look._replace(over=True))

        self._thread = Thread(target=work, name="watcher", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Look no more. A look in progress goes on in its thread, and nobody waits for it."""
        self._closed = True
        self._wanted.set()

    # The loop

    def run(self) -> RunStatus:
        """Look until the run has finished, or until `close`. Returns the last status."""
        at_once = False
        while not self._closed:
            self._wanted.clear()
            self._take(*self._answer())
            was_at_once, at_once = at_once, False
            status = self.look.status
            if self._react and status.link.reachable:
                try:
                    self._decided(self._react(status))
                except HostError:
                    at_once = not was_at_once
            if status.finished:
                break
            if not at_once:
                self._sleep(until_next(status, self._settings, self._clock.elapsed() - self._changed))
        self._publish(self.look._replace(over=True))
        return self.look.status

    def _answer(self) -> tuple[Watched, History | HostError]:
        try:
            with self._asking():
                history = self.source.fold(self.look.history)
                return self.source.renewed(history), history
        except HostError as error:
            return self.source, error

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """While a look waits for its answer, views are told once that it does."""
        over = Event()

        def tell() -> None:
            if not over.wait(SILENT_S):
                self._tell()

        self._asked = self._clock.elapsed()
        waiting = Thread(target=tell, daemon=True) if self.source.transport.host != LOCAL else None
        if waiting:
            waiting.start()
        try:
            yield
        finally:
            self._asked = None
            over.set()
            if waiting:
                waiting.join()

    def _take(self, source: Watched, answer: History | HostError) -> None:
        """Make a look of an answer, or of the error in place of one, and publish it."""
        before, now = self.look, self._clock.elapsed()
        self.source = source
        if isinstance(answer, HostError):
            if before.status.link.reachable:
                self._lost = now
            link = missed(before.status.link, answer, self._clock)
            link = link._replace(last_seen=None if before.seen is None else now - before.seen, lasting=now - self._lost)
            silent = link._replace(complaint="")  # it is that of one host
            hosts = (one._replace(link=silent) if one.link.reachable else one for one in before.status.hosts)
            status = replace(before.status, link=link, hosts=tuple(hosts))
            look = before._replace(number=before.number + 1, status=status)
        else:
            look = source.look(before.number + 1, answer, UP._replace(last_seen=0.0))
            self._note_return(before.status, look)
            back = tuple(fact for fact, at in self._back if self._clock.now() < at + _BACK_S)
            status = replace(look.status, undecided=before.undecided, back=back)
            look = look._replace(status=status, seen=now, undecided=before.undecided)
            self._note_phases(status)
        self._publish(look)

    def _note_return(self, before: RunStatus, look: Look) -> None:
        """Keep what happened on hosts that did not answer at the look before."""
        was, alone = _links(before), len(_links(look.status)) == 1
        known = {one.name: (one.word, one.attempt) for one in before.every}
        changed = [one for one in look.status.every if (one.word, one.attempt) != known.get(one.name, ("queued", 0))]
        for host, link in _links(look.status).items():
            away = was.get(host, UP)
            if away.reachable or away.late or not link.reachable or away.last_seen is None:
                continue
            words = [one.word for one in changed if alone or one.host == host]
            changes = {word: words.count(word) for word in sorted(set(words), key=urgency)}
            at = self._clock.now()
            told = {"seconds": max(0.0, at - away.since), "at": at, "gone": away.gone, "changes": changes}
            self._back = [*self._back[1 - _MOST_BACK :], (Fact("host_back", host=visible(host), **told), at)]

    def _note_phases(self, status: RunStatus) -> None:
        phases: dict[str, tuple[object, ...]] = {
            one.name: (one.life, one.attempt, not one.remaining) for one in status.every
        }
        if phases != self._phases:  # the first look may show a run without changes for long
            ages = [0.0] if self._phases else [one.seconds or 0.0 for one in status.every if one.alive]
            self._changed = self._clock.elapsed() - min(ages, default=status.seconds or 0.0)
            self._phases = phases

    def _decided(self, undecided: str) -> None:
        """Publish why `stop_early` can't decide anything, if that has changed."""
        if undecided != self.look.undecided:
            status = replace(self.look.status, undecided=undecided)
            self._publish(self.look._replace(number=self.look.number + 1, status=status, undecided=undecided))

    def _publish(self, look: Look) -> None:
        with self._news:
            self.look = look
            self._news.notify_all()
        self._tell()

    def _tell(self) -> None:
        for tell in tuple(self._subscribers):
            tell()

    def _sleep(self, seconds: float) -> None:
        """Wait, at most until somebody wants a look, until the connection is gone, or until the file exists that a run
        on this machine ends with.
        """
        transport = self.source.transport
        end, deadline = self.source.end(), self._clock.elapsed() + seconds
        while (left := deadline - self._clock.elapsed()) > 0 and not (end and end.exists()):
            step = _END_LOOK_S if end else _LINK_LOOK_S if hasattr(transport, "lost") else left
            if self._clock.wait(self._wanted, min(step, left)) or getattr(transport, "lost", False):
                return


def _links(status: RunStatus) -> dict[str, Link]:
    return {one.host: one.link for one in status.hosts} or {status.host: status.link}


def watch(
    source: Watched,
    screen: StatusScreen,
    clock: Clock,
    settings: Settings,
    react: Callable[[RunStatus], str] | None = None,
) -> RunStatus:
    """Show the run until it has finished. Returns the last status."""
    watcher = Watcher(source, clock, settings, react)
    watcher.subscribe(lambda: watcher.look.over or screen.show(replace(watcher.look.status, link=watcher.link())))
    return watcher.run()
