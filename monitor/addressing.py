"""Finds the sessions that the words of a command line name.

A word is the name of a session, a combo (all of its shards), a model server, or `after`. Two words may be a policy and
an environment, in either order.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from comborun.errors import UserError
from comborun.model.work import combo_of, name_of_combo
from comborun.monitor.watch import once
from comborun.remote.launches import remembered
from comborun.rules.names import AFTER
from comborun.text import alike_to, did_you_mean, first_of, session_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from comborun.model.plan import Plan, Session
    from comborun.monitor.watch import Source


_NUMBER = re.compile(r"\d+")


class UnknownSessionError(UserError):
    """No session has the name. `likely`: whether the hint names sessions that may be meant."""

    code = "unknown_session"

    def __init__(self, word: str, run: str, hint: str, *, likely: bool) -> None:
        super().__init__(f"there is no session {word} in {run}", hint)
        self.likely = likely


class Addressed(NamedTuple):
    names: tuple[str, ...]
    """sessions and model servers, each once, in the order of the words"""
    guesses: tuple[str, ...] = ()
    """a sentence for each guessed word"""


def sessions_of(
    source: Source, words: Sequence[str], tell: Callable[[str], object], *, guess: bool = False
) -> tuple[str, ...]:
    """The sessions of a run that the words name; `tell` gets a sentence for each guess. Raises UserError."""

    def alive() -> frozenset[str]:
        return frozenset(one.name for one in once(source).every if one.alive)

    try:
        found = addressed(source.view.plan, source.view.id, words, alive, guess=guess)
    except UnknownSessionError as error:
        runs = {name for launch in remembered() for name in (launch.run, launch.grid)}
        if run := next((word for word in words if word in runs), None):
            error.hint = f"`{run}` is a run: --run {run}"
        raise
    for sentence in found.guesses:
        tell(sentence)
    return found.names


def addressed(
    plan: Plan, run: str, words: Sequence[str], alive: Callable[[], Collection[str]], *, guess: bool = False
) -> Addressed:
    """The sessions that `words` name. Raises UnknownSessionError for a word that names none.

    `alive` returns the sessions that run. A session that a changed grid replaced counts only while it runs. With
    `guess` a word may be misspelled, or be a policy or an environment: for commands that only look.
    """
    names: list[str] = []
    guesses: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        found = _named(plan, word, alive) or _quoted(plan, word)
        if not found and rest and (pair := _pair(plan, run, word, rest[0], guess=guess)):
            found, meant = pair
            if meant:
                guesses.append(f"{word} {rest[0]} is taken for {meant}")
            del rest[0]
        if not found:
            found = _likely(plan, word)
            if not guess or not ((len(found) == 1 and _near(word, found[0])) or word in _axes(plan)):
                raise UnknownSessionError(word, run, _hint(plan, run, word, found), likely=bool(found))
            guesses.append(f"no session is called {word}: this is {', '.join(found)}")
        names += found
    return Addressed(tuple(dict.fromkeys(names)), tuple(guesses))


def _named(plan: Plan, word: str, alive: Callable[[], Collection[str]]) -> list[str]:
    """The session of that name, or the sessions of the combo of that name."""
    if word in [one.name for one in plan.server_instances] or (word == AFTER and plan.after):
        return [word]
    exact = next((one for one in plan.sessions if one.name == word), None)
    if exact and (exact.here or word in alive()):
        return [word]
    same = [one for one in plan.sessions if exact and combo_of(one) == combo_of(exact)]
    return _current(same or (one for one in plan.sessions if word in _combo_names(one))) or [word] * bool(exact)


def _quoted(plan: Plan, word: str) -> list[str]:
    """The sessions of a policy and an environment that are quoted as one word, in either order."""
    pairs = [{f"{one.policy} {one.environment}", f"{one.environment} {one.policy}"} for one in plan.sessions]
    found = [one for one, pair in zip(plan.sessions, pairs, strict=True) if word in pair]
    return _current(found) if len({combo_of(one) for one in found}) == 1 else []


def _near(word: str, name: str) -> bool:
    """Whether a word may be this name misspelled. Not if it has other numbers, or a part of only one or two letters."""
    return min(map(len, word.split()), default=0) > 2 and {*_NUMBER.findall(word)} <= {*_NUMBER.findall(name)}


def _pair(plan: Plan, run: str, word: str, other: str, *, guess: bool) -> tuple[list[str], str] | None:
    """The sessions of a policy and an environment, and what the two words are taken for if that is a guess. None if
    they are no such pair. Raises UnknownSessionError where there is no such combo, or a choice.
    """
    exact = _current(one for one in plan.sessions if {one.policy, one.environment} == {word, other})
    if exact := exact or _current(one for one in plan.sessions if f"{word}_{other}" in _combo_names(one)):
        return exact, ""
    if other in _names(plan):
        return None
    axes = _axes(plan)
    meant = [
        [name for name in alike_to(one, axes) if name == one or (guess and _near(one, name))] for one in (word, other)
    ]
    both = [(one.policy, one.environment) for one in plan.sessions if one.here]
    of_pair = {
        pair for pair in both for first, second in (pair, pair[::-1]) if first in meant[0] and second in meant[1]
    }
    names = _current(one for one in plan.sessions if (one.policy, one.environment) in of_pair)
    if len(of_pair) == 1:
        first = next(iter(of_pair))
        return names, " ".join(first if first[0] in meant[0] else first[::-1])
    policies = [one in plan.policies for one in (word, other)]
    if of_pair or (all(one in _axes(plan) for one in (word, other)) and policies[0] is not policies[1]):
        likely = names or [*_likely(plan, word), *_likely(plan, other)]
        words = f"{word} {other}"
        raise UnknownSessionError(words, run, _hint(plan, run, words, likely), likely=bool(likely))
    return None


def _axes(plan: Plan) -> tuple[str, ...]:
    return (*plan.policies, *plan.environments)


def _likely(plan: Plan, word: str) -> list[str]:
    """Guesses, the best first: sessions of that policy or environment, names that contain the word, similar names."""
    if of_axis := _current(one for one in plan.sessions if word in {one.policy, one.environment}):
        return of_axis
    known, axis = _names(plan), alike_to(word, _axes(plan))
    named = [name for name in known if word.casefold() in name.casefold()] or alike_to(word, known)
    return named or _current(one for one in plan.sessions if one.policy in axis or one.environment in axis)


def _current(sessions: Iterable[Session]) -> list[str]:
    """Their names, without replaced sessions, and without smoke tests if there are other sessions."""
    kept = [one for one in sessions if one.here]
    return [one.name for one in kept if not one.flag] or [one.name for one in kept]


def _combo_names(session: Session) -> tuple[str, ...]:
    policy, environment = session.policy, session.environment
    return name_of_combo(session), session_name(environment, policy), session_name(policy, environment)


def _names(plan: Plan) -> list[str]:
    sessions = plan.current
    servers = [one.name for one in plan.server_instances]
    combos = (name_of_combo(one) for one in sessions)
    return [*dict.fromkeys([*(one.name for one in sessions), *combos]), *servers, *([AFTER] if plan.after else [])]


def _hint(plan: Plan, run: str, word: str, likely: Sequence[str]) -> str:
    if len(likely) > 1:
        return f"name one of its sessions: {first_of(likely, 8)}"
    if likely:
        return f"did you mean `{likely[0]}`?"
    return did_you_mean(word, _names(plan)) or f"combo status {run} names them"
