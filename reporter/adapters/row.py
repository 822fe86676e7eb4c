"""One object of a result file -> one EpisodeRecord. Pure."""

from __future__ import annotations

import math
import re
import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from comborun.episode import EpisodeRecord, Verdict
from reporter.adapters import RejectKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comborun.episode import JsonValue
    from reporter.adapters import Context

DEPTH_LIMIT = 100
"""of lists and objects in a field"""

_LAST_DIGITS = re.compile(r"[0-9]{1,18}$")
_VERDICTS = {True: Verdict.SUCCESS, False: Verdict.FAILURE}
_WORDS = {"true": True, "false": False}


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
    if not isinstance(value, dict):
        raise RowError("not a JSON object")
    row: dict[str, Any] = value
    rules = context.rules
    policy = _combo_name(row, "policy", context.policy)
    environment = _combo_name(row, "environment", context.environment)
    episode = _episode(row, rules.episode)
    verdict, complaint = _verdict(row, rules.success)
    seed = integer(row.get("seed"))
    known = {"policy", "environment"}
    if seed is not None:
        known.add("seed")
    if not isinstance(row[rules.episode], str):
        known.add(rules.episode)
    if not complaint:
        known.add(rules.success)
    fields = _Fields.sort(row, known, rules.metrics)
    record = EpisodeRecord(
        policy=policy,
        environment=environment,
        episode=episode,
        verdict=verdict,
        seed=seed,
        metrics=fields.metrics,
        extra=fields.extra if fields.mixed else _shared(tuple(fields.extra.items())),
        session=context.session,
        attempt=context.attempt,
        source=f"{context.path}:{line}" if line else context.path,
    )
    return Row(record, (*complaint, *fields.defects))


def integer(value: Any) -> int | None:
    """The integer that a JSON value holds: 7 and 7.0, but not true, "7" or 7.5."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) else None


def _combo_name(row: Mapping[str, Any], key: str, expected: str | None) -> str:
    """The policy or environment of a row: its session's own, which the row may repeat but not contradict."""
    named = row.get(key)
    if isinstance(named, int | float) and not isinstance(named, bool):
        named = str(named)
    if not isinstance(named, str) or not named:
        if expected is None:
            raise RowError(f"names no {key}")
        return expected
    if expected is None:
        return sys.intern(named)
    if named != expected:
        raise RowError(f"of another {key}: {named!r}, where {expected!r} ran", RejectKind.FOREIGN)
    return expected


def _episode(row: Mapping[str, Any], key: str) -> int:
    if key not in row:
        raise RowError(f"no field {key!r} with the episode's index")
    value = row[key]
    index = integer(value)
    if isinstance(value, str) and (digits := _LAST_DIGITS.search(value)):
        index = int(digits[0])
    if index is None or index < 0:
        raise RowError(f"the field {key!r} holds no episode index")
    return index


def _verdict(row: Mapping[str, Any], key: str) -> tuple[Verdict, tuple[str, ...]]:
    """true and false, 1 and 0, "true" and "false" are verdicts. Nothing else is: not null, not .5, not "done"."""
    if key not in row:
        return Verdict.ERRORED, (f"no field {key!r}: errored",)
    value = row[key]
    if value is None:
        return Verdict.ERRORED, ()
    if isinstance(value, str):
        value = _WORDS.get(value.strip().lower())
    if isinstance(value, bool | int | float) and value in _VERDICTS:
        return _VERDICTS[bool(value)], ()
    return Verdict.ERRORED, (f"the field {key!r} is neither true nor false: errored",)


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
