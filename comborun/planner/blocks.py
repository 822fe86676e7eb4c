"""Combos cut into ranges of episodes, and the order that lets comparisons between them end early. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comborun.planner.ranges import range_session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comborun.plan import Session


def blocks(session: Session, most: int | None) -> tuple[Session, ...]:
    """`session` as sessions of at most `most` episodes each; itself where that is enough."""
    if most is None or session.count <= most:
        return (session,)
    last = session.first + session.count
    return tuple(range_session(session, first, min(most, last - first)) for first in range(session.first, last, most))


def interleaved(combos: Sequence[Sequence[Session]]) -> tuple[Session, ...]:
    """The first block of every combo, then the second of each: environment by environment, all policies in turn.

    A comparison can be decided only as far as both of its policies have come.
    """
    environments = list(dict.fromkeys(combo[0].environment for combo in combos))
    by_environment = sorted(combos, key=lambda combo: environments.index(combo[0].environment))
    most = max((len(combo) for combo in combos), default=0)
    return tuple(combo[place] for place in range(most) for combo in by_environment if place < len(combo))
