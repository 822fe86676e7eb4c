"""When so many sessions have failed that the run is halted."""

from __future__ import annotations

import pytest

from comborun.rules.fail_fast import reason


@pytest.mark.parametrize(
    ("count", "total", "limit", "percent", "expected"),
    [
        (1, 6, 2, 0, ""),
        (2, 6, 2, 0, "2 of 6 sessions ended without success; the limit is 2"),
        (2, 6, 0, 30, "2 of 6 sessions ended without success; the limit is 30 %"),
        (1, 6, 0, 30, ""),
        (3, 6, 2, 30, "3 of 6 sessions ended without success; the limit is 30 %"),
        (6, 6, 0, 0, ""),
        (0, 0, 0, 30, ""),
        (0, 0, 0, 100, ""),
    ],
)
def test_a_number_or_a_share_is_enough(count: int, total: int, limit: int, percent: int, expected: str) -> None:
    assert reason(count, total, limit, percent) == expected
