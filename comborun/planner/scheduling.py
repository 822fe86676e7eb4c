"""Fills in requests from a measurement, predicts times, cuts combos into shards, and orders the starts. Pure."""

from __future__ import annotations

import heapq
import math
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from comborun.model.work import combo_of, grouped, process_of, processes, whole
from comborun.planner.knowledge import Knowledge, Pace, granted
from comborun.planner.packing import at_once
from comborun.planner.ranges import blocks, distinct, interleaved, range_session

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from comborun.grid import Grid, SettingKeys
    from comborun.model.plan import Plan, Session
    from comborun.model.resources import HostFacts


def arranged(plan: Plan, grid: Grid, host: HostFacts | None, known: Knowledge) -> Plan:
    """Returns `plan` with its sessions cut, timed and ordered, and with no more slots than sessions.

    `plan` has one session for each combo of `grid`, and as many slots as the host can have. Without a host, on a
    cluster, `limits.parallel` of the grid is the number of slots; without it, the number counts as 1.
    """
    share = plan.cpus // plan.limits.parallel if known.best else 0
    plan = replace(plan, sessions=tuple(filled(one, known.pace(one), share) for one in plan.sessions))
    slots = (at_once(plan, host) if host else grid.limits.parallel) or 1
    of_combos = {combo.key: combo.settings for combo in grid.combos}
    settings = {one.name: of_combos[combo_of(one)] for one in plan.sessions}
    cut = _cut(plan.sessions, settings, known, slots)
    slowdown = known.slowdown(min(slots, len(processes(cut))))
    pieces = [timed(session, known, slowdown) for session in cut]
    in_turn = grid.stop_early or any(one.block for one in settings.values())
    sessions = interleaved(grouped(pieces, combo_of)) if in_turn else ordered(pieces)
    parallel = grid.limits.parallel or max(1, min(len(processes(pieces)), plan.limits.parallel))
    return replace(plan, sessions=distinct(sessions), limits=replace(plan.limits, parallel=parallel))


def _cut(sessions: Sequence[Session], settings: dict[str, SettingKeys], known: Knowledge, slots: int) -> list[Session]:
    """The sessions in blocks or shards, as their settings say."""
    numbers = {name: one.shards for name, one in settings.items() if isinstance(one.shards, int)}
    numbers |= _automatic(sessions, settings, known, slots)
    cut = (
        (one,)
        if one.together
        else blocks(one, most)
        if (most := settings[one.name].block)
        else shards(one, numbers.get(one.name, 1))
        for one in sessions
    )
    return [piece for pieces in cut for piece in pieces]


def filled(session: Session, pace: Pace | None, share: int) -> Session:
    """The session with the measured memory and a share of the cores where the grid gives none."""
    if pace is None:
        return session
    asked = session.request
    request = replace(
        asked,
        gpu_memory=asked.gpu_memory or (granted(pace.gpu_memory) if session.gpus else 0),
        memory=asked.memory or granted(pace.memory),
        cpus=asked.cpus or share,
    )
    return replace(session, request=request)


def timed(session: Session, known: Knowledge, slowdown: float) -> Session:
    pace = known.pace(session)
    if pace is None or not session.count:
        return session
    return replace(session, expected_s=max(1, math.ceil(pace.length(session.count) * slowdown)))


def ordered(sessions: Sequence[Session]) -> tuple[Session, ...]:
    """Longest predicted session first, because a long one at the end delays the run; equal ones in the grid's order.

    If the time of a session is unknown, its episodes count as long as the average of the others. A session without a
    number of episodes counts as the longest. Without any known time the grid's order holds.
    """
    groups = [*grouped(sessions, process_of).values()]
    known = [one for one in sessions if one.expected_s and one.count]
    if not known:
        return tuple(one for group in groups for one in group)
    paces = {
        unit: sum(one.expected_s for one in same) / sum(one.count for one in same)
        for unit, same in grouped(known, lambda one: one.unit).items()
    }

    def length(group: list[Session]) -> float:
        one = whole(group)
        return one.expected_s or (one.count * paces.get(one.unit, 1.0) if one.count else math.inf)

    return tuple(one for group in sorted(groups, key=length, reverse=True) for one in group)


