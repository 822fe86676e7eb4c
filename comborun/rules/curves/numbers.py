"""Numbers as programs and spreadsheets print them: `4096`, `1,234,567`, `12,5`, `20K`, `1.2M`, `nan`. Pure."""

from __future__ import annotations

import math
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    pass

NUMBER = (
    r"[-+−]?(?:(?:[0-9]{1,20}(?:[.,_][0-9]{1,30})*\.?|\.[0-9]{1,30})(?:[eE][-+]?[0-9]{1,4})?|(?i:nan|inf|infinity)\b)"
)
_SIZES = {"k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9}
_TRUTH = {"true": 1.0, "false": 0.0}
_THOUSANDS = re.compile(r"[-+]?[0-9]{1,3}(?:[,_][0-9]{3})+(?:\.[0-9]*)?")
_POINT = re.compile(r"[0-9]{1,3}\.[0-9]{3}")
_POINTS = re.compile(r"[-+]?[0-9]{1,3}(?:\.[0-9]{3}){2,}(?:,[0-9]+)?")
_DECIMAL_COMMA = re.compile(r"[-+]?[0-9]+,[0-9]+(?:[eE][-+]?[0-9]+)?")
_PLAIN = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?(?i:nan|inf|infinity)")


def number(
    text: str, size: str = "", *, whole: bool = False, commas: bool = False, points: bool = False
) -> float | None:
    """None for what is no number, or one of two. `size`: the letter behind it. `whole`: it counts something, so that a
    comma before three digits groups them; elsewhere it could also be a decimal comma, and only other numbers beside it
    tell: those with decimal `commas`, or with decimal `points`. A point before three digits of what counts is only
    clear if other numbers have decimal `commas`."""
    plain = text.strip().replace("−", "-")
    if "," not in plain and "_" not in plain and plain.isascii() and not (whole and "." in plain):
        try:
            return float(plain) * _SIZES.get(size.lower(), 1.0)
        except ValueError:
            pass
    if _THOUSANDS.fullmatch(plain):
        below_one = plain.lstrip("+-").startswith("0")
        unclear = not whole and plain.count(",") == 1 and "." not in plain and not below_one
        if unclear and commas == points:
            return None
        decimal = not whole and (below_one or (unclear and commas))
        plain = plain.replace(",", "." if decimal else "").replace("_", "")
    elif whole and _POINT.fullmatch(plain):
        if not commas:
            return None
        plain = plain.replace(".", "")
    elif _POINTS.fullmatch(plain):
        plain = plain.replace(".", "").replace(",", ".")
    elif _DECIMAL_COMMA.fullmatch(plain):
        plain = plain.replace(",", ".")
    if not _PLAIN.fullmatch(plain):
        return None
    return float(plain) * _SIZES.get(size.lower(), 1.0)


def step(value: object) -> float | None:
    """A number that may be a step: not negative, and finite."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if 0 <= found < 1e18 and not math.isnan(found) else None


def value(found: object, *, whole: bool = False) -> float | None:
    """A value of a field: a number, a truth value, or a text that is a number. None for anything else."""
    if isinstance(found, (bool, int, float)):
        try:
            return float(found)
        except OverflowError:
            return None
    if isinstance(found, str) and 0 < len(found) < 64:
        text = found.strip()
        if text.lower() in _TRUTH:
            return _TRUTH[text.lower()]
        size = text[-1:] if text[-1:].lower() in _SIZES and text[:1] not in "in" else ""
        return number(text[: len(text) - len(size)].strip("%$ "), size, whole=whole)
    return None
