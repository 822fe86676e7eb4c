"""The JSON document of `--json`. Times are seconds since 1970 on the host's clock."""

from __future__ import annotations

import json
from operator import attrgetter
from typing import Any

from comborun.model.codec import as_data, chosen
from comborun.monitor.columns import COLUMNS
from comborun.monitor.snapshot import Waiting
from comborun.monitor.status import RunStatus, SessionStatus
from comborun.rules.facts import data_of
from comborun.words import say
from comborun.words.endings import in_words

SCHEMA = 1
"""version of the document"""
_TASK = ("job", "attempt", "state", "reason", "node", "start")


def document(status: RunStatus) -> dict[str, Any]:
    """The document of `--json`; times are seconds since 1970 on the host's clock."""
    scheduler, link, end = status.scheduler, status.link, status.expected
    return {
        "schema": SCHEMA,
        **chosen(status, "run", "grid", "host", "directory"),
        "reachable": link.reachable,
        "unreachable_since": None if link.reachable else link.since,
        "complaint": link.complaint or None,
        "last_seen_seconds": link.last_seen,
        "hold": status.hold and chosen(status.hold, "kind", "since", words="why", reason="fact"),
        **chosen(status, "finished", "stopped", "quarantine", "closed", "dispatcher", "slots"),
        "servers": [
            _or_null(as_data(one) | {"why": in_words(one.why, one.ending)}, "cause", "why")
            | _waits(status.server_waits.get(one.name))
            for one in status.servers
        ],
        "slurm": scheduler and _or_null(chosen(scheduler, "answered", at="last_answer", why="complaint"), "complaint"),
        **as_data(status.use),
        **chosen(status, "now", "started", "seconds", "successes", outage="host_event"),
        "estimated_end": end and end.likeliest,
        "estimated_end_range": end and [end.earliest, end.latest],
        **chosen(status, done="episodes_done", recorded="episodes_recorded", planned="episodes_planned"),
        "counts": status.counts(),
        "smoke": status.smoke(),
        "sessions": [_session(session) for session in status.sessions],
        "after": _session(status.after) if status.after else None,
        **_or_null(chosen(status, "multiplexer", "undecided")),
        "hint": status.advice and say(status.advice),
        "unheard": status.notify_problem and say(status.notify_problem),
        "facts": data_of(filter(None, (status.advice, status.notify_problem))),
    }


def to_json(status: RunStatus, *, indent: int | None = 1) -> str:
    """The document as text, in ASCII, so that no terminal interprets it. `indent` None: on one line, for a stream."""
    return json.dumps(document(status), indent=indent, allow_nan=False)


def _session(session: SessionStatus) -> dict[str, Any]:
    waits, end = session.waiting, session.latest.end
    keys = [pair for column in COLUMNS for pair in column.keys.items()]
    return {
        **chosen(session, "policy", "environment", "extra", "started", "seconds", "failure", stalled="stalled_since"),
        **_or_null(chosen(session, "part", "window", "uncounted")),
        **_or_null({key: as_data(attrgetter(name)(session)) for name, key in keys}, "node"),
        "progressed": session.latest.progressed,
        "peak_memory": end and end.peak_memory,
        "task": session.task and _or_null(chosen(session.task, *_TASK), "reason", "node"),
        "facts": data_of((*session.reasons, *session.facts)),
        "waiting": waits and chosen(waits, "until", "fact", waits_for="for", words="detail"),
        "ending": data_of(end.facts if end else ()),
    }


def _waits(waits: Waiting | None) -> dict[str, Any]:
    return chosen(waits, "fact", words="waits") if waits else {"waits": None, "fact": None}


def _or_null(data: dict[str, Any], *keys: str) -> dict[str, Any]:
    """With null for texts that are empty: for those of `keys`, or for all."""
    return {key: None if value == "" and (not keys or key in keys) else value for key, value in data.items()}
