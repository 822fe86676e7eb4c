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
"""for policy, environment or seed: whatever rows say is accepted"""
LINE = "line"
"""for the episode: rows have no index and are numbered as they were written"""
NO_VERDICTS = "none"
"""for success: rows have numbers and no verdicts"""
_WORDS = {"policy": IGNORE, "environment": IGNORE, "seed": IGNORE, "episode": LINE, "success": NO_VERDICTS}

TRAINING = "train-step"
"""the format of lines that count steps of a training, and no episodes"""
MISSING = object()
"""stands for a field that a row doesn't have"""
_LAST_DIGITS = re.compile(r"[0-9]{1,18}$")
_TRUTHS = {"true": True, "false": False}


class RefusedError(Exception):
    """The row is not a record of its session: `reason` is a word from above, `about` the name or index in the row."""

    def __init__(self, reason: str, text: str, about: str = "") -> None:
        super().__init__(text)
        self.reason = reason
        self.about = about


class Field:
    """A field of the rows, as the grid gives it: a name, one of the words above, or a JSON object with a test of its
    value.
    """

    __slots__ = ("at_least", "at_most", "name", "origin", "path", "values", "word")

    def __init__(self, key: str, text: str = "") -> None:
        value = _object(text)
        self.word = text if text and text == _WORDS.get(key) else ""
        self.name = str(value.get("field", key)) if value else text or key
        self.path = tuple(self.name.split(".")) if "." in self.name else ()
        self.origin = integer(value.get("from")) or 0
        """the number of the first episode in the rows"""
        values = value.get("any_of")
        self.values = tuple(map(str, values)) if isinstance(values, list) else ()
        """the accepted values, as they are written"""
        self.at_least, self.at_most = number(value.get("at_least")), number(value.get("at_most"))

    def find(self, row: Mapping[str, Any]) -> Any:
        """The value in a row, or MISSING. A name with dots that is not a field is a path."""
        if self.name in row:
            return row[self.name]
        value: Any = row if self.path else MISSING
        for step in self.path:
            value = value.get(step, MISSING) if isinstance(value, dict) else MISSING
        return value

    @property
    def tests(self) -> bool:
        """Whether the grid says which values mean a success."""
        return bool(self.values) or self.at_least is not None or self.at_most is not None

    def passes(self, value: object) -> bool | None:
        """Whether a value is one of the accepted ones, or within the limits; None if it can't be compared."""
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
    """The finite number that a value is or spells, or None. True and false are not numbers."""
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
    """What identifies a record of a session: its combo, and the fields that hold verdict, index and the combo's names.

    If policy or environment is None, each row must name it. If it is empty, it is unknown and not checked.
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
        """added to the index that a row holds"""
        self.more = more
        self.policy_field = Field(POLICY, more.get("policy_field", ""))
        self.environment_field = Field(ENVIRONMENT, more.get("environment_field", ""))
        self.seed = Field("seed", more.get("seed", ""))
        self.pattern = more.get("pattern", "")
        """finds the lines of a log that are records"""

    @property
    def verdict_key(self) -> str:
        """The field into which a format writes a verdict that it finds itself."""
        return "success" if self.success.tests or self.success.word else self.success.name

    def in_words(self, success: str, episode: str) -> Identity:
        """The same combo with the field names of another format."""
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
    """The record in a decoded value. `order` is the index for rows that have none. Raises RefusedError."""
    if not isinstance(value, dict):
        raise RefusedError(NO_RECORD, "not a JSON object")
    policy = _name(value, identity.policy_field, identity.policy, POLICY)
    environment = _name(value, identity.environment_field, identity.environment, ENVIRONMENT)
    index = episode_of(value, identity.episode) + identity.base if order is None else order
    verdict, complaint = verdict_of(value, identity.success)
    return Record(policy, environment, index, verdict, complaint)


def order_of(value: object, order: int | None, identity: Identity) -> int | None:
    """The index that a format gives a row, unless the row has its own."""
    held = order is not None and isinstance(value, dict) and identity.episode.find(value) is not MISSING
    return None if held else order


def _name(row: Mapping[str, Any], field: Field, own: str | None, key: str) -> str:
    """The policy or environment of a row. The row may repeat the session's own, but not contradict it."""
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
    """The verdict of a row, and a complaint if it has none. Without a test of the grid only true and false, 1 and 0,
    "true" and "false" are verdicts.
    """
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
