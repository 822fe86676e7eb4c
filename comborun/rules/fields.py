"""What a row of a result file means: a record, an episode, a verdict, and why it does not count. Pure.

A row is one whole object. It is a record of a session if it names the session's own combo, or none, and holds the
index of an episode. It counts if that episode is planned. A record without a verdict is an errored episode: it ran, but
its program reported no result. The host, the live table and the report all use this module.
"""

from __future__ import annotations

import json
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping

TORN, NO_RECORD, POLICY, ENVIRONMENT = "torn", "no_record", "policy", "environment"
INDEX, OUTSIDE, REPEATED, UNREADABLE, FORMAT = "index", "outside", "repeated", "unreadable", "format"
"""why a row does not count"""

IGNORE = "ignore"
"""of policy, environment or seed: what rows say of it does not matter"""
LINE = "line"
"""of the episode: rows hold no index and are numbered in the order in which they were written"""
NO_VERDICTS = "none"
"""of success: rows hold numbers and no verdicts"""
_WORDS = {"policy": IGNORE, "environment": IGNORE, "seed": IGNORE, "episode": LINE, "success": NO_VERDICTS}

MISSING = object()
"""where a row has no such field"""
_LAST_DIGITS = re.compile(r"[0-9]{1,18}$")
_TRUTHS = {"true": True, "false": False}


class RefusedError(Exception):
    """The row is not a record of its session: `reason` is one of the words above, `about` what it named instead."""

    def __init__(self, reason: str, text: str, about: str = "") -> None:
        super().__init__(text)
        self.reason = reason
        self.about = about


class Field:
    """What a grid says of one field of its rows: a name, a word for none, or a JSON object with a test of its value."""

    __slots__ = ("at_least", "at_most", "name", "origin", "path", "values", "word")

    def __init__(self, key: str, text: str = "") -> None:
        value = _object(text)
        self.word = text if text and text == _WORDS.get(key) else ""
        self.name = str(value.get("field", key)) if value else text or key
        self.path = tuple(self.name.split(".")) if "." in self.name else ()
        self.origin = integer(value.get("from")) or 0
        """what the first episode is called"""
        values = value.get("any_of")
        self.values = tuple(map(str, values)) if isinstance(values, list) else ()
        """as they are written: what it has to be"""
        self.at_least, self.at_most = number(value.get("at_least")), number(value.get("at_most"))

    def find(self, row: Mapping[str, Any]) -> Any:
        """Its value in a row, MISSING where it has none. A name with dots is a path where it is no field itself."""
        if self.name in row:
            return row[self.name]
        value: Any = row if self.path else MISSING
        for step in self.path:
            value = value.get(step, MISSING) if isinstance(value, dict) else MISSING
        return value

    @property
    def tests(self) -> bool:
        """Whether it says which values mean a success."""
        return bool(self.values) or self.at_least is not None or self.at_most is not None

    def passes(self, value: object) -> bool | None:
        """Whether a value is one of those that are named, or within the limits; None for what can't be compared."""
        if self.values:
            return any(_same(value, wanted) for wanted in self.values)
        amount = number(value)
        if amount is None:
            return None
        return (self.at_least is None or amount >= self.at_least) and (self.at_most is None or amount <= self.at_most)


