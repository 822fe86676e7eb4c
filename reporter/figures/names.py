"""Names of policies and environments as they fit into a figure. Needs `sheet.drawing()` around it."""

from __future__ import annotations

import re

from comborun.reporter.figures.sheet import measure
from comborun.text import printable

_SEAM = re.compile(r"(?<=[_\-/. ])(?=[^_\-/. ])")


def fit(name: str, width: float, size: float, weight: str = "normal") -> str:
    """The name if it fits; else both its ends, where names of one family differ."""
    text = printable(name)
    if measure(text, size, weight) <= width:
        return text
    low, high = 1, min(len(text) - 1, 200)
    while low < high:
        middle = (low + high + 1) // 2
        if measure(_shortened(text, middle), size, weight) <= width:
            low = middle
        else:
            high = middle - 1
    return _shortened(text, low)


def wrap(name: str, width: float, size: float, weight: str = "normal") -> tuple[str, ...]:
    """On one line or two: broken at the seam nearest the middle, where there is one."""
    text = printable(name)
    seams = [seam.start() for seam in _SEAM.finditer(text)]
    if measure(text, size, weight) <= width or not seams:
        return (fit(name, width, size, weight),)
    seam = min(seams, key=lambda place: abs(2 * place - len(text)))
    return tuple(fit(half, width, size, weight) for half in (text[:seam], text[seam:]))


def _shortened(text: str, kept: int) -> str:
    return f"{text[: (kept + 1) // 2]}…{text[len(text) - kept // 2 :]}"
