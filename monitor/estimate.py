"""When it will be over: each session by its own rate, one without data by the mean of its run, on the run's slots.

All estimates hold for the moment of the probe and are points in time, so that they don't drift between two probes.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from comborun.plan import Unit
from comborun.state import Life, Outcome
from monitor.status import SessionStatus


@dataclass(frozen=True)
class Progress:
    """What the latest attempt of a session has done by itself."""

    status: SessionStatus
    done: int
    seconds: float

    @property
    def tells(self) -> bool:
        """Whether a rate follows from it: an attempt that was cut short tells as much as a whole one."""
        return self.done > 0 and self.seconds > 0


@dataclass(frozen=True)
class Forecast:
    ends: Mapping[str, float]
    """by session; those that can't be told are left out"""
    run: float | None
    """None when the end of any session that is to come can't be told"""


def forecast(progress: Sequence[Progress], slots: int | None, now: float) -> Forecast:
    """Ends of the running sessions, then of the queued ones in their order; `slots` None: nothing queued starts."""
    pace = _pace(progress)
    running = [one for one in progress if one.status.alive]
    ends = {one.status.name: end for one in running if (end := _end(one, pace, now)) is not None}
    told = len(ends) == len(running)
    queued = [one for one in progress if one.status.life is Life.QUEUED]
    if queued and slots and told:
        lengths = [_length(one.status, pace) for one in queued]
        starts = _Slots(slots, list(ends.values()), now)
        for one, length in zip(queued, lengths, strict=True):
            if length is None:
                told = False
                break
            ends[one.status.name] = starts.take(length)
    elif queued:
        told = False
    return Forecast(ends, max(ends.values()) if ends and told else None)


def _pace(progress: Sequence[Progress]) -> Mapping[Unit, float]:
    """Mean seconds per episode and per step over all that was done in this run."""
    sums: dict[Unit, tuple[float, int]] = {}
    for one in progress:
        if one.tells and one.status.outcome is not Outcome.LOST:  # nobody knows how long that one ran
            spent, done = sums.get(one.status.unit, (0.0, 0))
            sums[one.status.unit] = (spent + one.seconds, done + one.done)
    return {unit: spent / done for unit, (spent, done) in sums.items()}


def _end(one: Progress, pace: Mapping[Unit, float], now: float) -> float | None:
    if one.tells:
        return now + one.status.remaining * one.seconds / one.done
    length = _length(one.status, pace)
    return None if length is None else now + max(0.0, length - one.seconds)


def _length(status: SessionStatus, pace: Mapping[Unit, float]) -> float | None:
    """Seconds that a session takes which has not shown anything yet."""
    if status.unit not in pace or status.done is None:
        return None
    return status.remaining * pace[status.unit]


class _Slots:
    """Places that become free as sessions end; more may be running than there are slots now."""

    def __init__(self, count: int, ends: list[float], now: float) -> None:
        self.free = sorted(ends)[max(0, len(ends) - count) :] + [now] * (count - len(ends))
        heapq.heapify(self.free)

    def take(self, length: float) -> float:
        end = self.free[0] + length
        heapq.heapreplace(self.free, end)
        return end
