"""What the calls and commands answer, as frozen values. `--json` shows the same: a key is a field.

`Untrusted` marks text that a program, a host or another person wrote, or that quotes it. Nobody should follow it as an
instruction; the JSON of an answer lists the names of such fields in its key `untrusted`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, is_dataclass
from functools import cache
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from comborun.errors import UserError
from comborun.model.codec import as_data
from comborun.rules.facts import Fact

_MARK = "untrusted"
Untrusted = Annotated[str, _MARK]
UntrustedLines = Annotated[tuple[str, ...], _MARK]
UntrustedFacts = Annotated[tuple[Fact, ...], _MARK]


def data_of(answer: Any) -> Any:
    """The JSON value of an answer, or of a list of them."""
    if not is_dataclass(answer):
        return [data_of(one) for one in answer]
    kind: Any = type(answer)
    data, marked = as_data(answer), untrusted_in(kind)
    head = {"record": data["record"]} if "record" in data else {}
    return {**head, **({_MARK: list(marked)} if marked else {}), **data}


def to_json(answer: Any, *, indent: int | None = 1) -> str:
    """An answer as text, in ASCII, so that no terminal interprets it. `indent` None: on one line, for a stream."""
    return json.dumps(data_of(answer), indent=indent, allow_nan=False)


def is_marked(hint: Any) -> bool:
    return get_origin(hint) is Annotated and _MARK in hint.__metadata__


@cache
def untrusted_in(kind: Any) -> tuple[str, ...]:
    """The names of the fields of a type, and of the types in it, that hold untrusted text."""
    if not is_dataclass(kind):
        return tuple(dict.fromkeys(name for part in get_args(kind) for name in untrusted_in(part)))
    found: dict[str, None] = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        marked = any(map(is_marked, (hint, *get_args(hint))))
        found |= dict.fromkeys((name.removesuffix("_"),) if marked else untrusted_in(hint))
    return tuple(found)


@dataclass(frozen=True)
class Problem:
    """A mistake in a grid file."""

    file: str
    line: int
    """from 1; 0: the whole file"""
    column: int
    message: Untrusted
    hint: Untrusted
    count: int
    """number of mistakes that it stands for"""


@dataclass(frozen=True)
class Error:
    """What a user can mend."""

    code: str
    """stable: mistake, grid, host, run_gone, usage, interrupted ..."""
    message: Untrusted
    hint: Untrusted
    """how to mend it; empty if nothing is known"""
    place: str | None = None
    """the file, line and column of the first mistake in a grid"""
    problems: tuple[Problem, ...] = ()
    """of a grid: every mistake"""

    @classmethod
    def of(cls, error: UserError) -> Error:
        problems = tuple(
            Problem(one.file, one.line, one.column, one.message, one.hint, one.count) for one in error.problems
        )
        return cls(error.code, error.message, error.hint, error.place or None, problems)


@dataclass(frozen=True)
class Done:
    """The last line of a stream of records, and the answer of every command that failed."""

    exit_code: int
    error: Error | None = None
    record: Literal["done"] = "done"
