"""How long a run took."""

from __future__ import annotations

import pytest

from comborun.rules.durations import time_run


@pytest.mark.parametrize(
    ("spans", "seconds"),
    [
        ([], None),
        ([(5.0, 9.0)], 4.0),
        ([(0.0, 10.0), (2.0, 4.0), (8.0, 12.0)], 12.0),
        ([(100.0, 103.0), (0.0, 10.0)], 13.0),
        ([(7.0, 5.0)], 0.0),
    ],
    ids=["nothing began", "one", "what ran beside another", "what waited in between", "a clock that was set back"],
)
def test_a_run_takes_the_time_in_which_something_of_it_runs(
    spans: list[tuple[float, float]], seconds: float | None
) -> None:
    assert time_run(spans) == seconds
