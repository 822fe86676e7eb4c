"""The probe's document, read with care: what is of another kind than it should be is unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST = 10**18


class Fields:
    """One object of the document."""

    def __init__(self, value: object) -> None:
        self._values = value if isinstance(value, dict) else {}
        self.there = isinstance(value, dict)

    def text(self, key: str) -> str:
        value = self._values.get(key)
        return value if isinstance(value, str) else ""

    def number(self, key: str) -> float | None:
        """A finite number that is not negative, such as a time."""
        value = self._values.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return float(value) if 0 <= value < _MOST else None  # not a number is neither

    def integer(self, key: str) -> int | None:
        value = self._values.get(key)
        good = isinstance(value, int) and not isinstance(value, bool) and -_MOST < value < _MOST
        return value if good else None

    def flag(self, key: str) -> bool:
        return self._values.get(key) is True

    def part(self, key: str) -> Fields:
        return Fields(self._values.get(key))

    def parts(self, key: str) -> Iterator[Fields]:
        values = self._values.get(key)
        return (Fields(value) for value in (values if isinstance(values, list) else ()))

    def pair(self, key: str) -> tuple[int, int] | None:
        """Two integers; None where one of them is unknown."""
        values = self._values.get(key)
        first, second = values if isinstance(values, list) and len(values) == 2 else (None, None)
        return (first, second) if isinstance(first, int) and isinstance(second, int) else None

    def record(self, key: str) -> dict[str, str] | None:
        """The fields of a record of the run; None where there is none."""
        values = self._values.get(key)
        if not isinstance(values, dict):
            return None
        return {name: value for name, value in values.items() if isinstance(value, str)}
