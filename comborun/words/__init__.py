"""English for facts (`rules/facts.py`). One table of words for each kind; whoever shows a fact asks `say`.

An entry is a text with the fact's fields in braces, or a function of the fact. No code reads these words. A field may
have a form: `{seconds:brief}` is a duration (`words/times.py` has the forms), `{failure:class}` is a class of failures,
`{sessions:session}` counts, and `{sessions:=use}` is a verb for so many: `uses` for one, else `use`. A field that is a
fact, or a list of facts, is said; a function asks `part` for such a field.

What stands in brackets is left out if a field in it is absent or empty, so `[ on GPU {gpu}]`. `[first|second|third]` is
the first that has all its fields. A field of the form `{stopped:if}` decides only, and shows nothing. A form that
begins with `+` asks for more than 0: `[, {failed:+} failed]`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import import_module

from comborun.rules.facts import Fact, facts_of
from comborun.rules.vocabulary import several
from comborun.words.times import FORMS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Mapping, Union

    Words = Mapping[str, Union[str, Callable[[Fact], str]]]

MODULES = (
    "doctor",
    "endings",
    "episodes",
    "events",
    "following",
    "holds",
    "host",
    "monitor",
    "rows",
    "sessions",
    "training",
    "waits",
)
"""the modules of this package with a table of words"""


_BRACKETS, _NAME = re.compile(r"\[([^][]*)\]"), re.compile(r"\{(\w+)(?::(\+))?")
BECAUSE = "[: {reason}|: {words}]"
"""`: ` and the reason of a fact; `words` is that of the former version"""


@lru_cache(maxsize=None)
def _read() -> tuple[dict[str, str | Callable[[Fact], str]], dict[str, Callable[[str], str]]]:
    """All words, and the forms that a module of words adds. They are read when the first fact is said.

    A verb that travels by itself brings only the modules it needs.
    """
    words: dict[str, str | Callable[[Fact], str]] = {}
    forms: dict[str, Callable[[str], str]] = {}
    for name in (f"comborun.words.{name}" for name in MODULES):
        try:
            module = import_module(name)
        except ModuleNotFoundError as error:  # noqa: PERF203 - there are few modules
            if error.name != name:
                raise
        else:
            words.update(module.WORDS)
            forms.update(getattr(module, "FORMS", {}))
    return words, forms


def tables() -> dict[str, str | Callable[[Fact], str]]:
    """All words."""
    return _read()[0]


def say(fact: Fact) -> str:
    """A fact in words, without a full stop. A code that this version does not know is shown as itself."""
    words = tables().get(fact.code)
    if words is not None:
        return fill(words, fact)
    fields = ", ".join(f"{key} {_shown(value)}" for key, value in fact.fields.items())
    return f"{fact.code} ({fields})" if fields else fact.code


def fill(words: str | Callable[[Fact], str], fact: Fact) -> str:
    """An entry of a table, with the fields of a fact."""
    return words(fact) if callable(words) else _chosen(words, fact).format_map(_Fields(fact))


def _chosen(words: str, fact: Fact) -> str:
    """The words that stay of those in brackets, from the inside to the outside."""

    def there(name: str, more: str) -> bool:
        value = fact.fields.get(name)
        return (fact.number(name) or 0) > 0 if more else bool(value or (value == 0 and value is not False))

    def fits(option: str) -> bool:
        return all(there(*field) for field in _NAME.findall(option))

    while (shorter := _BRACKETS.sub(lambda found: next(filter(fits, found[1].split("|")), ""), words)) != words:
        words = shorter
    return words


def part(fact: Fact, key: str) -> str:
    """A field in words: one that is a fact is said."""
    inner = Fact.of(fact.fields.get(key))
    return say(inner) if inner else fact.text(key)


class _Fields(dict):  # type: ignore[type-arg]
    """The fields of a fact for a text with braces; one that is absent is `?`."""

    def __init__(self, fact: Fact) -> None:
        super().__init__({key: _Field(value) for key, value in fact.fields.items()})

    def __missing__(self, key: str) -> _Field:
        return _Field("?")


class _Field:
    """A field of a fact, in a form of words/times.py, as a class of failures, counted with a noun, or as it is."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return repr(self.value)

    def __format__(self, form: str) -> str:
        form = form.lstrip("+")
        if form == "if":
            return ""
        if form in (added := _read()[1]):
            return added[form](_shown(self.value))
        if inner := facts_of([self.value]) or facts_of(self.value):
            return "; ".join(map(say, inner))
        if not form or isinstance(self.value, bool) or not isinstance(self.value, (int, float)):
            return _shown(self.value)
        if form.startswith("="):
            return form[1:] + "s" * (self.value == 1)
        if form in FORMS:
            return FORMS[form](self.value)
        return several(int(self.value) if self.value == int(self.value) else self.value, form)


def _shown(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        facts = facts_of(value)
        return "; ".join(map(say, facts)) if facts else ", ".join(map(_shown, value))
    if isinstance(value, dict):
        return ", ".join(f"{key} {_shown(one)}" for key, one in value.items())
    return f"{value:g}" if isinstance(value, float) else str(value)
