"""A few episodes of every combo before all others: sessions of their own, which no report counts. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from comborun.planner import distinct, smoke_session
from comborun.work import combo_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from comborun.again.amend import Amended
    from comborun.plan import Plan, Session


def with_smoke(plan: Plan, most: int) -> Plan:
    """The plan of a new run with a smoke session of `most` episodes for each combo in front."""
    return replace(plan, sessions=distinct((*_smoke(plan.sessions, most, set()), *plan.sessions)))


def amended_with_smoke(amended: Amended, most: int) -> Amended:
    """The same for an amendment: combos that got no new sessions are tried no more."""
    plan = amended.plan
    taken = {session.name for session in plan.sessions}
    fresh = _smoke(amended.added, most, taken)
    return replace(amended, plan=replace(plan, sessions=(*plan.sessions, *fresh)), added=(*amended.added, *fresh))


def smoke_sessions(plan: Plan) -> tuple[Session, ...]:
    return tuple(session for session in plan.sessions if session.flag == "smoke")


def _smoke(sessions: Iterable[Session], most: int, taken: set[str]) -> tuple[Session, ...]:
    """One for each combo; a name that the run has stands for a try that it has made already."""
    first = {combo_of(session): session for session in reversed([*sessions])}
    made = (smoke_session(session, most) for session in reversed([*first.values()]))
    return tuple(session for session in made if session.name not in taken)
