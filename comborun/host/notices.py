"""The grid's `notify` command: when it is run, what it is told, and that nobody waits for it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time

from comborun.host import children, files
from comborun.rules import names, notices

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Callable, Sequence

    from comborun.host.attempts import RunDirectory
    from comborun.host.children import Child

_OUTPUT_MOST = 65536
"""bytes of what the command prints that are kept: the folder of the run is no place for a gigabyte of it"""
_LINGER_S = 1.0
"""what the command has left behind may hold its output open for ever"""
_TERM_S = 5.0
_LOG_TAIL = 16384


class Notices:
    """News of a run: at most once for each kind in a while, and always when the run is done."""

    def __init__(self, attempts: RunDirectory, journal: Callable[[str], None]) -> None:
        self._attempts = attempts
        self._journal = journal
        self._run = names.RunLayout(attempts.path)
        self._file = f"{self._run.dispatch}/notified"
        self._kinds: Sequence[str] = ()
        self._throttle = notices.Throttle(0)
        self.children: list[Child] = []

    def open(self) -> None:
        """As the policy and dispatch/notified tell."""
        policy = self._attempts.policy
        self._kinds = policy.get("notify_kinds", "").split(",")
        self._throttle = notices.Throttle(int(policy["notify_every_ms"]) / 1000, files.read_text(self._file))

    def tell(self, kind: str, who: str, note: str) -> None:
        if kind not in self._kinds or not os.path.exists(self._run.notify):
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
            self.children.append(
                children.fork(
                    lambda: hand_over(self._attempts, kind, who, note, held), f"{self._run.dispatch}/notify.out"
                )
            )
        except OSError as error:
            self._journal(f"no-notice {kind} {error.strerror}")

    def _write(self) -> None:
        files.write_text(self._file, self._throttle.rows())


def hand_over(attempts: RunDirectory, kind: str, who: str, note: str, held: Sequence[str] = ()) -> int:
    """Run the command with a notice on its standard input; its code. What it prints goes on, up to a bound."""
    told = build(attempts, kind, who, note, held)
    longest = float(os.environ.get("COMBORUN_NOTIFY_S", "60"))
    code = _run(["bash", f"{attempts.path}/dispatch/notify.sh"], (json.dumps(told) + "\n").encode(), longest)
    failed = f"{attempts.path}/dispatch/notify.failed"
    if code:  # that the latest notice was not taken stays on record until one is
        files.write(failed, [("code", code), ("at", round(time.time(), 6))])
        why = f"took longer than {longest:g} s" if code == _TOO_LONG else ""
        said = f"was ended: it {why}" if why else f"ended with code {code}"
        sys.stderr.write(f"notify: the command {said}\n")
        sys.stderr.flush()
    else:
        files.remove(failed)
    return code


_TOO_LONG = 124


def _run(command: list[str], text: bytes, longest: float) -> int:
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )
    assert process.stdin
    assert process.stdout
    pump = _Pump(process.stdin, process.stdout, text)
    deadline, code = time.monotonic() + longest, None
    while process.poll() is None and time.monotonic() < deadline:
        pump.turn(min(deadline - time.monotonic(), 0.1))
    if process.poll() is None:
        code = _TOO_LONG
        for number, wait in ((signal.SIGTERM, _TERM_S), (signal.SIGKILL, _LINGER_S)):
            _signal(process.pid, number)
            if pump.until(lambda: process.poll() is not None, wait):
                break
    pump.until(lambda: pump.over, _LINGER_S)
    returned = process.poll()
    if code is not None:
        return code
    return 128 - returned if returned is not None and returned < 0 else int(returned or 0)


def _signal(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except OSError:
        return


class _Pump:
    """Hands text to a program and passes on what it prints; neither of the two may hold up the other."""

    def __init__(self, to: IO[bytes], of: IO[bytes], text: bytes) -> None:
        self._to, self._of, self._text = to, of, text
        self._kept = 0
        self.over = False
        for pipe in (to, of):
            os.set_blocking(pipe.fileno(), False)

    def until(self, condition: Callable[[], bool], seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while not condition() and time.monotonic() < deadline:
            self.turn(0.05)
        return condition()

    def turn(self, seconds: float) -> None:
        readers = [] if self.over else [self._of]
        readable, writable, _ = select.select(readers, [] if self._to.closed else [self._to], [], max(seconds, 0))
        if writable:
            self._feed()
        if readable:
            self._pass_on()

    def _feed(self) -> None:
        try:
            self._text = self._text[os.write(self._to.fileno(), self._text) :]
        except OSError:
            self._text = b""
        if not self._text:
            with contextlib.suppress(OSError):
                self._to.close()

    def _pass_on(self) -> None:
        try:
            data = os.read(self._of.fileno(), 65536)
        except OSError:
            return
        self.over = not data
        kept = data[: _OUTPUT_MOST - self._kept]
        self._kept += len(kept)
        try:
            os.write(1, kept)
        except OSError:
            return  # who asked for a test may be gone


def build(attempts: RunDirectory, kind: str, who: str, note: str, held: Sequence[str]) -> dict[str, object]:
    """A notice, read off the files of the run."""
    path = attempts.path
    run = {
        "id": attempts.id,
        "host": os.uname().nodename,
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "directory": path,
        "resume": f"bash {quoted(path)}/run_parallel.sh resume",
    }
    return notices.contents(kind, run, _session(attempts, who, note), _totals(attempts), held)


def quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def _session(attempts: RunDirectory, name: str, note: str) -> dict[str, object]:
    """How it ended, and the last lines of its log."""
    end: dict[str, str] = {}
    log = outcome = ""
    if name:
        from comborun.host.attempts import outcome_of

        number = attempts.latest(name)
        log = attempts.at(name, number).log
        end = attempts.end(name, number)
        outcome = outcome_of(end).replace(" ", "_") if end else ""
        note += f": {end['note']}" if end.get("note") else ""
    said = {"session": name, "outcome": outcome, "cause": end.get("cause", ""), "class": end.get("class", "")}
    return {**said, "note": note, "log": log, "last_lines": notices.last_lines(_tail(log)) if log else []}


def _tail(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _LOG_TAIL))
            return file.read(_LOG_TAIL)
    except OSError:
        return b""


def _totals(attempts: RunDirectory) -> dict[str, object]:
    """How many sessions are where in their life, and how far the whole run has come."""
    from comborun.host.attempts import outcome_of
    from comborun.host.queue import DROPPED, SMOKE, rows

    tally: dict[str, int] = dict.fromkeys(notices.COUNTED, 0)
    spans = []
    for row in rows(files.read_text(f"{attempts.path}/dispatch/queue.tsv", 1 << 26)):
        if row.flag in (DROPPED, SMOKE):
            continue
        number = attempts.latest(row.name)
        life = attempts.glance(row.name, number).life if number else "queued"
        if life == "ended":
            life = outcome_of(attempts.end(row.name, number)).replace(" ", "_")
            life = "queued" if attempts.pending(row.name, number) else life
        elif life != "queued":
            life = "running"
        tally[life] += 1
        counts = attempts.told(row.name) if number else None
        first, count = planned(attempts.path, row.name)
        made = (counts.records, counts.successes) if counts else (0, 0)
        spans.append(notices.Span(row.name, first, count, made[0], made[1], life != "not_needed"))
    return {"counts": tally, **notices.sums(spans)}


def planned(path: str, name: str) -> tuple[int, int]:
    """The first episode of a session and how many it is for, as its script or its data say."""
    told = {"first": 0, "count": 0}
    text = files.read_text(f"{path}/sessions/{name}/session.json")
    if text:
        data = json.loads(text)
        return int(data.get("first", 0)), int(data.get("count", 0))
    for line in files.read_text(f"{path}/sessions/{name}/session.sh").split("\n"):
        key, _, value = line.partition("=")
        if key in told and value.isdecimal() and len(value) < 10:
            told[key] = int(value)
        if key == "count":
            break
    return told["first"], told["count"]
