"""Which sessions a list shows, in which order, and which of them failed alike. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from comborun.monitor.causes import SharedCause, error_line
from comborun.monitor.status import RunStatus, SessionStatus
from comborun.monitor.wording import DONE, FAILED, MARKS, QUEUED, UNMARKED, visible
from comborun.rules.vocabulary import Life
from comborun.text import natural
from comborun.words.endings import outcome_words
from comborun.words.times import duration

FEW = 3
"""more sessions that failed alike are folded into one row, so that every cause has its place on the screen"""


class Row(NamedTuple):
    session: SessionStatus
    why: str
    """why it failed or waits, or the last line of its log"""
    cause: str = ""
    """what the filter calls its cause: the first session that went wrong so"""
    alike: tuple[str, ...] = ()
    """all sessions that failed alike, if it is the first of them"""
    same: bool = False
    """whether it failed like the one above it"""
    folded: bool = False
    """whether it stands for all of `alike`"""

    @property
    def name(self) -> str:
        return self.session.name

    @property
    def meant(self) -> tuple[str, ...]:
        """The sessions that an order to this row means."""
        return self.alike if self.folded else (self.name,)


@dataclass(frozen=True)
class Choice:
    """What the user wants to see of the sessions."""

    words: str = ""
    """the filter, such as `state:failed policy:pi0`"""
    sort: str = "urgency"
    backwards: bool = False
    unfolded: frozenset[str] = frozenset()
    """first sessions of groups that are shown row by row"""


def group_of(session: SessionStatus) -> int:
    return MARKS.get(session.word, UNMARKED).group


def cause_of(session: SessionStatus) -> str:
    """How it ended, in a line, and the last line of its log if no error was found there."""
    return visible(": ".join(filter(None, (session.remark, session.unquoted_line)))) or outcome_words(session.word)


def why(session: SessionStatus, place: int | None = None) -> str:
    """The line of a session: its cause, or what it waits for, or the end of its log. `place`: in the queue."""
    group = group_of(session)
    if group == FAILED:
        return cause_of(session)
    if group == DONE:
        took = f"took {duration(session.seconds)}" if session.seconds is not None else ""
        return "; ".join(filter(None, (session.remark, session.training, took)))
    if group == QUEUED:
        waits = session.note or (visible(session.waiting.words) if session.waiting else "")
        return waits or (f"{_ordinal(place)} in the queue" if place else "")
    return "; ".join(filter(None, (session.remark, session.training, session.last_line)))


def _goes_on(session: SessionStatus) -> bool:
    return session.life is not Life.ENDED


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _places(status: RunStatus) -> dict[str, int]:
    """The places of queued sessions, each in the queue of its host."""
    queues: dict[str, int] = {}
    places = {}
    for one in status.sessions:
        if one.life is Life.QUEUED:
            places[one.name] = queues[one.host] = queues.get(one.host, 0) + 1
    return places


def chosen(status: RunStatus, choice: Choice, causes: Sequence[SharedCause] = (), *, folds: bool = True) -> list[Row]:
    """The rows of a list, in their order; `causes` are those of the status. `folds`: whether groups may be one row."""
    places = _places(status)
    fits = parsed(choice.words)
    first_of = {name: cause.names[0] for cause in causes for name in cause.names}
    away = {one.host: one.link.absence for one in status.hosts if not one.link.reachable}
    rows = [Row(one, why(one, places.get(one.name)), first_of.get(one.name, "")) for one in status.every]
    rows = [row._replace(why=away.get(row.session.host) or row.why) if _goes_on(row.session) else row for row in rows]
    rows = [row for row in rows if fits(row)]
    if choice.sort != "urgency":
        rows.sort(key=lambda row: _SORTS[choice.sort](row.session), reverse=choice.backwards)
        said = {row.name: error_line(row.session) for row in rows if row.session.failure and not row.session.alive}
        return [row._replace(why=said.get(row.name) or row.why) for row in rows]
    rest = sorted((row for row in rows if group_of(row.session) != FAILED), key=lambda row: group_of(row.session))
    bad = {row.name: row for row in rows if group_of(row.session) == FAILED}
    ordered = [*_grouped(bad, causes, choice.unfolded if folds else bad), *rest]
    return ordered[::-1] if choice.backwards else ordered


def _grouped(rows: dict[str, Row], causes: Sequence[SharedCause], unfolded: Collection[str]) -> Iterator[Row]:
    """Failed sessions by their cause, those of the most frequent one first."""
    left = dict(rows)
    groups = [([left.pop(name) for name in cause.names if name in left], cause.said) for cause in causes]
    groups += [([row], "") for row in left.values()]
    for (first, *others), said in (group for group in groups if group[0]):
        alike = (first.name, *(row.name for row in others)) if others else ()
        folded = len(alike) > FEW and first.name not in unfolded
        yield first._replace(why=said or first.why, alike=alike, folded=folded)
        if not folded:
            yield from (row._replace(same=True, why=error_line(row.session) or row.why) for row in others)


def _rate(session: SessionStatus) -> float:
    return (session.successes or 0) / session.recorded if session.recorded else -1.0


_SORTS: Mapping[str, Callable[[SessionStatus], Any]] = {
    "urgency": group_of,
    "policy": lambda one: (natural(one.policy), natural(one.environment)),
    "environment": lambda one: (natural(one.environment), natural(one.policy)),
    "episodes": lambda one: (one.done or 0) / (one.planned or 1),
    "success": _rate,
    "quiet": lambda one: -(one.idle if one.idle is not None else -1.0),
    "left": lambda one: one.likely_end or float("inf"),
    "tries": lambda one: -one.attempt,
}
SORTS = tuple(_SORTS)


# The filter

_FIELDS: Mapping[str, Callable[[Row], str]] = {
    "state": lambda row: f"{outcome_words(row.session.word)} {row.session.life}",
    "policy": lambda row: row.session.policy,
    "environment": lambda row: row.session.environment,
    "name": lambda row: row.session.name,
    "gpu": lambda row: _whole(*row.session.gpus),
    "why": lambda row: row.why,
    "cause": lambda row: _whole(row.cause),
}
_WHOLE = {"gpu", "cause"}
"""keys whose values must fit as a whole"""


def _whole(*values: object) -> str:
    return "".join(f"={one}=" for one in values)


def parsed(words: str) -> Callable[[Row], bool]:
    """A filter: `state:failed`, `policy:pi0`, `gpu:1`, `-why:cuda`, or a word that stands anywhere. All must fit.

    A key may be shortened, commas give alternatives, and case does not matter.
    """
    tests = [_test(word) for word in words.casefold().split()]
    return lambda row: all(test(row) for test in tests)


def no_key(words: str) -> str:
    """What is wrong with a key of a filter that nothing fits; empty if nothing is. Else a colon may stand in a text."""
    keys = (word.removeprefix("-").partition(":") for word in words.split())
    unknown = [key for key, colon, _ in keys if colon and not any(one.startswith(key.casefold()) for one in _FIELDS)]
    return f"there is no key {unknown[0]}, but {', '.join(_FIELDS)}" if unknown else ""


def _test(word: str) -> Callable[[Row], bool]:
    negated, word = word.startswith("-") and len(word) > 1, word.removeprefix("-")
    key, colon, value = word.partition(":")
    known = next((name for name in _FIELDS if colon and key and name.startswith(key)), "")
    fields = [_FIELDS[known]] if known else [field for name, field in _FIELDS.items() if name not in _WHOLE]
    wanted = value.split(",") if known else [word]
    if known in _WHOLE:
        wanted = list(map(_whole, wanted))

    def fits(row: Row) -> bool:
        texts = [field(row).casefold() for field in fields]
        return any(one in text for one in wanted for text in texts) is not negated

    return fits
