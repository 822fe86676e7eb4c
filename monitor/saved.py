"""Data of a run on this machine: its last probe, shown while the host does not answer, and its report."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comborun.errors import HostError
from comborun.monitor.observe import RunView
from comborun.plan import Plan
from comborun.remote.runs import copy_of
from comborun.remote.transport import LOCAL
from comborun.rules.names import RUN
from comborun.rules.words import Life, Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comborun.monitor.status import RunStatus, SessionStatus

_LOOK = ".look"
_REPORT = Path("report", "final_benchmark_report.json")
_EVERY_S = 60.0
_SESSIONS = 1000
"""the time between complete looks grows by a minute for so many sessions"""


@dataclass(frozen=True)
class SavedLook:
    """The last complete probe."""

    view: RunView
    answer: bytes
    """the answer to a probe that requested everything"""
    at: float
    """seconds since 1970, on this machine's clock"""


def is_due(view: RunView, *, done: bool = False) -> bool:
    """Whether the next look should request everything, so that it can be saved; `done`: it is the last one."""
    if view.host == LOCAL:
        return False
    try:
        age = time.time() - _place(view.host, view.id, view.directory).stat().st_mtime
    except FileNotFoundError:
        return True
    except (OSError, HostError):  # it can't be saved
        return False
    return done or not 0 <= age < _EVERY_S * (1 + len(view.plan.sessions) / _SESSIONS)


def save(view: RunView, answer: bytes) -> None:
    """Save a complete look at a run. A full disk is no error."""
    if view.host == LOCAL:
        return
    try:
        place = _place(view.host, view.id, view.directory)
        place.parent.mkdir(parents=True, exist_ok=True)
        draft = place.with_name(f"{_LOOK}-{os.getpid()}")
        head = {"directory": view.directory, "number": view.number, "at": time.time(), "plan": view.plan.to_json()}
        draft.write_bytes(json.dumps(head).encode() + b"\n" + answer)
        draft.replace(place)
    except (OSError, HostError):
        return


def last_look(host: str, run: str, directory: str) -> SavedLook | None:
    """The saved look at a run, or None."""
    try:
        head, _, answer = _place(host, run, directory).read_bytes().partition(b"\n")
        fields = json.loads(head)
        view = RunView(run, host, fields["directory"], Plan.from_json(fields["plan"]), int(fields["number"]))
        return SavedLook(view, answer, float(fields["at"]))
    except (OSError, ValueError, KeyError, TypeError, HostError):
        return None


def _place(host: str, run: str, directory: str) -> Path:
    return copy_of(host, run, directory) / _LOOK


def as_reported(seen: RunStatus, source: Path, plan: int) -> RunStatus:
    """The run, with outcomes and numbers from its latest report where they differ. `source` is the run's copy here.

    A report that can't be read, or is older than the newest plan (number `plan`), is ignored. A session is unchanged if
    its combo has several, or if the report has not seen its end.
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
