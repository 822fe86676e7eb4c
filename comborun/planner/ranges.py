"""Sessions for a part of another session's episodes, and the digests that identify work. Pure."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING

from comborun.errors import UserError
from comborun.model.plan import NON_IDENTITY_FIELDS, Plan, Session
from comborun.model.resources import BARE
from comborun.model.work import Combo, grouped, name_of_combo, range_suffix
from comborun.text import shortened

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


def range_session(session: Session, first: int, count: int) -> Session:
    """`session` for the episodes first .. first + count - 1. Raises UserError if its command takes no range."""
    if not session.ranged:
        raise UserError(
            f"`{session.label}` can't be told to run the episodes {first} to {first + count - 1} alone:"
            " its command takes no range",
            "pass both, such as `--first {first_episode} --episodes {episodes}`",
        )
    name = f"{name_of_combo(session)}{range_suffix(first, count)}"
    return _named(replace(session, first=first, count=count), name)


def first_episodes(session: Session, most: int, purpose: str) -> Session:
    """`session` for its first `most` episodes, with its purpose at the end of its name.

    Raises UserError if its command can't run so few.
    """
    if session.count > most and not session.counted:
        raise UserError(
            f"`{session.label}` can't be told to run {most} of its {session.count} {session.unit}s:"
            " its command takes no {episodes}",
            f"pass the number, such as `--episodes {{episodes}}`, or leave out the {purpose} test",
        )
    if not session.count:
        raise UserError(
            f"`{session.label}` has no number of `{session.unit}s`, so {most} of them can't be chosen",
            f"set it in the grid, such as `episodes: 100`, or leave out the {purpose} test",
        )
    together = f"{session.together}_{purpose}" if session.together else ""
    few = replace(session, count=min(most, session.count), together=together)
    return _named(few, f"{name_of_combo(session)}_{purpose}")


def trial_plan(plan: Plan, sessions: tuple[Session, ...], at_once: int, purpose: str) -> Plan:
    """A run of these sessions alone, once each, without notices."""
    name = f"{plan.grid}_{purpose}"
    limits = replace(plan.limits, parallel=at_once, stagger=0.0, attempts=1, fail_fast=0, fail_fast_percent=0)
    return replace(
        plan,
        grid=shortened(name),
        sessions=sessions,
        limits=limits,
        after=None,
        notify=None,
        replaces=(),
        stop_early=None,
        digest=digest_of("calibrate", [session.digest for session in sessions], at_once),
    )


def distinct(sessions: Iterable[Session]) -> tuple[Session, ...]:
    """The sessions of one plan. Raises UserError if two would have the same name and directory."""
    first: dict[str, Session] = {}
    for session in sessions:
        other = first.setdefault(session.name, session)
        if other is not session:
            raise UserError(
                f"`{other.label}` and `{session.label}` would both run in the session `{session.name}`",
                "rename one of the policies or environments",
            )
    return tuple(first.values())


def _named(session: Session, name: str) -> Session:
    renamed = replace(session, name=shortened(name))
    return replace(renamed, digest=session_digest(renamed))


def blocks(session: Session, most: int) -> tuple[Session, ...]:
    """`session` as sessions of at most `most` episodes each; unchanged if it has no more."""
    if session.count <= most:
        return (session,)
    last = session.first + session.count
    return tuple(range_session(session, first, min(most, last - first)) for first in range(session.first, last, most))


def interleaved(by_combo: Mapping[Combo, Sequence[Session]]) -> tuple[Session, ...]:
    """The first block of every combo, then the second of each: environment by environment, all policies in turn.

    A comparison can be decided only up to the block that both of its policies have run.
    """
    by_environment = grouped(by_combo.values(), lambda combo: combo[0].environment).values()
    turns = zip_longest(*(combo for combos in by_environment for combo in combos))
    return tuple(session for turn in turns for session in turn if session is not None)


def session_digest(session: Session) -> str:
    """The digest of the combo, its episodes and everything that runs for it."""
    content = {key: value for key, value in vars(session).items() if key not in NON_IDENTITY_FIELDS}
    content["digest"] = ""
    if session.around == BARE:  # left out, so that digests of older versions stay equal
        del content["around"]
    for key in ("servers", "each"):
        if not content[key]:
            del content[key]
    return digest_of(content)


def digest_of(*content: object) -> str:
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, default=vars)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
