"""What the page knows of the run: one watcher, whose newest look all tabs share."""

from __future__ import annotations

from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any

from comborun.monitor.status import Link
from comborun.monitor.view.gpus import GpuHistory, GpuWatch
from comborun.monitor.watch import Clock, Look, Settings
from comborun.monitor.watcher import Watcher
from comborun.text import harmless
from comborun.words.times import brief, clock

if TYPE_CHECKING:
    from comborun.monitor.watch import Watched

_AGAIN_S = 60.0
"""seconds after the end of a run before it is looked at again: somebody may have resumed it"""


class Feed:
    """What is known of the run. A new watcher follows one that has seen the end of the run."""

    def __init__(self, source: Watched, settings: Settings) -> None:
        self._settings = settings
        self._lock = Lock()
        self._over = 0.0
        """when the run was last seen going on, or was looked at again"""
        self._life = 0
        """how many watchers were there before this one"""
        self.gpus: dict[str, GpuWatch] = {}
        """by host"""
        self.watcher = self._start(source)
        self._look = self.watcher.look

    def _start(self, source: Watched) -> Watcher:
        watcher = Watcher(source, Clock(), self._settings)
        watcher.subscribe(lambda: self._note(watcher.look))
        watcher.start()
        return watcher

    def _note(self, look: Look) -> None:
        for host, part in look.by_host().items():
            self.gpus.setdefault(host, GpuWatch()).note(part.status)

    def gpu_histories(self) -> dict[str, GpuHistory]:
        """By host, after reading what is new there."""
        for host, source in self.watcher.source.by_host().items():
            self.gpus.setdefault(host, GpuWatch()).read(source)
        return {host: one.history for host, one in self.gpus.items()}

    def look(self) -> tuple[object, Look]:
        """The newest look, and what is the same for the same look only."""
        with self._lock:
            watcher, now = self.watcher, monotonic()
            look = watcher.look
            if not look.over:
                self._over = now
            elif now > self._over + _AGAIN_S and watcher.failure is None:
                self._over, self._life = now, self._life + 1
                self.watcher = watcher = self._start(watcher.source)
            if watcher.look.number or self._look.number == 0:
                self._look = watcher.look
            return (self._life, self._look.number, self._look.over), self._look

    def refresh(self) -> None:
        self._over = 0.0
        self.watcher.refresh()

    def said(self) -> dict[str, Any]:
        """The link and the host's clock, for the head of every answer."""
        link, look = self.watcher.link(), self._look
        failure = self.watcher.failure
        words = _trouble(link) if failure is None else f"the watcher has ended: {failure}"
        now = look.status.now
        return {
            "now": None if now is None else round(now + self.watcher.passed(), 1),
            "seen": None if link.last_seen is None else round(link.last_seen, 1),
            "link": harmless(words),
            "over": end_words(look) if look.over else "",
        }


def end_words(look: Look) -> str:
    """What is said of a run in which nothing runs any more."""
    status = look.status
    hold = "stopped" if status.stopped else status.hold.kind if status.hold else ""
    return f"{hold}: nothing runs" if hold and not all(one.done_with for one in status.proper) else "the run has ended"


def _trouble(link: Link) -> str:
    if link.reachable:
        return f"the host has not answered for {brief(link.silent)}" if link.silent else ""
    seen = "" if link.last_seen is None else f" This was seen {brief(link.last_seen)} ago."
    why = f": {link.complaint}" if link.complaint else ""
    back = "it" if link.gone else "the host"
    comfort = f" {link.comfort[0].upper()}{link.comfort[1:]}." if link.comfort else ""
    return f"{link.trouble} since {clock(link.since)}{why}.{seen}{comfort} The page goes on when {back} is back."
