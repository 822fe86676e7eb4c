"""Counts, times and sizes are read when there is one way to read them, and refused otherwise."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from comborun.errors import UserError
from comborun.grid.keys.amounts import parse_duration, parse_size, parse_whole


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("500 ms", 0.5), ("30 s", 30.0), ("20 min", 1200.0), ("1.5 h", 5400.0), ("1 d", 86400.0)],
)
def test_a_number_with_a_unit_is_a_time(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "size"), [("12", 12), ("500 MB", 500_000_000), ("2 GiB", 2 << 30), ("1.5KiB", 1536), ("7 B", 7)]
)
def test_a_size_is_a_number_and_a_unit(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("read", "text", "hint"),
    [
        (parse_whole, "0,1", "such as 100"),
        (parse_whole, "010", "such as 100"),
        (parse_duration, "30 m", "20 min"),
        (parse_size, "2 gb", "500 MB"),
        (parse_size, "-1 MB", "500 MB, 2 GiB"),
    ],
)
def test_anything_else_is_refused_with_what_to_write(read: Callable[[str], float], text: str, hint: str) -> None:
    with pytest.raises(UserError, match="is not a") as refused:
        read(text)
    assert hint in refused.value.hint
