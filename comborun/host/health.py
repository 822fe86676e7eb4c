"""What the watch of a model server does instead of judging progress: it tells when the server is ready, asks after its
health from then on, and gives up one that does not answer. It goes on when the dispatcher has gone.

    servers/<name>/attempt-N/ready       at url port path; path: what a look at its health asks for, if HTTP
    servers/<name>/attempt-N/unhealthy   since misses; while it does not answer
    servers/<name>/url                   one line; while it is ready

A check is one line of `ready`: `http STATUS PATH [TEXT]` (it answers so, and the text stands in the answer), `line
PATTERN` (such a line is in its log) or `tcp` (it takes connections). What listens on a port may be another program, so
a check speaks only together with the server's process.
"""

from __future__ import annotations

import math
import os
import re
import time

from comborun.host import activity, files
from comborun.host.ask import Ask, taken_by_another
from comborun.host.watch import Clock, Memory, Verdict, setting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from comborun.host.watch import Job

_FIRST_PAUSE_S, _MOST_PAUSE_S = 0.2, 2.0
_FIND_EVERY = 12
_READ = 1 << 20
"""bytes of a log that are read at once"""
_LONGEST = 4096


class Server:
    """How a model server is job."""

    def __init__(self, port: int, ready: Sequence[str]) -> None:
        self.port = port
        self.ready = ready
        """the checks, in the order in which they are made"""
        self.ready_within_s = 0.0
        """0: as long as it takes"""
        self.health_s = 10.0
        """between two looks; 0: none"""
        self.health_misses = 6
        self.warm_up: Sequence[Any] = ()
        """method, path, media type, seconds, body"""


