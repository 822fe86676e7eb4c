"""The text of a notice, and how often notices of one kind are sent."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

LIMITED = ("failed", "stalled", "host")
"""kinds that are sent at most once in a while; `finished` is always sent"""
COUNTED = ("succeeded", "partial", "failed", "cancelled", "lost", "not_needed", "running", "queued")
_ROW = re.compile(r"^(failed|stalled|host)\t([0-9]+\.[0-9]+)\t([A-Za-z0-9_ -]*)$", re.MULTILINE)
_LINES_MOST = 20
_LINE_MOST = 500


class Throttle:
    """When a notice of each kind was last sent, and which sessions were held back since; `-` stands for the run itself.

    Times are seconds since 1970, as in dispatch/notified. A clock that was set back makes no wait longer than `every`.
    """

    def __init__(self, every: float, rows: str = "") -> None:
        self.every = every
        self.sent_at: dict[str, float] = {}
        self.held: dict[str, list[str]] = {}
        for kind, at, held in _ROW.findall(rows):
            self.sent_at[kind] = float(at)
            self.held[kind] = held.split()

    def waits(self, kind: str, now: float) -> bool:
        if kind not in LIMITED or kind not in self.sent_at:
            return False
        return 0 <= now - self.sent_at[kind] < self.every

    def hold_back(self, kind: str, who: str) -> None:
        self.held.setdefault(kind, []).append(who or "-")

    def send(self, kind: str, now: float) -> list[str]:
        """Mark a notice as sent. Returns the sessions to name in it: those held back; for the last notice all."""
        if kind in LIMITED:
            self.sent_at[kind] = now
            return self.held.pop(kind, [])
        held = list(dict.fromkeys(who for names in self.held.values() for who in names))
        self.held.clear()
        return held

    def due(self, now: float) -> list[str]:
        """The kinds with notices held back that may be sent now."""
        return [kind for kind, names in self.held.items() if names and not self.waits(kind, now)]

    def rows(self) -> str:
        return "".join(f"{kind}\t{at:.6f}\t{' '.join(self.held.get(kind, ()))}\n" for kind, at in self.sent_at.items())


@dataclass(frozen=True)
class Span:
    """The episodes of a session, and the counts of its attempts."""

    session: str
    first: int
    count: int
    records: int
    successes: int
    needed: bool = True

    @property
    def combo(self) -> str:
        """The session's name without its range."""
        ending = f"_e{self.first}-{self.first + self.count - 1}"
        return self.session[: -len(ending)] if self.session.endswith(ending) else self.session


def sums(spans: Iterable[Span]) -> dict[str, object]:
    """The sums of a run. An episode of a combo counts once, and never more episodes than planned.

    `successes` is None if more episodes ran than planned, and it is unknown which of them count.
    """
    combos: dict[str, list[Span]] = {}
    for span in spans:
        combos.setdefault(span.combo, []).append(span)
    records = planned = beyond = 0
    successes: int | None = 0
    for parts in combos.values():
        due = _distinct([(part.first, part.count) for part in parts if part.needed])
        lines, wins = sum(part.records for part in parts), sum(part.successes for part in parts)
        surplus = max(0, lines - due) if due else 0
        least, most = max(wins - surplus, 0), min(wins, lines - surplus)
        successes = successes + least if successes is not None and least == most else None
        planned, records, beyond = planned + due, records + lines - surplus, beyond + surplus
    return {"records": records, "planned": planned, "successes": successes, "lines_beyond_plan": beyond}


def _distinct(ranges: list[tuple[int, int]]) -> int:
    """How many numbers are in ranges (first, count) that may overlap."""
    total, reach = 0, None
    for first, count in sorted(ranges):
        start = first if reach is None else max(first, reach)
        end = first + count
        total += max(0, end - start)
        reach = end if reach is None else max(reach, end)
    return total


def last_lines(data: bytes) -> list[str]:
    """The last lines of a log as a terminal would show them: after a carriage return, the newest text."""
    text = data.replace(b"\0", b"").decode("utf-8", "ignore")
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return [_seen(line)[:_LINE_MOST] for line in lines[-_LINES_MOST:]]


def _seen(line: str) -> str:
    last = line.rstrip("\r").rpartition("\r")[2]
    return "".join(char for char in last if char == "\t" or (char >= " " and char != "\x7f"))