def _object(text: str) -> dict[str, Any]:
    if not text.startswith("{"):
        return {}
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def number(value: object) -> float | None:
    """The finite number that a value holds or spells; true and false are none."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        amount = float(value)
    except (ValueError, OverflowError):
        return None
    return amount if abs(amount) < float("inf") else None


def _same(value: object, wanted: str) -> bool:
    if isinstance(value, bool):
        return wanted.lower() == str(value).lower()
    if isinstance(value, (int, float)):
        return number(wanted) == value
    return isinstance(value, str) and value.strip() == wanted


class Identity:
    """What a record of a session may say: its combo, and the fields that hold verdict, index and the combo's names.

    A policy or environment of None must be named by each row. An empty one is not known, and nothing is asked.
    """

    __slots__ = (
        *("base", "environment", "environment_field", "episode", "more", "pattern", "policy", "policy_field", "seed"),
        *("success", "written"),
    )

    def __init__(
        self,
        policy: str | None,
        environment: str | None,
        success: str = "success",
        episode: str = "episode",
        **more: str,
    ) -> None:
        self.policy = policy
        self.environment = environment
        self.success = Field("success", success)
        self.episode = Field("episode", episode)
        self.written = {"success": success, "episode": episode}
        self.base = int(more.get("base") or 0)
        """what an index that a row holds is counted from"""
        self.more = more
        self.policy_field = Field(POLICY, more.get("policy_field", ""))
        self.environment_field = Field(ENVIRONMENT, more.get("environment_field", ""))
        self.seed = Field("seed", more.get("seed", ""))
        self.pattern = more.get("pattern", "")
        """of the lines of a log that are its records"""

    @property
    def verdict_key(self) -> str:
        """Where a format puts a verdict that it knows itself."""
        return "success" if self.success.tests or self.success.word else self.success.name

    def in_words(self, success: str, episode: str) -> Identity:
        """The same combo in the words of another format."""
        return Identity(self.policy, self.environment, success, episode, **self.more)


class Record:
    """One episode, read from a row. `verdict` is None if the row has none; `complaint` says why that is an error."""

    __slots__ = ("complaint", "environment", "index", "policy", "verdict")

    def __init__(self, policy: str, environment: str, index: int, verdict: bool | None, complaint: str) -> None:
        self.policy = policy
        self.environment = environment
        self.index = index
        self.verdict = verdict
        self.complaint = complaint


def read_row(value: object, identity: Identity, order: int | None = None) -> Record:
    """The record in a decoded value. Raises RefusedError. `order` is its index where rows hold none of their own."""
    if not isinstance(value, dict):
        raise RefusedError(NO_RECORD, "not a JSON object")
    policy = _name(value, identity.policy_field, identity.policy, POLICY)
    environment = _name(value, identity.environment_field, identity.environment, ENVIRONMENT)
    index = episode_of(value, identity.episode) + identity.base if order is None else order
    verdict, complaint = verdict_of(value, identity.success)
    return Record(policy, environment, index, verdict, complaint)


def order_of(value: object, order: int | None, identity: Identity) -> int | None:
    """The number that a format gives a row, unless the row has one itself."""
    held = order is not None and isinstance(value, dict) and identity.episode.find(value) is not MISSING
    return None if held else order


def _name(row: Mapping[str, Any], field: Field, own: str | None, key: str) -> str:
    """The policy or environment of a row: its session's own, which the row may repeat but not contradict."""
    named = MISSING if field.word else field.find(row)
    if isinstance(named, (int, float)) and not isinstance(named, bool):
        named = str(named)
    if not isinstance(named, str) or not named:
        if own is None:
            raise RefusedError(key, f"names no {key}")
        return own
    expected = field.values or ((own,) if own else ())
    if expected and named not in expected:
        meant = " or ".join(map(repr, expected))
        raise RefusedError(key, f"of another {key}: {named!r}, where {meant} ran", named)
    return own or named


def episode_of(row: Mapping[str, Any], field: Field) -> int:
    """The index: a whole number, or a text that ends in one. Raises RefusedError."""
    value = field.find(row)
    if value is MISSING:
        raise RefusedError(INDEX, f"no field {field.name!r} with the episode's index", ", ".join(list(row)[:6]))
    index = integer(value)
    if isinstance(value, str):
        digits = _LAST_DIGITS.search(value)
        index = int(digits.group()) if digits else None
    if index is None or index < 0:
        raise RefusedError(INDEX, f"the field {field.name!r} holds no episode index")
    if index < field.origin:
        raise RefusedError(INDEX, f"the field {field.name!r} holds {index}, and they count from {field.origin}")
    return index - field.origin


def verdict_of(row: Mapping[str, Any], field: Field) -> tuple[bool | None, str]:
    """Where the grid names no test, true and false, 1 and 0, "true" and "false" are verdicts. Nothing else is."""
    value = None if field.word else field.find(row)
    if value is None:
        return None, ""
    if value is MISSING:
        return None, f"no field {field.name!r}: errored"
    if field.tests:
        passed = field.passes(value)
        return passed, f"the field {field.name!r} holds no finite number: errored" if passed is None else ""
    if isinstance(value, str):
        value = _TRUTHS.get(value.strip().lower())
    if isinstance(value, (bool, int, float)) and value in (True, False):
        return bool(value), ""
    return None, f"the field {field.name!r} is neither true nor false: errored"


def integer(value: object) -> int | None:
    """The integer that a JSON value holds: 7 and 7.0, but not true, "7" or 7.5."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) else None
