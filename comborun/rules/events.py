"""What happened in a run: dispatch/events.jsonl, one JSON object for each event. Nothing decides by it.

`{"at": seconds, "kind": ..., "session": ..., "attempt": ..., FIELD: ...}`. A model server is the session
`servers/NAME`. Kinds are stable, new ones are additive, and an unknown kind is kept as its text.
"""

from __future__ import annotations

import contextlib
import json

from comborun.rules.facts import Fact, json_of
from comborun.rules.vocabulary import Word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Kind(Word):
    # The dispatcher, or one pass of `settle` on Slurm
    DISPATCHING = "dispatching"  # a dispatcher lives: `pid`, `engine`
    TAKEN_OVER = "taken_over"  # it has looked at all sessions: `left`, `busy`
    REREAD = "reread"  # it has read the plan and the orders again: `left`, `busy`
    LEFT = "left"  # it has left: `why` is nothing_left, stopped, taken_over, or the kind of the hold
    DONE = "done"  # the run has ended
    SUBMITTED = "submitted"  # to Slurm: `sessions` (how many), `jobs`
    # Sessions and model servers
    ADOPTED = "adopted"  # a former dispatcher had started it: `life`
    GRANTED = "granted"  # an attempt may start: `gpus`
    NOT_BEGUN = "not_begun"  # it was started, and did not begin: `reason`
    STARTED = "started"  # its command runs
    LOADING = "loading"  # a model server lives, and is not ready, or not any more
    READY = "ready"  # a model server answers
    ORPHANED = "orphaned"
    LOST = "lost"
    ENDING = "ending"  # a model server is being ended: `reason`
    SURVIVES = "survives"  # a model server that was to end still runs
    ENDED = "ended"  # `outcome`, `cause`, `code`, `class`
    RETRY = "retry"  # another attempt comes: `class` and `wait_s`, or `asked` where a person asked for it
    # The run
    HALTED = "halted"  # nothing new starts: `reason`
    QUARANTINE = "quarantine"  # a GPU gets no new sessions: `gpu`, `class`, `times`
    CLOSED = "closed"  # an environment gets no new sessions: `environment`, `failure`, `times`
    GPU_CAP = "gpu_cap"  # fewer sessions run at once on a GPU: `gpu`, `most`; `session` ran out of its memory
    GPU_USE = "gpu_use"
    """`gpus`: for each index `used`, `total` and `busy` (MiB, MiB, %), `sessions` (name: MiB), and `others` (lists of
    user, program and MiB); at most every 30 s"""
    NO_ROOM = "no_room"  # the machine starts no more processes: `reason`
    WARMING = "warming"  # the first session of a program starts alone
    WARM = "warm"  # others of that program may start: `reason`
    NOTICE = "notice"  # `notice` (its kind), `reason`
    NOTICE_FAILED = "notice_failed"  # the grid's command could not be started: `notice`, `error`
    CHECKPOINT = "checkpoint"
    """of a training that is followed: `decision`, `policy` or `path`, `reason`; `again`: its step was there before"""
    # People
    ORDERED = "ordered"
    """`order` (pause, resume, stop ...) and what it was given. Who and from where: dispatch/people.jsonl"""
    AMENDED = "amended"  # a launch has changed the grid: `plan` (its number), `added`, `dropped`
    DEALT = "dealt"  # another deal of a grid run is in force: `number`, `gained` (sessions), `lost` (boxes)
    GIVEN = "given"  # a session that has not begun goes to another box: `box`, `epoch`
    TAKEN = "taken"  # a session has come from another box: `box`, `epoch`
    # This file
    SUMMARY = "summary"  # older events, from `at` to `until`: `counts` (kind: how many)


_encode = json.JSONEncoder(default=Fact.as_data).encode
KEPT = frozenset((Kind.ORDERED.value, Kind.AMENDED.value, Kind.TAKEN.value))
"""kinds that stay when old events become a summary"""


class Event:
    """One event. `fields` are JSON values; `reason` is a fact or, in events of the former version, perhaps a text."""

    __slots__ = ("at", "attempt", "fields", "host", "kind", "session")

    def __init__(self, at: float, kind: str, session: str = "", attempt: int = 0, **fields: Any) -> None:
        self.at = at
        self.kind = str(kind)
        self.session = session
        self.attempt = attempt
        self.host = ""  # of a run on several hosts; whoever reads it there says so
        self.fields = fields

    def line(self) -> str:
        whose = {"session": self.session, "attempt": self.attempt}
        given = {key: value for key, value in whose.items() if value}
        return _encode({"at": self.at, "kind": self.kind, **given, **self.fields}) + "\n"

    @classmethod
    def of(cls, line: str) -> Event | None:
        """None for a line that is torn or foreign."""
        found = json_of(line)
        if not isinstance(found, dict):
            return None
        event = cls(_time(found.pop("at", None)), "", found.pop("session", ""), found.pop("attempt", 0))
        kind = found.pop("kind", None)
        if not (event.at and isinstance(kind, str) and isinstance(event.session, str) and type(event.attempt) is int):
            return None
        event.kind, event.fields = kind, found
        if reason := Fact.of(found.get("reason")):
            found["reason"] = reason
        return event


def parse(text: str) -> list[Event]:
    """The events of a file, in the order in which they were written."""
    return [event for event in map(Event.of, text.split("\n")) if event]


def named(found: list[Event], people: str) -> list[Event]:
    """Events with who gave an order (`user`), and from where (`from`), as far as dispatch/people.jsonl says it."""
    known = {}
    for line in people.split("\n"):
        with contextlib.suppress(ValueError, RecursionError, TypeError, KeyError):
            person = json.loads(line)
            known[person["at"]] = {"user": str(person["user"]), "from": str(person["from"])}
    for event in found:
        event.fields.update(known.get(event.at, {}) if event.kind in KEPT else {})
    return found


def shortened(text: str, most: int) -> str:
    """A shorter text: one summary of the older events, then the older events of people, then about the newest `most`
    characters unchanged.
    """
    cut = text.find("\n", max(0, len(text) - most)) + 1
    counts: dict[str, int] = {}
    kept, times = [], []
    for event in parse(text[:cut]):
        if event.kind in KEPT:
            kept.append(event)
            continue
        times.append(event.at)
        number: object = 1
        added = {event.kind: number}
        if event.kind == Kind.SUMMARY:
            times.append(_time(event.fields.get("until")) or event.at)
            listed = event.fields.get("counts")
            added = listed if isinstance(listed, dict) else {}
        for kind, number in added.items():
            counts[kind] = counts.get(kind, 0) + (number if isinstance(number, int) else 0)
    summary = [Event(min(times), Kind.SUMMARY, until=max(times), counts=counts)] if times else []
    return "".join([*(event.line() for event in (*summary, *kept)), text[cut:]])


def _time(value: object) -> float:
    """Seconds since 1970; 0 for anything else."""
    return float(value) if isinstance(value, (int, float)) and 0 < value < 1e12 else 0.0
