"""One object of a result file -> one EpisodeRecord. Pure."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from comborun.attempt import EpisodeRecord, Verdict
from comborun.reporter.adapters import RejectKind
from comborun.rules.episodes import DEPTH_LIMIT, ENVIRONMENT, POLICY, Identity, RefusedError, integer, read_row

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comborun.attempt import JsonValue
    from comborun.reporter.adapters import Context

_VERDICTS = {True: Verdict.SUCCESS, False: Verdict.FAILURE, None: Verdict.ERRORED}


class RowError(Exception):
    """The object is no record of this session."""

    def __init__(self, reason: str, kind: RejectKind = RejectKind.NOT_A_RECORD) -> None:
        super().__init__(reason)
        self.kind = kind


class Row(NamedTuple):
    """A record, and what was wrong with it all the same."""

    record: EpisodeRecord
    defects: tuple[str, ...]


def parse_row(value: Any, context: Context, line: int) -> Row:
    """The record in one decoded JSON value; raises RowError when there is none. Line 0 is the file as a whole."""
    rules = context.rules
    try:
        told = read_row(value, Identity(context.policy, context.environment, rules.success, rules.episode))
    except RefusedError as refused:
        foreign = refused.reason in {POLICY, ENVIRONMENT} and refused.about
        raise RowError(str(refused), RejectKind.FOREIGN if foreign else RejectKind.NOT_A_RECORD) from None
    row: dict[str, Any] = value
    seed = integer(row.get("seed"))
    known = {"policy", "environment"}
    if seed is not None:
        known.add("seed")
    if not isinstance(row[rules.episode], str):
        known.add(rules.episode)
    if not told.complaint:
        known.add(rules.success)
    fields = _Fields.sort(row, known, rules.metrics)
    record = EpisodeRecord(
        policy=sys.intern(told.policy),
        environment=sys.intern(told.environment),
        episode=told.index,
        verdict=_VERDICTS[told.verdict],
        seed=seed,
        metrics=fields.metrics,
        extra=fields.extra if fields.mixed else _shared(tuple(fields.extra.items())),
        session=context.session,
        attempt=context.attempt,
        source=f"{context.path}:{line}" if line else context.path,
    )
    return Row(record, (*filter(None, (told.complaint,)), *fields.defects))


@lru_cache(maxsize=1024)
def _shared(fields: tuple[tuple[str, str], ...]) -> Mapping[str, JsonValue]:
    """One mapping for all records that say the same in words: how an episode ended, say."""
    return dict(fields)


@dataclass(slots=True)
class _Fields:
    """The fields of a row that are neither its key nor its verdict."""

    metrics: dict[str, float]
    extra: dict[str, Any]
    defects: list[str]
    mixed: bool = False
    """whether anything in `extra` is no text"""

    @classmethod
    def sort(cls, row: Mapping[str, Any], known: set[str], wanted: tuple[str, ...]) -> _Fields:
        fields = cls({}, {}, [])
        for key, value in row.items():
            if key not in known:
                kind = type(value)  # what json makes has no subclasses; this is the hot spot of large runs
                if kind is float or kind is int:
                    fields.add_number(sys.intern(key), value, metric=not wanted or key in wanted)
                else:
                    plain = kind is str or kind is bool or value is None
                    fields.mixed |= kind is not str
                    fields.extra[sys.intern(key)] = value if plain else _without_nan(value)
        return fields

    def add_number(self, key: str, value: float, *, metric: bool) -> None:
        try:
            finite = math.isfinite(value)
        except OverflowError:  # an integer that no float can hold
            finite = False
        if not finite:
            self.defects.append(f"the field {key!r} is not a finite number: left out")
        elif metric:
            self.metrics[key] = float(value)
        else:
            self.mixed = True
            self.extra[key] = value


def _without_nan(value: JsonValue, depth: int = 0) -> JsonValue:
    """A list or object as it came, but null where JSON could not say what stood there."""
    if depth > DEPTH_LIMIT:
        raise RowError("nested too deeply")
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, list):
        return [_without_nan(entry, depth + 1) for entry in value]
    if isinstance(value, dict):
        return {key: _without_nan(entry, depth + 1) for key, entry in value.items()}
    return value
