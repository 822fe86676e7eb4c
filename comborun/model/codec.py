"""Objects as JSON data and back, by the annotations of their fields: dataclasses, named tuples and what they hold.

`encoded` is for files that are read again, and leaves out defaults; `as_data` is for `--json`, and leaves out nothing.
What is decoded may come from a host or from another version: what does not fit raises ValueError or TypeError, and
fields that this version does not know are left out.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import cache, partial
from inspect import ismethod
from linecache import getlines
from pathlib import PurePath
from types import UnionType
from typing import Any, Literal, NewType, Union, get_args, get_origin, get_type_hints

from comborun.rules import records
from comborun.rules.facts import Fact
from comborun.rules.results.fields import Field, ResultRules
from comborun.text import harmless

_LARGEST = 10**15
_CLASS = re.compile(r"^class (\w+)(.+?)(?=^\S|\Z)", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r'^    (\w+): [^\n]+\n    """(.+?)"""', re.MULTILINE | re.DOTALL)

Decoder = Callable[[Any], Any]


def encoded(value: Any, like: Any = None) -> Any:
    """A value for `json.dumps`: of a dataclass the fields that differ from their defaults, or from those of `like`."""
    if isinstance(value, tuple):
        return [encoded(one) for one in value]
    if isinstance(value, ResultRules):
        return value.as_data()
    if not is_dataclass(value):
        return value
    pairs = [(field, getattr(value, field.name)) for field in fields(value)]
    return {
        field.name: encoded(one)
        for field, one in pairs
        if one != (getattr(like, field.name) if like else field.default)
    }


def as_data(value: Any) -> Any:
    """A value as JSON data: a dataclass or a named tuple is an object with a key for each field.

    A field whose name is a keyword of Python ends in `_`, and its key does not.
    """
    if isinstance(value, Fact):
        return value.as_data()
    if isinstance(value, ResultRules):  # with what is as by default, too
        return {key: as_data(getattr(value, key)) for key in value.__slots__}
    if isinstance(value, Field):
        return value.as_data()
    if is_dataclass(value):
        return {field.name.removesuffix("_"): as_data(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple) and (names := getattr(value, "_fields", ())):
        return {name: as_data(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {str(key): as_data(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, frozenset)):
        return [as_data(one) for one in value]
    return str(value) if isinstance(value, (str, PurePath)) else value


def chosen(value: object, *names: str, **renamed: str) -> dict[str, Any]:
    """The object of some attributes of a value; `renamed`: attribute -> its key, where that has another name."""
    keys = {**{name: name for name in names}, **renamed}
    return {key: as_data(getattr(value, name)) for name, key in keys.items()}


def decoded(kind: Any, data: Any, like: Any = None) -> Any:
    """A value of an annotated type, from what `json.loads` returned; of a dataclass, absent fields are as in `like`."""
    return replace(like, **_fields(kind, data)) if like else _decoder(kind)(data)


@cache
def _decoder(kind: Any) -> Decoder:
    origin, parts = get_origin(kind), get_args(kind)
    if kind in {ResultRules, Fact}:
        return (lambda data: kind.of(_checked(dict, data))) if kind is ResultRules else _fact
    if ismethod(getattr(kind, "of", None)):  # it is made of a record
        return lambda data: kind.of(records.read(_checked(dict, data)))
    if hasattr(kind, "__dataclass_fields__") or hasattr(kind, "_fields"):
        return lambda data: kind(**_fields(kind, data))
    if origin is tuple and parts[-1] is Ellipsis:
        return lambda data: tuple(map(_decoder(parts[0]), _checked(list, data)))
    if origin is tuple:
        kinds = [_decoder(part) for part in parts]
        return lambda data: tuple(decode(one) for decode, one in zip(kinds, _checked(list, data), strict=True))
    if origin in {Union, UnionType}:  # X | None
        return lambda data: None if data is None else _decoder(parts[0])(data)
    if isinstance(kind, NewType):
        return _decoder(kind.__supertype__)
    if origin is Literal:
        return partial(_word, parts)
    if kind in {int, float}:
        return partial(_number, (int, float) if kind is float else (int,))
    return kind if issubclass(kind, Enum) else partial(_checked, kind)


def _fact(data: Any) -> Fact:
    fact = Fact.of(cleaned(data))
    if fact is None:
        raise ValueError(f"{data!r:.80} is no fact")
    return fact


def cleaned(value: Any) -> Any:
    """The texts of a JSON value without what controls a terminal: a fact is shown wherever it goes."""
    if isinstance(value, dict):
        return {key: cleaned(one) for key, one in value.items()}
    if isinstance(value, list):
        return [cleaned(one) for one in value]
    return harmless(value) if isinstance(value, str) else value


def _fields(kind: Any, data: Any) -> dict[str, Any]:
    known = _field_decoders(kind)
    return {key: known[key](one) for key, one in _checked(dict, data).items() if key in known}


@cache
def _field_decoders(kind: Any) -> dict[str, Decoder]:
    return {name: _decoder(hint) for name, hint in get_type_hints(kind).items()}


def _word(words: tuple[Any, ...], data: Any) -> Any:
    if data not in words:
        raise ValueError(f"{data!r:.80}")
    return data


def _number(kinds: tuple[type, ...], data: Any) -> Any:
    if type(data) not in kinds or not -_LARGEST < data < _LARGEST:  # nor is NaN
        raise ValueError(f"{data!r:.80} is not a number")
    return data


def _checked(kind: type, data: Any) -> Any:
    if not isinstance(data, kind):
        raise TypeError(f"{data!r:.80} is no {kind.__name__}")
    return data


@cache
def field_docs(module: str) -> dict[tuple[str, str], str]:
    """The texts below the fields of a module's classes, which Python itself does not keep."""
    source = "".join(
        getlines(getattr(sys.modules[module], "__file__", "") or "")
    )  # empty where only bytecode is installed
    return {
        (name, field): " ".join(text.split())
        for name, body in _CLASS.findall(source)
        for field, text in _FIELD.findall(body)
    }
