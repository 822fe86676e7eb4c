"""A run's status for programs: one JSON document."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from comborun.monitor.slurm import Scheduler, Task
from comborun.monitor.snapshot import Server, Waiting
from comborun.monitor.status import Expected, RunStatus, SessionStatus

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
        "unreachable_since": None if status.link.reachable else status.link.since,
        "complaint": status.link.complaint or None,
        "last_seen_seconds": status.link.last_seen,
        "finished": status.finished,
        "stopped": status.stopped,
        "hold": asdict(status.hold) if status.hold else None,
        "quarantine": [asdict(one) for one in status.quarantine],
        "dispatcher": status.dispatcher,
        "slots": status.slots,
        "servers": [_server(one) | {"waits": status.server_waits.get(one.name)} for one in status.servers],
        "multiplexer": status.multiplexer or None,
        "slurm": _scheduler(status.scheduler),
        **asdict(status.use),
        "now": status.now,
        "started": status.started,
        "seconds": status.seconds,
        **_expected(status.expected),
        "episodes_done": status.done,
        "episodes_recorded": status.recorded,
        "episodes_planned": status.planned,
        "successes": status.successes,
        "counts": status.counts(),
        "smoke": status.smoke(),
        "sessions": [_session(session) for session in status.sessions],
        "after": _session(status.after) if status.after else None,
        "host_event": asdict(status.host_event) if status.host_event else None,
        "hint": status.hint or None,
        "unheard": status.notify_problem or None,
        "undecided": status.undecided or None,
    }


def to_json(status: RunStatus, *, indent: int | None = 1) -> str:
    """The document as text, in ASCII: nothing in it acts on a terminal. `indent` None: on one line, for a stream."""
    return json.dumps(document(status), indent=indent, allow_nan=False)


def _session(session: SessionStatus) -> dict[str, Any]:
    return {
        "name": session.name,
        "policy": session.policy,
        "environment": session.environment,
        "part": session.part or None,
        "extra": session.extra,
        "state": str(session.life),
        "outcome": str(session.outcome) if session.outcome else None,
        "attempt": session.attempt,
        "gpus": list(session.gpus),
        "window": session.window or None,
        "node": session.node or None,
        "task": _task(session.task),
        "episodes_done": session.done,
        "episodes_recorded": session.recorded,
        "uncounted": session.uncounted or None,
        "episodes_planned": session.planned,
        "unit": session.unit,
        "successes": session.successes,
        "idle_seconds": session.idle,
        "silent": session.silent,
        "progressed": session.progressed,
        "last_line": session.last_line,
        "started": session.started,
        "seconds": session.seconds,
        **_expected(session.expected),
        "stalled_since": session.stalled,
        "waiting": _waiting(session.waiting),
        "failure": str(session.failure) if session.failure else None,
        "peak_memory": session.peak_memory,
        "note": session.note,
    }


def _waiting(waiting: Waiting | None) -> dict[str, Any] | None:
    return {"for": waiting.reason, "until": waiting.until, "detail": waiting.detail} if waiting else None


def _scheduler(scheduler: Scheduler | None) -> dict[str, Any] | None:
    """None unless Slurm starts the sessions."""
    if scheduler is None:
        return None
    return {"answered": scheduler.answered, "last_answer": scheduler.at, "complaint": scheduler.why or None}


def _task(task: Task | None) -> dict[str, Any] | None:
    if task is None:
        return None
    fields = {"job": task.job, "attempt": task.attempt, "state": task.state, "reason": task.reason or None}
    return {**fields, "node": task.node or None, "start": task.start}


def _expected(end: Expected | None) -> dict[str, Any]:
    return {
        "estimated_end": end.likeliest if end else None,
        "estimated_end_range": [end.earliest, end.latest] if end else None,
    }


def _server(server: Server) -> dict[str, Any]:
    return asdict(server) | {"cause": server.cause or None, "why": server.why or None}
