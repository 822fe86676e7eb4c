"""The watch over a model server: it reports when the server is ready, then checks its health, and gives up a server
that does not answer. It does not need the dispatcher.

    servers/<name>/attempt-N/ready       at url port path; path: what a look at its health asks for, if HTTP
    servers/<name>/attempt-N/unhealthy   since misses; while it does not answer
    servers/<name>/url                   one line; while it is ready

A check is one line of `ready`: `http STATUS PATH [TEXT]` (it answers so, and the text stands in the answer), `line
PATTERN` (such a line is in its log) or `tcp` (it takes connections). Another program may listen on the port, so a check
counts only while the server's process lives.
"""

from __future__ import annotations

import math
import os
import time

from comborun.host import files
from comborun.host.ask import Ask, taken_by_another
from comborun.host.judging import LogLine
from comborun.host.process import setting
from comborun.host.watch import PollingWatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Sequence

    from comborun.host.attempt import Attempt
    from comborun.host.watch import Verdict

_FIRST_PAUSE_S, _MOST_PAUSE_S = 0.2, 2.0


class Health(PollingWatch):
    """The watch over one model server."""

    def __init__(self, of: Attempt) -> None:
        super().__init__(of)
        data, at = of.data, of.at
        self._port = int(of.port or 0)
        self._checks: Sequence[str] = data["ready"]
        self._lines = {check: LogLine(check[5:]) for check in self._checks if check.startswith("line ")}
        self._within = data.get("ready_within_s", 0)
        """seconds; 0: as long as it takes"""
        self._every = data.get("health_s", 10)
        """seconds between two looks; 0: none"""
        self._most_misses = data.get("health_misses", 6)
        self._warm_up = data.get("warm_up", ())
        """method, path, media type, seconds, body"""
        self._path = next((check.split(" ")[2] for check in self._checks if check.startswith("http ")), "")
        """what a look at its health asks for"""
        self._awake = 0.0
        self._check = 0
        """the first that does not hold yet"""
        self._ask: Ask | None = None
        self._pause = _FIRST_PAUSE_S
        self._misses = 0
        self._since = 0.0
        ready = os.path.exists(at.ready)  # an orphan's watch comes to one that has been ready
        self._stage = self._healthy if ready else self._loading
        self._again = time.monotonic() + (self._every if ready else 0.0)
        if not ready:
            files.remove(self._url_file)

    @property
    def _url_file(self) -> str:
        return f"{self.of.folder}/url"

    def due(self) -> float:
        """When to look again, in time.monotonic()."""
        return math.inf if self.over else min(self.next, self._ask.due if self._ask else self._again)

    def descriptors(self) -> list[int]:
        return self._ask.descriptors() if self._ask else []

    def look(self) -> Verdict | None:
        """Why the server is to be ended; None while it goes on."""
        if self.over or not self.of.lives:  # what answers is another program
            return None
        if time.monotonic() >= self.next:
            self._awake += self.elapse()
            self.find()
            self.see()
        reached = self._stage() if self._ask is None or self._ask.look() else None
        if self._stage == self._loading and reached is None and 0 < self._within <= self._awake:
            missing = self._checks[min(self._check, len(self._checks) - 1)]
            reached = "timed_out", f"it was not ready within {self._within:g} s; still missing: {missing}"
        return self.end(reached)

    def close(self) -> None:
        super().close()
        if self._ask:
            self._ask.close()
            self._ask = None

    def _start(self, path: str, within: float, **more: str) -> None:
        self._ask = Ask(self._port, within, path=path, **more)

    def _answer(self) -> Ask:
        assert self._ask
        ask, self._ask = self._ask, None
        return ask

    def _loading(self) -> Verdict | None:
        """Go through the checks; from the first again after a pause when one does not hold."""
        if self._ask is None:
            if time.monotonic() < self._again:
                return None
            self._check = 0
        while self._check < len(self._checks):
            holds = self._holds(self._checks[self._check])
            if holds is None:
                return None  # it is asked
            if not holds:
                self._again = time.monotonic() + self._pause
                self._pause = min(_MOST_PAUSE_S, self._pause * 2)
                return None
            self._check += 1
        self.activity.find(now=True)
        if taken_by_another(self._port, self.activity.pids):
            return "launch_failed", f"another program listens on its port {self._port}"
        if not self._warm_up:
            self._ready()
            return None
        method, path, media, within, body = self._warm_up
        self._start(path, float(within), method=method, media=media, body=body)
        self._stage = self._warm
        return None

    def _holds(self, check: str) -> bool | None:
        """Whether a check does; None: it is asked."""
        if check in self._lines:
            return self._lines[check].look(self.of.at.log)
        kind, _, rest = check.partition(" ")
        status, path, text = [*rest.split(" ", 2), "", ""][:3] if kind == "http" else ("", "", "")
        if self._ask is None:
            self._start(path, setting("COMBORUN_ANSWER_S", 5.0))
            return None
        ask = self._answer()
        if kind != "http":
            return ask.connected
        body = ask.answer.partition(b"\r\n\r\n")[2].decode("utf-8", "surrogateescape")
        return str(ask.status) == status and text in body

    def _warm(self) -> Verdict | None:
        """The answer to the warm-up request, which spares the first client a slow one."""
        ask = self._answer()
        first = ask.answer.partition(b"\r")[0].decode("utf-8", "replace")
        if not first:
            return "timed_out", f"it did not answer the warm-up request within {self._warm_up[3]} s"
        if not 200 <= ask.status < 300:
            files.append(self.of.at.log, f"comborun: the warm-up request was answered with: {first[:100]}\n")
        self._ready()
        return None

    def _ready(self) -> None:
        url = f"http://127.0.0.1:{self._port}"
        files.write_text(self._url_file, f"{url}\n")
        fields = [("at", round(time.time(), 6)), ("url", url), ("port", self._port), ("path", self._path)]
        if files.write(self.of.at.ready, fields):
            self.of.tell("ready")
            self._stage = self._healthy
        else:  # a full disk: once more, later
            self._stage = self._loading
        self._again = time.monotonic() + (self._every or _MOST_PAUSE_S)

    def _healthy(self) -> Verdict | None:
        """An HTTP error counts as a miss."""
        if not self._every:
            self._again = math.inf
            return None
        if self._ask is None:
            if time.monotonic() >= self._again:
                self._start(self._path, setting("COMBORUN_ANSWER_S", 5.0))
            return None
        ask = self._answer()
        self._again = time.monotonic() + self._every
        if ask.well:
            if self._misses:
                files.remove(self.of.at.unhealthy)
                self.of.tell("ready")
            self._misses = 0
            return None
        self._since = self._since if self._misses else time.time()
        self._misses += 1
        files.write(self.of.at.unhealthy, [("since", round(self._since, 6)), ("misses", self._misses)])
        if self._misses < self._most_misses:
            return None
        what = self._path or "on its port"
        return "stalled", f"it did not answer {what}: {self._misses} looks in a row, {self._every:g} s apart"
