"""How long a run took: the one rule for its status, the list of runs and the record of its end."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable


def time_run(spans: Iterable[tuple[float, float]]) -> float | None:
    """Seconds in which at least one attempt ran, from the start and the end of each; None if nothing has begun.

    So what passes before a retry or a `resume`, while nothing runs, does not count.
    """
    total, reach = None, float("-inf")
    for start, end in sorted(spans):
        total = (total or 0.0) + max(0.0, end - max(start, reach))
        reach = max(reach, end)
    return total