class Health:
    """The watch over one model server."""

    def __init__(self, job: Job, server: Server) -> None:
        self._job = job
        self._server = server
        self._checks = server.ready
        self._path = next((check.split(" ")[2] for check in self._checks if check.startswith("http ")), "")
        """what a look at its health asks for"""
        self._log = Lines(job.at.log)
        self._activity = activity.Activity(job.marker)
        self._memory = Memory(job, self._activity)
        self._clock = Clock()
        self._awake = 0.0
        self._looks = 0
        self._check = 0
        """the first that does not hold yet"""
        self._ask: Ask | None = None
        self._pause = _FIRST_PAUSE_S
        self._misses = 0
        self._since = 0.0
        self._over = False
        ready = os.path.exists(job.at.ready)  # an orphan's watch comes to one that has been ready
        self._stage = self._healthy if ready else self._loading
        self._next = time.monotonic() + (self._server.health_s if ready else 0.0)
        if not ready:
            files.remove(self._url_file)

    @property
    def peak_kib(self) -> int:
        return self._activity.peak_kib

    def due(self) -> float:
        """When to look again, in time.monotonic()."""
        if self._over:
            return math.inf
        return min(self._clock.due, self._ask.due if self._ask else self._next)

    def descriptors(self) -> list[int]:
        return self._ask.descriptors() if self._ask else []

    def writing(self) -> list[int]:
        return []

    def look(self) -> Verdict | None:
        """Why the server is to be ended; None while it goes on."""
        if self._over or not self._job.lives:  # what answers is another program
            return None
        if time.monotonic() >= self._clock.due:
            self._see()
        reached = self._stage() if self._ask is None or self._ask.look() else None
        if self._stage == self._loading and reached is None and 0 < self._server.ready_within_s <= self._awake:
            missing = self._checks[min(self._check, len(self._checks) - 1)]
            reached = Verdict(
                "timed_out", f"it was not ready within {self._server.ready_within_s:g} s; still missing: {missing}"
            )
        reached = self._job.end(reached)
        if reached:
            self.close()
        return reached

    def close(self, *, clear: bool = False) -> None:
        if clear:
            self._job.clear()
        self._over = True
        if self._ask:
            self._ask.close()
            self._ask = None

    @property
    def _url_file(self) -> str:
        return f"{os.path.dirname(self._job.at.directory)}/url"

    def _see(self) -> None:
        """How much memory it takes, and for how long it has been awake."""
        self._awake += self._clock.elapse()
        self._looks += 1
        if self._looks & (self._looks - 1) == 0 or self._looks % _FIND_EVERY == 0:
            self._activity.find()
        self._activity.look()
        self._memory.write()

    def _start(self, path: str, within: float, **more: str) -> None:
        self._ask = Ask(self._server.port, within, path=path, **more)

    def _loading(self) -> Verdict | None:
        """Go through the checks; from the first again after a pause when one does not hold."""
        if self._ask is None:
            if time.monotonic() < self._next:
                return None
            self._check = 0
        while self._check < len(self._checks):
            holds = self._holds(self._checks[self._check])
            if holds is None:
                return None  # it is asked
            if not holds:
                self._next = time.monotonic() + self._pause
                self._pause = min(_MOST_PAUSE_S, self._pause * 2)
                return None
            self._check += 1
        self._activity.find(now=True)
        if taken_by_another(self._server.port, self._activity.pids):
            return Verdict("launch_failed", f"another program listens on its port {self._server.port}")
        if not self._server.warm_up:
            self._ready()
            return None
        method, path, media, within, body = self._server.warm_up
        self._start(path, float(within), method=method, media=media, body=body)
        self._stage = self._warm
        return None

    def _holds(self, check: str) -> bool | None:
        kind, _, rest = check.partition(" ")
        if kind == "line":
            return self._log.find(rest)
        status, path, text = [*rest.split(" ", 2), "", ""][:3] if kind == "http" else ("", "", "")
        if self._ask is None:
            self._start(path, setting("COMBORUN_ANSWER_S", 5.0))
            return None
        ask, self._ask = self._ask, None
        if kind != "http":
            return ask.connected
        body = ask.answer.partition(b"\r\n\r\n")[2].decode("utf-8", "surrogateescape")
        return str(ask.status) == status and text in body

    def _warm(self) -> Verdict | None:
        """One request, so that no client's first one pays for it."""
        assert self._ask
        ask, self._ask = self._ask, None
        first = ask.answer.partition(b"\r")[0].decode("utf-8", "replace")
        if not first:
            within = self._server.warm_up[3]
            return Verdict("timed_out", f"it did not answer the warm-up request within {within} s")
        if not 200 <= ask.status < 300:
            files.append(self._job.at.log, f"comborun: the warm-up request was answered with: {first[:100]}\n")
        self._ready()
        return None

    def _ready(self) -> None:
        port = self._server.port
        url = f"http://127.0.0.1:{port}"
        files.write_text(self._url_file, f"{url}\n")
        fields = [("at", round(time.time(), 6)), ("url", url), ("port", port), ("path", self._path)]
        if files.write(self._job.at.ready, fields):
            self._job.tell("ready")
            self._stage = self._healthy
        else:  # a full disk: once more, later
            self._stage = self._loading
        self._next = time.monotonic() + (self._server.health_s or _MOST_PAUSE_S)

    def _healthy(self) -> Verdict | None:
        """An error that it answers with is no answer of a healthy server."""
        if not self._server.health_s:
            self._next = math.inf
            return None
        if self._ask is None:
            if time.monotonic() >= self._next:
                self._start(self._path, setting("COMBORUN_ANSWER_S", 5.0))
            return None
        ask, self._ask = self._ask, None
        self._next = time.monotonic() + self._server.health_s
        if ask.well:
            if self._misses:
                files.remove(self._job.at.unhealthy)
                self._job.tell("ready")
            self._misses = 0
            return None
        self._since = self._since if self._misses else time.time()
        self._misses += 1
        files.write(self._job.at.unhealthy, [("since", round(self._since, 6)), ("misses", self._misses)])
        if self._misses < self._server.health_misses:
            return None
        what = self._path or "on its port"
        return Verdict(
            "stalled", f"it did not answer {what}: {self._misses} looks in a row, {self._server.health_s:g} s apart"
        )


class Lines:
    """A log that grows, read once."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._at = 0
        self._rest = b""
        self._found: set[str] = set()
        self._patterns: dict[str, re.Pattern[str] | None] = {}

    def find(self, pattern: str) -> bool:
        """Whether a line matches, whenever it came."""
        if pattern not in self._patterns:
            try:
                self._patterns[pattern] = re.compile(pattern)
            except (re.error, RecursionError, OverflowError):
                self._patterns[pattern] = None
            self._at, self._rest = 0, b""
        if pattern not in self._found:
            self._read()
        return pattern in self._found

    def _read(self) -> None:
        try:
            with open(self._path, "rb") as file:
                file.seek(self._at)
                data = file.read(_READ)
        except OSError:
            return
        self._at += len(data)
        *lines, self._rest = (self._rest + data).replace(b"\r", b"\n").replace(b"\0", b"\n").split(b"\n")
        self._rest = self._rest[-_LONGEST:]
        for line in [*lines, self._rest]:
            text = line[:_LONGEST].decode("utf-8", "replace")
            self._found.update(one for one, pattern in self._patterns.items() if pattern and pattern.search(text))
