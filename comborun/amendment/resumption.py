"""Sessions that a run gets besides those of its grid: for what is missing, as a smoke test, or as a recheck. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from comborun.amendment.changes import Amended, with_free_names
from comborun.model.work import Combo, Spans, combo_of, episodes_of, first_of_each, minus, size
from comborun.planner.ranges import digest_of, distinct, first_episodes, range_session, trial_plan
from comborun.rules.vocabulary import Outcome
from comborun.text import several

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from comborun.model.plan import Plan, Session

_BY_REQUEST = frozenset({Outcome.LOST, Outcome.CANCELLED})
"""outcomes that are no failure of the session: it is simply started again"""


@dataclass(frozen=True)
class AnotherAttempt:
    """A session that gets another attempt, and the episodes that it lacks, if they are known."""

    name: str
    lacking: Spans = ()
    repeated: int = 0
    """recorded episodes that run again, because an attempt can leave out only those at the start"""


@dataclass(frozen=True)
class Rejected:
    """The records of a session that the report rejects."""

    count: int
    foreign: int
    """of these, complete records that name another combo, one for each episode"""
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
    """None if it counts as complete and left no such records"""


@dataclass(frozen=True)
class Resumption:
    again: tuple[AnotherAttempt, ...] = ()
    added: tuple[Session, ...] = ()
    """for gaps that another attempt could fill only by repeating more"""
    futile: tuple[Futile, ...] = ()

    @property
    def nothing(self) -> bool:
        return not self.again and not self.added


def resumption(
    plan: Plan,
    outcomes: Mapping[str, Outcome],
    missing: Mapping[Combo, Spans],
    rejected: Mapping[str, Rejected] = MappingProxyType({}),
) -> Resumption:
    """`outcomes`: of the sessions that have ended for good. `missing`: of the combos whose records show it.

    If the command takes a range, no recorded episode runs again. Running and queued sessions keep their episodes. If
    several sessions were planned for an episode, the last one is responsible. An episode that the same command has run
    without a record that counts does not run again either; `rejected` has the reason, by session.
    """
    again: list[AnotherAttempt] = []
    gaps: list[Session] = []
    futile: list[Futile] = []
    left = dict(missing)
    for session in reversed(plan.current):
        if session.flag == "smoke":
            if outcomes.get(session.name) in {Outcome.FAILED, *_BY_REQUEST}:
                again.append(AnotherAttempt(session.name))
            continue
        lacking = _lacking(left, session)
        outcome = outcomes.get(session.name)
        if outcome in {None, Outcome.NOT_NEEDED} or lacking == ():
            continue
        found = rejected.get(session.name)
        if lacking and outcome and _is_futile(session, outcome, lacking, found):
            futile.append(Futile(session.name, lacking, found))
        elif outcome is Outcome.SUCCEEDED:  # by its evidence: it does not start again, but its gaps can be filled
            gaps += _gaps(session, lacking) if lacking and session.ranged else ()
        elif outcome in _BY_REQUEST or lacking is None or not session.ranged or _is_end(lacking, session):
            repeated = session.count - size(lacking) if lacking and not _is_end(lacking, session) else 0
            again.append(AnotherAttempt(session.name, lacking or (), repeated))
        else:
            gaps += _gaps(session, lacking)
    return Resumption(
        tuple(reversed(again)), tuple(with_free_names(reversed(gaps), plan.sessions)), tuple(reversed(futile))
    )


def _lacking(left: dict[Combo, Spans], session: Session) -> Spans | None:
    """The missing episodes of a session for which no later one is responsible; None if records can't show them."""
    combo = combo_of(session)
    if combo not in left or not session.count:
        return None
    rest = minus(left[combo], episodes_of([session]))
    lacking = minus(left[combo], rest)
    left[combo] = rest
    return lacking


def _is_futile(session: Session, outcome: Outcome, lacking: Spans, rejected: Rejected | None) -> bool:
    """Whether all missing episodes were recorded and rejected, or belong to an attempt that counts as complete."""
    if outcome is Outcome.SUCCEEDED:
        if not session.ranged:
            return rejected is not None
        if lacking == episodes_of([session]):
            return True  # some broken lines may be whole the next time, but not all of them
    return rejected is not None and rejected.foreign >= size(lacking)


def _gaps(session: Session, lacking: Spans) -> list[Session]:
    return [range_session(session, span.start, span.stop - span.start) for span in reversed(lacking)]


def _is_end(lacking: Spans, session: Session) -> bool:
    """Whether another attempt does only what is missing: all from some episode on, and the command takes a range."""
    return session.ranged and len(lacking) == 1 and lacking[0].stop == session.first + session.count


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