def _automatic(
    sessions: Sequence[Session], settings: dict[str, SettingKeys], known: Knowledge, slots: int
) -> dict[str, int]:
    """The best number of shards of each session with `shards: auto`."""
    asking = {one.name: one for one in sessions if settings[one.name].shards == "auto"}
    slowdown = known.slowdown(slots)
    paces = {one.name: known.pace(one) for one in sessions}
    slowed = {name: pace and pace.times(slowdown) for name, pace in paces.items()}
    others = [
        pace.length(one.count) if (pace := slowed[one.name]) and one.count else None
        for one in sessions
        if one.name not in asking
    ]
    numbers = best_shards([Uncut(one.count, slowed[one.name]) for one in asking.values()], others, slots)
    return dict(zip(asking, numbers, strict=True))


_WORTH = 0.98
"""more shards must end the run within this share of the time with fewer"""


class Uncut(NamedTuple):
    episodes: int
    pace: Pace | None

    def length(self, count: int) -> float:
        return self.pace.length(count) if self.pace else 0.0


def shards(session: Session, number: int) -> tuple[Session, ...]:
    """`session` as `number` sessions, at most one per episode; their lengths differ by one episode at most."""
    if min(number, session.count) <= 1:
        return (session,)
    return tuple(range_session(session, at.start, len(at)) for at in ranges(session.first, session.count, number))


def ranges(first: int, count: int, number: int) -> Iterator[range]:
    """`number` (or `count`, if that is less) contiguous ranges of first .. first + count - 1, the longer ones first."""
    number = min(number, count)
    for place in range(number):
        size = count // number + (place < count % number)
        yield range(first, first + size)
        first += size


def best_shards(combos: Sequence[Uncut], others: Sequence[float | None], slots: int) -> tuple[int, ...]:
    """The number of shards of each of `combos` with which the run ends soonest. `others`: seconds of other sessions.

    The combo with the longest sessions is cut again and again. If the time of any session is unknown, lengths are
    episodes, and cutting stops when the slots are full. Otherwise the best number is taken: every shard pays the
    start-up again, so more shards help only while slots would be empty.
    """
    numbers, timed = [1] * len(combos), all(one.pace for one in combos) and None not in others
    most = slots + len(combos) if timed else slots - len(others)

    def longest(place: int) -> float:
        one, number = combos[place], numbers[place]
        return -one.length(-(-one.episodes // number)) if timed else -one.episodes / number

    queue = [(longest(place), place) for place in range(len(combos))]
    heapq.heapify(queue)
    best, soonest = tuple(numbers), _makespan(combos, numbers, others, slots)
    while queue and sum(numbers) < most:
        place = queue[0][1]
        if numbers[place] >= combos[place].episodes:
            break
        numbers[place] += 1
        heapq.heapreplace(queue, (longest(place), place))
        ends = _makespan(combos, numbers, others, slots) if timed else 0.0
        if not timed or ends < soonest * _WORTH:
            best, soonest = tuple(numbers), ends
    return best


def _makespan(combos: Sequence[Uncut], numbers: Sequence[int], others: Sequence[float | None], slots: int) -> float:
    """The time until all end. Unknown times count as 0."""
    cut = (one.length(len(at)) for one, n in zip(combos, numbers, strict=True) for at in ranges(0, one.episodes, n))
    return max(filled_slots((*cut, *filter(None, others)), slots))


def filled_slots(lengths: Iterable[float], slots: int) -> list[float]:
    """When each slot is free after these sessions: the longest first, each on the slot that is free first. A heap."""
    free = [0.0] * max(1, slots)
    for length in sorted(lengths, reverse=True):
        heapq.heapreplace(free, free[0] + length)
    return free
