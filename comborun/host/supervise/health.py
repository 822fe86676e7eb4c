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

import contextlib
import os
import threading
import time
from collections.abc import Sequence

from comborun.host.record.clients import healthy, listens_elsewhere, request, taken_by_another
from comborun.host.record.log_evidence import LogLine
from comborun.host.supervise.attempt import Attempt, Verdict
from comborun.host.supervise.watch import PollingWatch
from comborun.host.system import files
from comborun.rules.endings.evidence import Evidence, fact

_FIRST_PAUSE_S, _MOST_PAUSE_S = 0.2, 2.0


class Health(PollingWatch):
    """The watch over one model server. A thread sends the requests, so that nothing else waits for the answers."""

    def __init__(self, attempt: Attempt) -> None:
        super().__init__(attempt)
        data = attempt.data
        self._port = int(attempt.port or 0)
        self._checks: Sequence[str] = data["ready"]
        self._lines = {check: LogLine(check[5:]) for check in self._checks if check.startswith("line ")}
        self._within = data.get("ready_within_s", 0)
        """seconds; 0: as long as it takes"""
        self._every = data.get("health_s", 10)
        """seconds between two checks; 0: no checks"""
        self._most_misses = data.get("health_misses", 6)
        self._warm_up = data.get("warm_up", ())
        """method, path, media type, seconds, body"""
        self._path = next((check.split(" ")[2] for check in self._checks if check.startswith("http ")), "")
        """the path that a health check requests"""
        self._awake = 0.0
        self._missing = self._checks[0]
        """the first check that has not passed yet"""
        self._loaded = os.path.exists(attempt.at.ready)  # for the watch over an orphan, it may have been ready before
        self._reached: Verdict | None = None
        self._closed = threading.Event()
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._woken, False)
        threading.Thread(target=self._work, daemon=True).start()

    def descriptors(self) -> list[int]:
        return [] if self.over else [self._woken]

    def look(self) -> Verdict | None:
        """Why the server must end; None while it goes on."""
        if self.over or not self.attempt.lives:
            return None
        with contextlib.suppress(BlockingIOError):
            os.read(self._woken, 64)
        if time.monotonic() >= self.next:
            self._awake += self.elapse()
            self.find()
            self.activity.look()
        reached = self._reached
        if not reached and not self._loaded and 0 < self._within <= self._awake:
            at = listens_elsewhere(self._port) or None
            reached = "timed_out", fact(Evidence.NOT_READY, limit_s=self._within, check=self._missing, at=at)
        return self.end(reached)

    def close(self) -> None:
        super().close()
        self._closed.set()

    # In the thread

    def _work(self) -> None:
        """Work until there is a verdict, or it is closed. Without memory or descriptors it tries again."""
        while not self._pause(0.0):
            try:
                self._reached = (None if self._loaded else self._load()) or (self._follow() if self._every else None)
                os.write(self._wake, b".")
            except (OSError, MemoryError):
                self._pause(_MOST_PAUSE_S)
            else:
                return

    def _pause(self, seconds: float) -> bool:
        """Wait. Returns whether to stop asking: after the server's death another program may answer."""
        return self._closed.wait(seconds) or not self.attempt.lives

    def _load(self) -> Verdict | None:
        """Wait until all checks pass. If one does not, all are repeated after a pause."""
        pause = _FIRST_PAUSE_S
        files.remove(self._url_file)
        while missing := next((check for check in self._checks if not self._holds(check)), ""):
            self._missing = missing
            if self._pause(pause):
                return None
            pause = min(_MOST_PAUSE_S, pause * 2)
        self.activity.find(now=True)
        if taken_by_another(self._port, self.activity.pids):
            return "launch_failed", fact(Evidence.PORT_TAKEN, port=self._port)
        if self._warm_up and (reached := self._warm()):
            return reached
        while not self._ready():  # a full disk
            if self._pause(_MOST_PAUSE_S):
                return None
        return None

    def _holds(self, check: str) -> bool:
        if check in self._lines:
            return self._lines[check].look(self.attempt.at.log)
        kind, _, rest = check.partition(" ")
        status, path, text = [*rest.split(" ", 2), "", ""][:3] if kind == "http" else ("", "", "")
        answer = request(self._port, self.attempt.timing.answer_s, path)
        if kind != "http":
            return answer.connected
        return str(answer.status) == status and text in answer.body.decode("utf-8", "surrogateescape")

    def _warm(self) -> Verdict | None:
        """Send the warm-up request, so that the first client gets a fast answer."""
        method, path, media, within, body = self._warm_up
        answer = request(self._port, float(within), path, method, (media, body))
        if not answer.status:
            return "timed_out", fact(Evidence.WARM_UP_UNANSWERED, limit_s=within)
        if not 200 <= answer.status < 300:
            said = f"{answer.status} {answer.reason[:100]}"
            self.attempt.add_to_log(f"the warm-up request was answered with: {said}")
        return None

    @property
    def _url_file(self) -> str:
        return self.attempt.run_layout.server_url(self.attempt.name)

    def _ready(self) -> bool:
        """Record that it is ready; False on a full disk."""
        url = f"http://127.0.0.1:{self._port}"
        fields = [("at", round(time.time(), 6)), ("url", url), ("port", self._port), ("path", self._path)]
        self._loaded = files.write_text(self._url_file, f"{url}\n") and files.write(self.attempt.at.ready, fields)
        if self._loaded:
            self.attempt.tell("ready")
        return self._loaded

    def _follow(self) -> Verdict | None:
        """Check its health until it fails too often in a row. An HTTP error is a miss."""
        misses, since = 0, 0.0
        while misses < self._most_misses:
            if self._pause(self._every):
                return None
            if healthy(self._port, self._path, self.attempt.timing.answer_s):
                if misses:
                    files.remove(self.attempt.at.unhealthy)
                    self.attempt.tell("ready")
                misses = 0
                continue
            since = since if misses else time.time()
            misses += 1
            files.write(self.attempt.at.unhealthy, [("since", round(since, 6)), ("misses", misses)])
        path = self._path or None
        return "stalled", fact(Evidence.NO_ANSWER, path=path, misses=misses, every_s=self._every)
