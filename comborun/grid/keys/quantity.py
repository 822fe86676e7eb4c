"""Whole numbers, durations and sizes as people write them in a grid. UserError for all that could be misread."""

from __future__ import annotations

import re
from contextlib import suppress
from decimal import Decimal

from comborun.errors import UserError

_SECONDS = {"ms": Decimal("0.001"), "s": Decimal(1), "min": Decimal(60), "h": Decimal(3600), "d": Decimal(86400)}
_NUMBER_AND_UNIT = re.compile(r"(?P<number>[0-9]{1,9}(?:\.[0-9]{1,9})?)\s*(?P<unit>[A-Za-z]*)")
_BYTES = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_SPELLINGS = {
    **dict.fromkeys(("sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("m", "mins", "minute", "minutes"), "min"),
    **dict.fromkeys(("hr", "hrs", "hour", "hours"), "h"),
    **dict.fromkeys(("day", "days"), "d"),
}


def parse_whole(text: str) -> int:
    """Digits alone: `100`, `-1`; neither `1e2` nor `010`, `1_000`, `1:0` or `10.0`."""
    if re.fullmatch(r"-?(0|[1-9][0-9]{0,99})", text):
        return int(text)
    raise UserError(f"`{text}` is not a whole number", _whole_hint(text))


def _whole_hint(text: str) -> str:
    if re.fullmatch(r"[0-9]+(:[0-9]+)+", text):
        return "some programs read colons as base sixty: write the digits alone"
    if re.fullmatch(r"0[0-9]+", text):
        return f"some programs read a leading zero as base eight: write {text.lstrip('0') or '0'}"
    if re.fullmatch(r"[0-9]+( *, *[0-9]+)+", text) and not re.fullmatch(r"[0-9]{1,3}(,[0-9]{3})+", text):
        return f"several are a list: [{text}]"
    bare = re.sub(r"[_,' ]", "", text)
    with suppress(ArithmeticError):
        value = Decimal(bare)
        if value.is_finite() and value.adjusted() < 18 and value == value.to_integral_value():
            return f"write the digits alone: {int(value)}"
    return "write digits alone, such as 100"


def parse_duration(text: str) -> float:
    """Seconds: `30 s`, `20 min`, `2 h`, `500 ms`, `1 d`; a bare number is seconds."""
    match = _NUMBER_AND_UNIT.fullmatch(text)
    unit = match["unit"] if match else ""
    if match and (unit or "s") in _SECONDS:
        return float(Decimal(match["number"]) * _SECONDS[unit or "s"])
    raise UserError(f"`{text}` is not a duration", _duration_hint(match))


def _duration_hint(match: re.Match[str] | None) -> str:
    meant = _SPELLINGS.get(match["unit"].lower()) if match else None
    if match and meant:
        return f"write {match['number']} {meant}"
    return "one number and one unit: 500 ms, 30 s, 20 min, 2 h, 1 d"


def parse_size(text: str) -> int:
    """Bytes: `500 MB` (a million each), `2 GiB` (2 ** 30 each); a bare number is bytes."""
    match = _NUMBER_AND_UNIT.fullmatch(text)
    if match and match["unit"] in _BYTES:
        return int(Decimal(match["number"]) * _BYTES[match["unit"]])
    meant = next((unit for unit in _BYTES if match and unit.casefold() == match["unit"].casefold()), "")
    hint = f"write {match['number']} {meant}" if match and meant else "one number and one unit: 500 MB, 2 GiB"
    raise UserError(f"`{text}` is not a size", hint)
