"""Text that fits: how wide it is, shortened, without what names have in common, on two lines. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import takewhile

from comborun.text import printable

_SEAM = re.compile(r"(?<=[_\-/. ])(?=[^_\-/. ])")
_WIDTHS = (
    *(32, 40, 46, 84, 64, 95, 78, 27, 39, 39, 50, 84, 32, 36, 32, 34, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 34, 34),
    *(84, 84, 84, 53, 100, 71, 69, 70, 77, 63, 58, 77, 75, 30, 30, 66, 56, 86, 75, 79, 60, 79, 69, 63, 60, 73, 68),
    *(99, 68, 61, 68, 39, 34, 39, 84, 50, 50, 61, 63, 55, 63, 62, 34, 63, 63, 28, 28, 58, 28, 97, 63, 61, 63, 63, 40),
    *(52, 39, 63, 59, 82, 59, 59, 52, 64, 34, 64, 84),
)
"""in hundredths of an em from the blank on, of DejaVu Sans, which is wider than most"""
_OTHER_SIGN = 70
_BOLD = 1.12
_LONGEST = 200


@lru_cache(maxsize=4096)
def measure(words: str, size: float, *, bold: bool = False) -> float:
    """The width of a line in inches, in a rather wide font."""
    return sum(map(_width, words)) * (_BOLD if bold else 1.0) * size / 7200


def _width(sign: str) -> int:
    place = ord(sign) - 32
    if 0 <= place < len(_WIDTHS):
        return _WIDTHS[place]
    return 100 if unicodedata.east_asian_width(sign) in "WF" else _OTHER_SIGN


@lru_cache(maxsize=4096)
def fit(name: str, width: float, size: float, *, bold: bool = False) -> str:
    """The name if it fits; else both its ends, where similar names differ."""
    text = printable(name)
    if len(text) <= _LONGEST and measure(text, size, bold=bold) <= width:
        return text
    low, high = 1, min(len(text) - 1, _LONGEST)
    while low < high:
        middle = (low + high + 1) // 2
        fits = measure(shortened(text, middle), size, bold=bold) <= width
        low, high = (middle, high) if fits else (low, middle - 1)
    return shortened(text, low)


def fit_apart(names: Sequence[str], width: float, size: float, *, bold: bool = False) -> list[str]:
    """As `fit`; if one doesn't fit, without the words that all have in common. Names that would still look alike lose
    what they have in common, too."""
    shown = {name: fit(name, width, size, bold=bold) for name in names}
    if all(shown[name] == printable(name) for name in names):
        return [shown[name] for name in names]
    shown |= _without_common([*shown], width, size, bold=bold)
    for label, count in Counter(shown.values()).items():
        if count > 1:
            shown |= _without_common([name for name in shown if shown[name] == label], width, size, bold=bold)
    return [shown[name] for name in names]


def _without_common(names: Sequence[str], width: float, size: float, *, bold: bool) -> dict[str, str]:
    if len(names) < 2:
        return {}
    start, middles, end = in_common(names)
    marks = ("…" if start else "", "…" if end else "")
    texts = (middle.strip("_-/. ").join(marks) for middle in middles)
    return {name: fit(text, width, size, bold=bold) for name, text in zip(names, texts, strict=True)}


def in_common(names: Sequence[str]) -> tuple[str, tuple[str, ...], str]:
    """The words that all names begin with, what is left of each, and the words that all end with."""
    parts = [_SEAM.split(name) for name in names]
    start = _alike(parts)
    end = _alike([one[:start:-1] for one in parts])
    middles = tuple("".join(one[start : len(one) - end]) for one in parts)
    return "".join(parts[0][:start]), middles, "".join(parts[0][len(parts[0]) - end :])


def _alike(parts: Sequence[Sequence[str]]) -> int:
    """How many parts are the same in all, from the first one on."""
    return sum(1 for _ in takewhile(lambda column: len({*column}) == 1, zip(*parts, strict=False)))


def shortened(text: str, kept: int) -> str:
    """So many characters of both its ends."""
    return f"{text[: (kept + 1) // 2]}…{text[len(text) - kept // 2 :]}"


def wrap(name: str, width: float, size: float, *, bold: bool = False) -> tuple[str, ...]:
    """On one line, or on two if it can be broken."""
    text = printable(name)
    seams = [seam.start() for seam in _SEAM.finditer(text)]
    if measure(text, size, bold=bold) <= width or not seams:
        return (fit(name, width, size, bold=bold),)
    seam = min(seams, key=lambda place: abs(2 * place - len(text)))
    return tuple(fit(half, width, size, bold=bold) for half in (text[:seam], text[seam:]))
