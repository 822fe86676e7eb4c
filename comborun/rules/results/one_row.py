"""What a row of a result file means: a record, an episode, a verdict, and why it does not count. Pure.

A row is one whole object. It is a record of a session if it names the session's own combo, or none, and holds the
index of an episode. It counts if that episode is planned. A record without a verdict is an errored episode: it ran, but
its program reported no result. The host, the live table and the report all use this module.
"""

from __future__ import annotations

import re

from comborun.rules.facts import Fact
from comborun.rules.patterns import late
from comborun.rules.results.fields import (
    ENVIRONMENT,
    INDEX,
    MISSING,
    NAMES_ANOTHER,
    NO_RECORD,
    POLICY,
    TEXT_MOST,
    RefusedError,
    integer,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping

    from comborun.rules.results.fields import Field, Identity

_NAMED = late(r"(?:^|[^a-z])(?:episode|ep|trial|rollout)[ _-]*([0-9]{1,18})(?=[ _-]+[a-z])", re.IGNORECASE)
"""an index that a text names before it goes on, as in `ep007_seed42`"""
_LAST_DIGITS = late(r"([0-9]{1,18})(?:[ _-]*of[ _-]*[0-9]{1,18})?$")
"""the index in a text: `trial_7`, `trial_7_of_10`"""
_TRUTHS = {"true": True, "false": False}


class Record:
    """One episode, read from a row. `verdict` is None if the row has none; `complaint` tells why that is an error, and
    `value` is what its field holds, if the grid does not test it.
    """

    __slots__ = ("complaint", "environment", "index", "policy", "value", "verdict")

    def __init__(
        self, policy: str, environment: str, index: int, verdict: bool | None, complaint: Fact | None = None
    ) -> None:
        self.policy = policy
        self.environment = environment
        self.index = index
        self.verdict = verdict
        self.complaint = complaint
        self.value: Any = None


def read_row(value: object, identity: Identity, order: int | None = None) -> Record:
    """The record in a decoded value. `order` is the index for rows that have none. Raises RefusedError."""
    if not isinstance(value, dict):
        raise RefusedError(NO_RECORD, "not_an_object")
    policy = _name(value, identity.policy_field, identity.policy, POLICY)
    environment = _name(value, identity.environment_field, identity.environment, ENVIRONMENT, identity.rules.named)
    index = episode_of(value, identity.episode) + identity.base if order is None else order
    verdict, complaint = verdict_of(value, identity.success)
    record = Record(policy, environment, index, verdict, complaint)
    if not (identity.success.word or identity.success.tests):
        record.value = identity.success.find(value)
    return record


def order_of(value: object, order: int | None, identity: Identity) -> int | None:
    """The index that a format gives a row, unless the row has its own."""
    held = order is not None and isinstance(value, dict) and identity.episode.find(value) is not MISSING
    return None if held else order


def _name(row: Mapping[str, Any], field: Field, own: str | None, key: str, known: tuple[str, ...] = ()) -> str:
    """The policy or environment of a row. The row may repeat the session's own, but not contradict it. `known`: it must
    name one of these.
    """
    named = MISSING if field.word else field.find(row)
    if isinstance(named, (int, float)) and not isinstance(named, bool):
        named = str(named)
    if not isinstance(named, str) or not named:
        if own is None or known:
            raise RefusedError(key, "names_none", kind=key)
        return own
    expected = field.values or ((own,) if own else ())
    if expected and named not in expected:
        raise RefusedError(key, NAMES_ANOTHER, kind=key, named=named[:TEXT_MOST], expected=list(expected))
    return own or named


def of_sibling(row: object, identity: Identity) -> bool:
    """Whether a row is of another environment of the same process (`together`)."""
    if not identity.rules.named or not isinstance(row, dict):
        return False
    return names_sibling(identity.environment_field.find(row), identity)


def names_sibling(environment: object, identity: Identity) -> bool:
    own = identity.environment_field.values or (identity.environment,)
    return str(environment) in identity.rules.named and str(environment) not in own


def episode_of(row: Mapping[str, Any], field: Field) -> int:
    """The index: a whole number, or a text that ends in one. Raises RefusedError."""
    value = field.find(row)
    if value is MISSING:
        raise RefusedError(INDEX, "no_index_field", field=field.name, has=[name[:TEXT_MOST] for name in list(row)[:6]])
    index = integer(value)
    if isinstance(value, str):
        digits = _NAMED.search(value) or _LAST_DIGITS.search(value)
        index = int(digits.group(1)) if digits else None
    if index is None or index < 0:
        raise RefusedError(INDEX, "no_index", field=field.name)
    if index < field.origin:
        raise RefusedError(INDEX, "index_below_first", field=field.name, index=index, first=field.origin)
    return index - field.origin


def verdict_of(row: Mapping[str, Any], field: Field) -> tuple[bool | None, Fact | None]:
    """The verdict of a row, and a complaint if it has none. Without a test of the grid only true and false, 1 and 0,
    "true" and "false" are verdicts.
    """
    value = None if field.word else field.find(row)
    if value is None:
        return None, None
    if value is MISSING:
        return None, Fact("no_verdict_field", field=field.name)
    if field.tests:
        passed = field.passes(value)
        return passed, Fact("verdict_no_number", field=field.name) if passed is None else None
    if isinstance(value, list) and len(value) == 1:  # of a vector of one environment
        value = value[0]
    if isinstance(value, str):
        value = _TRUTHS.get(value.strip().lower())
    if isinstance(value, (bool, int, float)) and value in (True, False):
        return bool(value), None
    return None, Fact("verdict_no_truth", field=field.name)
