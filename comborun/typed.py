"""Whether data that was read from a foreign file is of the types that its dataclasses name."""

from __future__ import annotations

import math
import re
from dataclasses import Field, fields, is_dataclass
from functools import cache
from typing import Any

_KINDS: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "BashWord": (str,),
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "None": (type(None),),
}
_LARGEST = 10**15


def check(value: Any) -> None:
    """Raise ValueError where a field of a dataclass, or of one in it, does not hold what its annotation names.

    Annotations of other types than texts, numbers and tuples are taken for granted; so is what a plain dict holds.
    """
    for field in fields(value):
        held = getattr(value, field.name)
        kinds, items = _expected(field)
        if (kinds and not isinstance(held, kinds)) or (isinstance(held, (int, float)) and not _sane(held)):
            raise ValueError(f"{field.name} is {held!r:.80}")
        for part in held if isinstance(held, tuple) else (held,):
            if is_dataclass(part):
                check(part)
            elif items and isinstance(held, tuple) and not isinstance(part, items):
                raise ValueError(f"{field.name} holds {part!r:.80}")


@cache
def _expected(field: Field[Any]) -> tuple[tuple[type, ...], tuple[type, ...]]:
    """What a field may hold, and the items of a tuple; empty where anything goes."""
    words = [word.strip() for word in re.split(r"\|(?![^\[]*\])", str(field.type))]
    kinds = [(tuple,) if word.startswith("tuple[") else _KINDS.get(word) for word in words]
    items = re.fullmatch(r"tuple\[(\w+), \.\.\.\]", words[0])
    known = tuple(kind for each in kinds if each for kind in each) if all(kinds) else ()
    return known, _KINDS.get(items[1], ()) if items else ()


def _sane(number: float) -> bool:
    return abs(number) < _LARGEST and not math.isnan(number)
