"""Holds: while dispatch/hold exists, nothing new starts in a run. Also when a user last resumed the run, and
whether it is over.

With `paused` the dispatcher stays. With `draining` (by a user) and `halted` (by the dispatcher) it leaves when nothing
runs any more. A hold ends no session.
"""

from __future__ import annotations

import os
import time

from comborun.host.record.deals import deal_of
from comborun.host.system import files
from comborun.rules import records
from comborun.rules.facts import Fact
from comborun.rules.holds import KINDS
from comborun.rules.names import RunLayout
from comborun.rules.run_files import attempts_of


def over(run: RunLayout) -> bool:
    """Whether the run has ended, and all ends of its sessions are still there: what lacks one runs again."""
    if not os.path.exists(run.done):
        return False
    deal = deal_of(run)
    names = [str(row.get("name")) for row in files.read_rows(run.queue) if row.get("flag") != "dropped"]
    names = [name for name in names if deal is None or deal.runs_here(name)]
    attempts = ([run.attempt(name, number) for number in attempts_of(run, name)] for name in names)
    return all(found and all(os.path.exists(at.end) for at in found) for found in attempts)


class Hold:
    """A hold; `kind` is empty without one. `why`: words of the former version, which wrote no facts."""

    __slots__ = ("at", "kind", "reason", "why")

    def __init__(self, kind: str = "", reason: Fact | None = None, at: str = "", why: str = "") -> None:
        self.kind = kind
        self.reason = reason
        self.at = at
        self.why = why

    @property
    def words(self) -> str:
        from comborun.words import say  # supervisors start faster without it

        return say(self.reason) if self.reason else self.why

    def told(self, run: RunLayout) -> str:
        """The sentence for a person, with the command that lets the run go on."""
        import shlex  # slow to import, as above

        again = shlex.join(("bash", run.front, "resume"))
        return f"the run is {self.kind} ({self.words}). To resume: {again}"

    def as_data(self) -> dict[str, object]:
        return {"kind": self.kind, "at": self.at, "reason": self.reason and self.reason.as_data(), "why": self.why}


class Holds:
    def __init__(self, run: RunLayout) -> None:
        self._hold, self._resumed = run.hold, run.resumed
        self.resumed = 0.0
        """when a user last resumed the run, in seconds since 1970; 0 for never"""

    def look(self) -> Hold:
        record = files.read(self._hold)
        kind = record.get("kind", "")
        if kind not in KINDS:
            return Hold()
        reason = record.get(records.REASON)
        return Hold(kind, reason if isinstance(reason, Fact) else None, record.get("at", ""), record.get("why", ""))

    def order(self, kind: str, reason: Fact) -> bool:
        """Hold the run; False when that can't be written."""
        return files.write(self._hold, [("kind", kind), ("at", round(time.time(), 6)), (records.REASON, reason)])

    def read_resumed(self) -> None:
        self.resumed = records.seconds(files.read(self._resumed), "at") or 0.0

    def forgiven(self, ended: str) -> bool:
        """Whether an end at that time of day came before the user last resumed the run."""
        at = records.seconds({"at": ended}, "at")
        return at is not None and 0 < at <= self.resumed
