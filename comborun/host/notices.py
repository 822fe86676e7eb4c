"""Runs the grid's `notify` command with its input, without waiting for it."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time

from comborun.host import chain, children, commands, files
from comborun.host.attempts import word_of
from comborun.host.process import setting
from comborun.rules import notices

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence

    from comborun.host.attempts import RunDirectory
    from comborun.host.children import Child

_LOG_TAIL = 16384


class Notices:
    """The notices of a run: at most one per kind in `every`, and always one when the run is done."""

    def __init__(self, attempts: RunDirectory, journal: Callable[[str], None]) -> None:
        self._attempts = attempts
        self._journal = journal
        self._folder = attempts.layout.dispatch
        self._kinds: Sequence[str] = ()
        self._throttle = notices.Throttle(0)
        self.children: list[Child] = []

    def open(self) -> None:
        """Read the policy and dispatch/notified."""
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
        """Send notices that were held back, when they are due."""
        for kind in self._throttle.due(time.time()):
            latest = self._throttle.held[kind][-1]
            self._send(kind, "" if latest == "-" else latest, "held back before")

    def _send(self, kind: str, who: str, note: str) -> None:
        """Send a notice in its own process; it counts as sent when that is on record."""
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
    """Run the command with a notice on its standard input; returns its exit code. The end of its output is printed."""
    notice = _build(attempts, kind, who, note, held)
    longest = setting("COMBORUN_NOTIFY_S", 60.0)
    words, text = ("bash", attempts.layout.notify), (json.dumps(notice) + "\n").encode()
    code, printed = commands.run(longest, *words, errors=True, stdin=text)
    with contextlib.suppress(OSError):  # the reader of a test notice may be gone
        sys.stdout.write(f"{printed}\n" if printed else "")
        sys.stdout.flush()
    failed = f"{attempts.layout.dispatch}/notify.failed"
    code = code if code >= 0 else 128 - code
    if not code:
        files.remove(failed)
        return code
    files.write(failed, [("code", code), ("at", round(time.time(), 6))])  # kept until a notice succeeds
    said = f"was ended: it took longer than {longest:g} s" if code == commands.NO_ANSWER else f"ended with code {code}"
    sys.stderr.write(f"notify: the command {said}\n")
    sys.stderr.flush()
    return code


def _build(attempts: RunDirectory, kind: str, who: str, note: str, held: Sequence[str]) -> dict[str, object]:
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
    """How a session ended, and the last lines of its log."""
    number = attempts.latest(name) if name else 0
    end = attempts.end(name, number) if number else {}
    log = attempts.at(name, number).log if name else ""
    return {
        "session": name,
        "outcome": word_of(end) if end else "",
        "cause": end.get("cause", ""),
        "class": end.get("class", ""),
        "note": note if end.get("note", "") in note else f"{note}: {end['note']}",
        "log": log,
        "last_lines": notices.last_lines(files.tail(log, _LOG_TAIL)[0]) if log else [],
    }


def _totals(attempts: RunDirectory) -> dict[str, object]:
    """The number of sessions in each state, and the sums of the run."""
    from comborun.host.queue import DROPPED, SMOKE, rows

    tally: dict[str, int] = dict.fromkeys(notices.COUNTED, 0)
    spans = []
    for row in rows(attempts.layout.queue):
        if row.flag in (DROPPED, SMOKE):
            continue
        number = attempts.latest(row.name)
        life = _life(attempts, row.name, number) if number else "queued"
        tally[life] += 1
        counts = chain.joined_counts(attempts, row.name) if number else None
        made = (counts.records, counts.successes) if counts else (0, 0)
        first, count = _planned(attempts.layout.session_json(row.name))
        spans.append(notices.Span(row.name, first, count, *made, needed=life != "not_needed"))
    return {"counts": tally, **notices.sums(spans)}


def _life(attempts: RunDirectory, name: str, number: int) -> str:
    """Its outcome if it has ended for good, else its state."""
    life = attempts.glance(name, number).life
    if life != "ended":
        return "queued" if life == "queued" else "running"
    return "queued" if attempts.follows(name, number) else word_of(attempts.end(name, number))


def _planned(path: str) -> tuple[int, int]:
    """The first episode of a session, and the number of its episodes."""
    try:
        data: dict[str, Any] = json.loads(files.read_text(path))
        return int(data.get("first", 0)), int(data.get("count", 0))
    except (ValueError, TypeError, AttributeError):
        return 0, 0
