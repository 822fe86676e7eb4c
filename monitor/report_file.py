"""The outcomes of a run's report, where it has been made: it reads formats that the host does not count."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

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


def as_reported(seen: RunStatus, source: Path) -> RunStatus:
    """The run with the outcomes and numbers of its latest report where that came to others.

    `source` is the run's copy on this machine; a report that can't be read changes nothing.
    """
    try:
        document = json.loads((source.expanduser() / _REPORT).read_text("utf-8"))
        combos = {(one["policy"], one["environment"]): one for one in document["combos"]}
        attempts = {(one["session"], one["attempt"]) for one in document["attempts"] if one["ended"]}
    except (OSError, ValueError, KeyError, TypeError):
        return seen
    if document.get("run") != seen.run:
        return seen
    report = Reported(combos, frozenset(attempts))
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
