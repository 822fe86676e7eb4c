"""What a run has told and counted already: dispatch/told.jsonl, a line for each end, each stall, and
each attempt of a model server that failed.

A line is written before the notice is sent and before the breaker counts: after a kill in between, nothing is told or
counted twice.
"""

from __future__ import annotations

import json

from comborun.host.system import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from comborun.rules.names import RunLayout

END, STALL, SERVER = "end", "stall", "server"


class Told:
    def __init__(self, layout: RunLayout) -> None:
        self._path = layout.told
        self._known = {_key(row) for row in files.read_rows(self._path)}
        self._unwritten = ""

    def knows(self, what: str, session: str, attempt: int) -> bool:
        return (what, session, str(attempt)) in self._known

    def first(self, what: str, session: str, attempt: int) -> bool:
        """Record it. False if it was recorded before. On a full disk it is in memory only, until there is room."""
        if self.knows(what, session, attempt):
            return False
        self._known.add((what, session, str(attempt)))
        self._unwritten += json.dumps({"what": what, "session": session, "attempt": attempt}) + "\n"
        if files.append(self._path, self._unwritten):
            self._unwritten = ""
        elif not self._unwritten.startswith("\n"):
            self._unwritten = f"\n{self._unwritten}"  # a part of it may have been written
        return True


def _key(row: dict[str, str]) -> tuple[str, str, str]:
    return row.get("what", ""), row.get("session", ""), row.get("attempt", "")
