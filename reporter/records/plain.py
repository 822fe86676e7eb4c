"""Rows of a large file without asking the rules about each: rows that look like one that the rules have read.

Two rows look alike when they have the same fields in the same order, with values of the same simple types. Then the
rules say the same of their fields, and only values are left to check: the combo's names, the index, whether a number is
finite. Whatever does not pass is left to the rules, and so is any row while a grid tests values or names a path.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from math import isfinite
from operator import itemgetter
from struct import Struct
from typing import TYPE_CHECKING, Any

from comborun.attempt import EpisodeRecord, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from comborun.rules.fields import Identity

    Pick = Callable[[Sequence[Any]], tuple[Any, ...]]

SIMPLE = frozenset({str, int, float, bool, type(None)})
ROLES = 5
"""fields that the rules look at"""
MOST_LAYOUTS = 64
"""most layouts of a file; for a program that invents fields this does not help"""
WORD = 24
"""signs: a text this short comes again and again, and is kept once"""


@dataclass(frozen=True)
class _Layout:
    """The positions of a row's fields."""

    kinds: tuple[type, ...]
    examples: dict[object, EpisodeRecord]
    """by the names that the fields of `combo` hold"""
    combo: Pick
    episode: int
    success: int
    seed: int | None
    numbers: Pick
    """positions of values that must be finite"""
    metrics: Pick
    texts: Pick
    """fields that are no metrics"""
    pack: Struct

    def read(self, values: Sequence[Any], line: int) -> EpisodeRecord | None:
        example = self.examples.get(self.combo(values))
        if not example or values[self.episode] < 0 or not isfinite(sum(self.numbers(values))):
            return None
        return EpisodeRecord(
            example.policy,
            example.environment,
            values[self.episode],
            Verdict.SUCCESS if values[self.success] else Verdict.FAILURE,
            None if self.seed is None else values[self.seed],
            example.session,
            example.attempt,
            example.path,
            line,
            example.names,
            self.pack.pack(*self.metrics(values)),
            tuple(map(once, self.texts(values))),
        )


def _pick(places: Sequence[int]) -> Pick:
    """A function that returns the values at these positions."""
    if len(places) > 1:
        return itemgetter(*places)
    return lambda values: tuple(values[place] for place in places)


def once(value: Any) -> Any:
    """The same object for equal short texts."""
    return sys.intern(value) if type(value) is str and len(value) <= WORD else value


class PlainRows:
    """Of one file."""

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        fields = (identity.policy_field, identity.environment_field, identity.seed, identity.episode, identity.success)
        asks = identity.base or any(field.word or field.path or field.tests or field.origin for field in fields)
        self._room = 0 if asks else MOST_LAYOUTS
        self._layouts: dict[tuple[Any, ...], _Layout] = {}

    def read(self, row: Any, line: int) -> EpisodeRecord | None:
        """None where only the rules can tell."""
        if not self._layouts or type(row) is not dict:
            return None
        layout, values = self._layouts.get((*row,)), (*row.values(),)
        try:
            return layout.read(values, line) if layout and (*map(type, values),) == layout.kinds else None
        except OverflowError:  # an integer that no float holds
            return None

    def learn(self, row: dict[str, Any], record: EpisodeRecord) -> None:
        """The look of a row of which the rules found this record, and nothing wrong with it."""
        kinds = (*map(type, row.values()),)
        layout = self._layouts.get((*row,))
        if (not layout or layout.kinds != kinds) and len(self._layouts) < self._room and SIMPLE.issuperset(kinds):
            layout = self._layout(row, kinds, record)
        if layout and layout.kinds == kinds:
            self._layouts[(*row,)] = layout
            layout.examples[layout.combo((*row.values(),))] = record

    def _layout(self, row: Iterable[str], kinds: tuple[type, ...], record: EpisodeRecord) -> _Layout | None:
        """None where a field has a role that it could not have in another row."""
        identity, (metrics, others) = self.identity, record.names
        places = {name: place for place, name in enumerate(row)}
        combo = {identity.policy_field.name: str, identity.environment_field.name: str}
        roles = {**combo, identity.episode.name: int, identity.success.name: bool, identity.seed.name: int}
        held = places.keys() & roles.keys()
        known = [places[name] for name in (*metrics, *others) if name in places and name not in roles]
        whole = (
            len(roles) == ROLES and len(known) + len(held) == len(places) and len(known) == len(metrics) + len(others)
        )
        if not whole or not {identity.episode.name, identity.success.name} <= held:
            return None
        if any(kinds[places[name]] is not roles[name] for name in held):
            return None
        return _Layout(
            kinds=kinds,
            examples={},
            combo=_pick([places[name] for name in combo if name in places]),
            episode=places[identity.episode.name],
            success=places[identity.success.name],
            seed=places.get(identity.seed.name),
            numbers=_pick([place for place in known if kinds[place] in {int, float}]),
            metrics=_pick([places[name] for name in metrics]),
            texts=_pick([places[name] for name in others]),
            pack=Struct(f"{len(metrics)}d"),
        )
