"""Takes outcomes from a run's report, if there is one: it reads formats that the host does not count."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comborun.rules.names import RUN
from comborun.rules.words import Life, Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comborun.monitor.status import RunStatus, SessionStatus

_REPORT = Path("report", "final_benchmark_report.json")


def as_reported(seen: RunStatus, source: Path, plan: int) -> RunStatus:
    """The run with the outcomes and numbers of its latest report where that came to others.

    `source` is the run's copy on this machine; a report that can't be read, or that is older than the newest plan
    (number `plan`), changes nothing. A session that is one of several of its combo stays as it is, and so does one of
    which the report has not seen the end.
    """
    source = source.expanduser()
    try:
        if (source / RUN.plan(plan)).stat().st_mtime > (source / _REPORT).stat().st_mtime:
            return seen
        document = json.loads((source / _REPORT).read_text("utf-8"))
        combos = {(one["policy"], one["environment"]): one for one in document["combos"]}
        attempts = {(one["session"], one["attempt"]) for one in document["attempts"] if one["ended"]}
    except (OSError, ValueError, KeyError, TypeError):
        return seen
    if document.get("run") != seen.run:
        return seen

    def reported(one: SessionStatus) -> SessionStatus:
        known = one.life is Life.ENDED and not one.part and (one.name, one.attempt) in attempts
        combo = combos.get((one.policy, one.environment)) if known else None
        return _as_reported(one, combo) if combo else one

    return replace(seen, sessions=tuple(map(reported, seen.sessions)))


def _as_reported(session: SessionStatus, combo: Mapping[str, Any]) -> SessionStatus:
    outcome = combo.get("outcome")
    if outcome in set(Outcome) and outcome != session.outcome:
        note = f"by its records, as the report says; the host took it for {session.outcome}"
        session = replace(session, outcome=Outcome(outcome), note="; ".join(filter(None, (note, session.note))))
    completed, errored, successes = (combo.get(key) for key in ("completed", "errored", "successes"))
    if session.recorded is None or not (isinstance(completed, int) and isinstance(errored, int)):
        return session
    done = completed + errored + combo.get("measured", 0)
    done = min(done, session.planned) if session.planned else done
    return replace(session, done=done, recorded=completed, successes=successes)
