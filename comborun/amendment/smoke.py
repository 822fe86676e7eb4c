"""Smoke tests and rechecks: a few episodes of every combo, in sessions of their own. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from comborun.model.work import first_of_each
from comborun.planner.calibrating import trial_plan
from comborun.planner.ranges import digest_of, distinct, first_episodes
from comborun.text import several

if TYPE_CHECKING:
    from collections.abc import Iterable

    from comborun.amendment.changes import Amended
    from comborun.model.plan import Plan, Session


def with_smoke(plan: Plan, most: int) -> Plan:
    """The plan of a new run with a smoke session of `most` episodes for each combo in front."""
    return replace(plan, sessions=distinct((*_smoke(plan.sessions, most, set()), *plan.sessions)))


def amended_with_smoke(amended: Amended, most: int) -> Amended:
    """The same for an amendment; only combos with new sessions are tried."""
    plan = amended.plan
    taken = {session.name for session in plan.sessions}
    fresh = _smoke(amended.added, most, taken)
    return replace(amended, plan=replace(plan, sessions=(*plan.sessions, *fresh)), added=(*amended.added, *fresh))


def smoke_sessions(plan: Plan) -> tuple[Session, ...]:
    return tuple(session for session in plan.sessions if session.flag == "smoke")


def _smoke(sessions: Iterable[Session], most: int, taken: set[str]) -> tuple[Session, ...]:
    """One for each combo, except those whose smoke session the run has already."""
    made = (replace(first_episodes(one, most, "smoke"), flag="smoke") for one in first_of_each(sessions))
    return tuple(session for session in made if session.name not in taken)


CANARY_OF = "canary_of"
"""in the manifest's provenance: the run that a recheck repeats; `canary` is the recheck's former name"""


def recheck_plan(plan: Plan, run: str, episodes: int) -> Plan:
    """The same work as in `plan`, alone. Raises UserError if a command can't run so few episodes."""
    combos = first_of_each(one for one in plan.sessions if not one.flag)
    sessions = distinct(first_episodes(one, episodes, "recheck") for one in combos)
    return replace(
        trial_plan(plan, sessions, 1, "recheck"),
        limits=replace(plan.limits, parallel=1, per_gpu=1, fail_fast=0, fail_fast_percent=0),
        digest=digest_of(CANARY_OF, run, [session.digest for session in sessions]),
    )


def episodes_each(plan: Plan) -> str:
    """`3 episodes`, or `up to 3 episodes` if a combo has fewer than others."""
    counts = {session.count for session in plan.sessions}
    return ("up to " if len(counts) > 1 else "") + several(max(counts, default=0), "episode")
