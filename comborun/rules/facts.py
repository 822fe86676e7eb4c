"""A fact: what comborun has found out, as a code and fields. English is made from it last, in `comborun/words`.

Whoever decides makes the fact; records, answers and documents carry it as one JSON object, `{"code": ..., FIELD: ...}`.
Codes are stable, new ones are additive, and a fact with an unknown code is kept and shown as itself. No code reads a
sentence that other code wrote, and a name that a user chose is only ever a field.
"""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Mapping


class Fact:
    """A code, and fields that are JSON values. No field is called `code`."""

    __slots__ = ("code", "fields")

    def __init__(self, code: str, **fields: Any) -> None:
        self.code = str(code)
        self.fields = fields

    @classmethod
    def of(cls, value: object) -> Fact | None:
        """From its JSON object; None if that is something else, such as a record that is torn or foreign."""
        if not isinstance(value, dict) or not isinstance(value.get("code"), str) or not value["code"]:
            return None
        fact = cls(value["code"])
        fact.fields = {str(key): field for key, field in value.items() if key != "code"}
        return fact

    def as_data(self) -> dict[str, Any]:
        return {"code": self.code, **self.fields}

    def without(self, *keys: str) -> Fact:
        """The same fact without these fields."""
        return Fact(self.code, **{key: field for key, field in self.fields.items() if key not in keys})

    # Fields of a fact that was read may have any type, so each is asked for by the type that it should have.

    def text(self, key: str) -> str:
        """The field as text: a number too; empty for what is absent, a list or an object."""
        value = self.fields.get(key)
        return "" if value is None or isinstance(value, (dict, list, tuple)) else str(value)

    def number(self, key: str) -> float | None:
        """The field as a finite number, or None."""
        value = self.fields.get(key)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value - value != 0:
            return None
        return value

    def count(self, key: str) -> int:
        """The field as an integer; 0 for what is none."""
        number = self.number(key)
        return int(number) if number is not None else 0

    def texts(self, key: str) -> tuple[str, ...]:
        """The texts and numbers of a field that is a list; none for anything else."""
        value = self.fields.get(key)
        found = value if isinstance(value, (list, tuple)) else ()
        return tuple(str(one) for one in found if isinstance(one, (str, int, float)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fact) and (self.code, self.fields) == (other.code, other.fields)

    def __hash__(self) -> int:
        return hash(self.code)

    def __repr__(self) -> str:
        fields = "".join(f", {key}={value!r}" for key, value in self.fields.items())
        return f"Fact({self.code!r}{fields})"


def json_of(text: str) -> Any:
    """The JSON value of a text; None for one that is torn or foreign."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def fact_in(line: str) -> Fact | None:
    """The fact that is a line of a program's output; None for any other line."""
    return Fact.of(json_of(line)) if line.startswith("{") else None


def facts_of(values: object) -> tuple[Fact, ...]:
    """The facts in a list of JSON values; none where it is no list. Values that are no facts are left out."""
    found = map(Fact.of, values) if isinstance(values, (list, tuple)) else ()
    return tuple(fact for fact in found if fact is not None)


def data_of(facts: Iterable[Fact]) -> list[Mapping[str, Any]]:
    return [fact.as_data() for fact in facts]
