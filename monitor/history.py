"""What an asker remembers between two probes, which send only what is new."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from comborun.monitor.answer.progress import Counter, Share, counted
from comborun.monitor.answer.restarts import Look
from comborun.monitor.answer.snapshot import Attempt, Mark, Snapshot
from comborun.plan import Session
from comborun.rules import counting
from comborun.rules.words import Completeness

Known = tuple[int, ...]
"""For each session in queue order (then `after`): the highest attempt whose end is known, 0 for none."""
MOST_MARKS = 60
"""that are kept of an attempt"""
_NONE: Mapping[str, Session] = MappingProxyType({})


@dataclass(frozen=True)
class History:
    """The last probe, and every attempt that was ever seen, oldest first, by session."""

    snapshot: Snapshot | None = None
    attempts: Mapping[str, tuple[Attempt, ...]] = field(default_factory=lambda: MappingProxyType({}))

    def of(self, session: str) -> tuple[Attempt, ...]:
        return self.attempts.get(session, ())

    def known(self, sessions: Sequence[str]) -> Known:
        return tuple(max((one.number for one in self.of(name) if one.end), default=0) for name in sessions)


def fold(history: History, snapshot: Snapshot, sessions: Mapping[str, Session] = _NONE) -> History:
    """Ended attempts stay; those without an end are what the new snapshot says, for it sends all of them.

    `sessions` are the plan's, by name: they say how progress is read off a log.
    """
    attempts = {name: {one.number: one for one in seen if one.end} for name, seen in history.attempts.items()}
    before = {(one.session, one.number): one for seen in history.attempts.values() for one in seen}
    for one in snapshot.attempts:
        earlier = before.get((one.session, one.number))
        late = earlier is None and history.snapshot is None
        kept = _marked(_counted(_with(one, earlier), sessions.get(one.session), snapshot.now, late=late), snapshot.now)
        attempts.setdefault(one.session, {})[one.number] = kept
    ordered = {name: tuple(seen[number] for number in sorted(seen)) for name, seen in attempts.items() if seen}
    return History(snapshot, MappingProxyType(ordered))


def _with(one: Attempt, earlier: Attempt | None) -> Attempt:
    """`one` with what was remembered of it."""
    if earlier is None:
        return one
    return replace(one, tail=one.tail or earlier.tail, counter=earlier.counter, marks=earlier.marks)


def _counted(one: Attempt, session: Session | None, now: float, *, late: bool) -> Attempt:
    """`late`: whoever looks has not looked before."""
    if session is None:
        return one
    begin, rules = one.begin, session.progress
    share = Share(begin.first, begin.count) if begin and begin.count else Share(session.first, session.count)
    if rules.each and share.count and one.end and one.end.completeness is Completeness.COMPLETE:
        return replace(one, counter=Counter(share.count))  # which no look at a bar may have shown
    if not one.tail:
        return one
    cut = one.log_size != len(one.tail)  # a log that has grown meanwhile may have been cut, too
    look = Look(_age(one, now), late=late and cut)
    return replace(one, counter=counted(one.counter, counting.lines(one.tail, cut=cut), rules, share, look))


def _age(one: Attempt, now: float) -> float:
    started = one.begin.started if one.begin else None
    return max(0.0, (one.end.ended if one.end else now) - started) if started else 0.0


def _marked(one: Attempt, now: float) -> Attempt:
    """With a mark more, when more is done than at the last one."""
    if one.done <= (one.marks[-1].done if one.marks else 0):
        return one
    mark = Mark(one.end.ended if one.end else now, one.done)
    return replace(one, marks=(*one.marks, mark)[-MOST_MARKS:])
