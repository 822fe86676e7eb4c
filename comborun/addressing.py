"""Finds the sessions of a plan that the words of a command line name. Pure.

A word is the name of a session, of a combo (all of its shards), of a model server, or `after`. Two words may be POLICY
ENVIRONMENT, in either order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from comborun.errors import UserError
from comborun.rules.names import AFTER
from comborun.servers import instances
from comborun.text import close_to, did_you_mean, session_name
from comborun.work import combo_of, name_of_combo

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from comborun.plan import Plan, Session


class Addressed(NamedTuple):
    names: tuple[str, ...]
    """of sessions and model servers, each once, in the order of the words"""
    guesses: tuple[str, ...] = ()
    """a sentence for each word that was taken for a name like it"""


def addressed(
    plan: Plan, run: str, words: Sequence[str], alive: Callable[[], Collection[str]], *, guess: bool = False
) -> Addressed:
    """The sessions that `words` name. Raises UserError for a word that names none, with the closest name.

    `alive` tells which sessions run: a session that a changed grid replaced is meant only as long as it does. With
    `guess` the closest name is taken at once: for commands that only look.
    """
    names: list[str] = []
    guesses: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        found = _named(plan, word, alive)
        if not found and rest and (found := _of_combo(plan, word, rest[0])):
            rest.pop(0)
        if not found:
            close = close_to(word, _names(plan))
            if not guess or not close:
                raise UserError(f"there is no session {word} in {run}", _hint(plan, run, word))
            guesses.append(f"no session is called {word}: this is {close}")
            found = _named(plan, close, alive)
        names += found
    return Addressed(tuple(dict.fromkeys(names)), tuple(guesses))


def _named(plan: Plan, word: str, alive: Callable[[], Collection[str]]) -> list[str]:
    """The sessions that go by a name, or by that of their combo."""
    if word in [one.name for one in instances(plan)] or (word == AFTER and plan.after):
        return [word]
    exact = next((one for one in plan.sessions if one.name == word), None)
    if exact and (exact.flag != "dropped" or word in alive()):
        return [word]
    same = [one for one in plan.sessions if exact and combo_of(one) == combo_of(exact)]
    return _current(same or (one for one in plan.sessions if word in _combo_names(one))) or [word] * bool(exact)


def _of_combo(plan: Plan, first: str, second: str) -> list[str]:
    return _current(one for one in plan.sessions if {one.policy, one.environment} == {first, second})


def _current(sessions: Iterable[Session]) -> list[str]:
    """Without what a changed grid replaced, and without a smoke test where there is more."""
    kept = [one for one in sessions if one.flag != "dropped"]
    return [one.name for one in kept if not one.flag] or [one.name for one in kept]


def _combo_names(session: Session) -> tuple[str, ...]:
    policy, environment = session.policy, session.environment
    return name_of_combo(session), session_name(environment, policy), session_name(policy, environment)


def _names(plan: Plan) -> list[str]:
    sessions = [one for one in plan.sessions if one.flag != "dropped"]
    servers = [one.name for one in instances(plan)]
    combos = (name_of_combo(one) for one in sessions)
    return [*dict.fromkeys([*(one.name for one in sessions), *combos]), *servers, *([AFTER] if plan.after else [])]


def _hint(plan: Plan, run: str, word: str) -> str:
    """The closest name; or, for a policy or an environment, its sessions."""
    if sessions := _current(one for one in plan.sessions if word in {one.policy, one.environment}):
        return f"name one of its sessions: {', '.join(sessions[:8])}{' ...' if len(sessions) > 8 else ''}"
    return did_you_mean(word, _names(plan)) or f"combo status {run} names them"
