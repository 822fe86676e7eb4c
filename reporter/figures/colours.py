"""Colours that people with any kind of colour vision tell apart, on light paper and on dark. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

SERIES = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#888888")
"""of M. Okabe and K. Ito, without yellow and black, which one of the papers swallows"""
BLACK = "#010101"
"""not quite, since matplotlib leaves pure black to whatever stands around an SVG"""
DASHES: tuple[Any, ...] = ("solid", (0, (4, 1.6)), (0, (1.2, 1.4)), (0, (5, 1.5, 1.2, 1.5)))
"""a second way to tell lines apart, once the colours are used up"""


def look(index: int) -> tuple[str, Any]:
    """Colour and dashes of the index-th line."""
    return SERIES[index % len(SERIES)], DASHES[index // len(SERIES) % len(DASHES)]


def ink_on(colour: Sequence[float]) -> str:
    """Black or white, whichever is easier to read on a colour."""
    return "#ffffff" if _luminance(colour) < 0.179 else BLACK


def _luminance(colour: Sequence[float]) -> float:
    """Relative luminance as WCAG 2 defines it; black and white contrast equally at .179."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour[:3]]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
