"""What an asker remembers between two probes, which send only what is new."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from monitor.snapshot import Attempt, Snapshot

Known = tuple[int, ...]
"""For each session in queue order (then `after`): the highest attempt whose end is known, 0 for none."""


@dataclass(frozen=True)
class History:
    """The last probe, and every attempt that was ever seen, oldest first, by session."""

    snapshot: Snapshot | None = None
    attempts: Mapping[str, tuple[Attempt, ...]] = field(default_factory=lambda: MappingProxyType({}))

    def of(self, session: str) -> tuple[Attempt, ...]:
        return self.attempts.get(session, ())

    def known(self, sessions: Sequence[str]) -> Known:
        return tuple(max((one.number for one in self.of(name) if one.end), default=0) for name in sessions)


def fold(history: History, snapshot: Snapshot) -> History:
    """Ended attempts stay; those without an end are what the new snapshot says, for it sends all of them."""
    attempts = {name: {one.number: one for one in seen if one.end} for name, seen in history.attempts.items()}
    before = {(one.session, one.number): one for seen in history.attempts.values() for one in seen}
    for one in snapshot.attempts:
        earlier = before.get((one.session, one.number), one)
        kept = one if one.tail else replace(one, tail=earlier.tail)
        attempts.setdefault(one.session, {})[one.number] = kept
    ordered = {name: tuple(seen[number] for number in sorted(seen)) for name, seen in attempts.items() if seen}
    return History(snapshot, MappingProxyType(ordered))
