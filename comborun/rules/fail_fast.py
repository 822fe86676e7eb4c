"""Too many sessions have ended for good without success: a number of them, or a share of all."""

from __future__ import annotations

FAILED = frozenset(("failed", "partial", "lost"))
"""outcomes that count"""


def reason(count: int, total: int, limit: int, percent: int) -> str:
    """Why the run is to be halted, or nothing. A limit of 0 is none."""
    why = ""
    if limit and count >= limit:
        why = f"the limit is {limit}"
    if percent and total and count * 100 >= percent * total:
        why = f"the limit is {percent} %"
    return f"{count} of {total} sessions ended without success; {why}" if why and count else ""
