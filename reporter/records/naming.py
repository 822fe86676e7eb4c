"""Columns that may name the policy or the environment of rows that repeat episodes, whatever they are called. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import chain, product

from comborun.model.attempt import EpisodeRecord, held
from comborun.reporter.records.path_parts import COLUMNS
from comborun.rules.results.fields import ENVIRONMENT, POLICY
from comborun.rules.results.repeats import of_parts

WORDS = {
    POLICY: (
        *COLUMNS[POLICY],
        *("method", "algo", "algorithm", "approach", "variant", "baseline", "arm", "controller", "planner"),
    ),
    ENVIRONMENT: (
        *COLUMNS[ENVIRONMENT],
        *("level", "difficulty", "layout", "map", "room", "domain", "world", "object", "instruction", "condition"),
    ),
}
"""words in the names of columns that name such things, the surest first"""
MOST = 100


def naming(several: Sequence[Sequence[EpisodeRecord]], unknown: Collection[str], by: str) -> dict[str, str]:
    """By kind, the columns that together tell the rows of each episode apart; empty if there are none. `unknown`: what
    no row names; a column `by` that is called like a policy or an environment needs no more."""
    if by and (kind := next((kind for kind, names in COLUMNS.items() if by in names), "")) and _apart(several, [by]):
        return {kind: by}
    texts = [name for name in _texts(several) if not of_parts(name)]
    kinds = [kind for kind in (POLICY, ENVIRONMENT) if kind in unknown]
    for kind in kinds:
        alone = [name for name in _ranked(texts, kind) if _apart(several, [name])]
        alone = [name for name in alone if len(kinds) == 1 or _place(name, kind) < len(WORDS[kind])]
        if alone:
            return {kind: alone[0]}
    if len(kinds) > 1:
        sure = {
            kind: [name for name in _ranked(texts, kind) if _place(name, kind) < len(WORDS[kind])] for kind in kinds
        }
        for policy, environment in product(sure[POLICY], sure[ENVIRONMENT]):
            if policy != environment and _apart(several, [policy, environment]):
                return {POLICY: policy, ENVIRONMENT: environment}
    return {}


def _texts(several: Sequence[Sequence[EpisodeRecord]]) -> Iterator[str]:
    """Columns with a text in each row, and few different ones, each in several rows."""
    rows = [*chain.from_iterable(several)]
    for name in sorted(set.intersection(*({*chain(*names)} for names in held(rows)))):
        values = [one.field(name) for one in rows]
        if all(isinstance(one, str) and one.strip() for one in values):
            different = {str(one) for one in values}
            if 1 < len(different) <= min(MOST, len(rows) // 2):
                yield name


def _ranked(names: Sequence[str], kind: str) -> list[str]:
    return sorted(names, key=lambda name: (_place(name, kind), name))


def _place(name: str, kind: str) -> int:
    plain = name.casefold().replace("-", "_").removesuffix("_id").removesuffix("_name")
    words = WORDS[kind]
    return next((at for at, word in enumerate(words) if plain == word or name == word), len(words))


def _apart(several: Sequence[Sequence[EpisodeRecord]], names: Sequence[str]) -> bool:
    """Whether each row of an episode has values of its own."""
    return all(len({tuple(str(one.field(name)) for name in names) for one in rows}) == len(rows) for rows in several)
