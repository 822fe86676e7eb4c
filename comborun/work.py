"""What a session does, apart from its name and its episodes: sessions of the same work share their records."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from comborun.spans import Spans, union

if TYPE_CHECKING:
    from collections.abc import Iterable

    from comborun.plan import Session

Combo = tuple[str, str]
"""policy, environment"""

_KEYS = ("unit", "seed", "command", "setup", "workdir", "variables", "gpus", "results", "around", "servers")


@dataclass(frozen=True)
class Work:
    """The keys of a session that make a result what it is."""

    values: tuple[tuple[str, Any], ...]

    def differences(self, other: Work) -> tuple[str, ...]:
        """What is otherwise in `other`: a phrase for each key."""
        return tuple(
            _difference(key, before, now)
            for (key, before), (_, now) in zip(self.values, other.values, strict=True)
            if before != now
        )


def work(session: Session) -> Work:
    """Which metrics are shown belongs to the report, and not to the work."""
    plain = replace(session, results=replace(session.results, metrics=(), videos=()))
    return Work(tuple((key, getattr(plain, key)) for key in _KEYS))


def combo_of(session: Session) -> Combo:
    return session.policy, session.environment


def episodes_of(sessions: Iterable[Session]) -> Spans:
    """All episodes (or steps) that are planned in them."""
    return union(session.episodes for session in sessions)


def _difference(key: str, before: Any, now: Any) -> str:
    if key == "command":
        return f"command: {_words(before, now)}"
    if key in {"variables", "servers"}:
        return f"{key}: {', '.join(sorted({name for name, _ in {*before} ^ {*now}}))}"
    if key in {"setup", "results"}:
        return key
    if key == "around":
        return "files, links, launcher or container"
    return f"{key}: {_shown(before)} before, {_shown(now)} now"


def _words(before: tuple[str, ...], now: tuple[str, ...]) -> str:
    """The first words that differ, with the option in front of them."""
    pairs = list(zip(before, now, strict=False))
    place = next((index for index, (a, b) in enumerate(pairs) if a != b), len(pairs))
    option = f"{now[place - 1]} " if 0 < place < len(now) and now[place - 1].startswith("-") else ""
    old, new = (words[place] if place < len(words) else "nothing" for words in (before, now))
    return f"{option}{_shown(old)} before, {_shown(new)} now"


def _shown(value: Any) -> str:
    if not isinstance(value, str):
        return "none" if value is None else str(value)
    try:
        return " ".join(shlex.split(value)) or "nothing"
    except ValueError:
        return value
