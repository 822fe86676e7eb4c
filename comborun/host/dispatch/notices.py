"""Runs the grid's `notify` command with a notice as its input, without waiting for it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import time
from collections.abc import Iterable, Sequence

from comborun.host.record.events import Events
from comborun.host.record.run_directory import RunDirectory
from comborun.host.record.totals import totals
from comborun.host.system import children, commands, files
from comborun.host.system.children import Child
from comborun.host.system.files import Json
from comborun.host.system.process import setting
from comborun.rules import counting, records
from comborun.rules.events import Kind
from comborun.rules.facts import Fact
from comborun.rules.holds import Notice
from comborun.rules.names import NAME
from comborun.rules.vocabulary import outcome_of
from comborun.words import say
from comborun.words.endings import said

_LOG_TAIL = 16384
LIMITED = ("failed", "stalled", "host")
"""kinds that are sent at most once in a while; `finished` is always sent"""
_WHO = re.compile(f"{NAME}|-")
_LINES_MOST = 20
_LINE_MOST = 500


class Throttle:
    """When a notice of each kind was last sent, and which sessions were held back since; `-` stands for the run itself.

    Times are seconds since 1970, as in dispatch/notified. A clock that was set back makes no wait longer than `every`.
    """

    def __init__(self, every: float, rows: Iterable[Json] = ()) -> None:
        self.every = every
        self.sent_at: dict[str, float] = {}
        self.held: dict[str, list[str]] = {}
        for row in rows:
            kind, at = row.get("kind"), records.seconds(row, "at")
            if kind in LIMITED and at is not None:
                self.sent_at[kind] = at
                self.held[kind] = [who for who in records.texts(row, "held") if _WHO.fullmatch(who)]

    def waits(self, kind: str, now: float) -> bool:
        if kind not in LIMITED or kind not in self.sent_at:
            return False
        return 0 <= now - self.sent_at[kind] < self.every

    def hold_back(self, kind: str, who: str) -> None:
        self.held.setdefault(kind, []).append(who or "-")

    def send(self, kind: str, now: float) -> list[str]:
        """Mark a notice as sent. Returns the sessions to name in it: those held back; for the last notice all."""
        if kind in LIMITED:
            self.sent_at[kind] = now
            return self.held.pop(kind, [])
        held = list(dict.fromkeys(who for names in self.held.values() for who in names))
        self.held.clear()
        return held

    def due(self, now: float) -> list[str]:
        """The kinds with notices held back that may be sent now."""
        return [kind for kind, names in self.held.items() if names and not self.waits(kind, now)]

    def rows(self) -> list[Json]:
        return [{"kind": kind, "at": at, "held": self.held.get(kind, [])} for kind, at in self.sent_at.items()]


class Notices:
    """The notices of a run: at most one per kind in `every`, and always one when the run is done."""

    def __init__(self, attempts: RunDirectory, events: Events) -> None:
        self._attempts = attempts
        self._events = events
        self._layout = attempts.layout
        self._kinds: Sequence[str] = ()
        self._throttle = Throttle(0)
        self.children: list[Child] = []

    def open(self) -> None:
        """Read the policy and dispatch/notified."""
        policy = self._attempts.policy
        self._kinds = policy.get("notify_kinds", "").split(",")
        every = int(policy["notify_every_ms"]) / 1000
        self._throttle = Throttle(every, files.read_rows(self._layout.notified))

    def tell(self, kind: str, who: str, what: Fact) -> None:
        if kind not in self._kinds or not os.path.exists(self._attempts.layout.notify):
            return
        self._events.write(Kind.NOTICE, who, notice=kind, reason=what)
        if self._throttle.waits(kind, time.time()):
            self._throttle.hold_back(kind, who)
            self._write()
        else:
            self._send(kind, who, what)

    def flush(self) -> None:
        """Send notices that were held back, when they are due."""
        for kind in self._throttle.due(time.time()):
            latest = self._throttle.held[kind][-1]
            self._send(kind, "" if latest == "-" else latest, Fact(Notice.HELD_BACK))

    def _send(self, kind: str, who: str, what: Fact) -> None:
        """Send a notice in its own process; it counts as sent when that is on record."""
        held = self._throttle.send(kind, time.time())
        self._write()
        self.children = [child for child in self.children if child.poll() is None]
        try:
            with open(self._layout.notify_output, "ab") as out, open(os.devnull, "rb") as null:
                streams = null.fileno(), out.fileno(), out.fileno()
                child = children.fork(lambda: hand_over(self._attempts, kind, who, what, held), streams)
        except OSError as error:
            self._events.write(Kind.NOTICE_FAILED, who, notice=kind, error=error.strerror)
        else:
            self.children.append(child)

    def _write(self) -> None:
        files.write_rows(self._layout.notified, self._throttle.rows())


def hand_over(attempts: RunDirectory, kind: str, who: str, what: Fact, held: Sequence[str] = ()) -> int:
    """Run the command with a notice on its standard input; returns its exit code. The end of its output is printed."""
    notice = _build(attempts, kind, who, what, held)
    longest = setting("COMBORUN_NOTIFY_S", 60.0)
    words, text = ("bash", attempts.layout.notify), (json.dumps(notice) + "\n").encode()
    code, printed = commands.run(longest, *words, errors=True, stdin=text)
    with contextlib.suppress(OSError):  # the reader of a test notice may be gone
        sys.stdout.write(f"{printed}\n" if printed else "")
        sys.stdout.flush()
    failed = attempts.layout.notify_failed
    code = code if code >= 0 else 128 - code
    if not code:
        files.remove(failed)
        return code
    files.write(failed, [("code", code), ("at", round(time.time(), 6))])  # kept until a notice succeeds
    said = f"was ended: it took longer than {longest:g} s" if code == commands.NO_ANSWER else f"ended with code {code}"
    sys.stderr.write(f"notify: the command {said}\n")
    sys.stderr.flush()
    return code


def _build(attempts: RunDirectory, kind: str, who: str, what: Fact, held: Sequence[str]) -> dict[str, object]:
    quoted = "'" + attempts.path.replace("'", "'\\''") + "'"
    return {
        "schema": 1,
        "kind": kind,
        "run": attempts.id,
        "grid": attempts.id.rpartition("-")[0].rpartition("-")[0],
        "host": os.uname().nodename,
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "directory": attempts.path,
        **_session(attempts, who, what),
        "fact": what.as_data(),
        **totals(attempts),
        "resume": f"bash {quoted}/run_parallel.sh resume",
        "view": f"combo view {attempts.id}",
        "suppressed": len(held),
        "sessions": list(held),
    }


def _session(attempts: RunDirectory, name: str, what: Fact) -> dict[str, object]:
    """How a session ended, and the last lines of its log."""
    number = attempts.latest(name) if name else 0
    end = attempts.end(name, number) if number else {}
    told = "note" in what.fields or what.fields.get(records.ENDING)  # the fact says how it ended
    note = "" if told else said(end)
    log = attempts.at(name, number).log if name else ""
    return {
        "session": name,
        "outcome": outcome_of(end) if end else "",
        "cause": end.get("cause", ""),
        "class": end.get("class", ""),
        "note": f"{say(what)}: {note}" if note else say(what),
        "log": log,
        "last_lines": last_lines(files.tail(log, _LOG_TAIL)[0]) if log else [],
    }


def last_lines(data: bytes) -> list[str]:
    """The last lines of a log as a terminal would show them: after a carriage return, the newest text."""
    text = data.replace(b"\0", b"").decode("utf-8", "ignore")
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return [_seen(line)[:_LINE_MOST] for line in lines[-_LINES_MOST:]]


def _seen(line: str) -> str:
    return "".join(char for char in counting.shown(line) if char == "\t" or (char >= " " and char != "\x7f"))
