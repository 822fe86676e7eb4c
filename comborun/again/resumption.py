"""What `combo resume` does with a run: which sessions get another attempt, and which gaps get sessions. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from comborun.again.amend import named
from comborun.planner import range_session
from comborun.rules.words import Outcome
from comborun.work import Spans, combo_of, episodes_of, minus, size

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from comborun.plan import Plan, Session
    from comborun.work import Combo

_BY_REQUEST = frozenset({Outcome.LOST, Outcome.CANCELLED})
"""outcomes that are no failure of the session: it is simply started again"""


@dataclass(frozen=True)
class Again:
    """A session that gets another attempt, for the episodes that it lacks where that is known."""

    name: str
    lacking: Spans = ()
    repeated: int = 0
    """episodes that are on record and run again: another attempt can do only what is missing at the end"""


@dataclass(frozen=True)
class Rejected:
    """What the report has not taken of a session's records."""

    count: int
    foreign: int
    """of these, records that name another combo: whole ones, one for an episode"""
    reason: str
    """of the first"""
    place: str
    """of the first: file and line"""


@dataclass(frozen=True)
class Futile:
    """A session whose episodes have no record, and would have none after another attempt."""

    name: str
    lacking: Spans
    rejected: Rejected | None = None
    """None where it counts as complete, and left nothing that is like a record of them"""


@dataclass(frozen=True)
class Resumption:
    again: tuple[Again, ...] = ()
    added: tuple[Session, ...] = ()
    """for gaps that no attempt of a session can fill without doing more"""
    futile: tuple[Futile, ...] = ()

    @property
    def nothing(self) -> bool:
        return not self.again and not self.added


_NONE: Mapping[str, Rejected] = MappingProxyType({})


def resumption(
    plan: Plan,
    outcomes: Mapping[str, Outcome],
    missing: Mapping[Combo, Spans],
    rejected: Mapping[str, Rejected] = _NONE,
) -> Resumption:
    """`outcomes` are of the sessions that have ended for good, `missing` of the combos whose records can tell.

    An episode that is on record is not asked for again where the command takes a range. What sessions still do is
    left to them, and the last session that was planned for an episode answers for it. What the same command has done
    already without a record that counts is not asked for either: `rejected`, by session, says why none does.
    """
    again: list[Again] = []
    gaps: list[Session] = []
    futile: list[Futile] = []
    left = dict(missing)
    for session in reversed([one for one in plan.sessions if one.flag != "dropped"]):
        if session.flag == "smoke":
            if outcomes.get(session.name) in {Outcome.FAILED, *_BY_REQUEST}:
                again.append(Again(session.name))
            continue
        lacking = _take(left, session)
        outcome = outcomes.get(session.name)
        if outcome in {None, Outcome.NOT_NEEDED} or lacking == ():
            continue
        found = rejected.get(session.name)
        if lacking and outcome and _is_futile(session, outcome, lacking, found):
            futile.append(Futile(session.name, lacking, found))
        elif outcome is Outcome.SUCCEEDED:  # by its evidence: it is not started again, but its gaps can be filled
            gaps += _gaps(session, lacking) if lacking and session.ranged else ()
        elif outcome in _BY_REQUEST or lacking is None or not session.ranged or _is_end(lacking, session):
            repeated = session.count - size(lacking) if lacking and not _is_end(lacking, session) else 0
            again.append(Again(session.name, lacking or (), repeated))
        else:
            gaps += _gaps(session, lacking)
    return Resumption(tuple(reversed(again)), tuple(named(reversed(gaps), plan.sessions)), tuple(reversed(futile)))


def still_to_come(plan: Plan, outcomes: Mapping[str, Outcome]) -> Iterator[str]:
    """The sessions that have not ended, or wait for their turn again."""
    return (one.name for one in plan.sessions if one.flag != "dropped" and one.name not in outcomes)


def _take(left: dict[Combo, Spans], session: Session) -> Spans | None:
    """What of a session's episodes is missing and not yet answered for; None where records can't tell."""
    combo = combo_of(session)
    if combo not in left or not session.count:
        return None
    rest = minus(left[combo], episodes_of([session]))
    lacking = minus(left[combo], rest)
    left[combo] = rest
    return lacking


def _is_futile(session: Session, outcome: Outcome, lacking: Spans, rejected: Rejected | None) -> bool:
    """Whether all that lacks was written, and rejected, or was to be done by an attempt that counts as complete."""
    if outcome is Outcome.SUCCEEDED:
        if not session.ranged:
            return rejected is not None
        if lacking == episodes_of([session]):
            return True  # lines that are broken may come out whole another time, but not all of them
    return rejected is not None and rejected.foreign >= size(lacking)


def _gaps(session: Session, lacking: Spans) -> list[Session]:
    return [range_session(session, span.start, span.stop - span.start) for span in reversed(lacking)]


def _is_end(lacking: Spans, session: Session) -> bool:
    """Whether another attempt does what is missing and no more: all from some episode on, of a command with a range."""
    return session.ranged and len(lacking) == 1 and lacking[0].stop == session.first + session.count
