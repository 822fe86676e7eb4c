"""What a pane or a page needs of the host, asked in one thread that nobody waits for."""

from __future__ import annotations

import queue
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from comborun.errors import UserError
from comborun.monitor.explain import was_stopped
from comborun.monitor.fullscreen.desk import Desk, Log, videos_at
from comborun.monitor.fullscreen.pane import parsed_videos
from comborun.remote.logs import LogPart, log_part, newest_events
from comborun.rules import events
from comborun.rules.names import RunLayout
from comborun.text import harmless

if TYPE_CHECKING:
    from comborun.monitor.fleet import Fleet
    from comborun.monitor.status import SessionStatus
    from comborun.monitor.watcher import Watcher

REST_S = 0.25
"""seconds that the cursor rests on a session before its log is fetched"""
_AGAIN_S = 10.0
"""seconds until something that failed is asked again"""
_SOON_S = 1.0
"""seconds without a word for orders, after the user has left"""
_LOGS_KEPT, _LOG_KEPT = 20, 1 << 18
"""logs, and bytes of each, that are kept"""
_VIDEOS = 'cd -- "$1" && for at in attempt-*/; do sed "s|^|${at%/}\t|" -- "${at}videos.tsv" 2>/dev/null; done; true'


class Fetcher:
    def __init__(self, desk: Desk, watcher: Watcher, fleet: Callable[[], Fleet], post: Callable[..., object]) -> None:
        """`fleet` begins to look at all hosts; `post` calls a function in the thread of the screen, and draws."""
        self._desk, self._watcher, self._begin_fleet, self._post = desk, watcher, fleet, post
        self._errands: queue.SimpleQueue[tuple[str, Callable[[], None]]] = queue.SimpleQueue()
        self._asked: set[str] = set()
        self._failed: dict[str, float] = {}
        """key of an errand -> when the host gave no answer to it"""
        self._name, self._since = "", 0.0
        """the chosen session, and since when it is chosen"""
        self._events_of = -1
        """the look for which the events were asked"""
        self._fleet: Fleet | None = None
        threading.Thread(target=self._work, name="fetcher", daemon=True).start()

    def close(self) -> None:
        if self._fleet:
            self._fleet.close()

    def finish(self) -> bool:
        """Wait until the orders that were given are carried out, once the screen is gone. Whether there were any."""
        given = [key.removeprefix("order ") for key in [*self._asked] if key.startswith("order ")]
        if not given:
            return False
        self._post = lambda act, *words: act(*words)
        over = threading.Event()
        self._errands.put(("", over.set))
        if not over.wait(_SOON_S):
            sys.stderr.write(f"{harmless(', '.join(given), keep='')} ... (Ctrl-C: without waiting for its end)\n")
            over.wait()
        return True

    def ask(self, key: str, work: Callable[[], Any], then: Callable[[Any], object]) -> None:
        """`work` in the thread of errands, unless it is asked already; `then` gets its result in that of the screen."""

        def errand() -> None:
            try:
                found = work()
            except UserError as error:
                self._failed[key] = time.monotonic()
                self._post(self._desk.say, error.headline)
            except Exception as error:  # noqa: BLE001  a bug ends the screen with its traceback
                self._post(_raise, error)
            else:
                self._failed.pop(key, None)
                self._post(then, found)

        if key not in self._asked:
            self._asked.add(key)
            self._errands.put((key, errand))

    def _work(self) -> None:
        while True:
            key, errand = self._errands.get()
            errand()
            self._asked.discard(key)

    def need(self) -> None:
        """Ask for what the screen shows and does not have."""
        desk = self._desk
        if desk.page in ("events", "host"):
            self._need_events()
        elif desk.page == "runs":
            self._fleet = self._fleet or self._begin_fleet()
            if self._fleet.wait(0) or desk.fleet is None:
                desk.fleet = self._fleet.rows() or desk.fleet
        elif (session := desk.session) and session.attempt and (desk.full or desk.pane_height):
            self._need_of(session)

    def _need_events(self) -> None:
        desk, number = self._desk, self._desk.look.number
        if self._events_of != number:
            self._events_of = number
            self.ask("events", self._read_events, lambda found: setattr(desk, "events", found))

    def _read_events(self) -> Sequence[events.Event]:
        """Of a run on several hosts those of all, on this machine's clock. Of one that is away the known ones stay."""
        look, found = self._desk.look, list[events.Event]()
        for host, source in self._watcher.source.by_host().items():
            if look.parts and look.parts[host].away:
                found += [one for one in self._desk.events or () if one.host == host]
                continue
            own = newest_events(source.transport, source.view.directory)
            for one in own if look.parts else ():
                one.host, one.at = host, one.at - look.parts[host].status.ahead
            found += own
        return sorted(found, key=lambda one: one.at)

    def _need_of(self, session: SessionStatus) -> None:
        desk, now = self._desk, time.monotonic()
        if session.name != self._name:
            self._name, self._since = session.name, now
        late = any(now < self._failed.get(key, -_AGAIN_S) + _AGAIN_S for key in ("log", "video"))
        if now < self._since + REST_S or late or not desk.link.reachable or desk.look.at(session.name).away:
            return
        source = self._watcher.source.at(session.name)
        if desk.pane == "log":
            log = desk.logs.get(session.name, Log())
            log = log if log.attempt == session.attempt else Log()
            directory = source.view.directory

            def read() -> LogPart | None:
                return log_part(source.transport, directory, session.name, session.attempt, log.offset, _LOG_KEPT)

            if not log.over:
                self.ask("log", read, lambda part: self._grown(session, log, part))
        elif desk.pane == "explain" and was_stopped(desk.look.history.of(session.name)):
            self._need_events()
        elif desk.pane == "video" and desk.videos_of(session) is None:
            folder = str(PurePosixPath(RunLayout(source.view.directory).attempt(session.name, 1).log).parents[1])
            self.ask("video", lambda: source.transport.run(_VIDEOS, folder).text,
                     lambda text: desk.videos.__setitem__(videos_at(session), parsed_videos(text)))  # fmt: skip

    def _grown(self, session: SessionStatus, log: Log, part: LogPart | None) -> None:
        if part:
            goes_on = part.start == log.offset
            end = part.start + len(part.data)
            data = ((log.data if goes_on else b"") + part.data)[-_LOG_KEPT:]
            behind = part.size - end >= _LOG_KEPT or (log.offset >= 0 and not goes_on)  # the next part is the last one
            over = end == part.size and not session.alive
            log = Log(data, session.attempt, -1 if behind else end, over)
        else:
            log = Log(b"", session.attempt, -1, not session.alive)
        logs = self._desk.logs
        logs.pop(session.name, None)
        logs[session.name] = log
        if len(logs) > _LOGS_KEPT:
            del logs[next(iter(logs))]


def _raise(error: Exception) -> None:
    raise error
