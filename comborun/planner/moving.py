"""Which sessions go to another host: one with room takes from the host whose queue would end last. Pure.

Work stealing: the taker has room now, or before the next look; the giver gives the last of its queue, the one that
would end latest. A session moves only if it ends so much earlier there that nothing goes to and fro.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

SHARE = 0.2
"""a session that moves ends earlier by at least this part of its length"""
_MOST_TRIED = 50
"""sessions at the end of a queue that are tried"""


@dataclass(frozen=True)
class Place:
    """A host with what runs and waits there. All times are seconds from now."""

    lengths: Mapping[str, float]
    """how long each session takes there; one that is not named can never run there"""
    room: Callable[[Sequence[str]], int]
    """how many of these sessions could start there now, beside what runs"""
    running: tuple[float, ...] = ()
    """how long each that runs there still takes"""
    waiting: tuple[str, ...] = ()
    """those that wait there, in the order in which they start"""
    movable: frozenset[str] = frozenset()
    """those of them that may go to another host"""
    takes: bool = True
    """whether sessions of other hosts may go there"""
    stuck: bool = False
    """whether nothing starts there until somebody does something"""

    def ends(self, names: Sequence[str]) -> list[tuple[float, float]]:
        """Start and end of each of these, one after the other, each when a slot is free."""
        return self._scheduled(names)[0]

    def _scheduled(self, names: Sequence[str]) -> tuple[list[tuple[float, float]], list[float]]:
        """The same, and when each slot is free then."""
        free = [] if self.stuck else [*self.running, *[0.0] * self.room(names)]
        if not free:
            return [(math.inf, math.inf) for _ in names], []
        heapq.heapify(free)
        found = list[tuple[float, float]]()
        for name in names:
            start = free[0]
            end = start + self.lengths.get(name, 0.0)
            heapq.heapreplace(free, end)
            found.append((start, end))
        return found, free

    def opens(self, soon: float) -> bool:
        """Whether it may have room for one more, so soon."""
        if not self.takes or self.stuck:
            return False
        if not self.waiting:
            return True
        found, free = self._scheduled(self.waiting)
        return bool(free) and (free[0] <= soon or found[-1][0] == 0.0)

    def start(self, name: str, coming: Sequence[str]) -> float:
        """When a session would start there, behind those that wait and those that come before it."""
        if name not in self.lengths:
            return math.inf
        return self.ends([*self.waiting, *coming, name])[-1][0]


class Schedule(NamedTuple):
    """When all that still waits at a giver ends, and start and end of the last ones."""

    ends: float
    last: list[tuple[float, float]]


class Step(NamedTuple):
    session: str
    giver: str
    taker: str


def steps(places: Mapping[str, Place], *, soon: float = 0.0, least: float = 0.0) -> list[Step]:
    """What moves now. `soon`: seconds until the next look; `least`: seconds that a move gains at least."""
    takers = [host for host, one in places.items() if one.opens(soon)]
    queues = {host: [*one.waiting] for host, one in places.items()}
    coming: dict[str, list[str]] = {host: [] for host in takers}
    found = list[Step]()
    schedules: dict[str, Schedule] = {}
    while step := _next(places, queues, coming, soon, least, schedules):
        queues[step.giver].remove(step.session)
        del schedules[step.giver]
        coming[step.taker].append(step.session)
        found.append(step)
    return found


def _next(
    places: Mapping[str, Place],
    queues: Mapping[str, Sequence[str]],
    coming: Mapping[str, Sequence[str]],
    soon: float,
    least: float,
    schedules: dict[str, Schedule],
) -> Step | None:
    takers = [host for host in coming if len(queues[host]) == len(places[host].waiting)]  # who gives takes nothing
    if not takers:
        return None
    givers = [host for host, queue in queues.items() if places[host].movable and queue]
    for host in givers:
        if host not in schedules:
            ends = places[host].ends(queues[host])
            schedules[host] = Schedule(max(end for _, end in ends), ends[-_MOST_TRIED:])
    for giver in sorted(givers, key=lambda host: -schedules[host].ends):
        own, other = places[giver], [host for host in takers if host != giver]
        last = [*zip(queues[giver][-_MOST_TRIED:], schedules[giver].last, strict=True)]
        for name, (start, end) in reversed(last):
            if name not in own.movable or start <= 0:
                continue
            starts = {host: places[host].start(name, coming[host]) for host in other}
            there = {host: at + places[host].lengths[name] for host, at in starts.items() if at <= soon}
            taker = min(there, key=there.__getitem__, default="")
            if taker and end - there[taker] > max(least, SHARE * places[taker].lengths[name]):
                return Step(name, giver, taker)
    return None
