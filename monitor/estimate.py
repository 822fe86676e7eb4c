"""Estimates as a range when a session or a run will end: from the session's own pace, else from the run's mean pace.

A session that did k episodes at a mean of m seconds and has r left will take about r m seconds more, with a standard
deviation of

    m sqrt(r + r^2 / k + (b r)^2)

The three terms are the spread of the r durations, the error of the mean, and b, how much a pace may change. A session
with too few episodes gets the mean pace of its run: then k counts the episodes of the whole run, and b is how much the
paces of its sessions differ: of many sessions the middle 80 %, so that one slow session does not widen the range. The
range is the middle 80 % of a normal distribution. A session that has been silent for unusually long shows no pace: its
limit for a stall will end it. For queued sessions all durations are taken as short, as likely, or as long. But a run
does not end before its slots can have done what is left at its mean pace.

All estimates are points in time, computed at the probe, so that they don't drift between two probes.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from comborun.model.plan import Unit
from comborun.monitor.status import Expected, SessionStatus
from comborun.rules.vocabulary import Life, Outcome

ENOUGH = 3
"""episodes; with fewer there is no estimate"""
_SHORTEST_S = 0.001
_DRIFT = 0.05
_APART = 0.3
"""assumed difference between paces, until three sessions have shown theirs"""
_MANY = 10
"""sessions whose paces show their own range"""
_SILENT = 4
"""part of a session's limit for a stall, and number of its episodes, after which its silence is unusual"""
_LIKELIEST = 0.0
_LEVELS = (-1.2816, _LIKELIEST, 1.2816)
"""in standard deviations: 10 %, 50 % and 90 % of a normal distribution"""


class _Pace(NamedTuple):
    mean: float
    """seconds"""
    seen: int
    """number of episodes behind it"""
    drift: float

    def seconds(self, count: int, level: float) -> float:
        """Seconds for `count` episodes, `level` standard deviations from the mean."""
        spread = math.hypot(math.sqrt(count + count**2 / self.seen), self.drift * count)
        return max(0.0, self.mean * (count + level * spread))


class Forecast(NamedTuple):
    ends: Mapping[str, Expected]
    """session -> its end; unknown ones are left out"""
    run: Expected | None
    """None when the end of any remaining session is unknown"""


def forecast(sessions: Sequence[SessionStatus], slots: int | None, now: float) -> Forecast:
    """Ends of the running sessions, then of the queued ones in order; `slots` None: no queued session starts."""
    paces = _paces(sessions, now)
    levels = [_ends(sessions, paces, slots, now, level) for level in _LEVELS]
    ends = {name: Expected(*(level[name] for level in levels)) for name in levels[0]}
    coming = [one for one in sessions if one.life is not Life.ENDED]
    if not coming or not all(one.name in ends for one in coming):
        return Forecast(ends, None)
    earliest, likeliest, latest = (max(level.values()) for level in levels)
    places = max(slots or 0, sum(one.alive for one in coming), 1)
    earliest = max(earliest, now + _work(coming, paces) / places)
    return Forecast(ends, Expected(min(earliest, likeliest), likeliest, latest))


def _work(coming: Sequence[SessionStatus], paces: Mapping[Unit, _Pace]) -> float:
    """Seconds that all that is left takes, one after the other, if it goes well. So much is close to its mean."""
    left = {unit: sum(one.remaining for one in coming if one.unit == unit) for unit in paces}
    return sum(paces[unit]._replace(drift=0.0).seconds(count, _LEVELS[0]) for unit, count in left.items())


def _ends(
    sessions: Sequence[SessionStatus], paces: Mapping[Unit, _Pace], slots: int | None, now: float, level: float
) -> dict[str, float]:
    """Session -> its end, if all durations are `level` standard deviations from their means."""
    running = [one for one in sessions if one.alive]
    ends = {one.name: now + left for one in running if (left := _left(one, paces, now, level)) is not None}
    queued = [one for one in sessions if one.life is Life.QUEUED]
    if queued and slots and len(ends) == len(running):
        ending = sorted(ends.values())  # more sessions may run than there are slots
        free = ending[max(0, len(ending) - slots) :] + [now] * (slots - len(ending))
        heapq.heapify(free)
        while queued:
            # for a slot that is free then: the first that is ready, else the earliest
            one = next((one for one in queued if _ready(one) <= free[0]), None) or min(queued, key=_ready)
            length = _length(one, paces, level)
            if length is None:
                break
            queued.remove(one)
            ends[one.name] = max(free[0], _ready(one)) + length
            heapq.heapreplace(free, ends[one.name])
    return ends


