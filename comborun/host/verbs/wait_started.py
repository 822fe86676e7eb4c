"""`begun RUN SECONDS`: waits until the first session begins.

0: one has begun. 1: none began within that time, the run is halted, or it is over. 66: no run directory. 75: none has
begun, and the first ones have waited for resources of the host for two seconds.
"""

from __future__ import annotations

import glob
import os
import time

from comborun.host.record.holds import Holds
from comborun.host.system import files
from comborun.host.system.changes import Changes
from comborun.host.verb_errors import USAGE, Refusal, answer
from comborun.rules import records
from comborun.rules.holds import HALTED
from comborun.rules.host import Denial
from comborun.rules.names import RunLayout
from comborun.rules.room.waits import PASSES, waits_for

_SETTLED_S, _OVERLOOKED_S = 2.0, 0.1
BEGUN, NOT_BEGUN, WAITS = 0, 1, 75


def main(arguments: list[str]) -> int:
    return answer("begun", _begun, arguments)


def _begun(arguments: list[str]) -> int:
    run, word = (*arguments, "", "")[:2]
    layout = RunLayout(run)
    try:
        return _first(layout, float(word))
    except ValueError:
        raise Refusal(USAGE, Denial.USAGE, usage="RUN SECONDS") from None


def _first(layout: RunLayout, seconds: float) -> int:
    """The exit code, when a session begins, when none will, or when the first ones wait for room."""
    holds, run = Holds(layout), RunLayout(glob.escape(layout.directory)).attempt("*", "*")
    deadline, waits_since = time.monotonic() + seconds, 0.0
    with Changes(layout.dispatch) as changes:
        while True:
            now = time.monotonic()
            over = now >= deadline or os.path.exists(layout.done) or holds.look().kind == HALTED
            if _any(run.begin):  # checked last: a session that has ended meanwhile had begun
                return BEGUN
            if over:
                return NOT_BEGUN
            waits_since = (waits_since or now) if _waits(layout) else 0.0
            if waits_since and now - waits_since >= _SETTLED_S:
                return WAITS
            changes.wait(min(deadline - now, _OVERLOOKED_S))


def _waits(layout: RunLayout) -> bool:
    """Whether a session waits for room, by this dispatcher's word, and none is starting."""
    try:
        if os.stat(layout.waiting).st_mtime_ns <= os.stat(layout.dispatcher).st_mtime_ns:
            return False
    except OSError:
        return False
    waits = [fact for row in files.read_rows(layout.waiting) for fact in records.facts(row)]
    started = RunLayout(glob.escape(layout.directory)).attempt("*", "*").grant
    return any(waits_for(wait) in PASSES for wait in waits) and not _any(started)


def _any(pattern: str) -> bool:
    return any(True for _ in glob.iglob(pattern))
