"""The outcomes of a run's report, where it has been made: it reads formats that the host does not count."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comborun.remote.transport import LOCAL
from comborun.rules.words import Life, Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comborun.monitor.status import RunStatus, SessionStatus


_REPORT = Path("report", "final_benchmark_report.json")


@dataclass(frozen=True)
class Reported:
    """What a report says of each combo, and which attempts it had seen the end of."""

    combos: Mapping[tuple[str, str], Mapping[str, Any]]
    attempts: frozenset[tuple[str, int]]

    def knows(self, session: SessionStatus) -> bool:
        """Whether it tells of this session alone, as it is: else the combo's outcome is that of several."""
        ended = session.life is Life.ENDED and not session.part
        return ended and (session.name, session.attempt) in self.attempts


def last_report(host: str, run: str, directory: str) -> Reported | None:
    """The latest report of a run that is on this machine; None where there is none that can be read."""
    from comborun.remote.fetch import mirror_directory

    source = Path(directory) if host == LOCAL else mirror_directory(host, run)
    try:
        document = json.loads((source.expanduser() / _REPORT).read_text("utf-8"))
        combos = {(one["policy"], one["environment"]): one for one in document["combos"]}
        seen = {(one["session"], one["attempt"]) for one in document["attempts"] if one["ended"]}
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return Reported(combos, frozenset(seen)) if document.get("run") == run else None


def as_reported(seen: RunStatus, report: Reported | None) -> RunStatus:
    """The run with the outcomes and numbers of its report where that came to others."""
    if report is None or not seen.finished:
        return seen
    return replace(seen, sessions=tuple(_as_reported(one, report) for one in seen.sessions))


def _as_reported(session: SessionStatus, report: Reported) -> SessionStatus:
    combo = report.combos.get((session.policy, session.environment)) if report.knows(session) else None
    if combo is None:
        return session
    outcome = combo.get("outcome")
    if outcome in set(Outcome) and outcome != session.outcome:
        note = f"by its records, as the report says; the host took it for {session.outcome}"
        session = replace(session, outcome=Outcome(outcome), note="; ".join(filter(None, (note, session.note))))
    completed, errored, successes = (combo.get(key) for key in ("completed", "errored", "successes"))
    if session.recorded is None or not (isinstance(completed, int) and isinstance(errored, int)):
        return session
    done = min(completed + errored, session.planned) if session.planned else completed + errored
    return replace(session, done=done, recorded=completed, successes=successes)
