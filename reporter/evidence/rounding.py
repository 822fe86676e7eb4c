"""States that differ by less than the digits they were written with: they are one start. Pure."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from comborun.model.attempt import JsonValue

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RELATIVE = 1e-6
"""of the larger of two numbers. A float32 holds seven digits, files often keep six, and two machines add in another
order; a start that was meant to be another one differs by more"""
NOISE = 1e-9
"""a number below it is a zero that was computed"""
_EXACT = 2**53
"""an integer beyond it is no float"""


def rounded(states: Iterable[object]) -> dict[object, object]:
    """By the JSON text of a state, that of the first one which is equal to within rounding; only where they differ.
    What is no list and no object is left."""
    shapes: defaultdict[str, list[tuple[str, list[float]]]] = defaultdict(list)
    for text in sorted({one for one in states if isinstance(one, str) and one[:1] in ("[", "{")}):
        numbers: list[float] = []
        with suppress(ValueError):  # a hash that looks like one
            shapes[json.dumps(_shape(json.loads(text), numbers))].append((text, numbers))
    found: dict[object, object] = {}
    for alike in shapes.values():
        if len(alike) > 1 and alike[0][1]:
            found.update(_joined(alike))
    return found


def _shape(value: JsonValue, numbers: list[float]) -> JsonValue:
    """The value without its numbers, which are appended in the order of its keys."""
    if isinstance(value, dict):
        return {name: _shape(one, numbers) for name, one in sorted(value.items())}
    if isinstance(value, list):
        return [_shape(one, numbers) for one in value]
    if isinstance(value, bool) or not isinstance(value, int | float) or not -_EXACT < value < _EXACT:
        return [value]
    numbers.append(float(value))
    return None


def _joined(alike: list[tuple[str, list[float]]]) -> dict[str, str]:
    import numpy as np

    table = np.array([numbers for _, numbers in alike])
    rows = np.column_stack([_places(column) for column in table.T])
    first: dict[bytes, str] = {}
    own = {text: first.setdefault(row.tobytes(), text) for (text, _), row in zip(alike, rows, strict=True)}
    return {text: other for text, other in own.items() if text != other}


def _places(column: NDArray[np.float64]) -> NDArray[np.intp]:
    """For each number the place of the smallest one that it is equal to; two whole numbers never are."""
    import numpy as np

    values, place = np.unique(column, return_inverse=True)
    sizes, whole = np.abs(values), values == values.round()
    near = np.diff(values) <= np.maximum(RELATIVE * np.maximum(sizes[1:], sizes[:-1]), NOISE)
    start = np.arange(len(values))
    for at in np.flatnonzero(near) + 1:
        low = start[at - 1]
        limit = max(RELATIVE * max(sizes[at], sizes[low]), NOISE)
        if values[at] - values[low] <= limit and not (whole[at] and whole[low]):
            start[at] = low
    return start[place]
