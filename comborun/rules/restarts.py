"""Whether a model server that ended is started again, and when. Pure."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable

PROVEN_S = 1800.0
"""a server that was ready for so long begins its row of failures anew"""
_DOUBLINGS = 7


class Past:
    """How one attempt of a server went. Times are seconds since 1970; None: not known."""

    __slots__ = ("ended", "forgiven", "ready")

    def __init__(self, ended: float | None, ready: float | None = None, forgiven: bool = False) -> None:
        self.ended = ended
        """None: nobody can tell, or a person ended it"""
        self.ready = ready
        """when it became ready; None: never"""
        self.forgiven = forgiven
        """it ended before a person said that the run may go on"""


def failures(attempts: Iterable[Past]) -> tuple[int, float]:
    """How often in a row it has failed, and when it did last; `attempts`: the newest first."""
    count, last = 0, 0.0
    for past in attempts:
        if past.ended is None or past.forgiven:
            break
        if count and past.ready is not None and past.ended - past.ready >= PROVEN_S:
            break
        count += 1
        last = last or past.ended
    return count, last


def wait_s(count: int, first: float) -> float:
    """Seconds from its last end to its next start after so many failures in a row: twice as long each time."""
    return first * 2 ** (min(count, _DOUBLINGS + 1) - 1) if count else 0.0
