"""Numbers, durations and sizes of a grid. Text that other programs may read differently is refused."""

from __future__ import annotations

import re
from decimal import Decimal

from comborun.errors import UserError

_SECONDS = {"ms": Decimal("0.001"), "s": Decimal(1), "min": Decimal(60), "h": Decimal(3600), "d": Decimal(86400)}
_NUMBER_AND_UNIT = re.compile(r"(?P<number>[0-9]{1,9}(?:\.[0-9]{1,9})?)\s*(?P<unit>[A-Za-z]*)")
_BYTES = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def parse_whole(text: str) -> int:
    """Digits only: `100`, `-1`; not `1e2`, `010`, `1_000`, `1:0` or `10.0`."""
    if re.fullmatch(r"-?(0|[1-9][0-9]{0,99})", text):
        return int(text)
    raise UserError(f"`{text}` is not a whole number", "write the digits alone, such as 100")


def parse_duration(text: str) -> float:
    """Seconds: `30 s`, `20 min`, `2 h`, `500 ms`, `1 d`; a bare number is seconds."""
    match = _NUMBER_AND_UNIT.fullmatch(text)
    unit = match["unit"] if match else ""
    if match and (unit or "s") in _SECONDS:
        return float(Decimal(match["number"]) * _SECONDS[unit or "s"])
    raise UserError(f"`{text}` is not a duration", "one number and one unit: 500 ms, 30 s, 20 min, 2 h, 1 d")


def parse_size(text: str) -> int:
    """Bytes: `500 MB` (a million each), `2 GiB` (2 ** 30 each); a bare number is bytes."""
    match = _NUMBER_AND_UNIT.fullmatch(text)
    if match and match["unit"] in _BYTES:
        return int(Decimal(match["number"]) * _BYTES[match["unit"]])
    raise UserError(f"`{text}` is not a size", "one number and one unit: 500 MB, 2 GiB")
