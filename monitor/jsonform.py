"""A run's status for programs: one JSON document."""

from __future__ import annotations

import json
from typing import Any

from monitor.status import RunStatus, SessionStatus

SCHEMA = 1


def document(status: RunStatus) -> dict[str, Any]:
    """The document of `--json`; times are seconds since 1970 on the host's clock."""
    return {
        "schema": SCHEMA,
        "run": status.run,
        "grid": status.grid,
        "host": status.host,
        "directory": status.directory,
        "reachable": status.link.reachable,
        "last_seen_seconds": status.link.last_seen,
        "finished": status.finished,
        "stopped": status.stopped,
        "dispatcher": status.dispatcher,
        "slots": status.slots,
        "multiplexer": status.multiplexer or None,
        "load": status.load,
        "cpus": status.cpus,
        "now": status.now,
        "started": status.started,
        "seconds": status.seconds,
        "estimated_end": status.estimated_end,
        "episodes_done": status.done,
        "episodes_planned": status.planned,
        "successes": status.successes,
        "counts": status.counts(),
        "sessions": [_session(session) for session in status.sessions],
        "after": _session(status.after) if status.after else None,
        "hint": status.hint or None,
    }


def to_json(status: RunStatus, *, indent: int | None = 1) -> str:
    """The document as text, in ASCII: nothing in it acts on a terminal. `indent` None: on one line, for a stream."""
    return json.dumps(document(status), indent=indent, allow_nan=False)


def _session(session: SessionStatus) -> dict[str, Any]:
    return {
        "name": session.name,
        "policy": session.policy,
        "environment": session.environment,
        "state": str(session.life),
        "outcome": str(session.outcome) if session.outcome else None,
        "attempt": session.attempt,
        "episodes_done": session.done,
        "episodes_planned": session.planned,
        "unit": session.unit,
        "successes": session.successes,
        "idle_seconds": session.idle,
        "last_line": session.last_line,
        "started": session.started,
        "seconds": session.seconds,
        "estimated_end": session.estimated_end,
        "note": session.note,
    }