def _ready(one: SessionStatus) -> float:
    """The earliest start of a queued session, on the host's clock."""
    return (one.waiting.until if one.waiting else None) or 0.0


def _ran(one: SessionStatus, now: float) -> float:
    """Seconds that its latest attempt took, until the probe."""
    return max(0.0, now - one.started) if one.alive and one.started is not None else one.seconds or 0.0


def _left(one: SessionStatus, paces: Mapping[Unit, _Pace], now: float, level: float) -> float | None:
    """Seconds until a running session ends; None if its pace is unknown."""
    ran, likely = _ran(one, now), _length(one, paces, _LIKELIEST)
    # its pace differs from the run's
    overdue = not one.latest.done and one.remaining and likely is not None and ran > likely
    if one.life is Life.STALLED or not one.latest.whole or overdue:
        return None
    if (limit := _until_stall(one, now)) is not None:
        again = _length(one, paces, level) if one.again else 0.0
        return None if again is None else limit + again
    if _shows_pace(one, now) and one.latest.done >= ENOUGH:
        return _Pace(ran / one.latest.done, one.latest.done, _DRIFT).seconds(one.remaining, level)
    length = _length(one, paces, level)
    spent = 0.0 if one.latest.done else ran  # for episodes that are not done yet
    return None if length is None else max(0.0, length - spent)


def _until_stall(one: SessionStatus, now: float) -> float | None:
    """Seconds until its limit for a stall ends it; None while its silence is usual."""
    quiet = max(0.0, now - (one.latest.last_sign or now))
    if one.silent or not one.latest.done or quiet >= one.stall_s:
        return None
    usual = (_ran(one, now) - quiet) / one.latest.done
    return one.stall_s - quiet if quiet > max(_SILENT * usual, one.stall_s / _SILENT) else None


def _length(one: SessionStatus, paces: Mapping[Unit, _Pace], level: float) -> float | None:
    """Seconds for a session that has not done enough episodes yet, by the run's pace."""
    if one.unit not in paces or one.done is None:
        return None
    return paces[one.unit].seconds(one.remaining, level)


def _shows_pace(one: SessionStatus, now: float) -> bool:
    """Whether its latest attempt shows a pace. The run time of a lost attempt is unknown."""
    known = one.latest.whole and one.latest.done > 0 and _ran(one, now) > _SHORTEST_S
    return known and one.outcome is not Outcome.LOST and (not one.alive or _until_stall(one, now) is None)


def _paces(sessions: Sequence[SessionStatus], now: float) -> Mapping[Unit, _Pace]:
    """The mean pace of the run, for episodes and for steps; none if too little was done."""
    paces: dict[Unit, _Pace] = {}
    units: set[Unit] = {one.unit for one in sessions}
    for unit in units:
        paced = [one for one in sessions if one.unit == unit and _shows_pace(one, now)]
        done = sum(one.latest.done for one in paced)
        if done >= ENOUGH:
            mean = sum(_ran(one, now) for one in paced) / done
            single = sorted(_ran(one, now) / one.latest.done for one in paced if one.latest.done >= ENOUGH)
            paces[unit] = _Pace(mean, done, max(_DRIFT, _spread(single) / mean if len(single) >= 3 else _APART))
    return paces


def _spread(paces: Sequence[float]) -> float:
    """How much paces differ, in ascending order, as a standard deviation."""
    if len(paces) >= _MANY:
        cut = len(paces) // 10
        return (paces[-1 - cut] - paces[cut]) / (2 * _LEVELS[-1])
    middle = sum(paces) / len(paces)  # `statistics.stdev` is slow to import
    return math.sqrt(sum((one - middle) ** 2 for one in paces) / (len(paces) - 1))
