"""Reads rows of a large file that look like one that the rules have read, without asking the rules again.

Two rows look alike if they have the same fields in the same order, with values of the same kinds. Then only values are
left to check: the combo's names, the index, whether numbers are finite. Such rows are read together, column by column.
All other rows are left to the rules, and so are all rows if a grid tests values or names a path.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat, starmap
from math import isfinite
from struct import Struct
from typing import Any

from comborun.model.attempt import EpisodeRecord, Verdict
from comborun.rules.results.fields import Identity

Column = Sequence[Any]

NUMBER: frozenset[type] = frozenset({int, float})
OTHER: frozenset[type] = frozenset({str, bool, type(None)})
ROLES = 5
"""fields that the rules look at"""
MOST_LAYOUTS = 64
WORD = 24
"""most characters of a text that is kept once"""
SMALL = 1 << 16
"""indices and seeds below it are kept once"""
_INTEGERS: dict[int, int] = {}
_VERDICTS = {True: Verdict.SUCCESS, False: Verdict.FAILURE}


@dataclass(frozen=True)
class _Layout:
    kinds: tuple[frozenset[type], ...]
    examples: dict[object, tuple[Any, ...]]
    """by the values of the fields `combo`: what records of this combo share"""
    combo: Sequence[int]
    episode: int
    success: int
    seed: int | None
    numbers: Sequence[int]
    """columns of values that must be finite"""
    metrics: Sequence[int]
    texts: Sequence[int]
    pack: Struct

    def read(self, columns: Sequence[Column], line: int) -> list[EpisodeRecord] | None:
        episodes = columns[self.episode]
        count = len(episodes)
        if not all(kinds.issuperset(map(type, column)) for kinds, column in zip(self.kinds, columns, strict=True)):
            return None
        shared = [*map(self.examples.get, _across([columns[at] for at in self.combo], count))]
        if None in shared or min(episodes) < 0 or not all(isfinite(sum(columns[at])) for at in self.numbers):
            return None
        policies, environments, sessions, attempts, paths, names = zip(*shared, strict=True)
        return [
            *map(
                EpisodeRecord,
                policies,
                environments,
                integers_once(episodes),
                map(_VERDICTS.__getitem__, columns[self.success]),
                repeat(None) if self.seed is None else integers_once(columns[self.seed]),
                sessions,
                attempts,
                paths,
                integers_once(range(line, line + count)),
                names,
                starmap(self.pack.pack, _across([columns[at] for at in self.metrics], count)),
                _across([_once_each(columns[at]) for at in self.texts], count),
            )
        ]


def _across(columns: Sequence[Iterable[Any]], count: int) -> Iterable[tuple[Any, ...]]:
    return zip(*columns, strict=True) if columns else repeat((), count)


def once(value: Any) -> Any:
    return sys.intern(value) if type(value) is str and len(value) <= WORD else value


def _once_each(column: Column) -> Iterable[Any]:
    kinds = {*map(type, column)}
    if kinds != {str}:
        return map(once, column) if str in kinds else column
    words = {word: once(word) for word in {*column}}
    return map(words.__getitem__, column)


def integers_once(column: Sequence[int]) -> Iterable[int]:
    return map(_INTEGERS.setdefault, column, column) if min(column) >= 0 and max(column) < SMALL else column


class PlainRows:
    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        fields = (identity.policy_field, identity.environment_field, identity.seed, identity.episode, identity.success)
        asks = identity.base or any(
            field.word or field.names or field.path or field.tests or field.origin for field in fields
        )
        self._room = 0 if asks else MOST_LAYOUTS
        self._layouts: dict[tuple[str, ...], _Layout] = {}

    def read(self, rows: Sequence[Any], line: int) -> list[EpisodeRecord] | None:
        """The records of rows on consecutive lines; None if the rules must read them."""
        if not self._layouts or {*map(type, rows)} != {dict}:
            return None
        names = {*map(tuple, rows)}
        layout = self._layouts.get(names.pop())
        try:
            return layout.read([*zip(*map(dict.values, rows), strict=True)], line) if layout and not names else None
        except OverflowError:  # an integer that no float holds
            return None

    def learn(self, row: dict[str, Any], record: EpisodeRecord) -> None:
        """Remember a row that the rules read without a complaint."""
        kinds = (*map(type, row.values()),)
        layout = self._layouts.get((*row,))
        if layout is None or not all(map(frozenset.__contains__, layout.kinds, kinds)):
            layout = self._layout(row, kinds, record) if len(self._layouts) < self._room else None
        if layout:
            self._layouts[(*row,)] = layout
            values = (*row.values(),)
            layout.examples[tuple(values[column] for column in layout.combo)] = (
                *(record.policy, record.environment, record.session, record.attempt, record.path, record.names),
            )

    def _layout(self, row: Iterable[str], kinds: tuple[type, ...], record: EpisodeRecord) -> _Layout | None:
        """None if a field has a role that it could not have in another row."""
        identity, (metrics, others) = self.identity, record.names
        columns = {name: column for column, name in enumerate(row)}
        combo = {identity.policy_field.name: str, identity.environment_field.name: str}
        roles: dict[str, type] = {
            **combo,
            identity.episode.name: int,
            identity.success.name: bool,
            identity.seed.name: int,
        }
        held = columns.keys() & roles.keys()
        known = [columns[name] for name in (*metrics, *others) if name in columns and name not in roles]
        whole = (
            len(roles) == ROLES and len(known) + len(held) == len(columns) and len(known) == len(metrics) + len(others)
        )
        allowed = [
            frozenset({roles[name]}) if name in roles else NUMBER if kind in NUMBER else OTHER
            for name, kind in zip(row, kinds, strict=True)
        ]
        if not whole or not {identity.episode.name, identity.success.name} <= held:
            return None
        if not all(map(frozenset.__contains__, allowed, kinds)):
            return None
        return _Layout(
            kinds=(*allowed,),
            examples={},
            combo=[columns[name] for name in combo if name in columns],
            episode=columns[identity.episode.name],
            success=columns[identity.success.name],
            seed=columns.get(identity.seed.name),
            numbers=[column for column in known if kinds[column] in NUMBER],
            metrics=[columns[name] for name in metrics],
            texts=[columns[name] for name in others],
            pack=Struct(f"{len(metrics)}d"),
        )
