"""English for facts (`rules/facts.py`). One table of words for each kind; whoever shows a fact asks `say`.

An entry is a text with the fact's fields in braces, or a function of the fact. No code reads these words.
"""

from __future__ import annotations

from comborun.rules.facts import Fact
from comborun.words import endings, rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Mapping, Union

    Words = Mapping[str, Union[str, Callable[[Fact], str]]]

_TABLES: tuple[Words, ...] = (endings.WORDS, rows.WORDS)
"""the tables of this package's modules"""


def say(fact: Fact) -> str:
    """A fact in words, without a full stop. A code that this version does not know is shown as itself."""
    words = next((table[fact.code] for table in _TABLES if fact.code in table), None)
    if words is None:
        fields = ", ".join(f"{key} {_shown(value)}" for key, value in fact.fields.items())
        return f"{fact.code} ({fields})" if fields else fact.code
    return words(fact) if callable(words) else words.format_map(_Fields(fact))


class _Fields(dict):  # type: ignore[type-arg]
    """The fields of a fact for a text with braces; one that is absent is `?`."""

    def __init__(self, fact: Fact) -> None:
        super().__init__({key: _shown(value) for key, value in fact.fields.items()})

    def __missing__(self, key: str) -> str:
        return "?"


def _shown(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_shown, value))
    if isinstance(value, dict):
        return ", ".join(f"{key} {_shown(one)}" for key, one in value.items())
    return f"{value:g}" if isinstance(value, float) else str(value)
