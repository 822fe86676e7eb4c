"""Sessions for a part of another one's episodes: a range that is missing or new, and the few that are tried first."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from comborun.errors import UserError
from comborun.planner.digests import session_digest
from comborun.text import shortened

if TYPE_CHECKING:
    from collections.abc import Iterable

    from comborun.plan import Session


def range_session(session: Session, first: int, count: int) -> Session:
    """`session` for the episodes first .. first + count - 1. Raises UserError when its command takes no range."""
    if not session.ranged:
        raise UserError(
            f"{_label(session)} can't be told to run the episodes {first} to {first + count - 1} alone:"
            " its command takes no range",
            "hand both over, such as `--first {first_episode} --episodes {episodes}`",
        )
    name = f"{name_of_combo(session)}{_suffix(first, count)}"
    return _named(replace(session, first=first, count=count), name)


def name_of_combo(session: Session) -> str:
    """Its name without the range that it was cut to."""
    return session.name.removesuffix(_suffix(session.first, session.count))


def smoke_session(session: Session, most: int) -> Session:
    """`session` for its first `most` episodes, to go before all others.

    Raises UserError when its command can't be told to do so few.
    """
    return replace(first_episodes(session, most, "smoke"), flag="smoke")


def first_episodes(session: Session, most: int, purpose: str) -> Session:
    """`session` for its first `most` episodes, under a name that ends with what it is for.

    Raises UserError when its command can't be told to do so few.
    """
    if session.count > most and not session.counted:
        raise UserError(
            f"{_label(session)} can't be told to run {most} of its {session.count} {session.unit}s:"
            " its command takes no {episodes}",
            f"hand the number over, such as `--episodes {{episodes}}`, or do without the {purpose} test",
        )
    if not session.count:
        raise UserError(
            f"{_label(session)} has no `{session.unit}s` to run {most} of: how many it does is up to the program",
            f"say how many in the grid, such as `episodes: 100`, or do without the {purpose} test",
        )
    few = replace(session, count=min(most, session.count))
    return _named(few, f"{name_of_combo(session)}_{purpose}")


def distinct(sessions: Iterable[Session]) -> tuple[Session, ...]:
    """The sessions of one plan. Raises UserError when two would have one name, and so one directory."""
    first: dict[str, Session] = {}
    for session in sessions:
        other = first.setdefault(session.name, session)
        if other is not session:
            raise UserError(
                f"{_label(other)} and {_label(session)} would both run in the session `{session.name}`",
                "rename the policy or the environment whose name looks like a part of another's",
            )
    return tuple(first.values())


def _suffix(first: int, count: int) -> str:
    return f"_e{first}-{first + count - 1}"


def _named(session: Session, name: str) -> Session:
    renamed = replace(session, name=shortened(name, name))
    return replace(renamed, digest=session_digest(renamed))


def _label(session: Session) -> str:
    return f"`{session.policy} in {session.environment}`"
