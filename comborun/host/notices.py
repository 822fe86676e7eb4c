"""The grid's `notify` command: when it is run, what it is told, and that nobody waits for it."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time

from comborun.host import children, files
from comborun.host.attempts import outcome_of
from comborun.rules import notices

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any, Callable, Sequence

    from comborun.host.attempts import RunDirectory
    from comborun.host.children import Child

_OUTPUT_MOST = 65536
"""bytes of what the command prints that are kept: the folder of the run is no place for a gigabyte of it"""
_LINGER_S = 1.0
"""what the command has left behind may hold its output open for ever"""
_TERM_S = 5.0
_TOO_LONG = 124
_LOG_TAIL = 16384


class Notices:
    """News of a run: at most once for each kind in a while, and always when the run is done."""

    def __init__(self, attempts: RunDirectory, journal: Callable[[str], None]) -> None:
        self._attempts = attempts
        self._journal = journal
        self._folder = attempts.layout.dispatch
        self._kinds: Sequence[str] = ()
        self._throttle = notices.Throttle(0)
        self.children: list[Child] = []

    def open(self) -> None:
        """As the policy and dispatch/notified tell."""
        policy = self._attempts.policy
        self._kinds = policy.get("notify_kinds", "").split(",")
        every = int(policy["notify_every_ms"]) / 1000
        self._throttle = notices.Throttle(every, files.read_text(f"{self._folder}/notified"))

    def tell(self, kind: str, who: str, note: str) -> None:
        if kind not in self._kinds or not os.path.exists(self._attempts.layout.notify):
            return
        self._journal(f"notice {kind} {who} {note}")
        if self._throttle.waits(kind, time.time()):
            self._throttle.hold_back(kind, who)
            self._write()
        else:
            self._send(kind, who, note)

    def flush(self) -> None:
        """What was held back, when its time has come."""
        for kind in self._throttle.due(time.time()):
            latest = self._throttle.held[kind][-1]
            self._send(kind, "" if latest == "-" else latest, "held back before")

    def _send(self, kind: str, who: str, note: str) -> None:
        """In a process of its own; it has gone out when it has been written down."""
        held = self._throttle.send(kind, time.time())
        self._write()
        self.children = [child for child in self.children if child.poll() is None]
        try:
            child = children.fork(
                lambda: hand_over(self._attempts, kind, who, note, held), f"{self._folder}/notify.out"
            )
        except OSError as error:
            self._journal(f"no-notice {kind} {error.strerror}")
        else:
            self.children.append(child)

    def _write(self) -> None:
        files.write_text(f"{self._folder}/notified", self._throttle.rows())


def hand_over(attempts: RunDirectory, kind: str, who: str, note: str, held: Sequence[str] = ()) -> int:
    """Run the command with a notice on its standard input; its code. What it prints goes on, up to a bound."""
    told = _build(attempts, kind, who, note, held)
    longest = float(os.environ.get("COMBORUN_NOTIFY_S", "60"))
    code = _run(["bash", attempts.layout.notify], (json.dumps(told) + "\n").encode(), longest)
    failed = f"{attempts.layout.dispatch}/notify.failed"
    if not code:
        files.remove(failed)
        return code
    files.write(failed, [("code", code), ("at", round(time.time(), 6))])  # until one is taken
    said = f"was ended: it took longer than {longest:g} s" if code == _TOO_LONG else f"ended with code {code}"
    sys.stderr.write(f"notify: the command {said}\n")
    sys.stderr.flush()
    return code


def _run(command: list[str], text: bytes, longest: float) -> int:
    """Its code; 124 where it was ended, since it took longer than that."""
    with _unnamed(text) as told:
        process = subprocess.Popen(
            command, stdin=told, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
        )
    assert process.stdout
    output = _Output(process.stdout)
    ended = lambda: process.poll() is not None  # noqa: E731
    if output.until(ended, longest):
        output.until(lambda: output.over, _LINGER_S)
        return process.returncode if process.returncode >= 0 else 128 - process.returncode
    for number, wait in ((signal.SIGTERM, _TERM_S), (signal.SIGKILL, _LINGER_S)):
        try:
            os.killpg(process.pid, number)
        except OSError:
            break
        if output.until(ended, wait):
            break
    output.until(lambda: output.over, _LINGER_S)
    return _TOO_LONG


def _unnamed(text: bytes) -> IO[bytes]:
    """A file without a name that holds that, for a program that may read it or not."""
    fd = os.memfd_create("notice")
    files.write_all(fd, text)
    os.lseek(fd, 0, os.SEEK_SET)
    return open(fd, "rb")


class _Output:
    """Passes on what a program prints, so that it is never held up, and keeps a bounded part."""

    def __init__(self, of: IO[bytes]) -> None:
        self._of = of
        self._left = _OUTPUT_MOST
        self.over = False

    def until(self, condition: Callable[[], bool], seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while not condition() and time.monotonic() < deadline:
            if select.select([] if self.over else [self._of], [], [], 0.05)[0]:
                self._pass_on(os.read(self._of.fileno(), 65536))
        return condition()

    def _pass_on(self, data: bytes) -> None:
        self.over = not data
        kept = data[: self._left]
        self._left -= len(kept)
        try:
            os.write(1, kept)
        except OSError:
            return  # who asked for a test may be gone


def _build(attempts: RunDirectory, kind: str, who: str, note: str, held: Sequence[str]) -> dict[str, object]:
    """A notice, read off the files of the run."""
    quoted = "'" + attempts.path.replace("'", "'\\''") + "'"
    return {
        "schema": 1,
        "kind": kind,
        "run": attempts.id,
        "grid": attempts.id.rpartition("-")[0].rpartition("-")[0],
        "host": os.uname().nodename,
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "directory": attempts.path,
        **_session(attempts, who, note),
        **_totals(attempts),
        "resume": f"bash {quoted}/run_parallel.sh resume",
        "suppressed": len(held),
        "sessions": list(held),
    }


def _session(attempts: RunDirectory, name: str, note: str) -> dict[str, object]:
    """How it ended, and the last lines of its log."""
    number = attempts.latest(name) if name else 0
    end = attempts.end(name, number) if number else {}
    log = attempts.at(name, number).log if name else ""
    return {
        "session": name,
        "outcome": outcome_of(end).replace(" ", "_") if end else "",
        "cause": end.get("cause", ""),
        "class": end.get("class", ""),
        "note": f"{note}: {end['note']}" if end.get("note") else note,
        "log": log,
        "last_lines": notices.last_lines(files.tail(log, _LOG_TAIL)[0]) if log else [],
    }


def _totals(attempts: RunDirectory) -> dict[str, object]:
    """How many sessions are where in their life, and how far the whole run has come."""
    from comborun.host.queue import DROPPED, SMOKE, rows

    tally: dict[str, int] = dict.fromkeys(notices.COUNTED, 0)
    spans = []
    for row in rows(attempts.layout.queue):
        if row.flag in (DROPPED, SMOKE):
            continue
        number = attempts.latest(row.name)
        life = _life(attempts, row.name, number) if number else "queued"
        tally[life] += 1
        counts = attempts.told(row.name) if number else None
        made = (counts.records, counts.successes) if counts else (0, 0)
        first, count = _planned(attempts.layout.sheet(row.name))
        spans.append(notices.Span(row.name, first, count, *made, needed=life != "not_needed"))
    return {"counts": tally, **notices.sums(spans)}


def _life(attempts: RunDirectory, name: str, number: int) -> str:
    """Its outcome once it has ended for good."""
    life = attempts.glance(name, number).life
    if life != "ended":
        return "queued" if life == "queued" else "running"
    return "queued" if attempts.pending(name, number) else outcome_of(attempts.end(name, number)).replace(" ", "_")


def _planned(sheet: str) -> tuple[int, int]:
    """The first episode of a session and how many it is for."""
    try:
        data: dict[str, Any] = json.loads(files.read_text(sheet))
        return int(data.get("first", 0)), int(data.get("count", 0))
    except (ValueError, TypeError, AttributeError):
        return 0, 0
