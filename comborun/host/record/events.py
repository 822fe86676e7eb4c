"""Writes and reads dispatch/events.jsonl (`rules/events.py`). Nothing decides by it, so a full disk stops nothing.

Who gave an order, and from where, is in dispatch/people.jsonl, which is never fetched or exported. Its lines belong to
the events with the same `at`.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Sequence

from comborun.host.system import files, process
from comborun.rules import events, records
from comborun.rules.events import Event, Kind
from comborun.rules.names import RunLayout

MOST = 1 << 23
"""bytes of the file; beyond, its older half becomes a summary"""
PEOPLE_MOST = 1 << 18
"""bytes of dispatch/people.jsonl; beyond, its older half is left out"""
_LAST_ORDERS = 1 << 14
"""bytes at its end in which the last order is searched"""
_WAIT_S, _PATIENCE_S = 0.1, 5.0
"""seconds to wait for the lock of the file, for other events and for those of people"""
_NAMES_MOST = 20
"""sessions that an order names"""


class Events:
    def __init__(self, layout: RunLayout, most: int = MOST) -> None:
        self._path, self._people = layout.events, layout.people
        self._shorten_at, self._half = most, most // 2
        self._fd = -1

    def write(self, kind: Kind, session: str = "", attempt: int = 0, **fields: object) -> None:
        """Add an event. Fields are JSON values and facts. Never raises OSError."""
        self._add(Event(_now(), kind, session, attempt, **fields), _WAIT_S)

    def order(self, order: str, names: Sequence[str] = (), **fields: object) -> None:
        """Add what a person ordered, and for which sessions."""
        of = {"sessions": len(names), "names": list(names[:_NAMES_MOST])} if names else {}
        self.by_person(Kind.ORDERED, order=order, **of, **fields)

    def by_person(self, kind: Kind, **fields: object) -> None:
        event = Event(_now(), kind, "", 0, **fields)
        client = os.environ.get("SSH_CONNECTION", "").partition(" ")[0]
        order = {"order": fields["order"]} if "order" in fields else {}
        person = {"at": event.at, "user": process.user(os.getuid()), "from": client or "local", **order}
        self._add(event, _PATIENCE_S, json.dumps(person) + "\n")

    def read(self) -> list[Event]:
        """All events; those of people with `user` and `from`, where they are known."""
        people = files.read_text(self._people, files.TABLE_MOST)
        return events.named(events.parse(files.read_text(self._path, files.TABLE_MOST)), people)

    def _add(self, event: Event, wait_s: float, person: str = "") -> None:
        """Add a line in one write, under the lock of the file: it may just be replaced by a shorter one."""
        with contextlib.suppress(OSError):
            locked = self._lock(wait_s)  # else a stopped process holds it
            try:
                if person:
                    files.append(self._people, person)
                    if locked and files.size(self._people) > PEOPLE_MOST:
                        newest, _ = files.tail(self._people, PEOPLE_MOST // 2)
                        files.write_text(self._people, newest.decode("utf-8", "replace").partition("\n")[2])
                size, data = os.fstat(self._fd).st_size, event.line().encode()
                torn = size and os.pread(self._fd, 1, size - 1) != b"\n"
                os.write(self._fd, b"\n" + data if torn else data)
                if size > self._shorten_at and locked:
                    self._shorten()
            finally:
                fcntl.flock(self._fd, fcntl.LOCK_UN)

    def _lock(self, wait_s: float) -> bool:
        """Open the file, if the name leads to another one by now, and lock it; False if that takes too long."""
        while True:
            if not files.leads_to(self._path, self._fd):
                fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
                if self._fd >= 0:
                    os.close(self._fd)
                self._fd = fd
            if not files.take_lock(self._fd, wait_s):
                return False
            if files.leads_to(self._path, self._fd):
                return True

    def _shorten(self) -> None:
        text = files.read_text(self._path, files.TABLE_MOST)
        short = events.shortened(text, self._half)
        if len(short) < len(text):
            files.write_text(self._path, short)
        self._shorten_at = max(self._shorten_at, 2 * len(short))  # what stays may be long


def last_order(layout: RunLayout, *orders: str) -> dict[str, object] | None:
    """Who gave the last of these orders, when, and from where; None if that is not known."""
    end, _ = files.tail(layout.people, _LAST_ORDERS)
    for line in reversed(end.decode("utf-8", "replace").split("\n")):
        row = records.parse(line)
        if row.get("order") in orders:
            return {"order": row["order"], "at": records.seconds(row, "at"), "user": row["user"], "origin": row["from"]}
    return None


def _now() -> float:
    return round(time.time(), 6)
