"""Deals the sessions of a grid to several hosts, and cuts combos for all of them together. Pure.

List scheduling: the longest session first, each to the host where it would end soonest. How many sessions a host holds
at once is the planner's packing; how long they take there is its calibration, where it has one.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from comborun.errors import UserError
from comborun.model.work import Replicate, combo_of, grouped, name_of_combo, process_of, processes, replicate_of
from comborun.planner.packing import fits, stage
from comborun.planner.ranges import distinct, range_session, session_digest
from comborun.planner.scheduling import Uncut, best_shards, filled_slots, ordered, ranges
from comborun.rules.room.capacity import never as never_fits

if TYPE_CHECKING:
    from comborun.grid import Grid
    from comborun.model.plan import Plan, Session
    from comborun.model.resources import HostFacts
    from comborun.planner.knowledge import Knowledge, Pace

    Cut = Mapping[Replicate, Sequence[range]]
    """the ranges of episodes into which a combo's seed is cut"""

_STARTS = 10
"""a range takes at least so many times as long as its start"""
_PARTS = 2
"""a range is one of so many parts of what is left for each slot, so ranges become smaller and smaller"""


@dataclass(frozen=True)
class Room:
    """What a host can hold."""

    slots: int
    """sessions at once"""
    lengths: Mapping[str, float]
    """how long each session takes there; one that is not named can't run there"""
    busy: tuple[float, ...] = ()
    """how long each session takes that the host has already"""


def deal(names: Sequence[str], rooms: Mapping[str, Room]) -> dict[str, str]:
    """Session -> host. Combos that share a process name it several times. Raises UserError if no host can hold one."""
    free = {host: filled_slots(room.busy, room.slots) for host, room in rooms.items()}
    longest = {name: max((one.lengths.get(name, -1.0) for one in rooms.values()), default=-1.0) for name in names}
    dealt: dict[str, str] = {}
    for name in sorted(longest, key=lambda one: -longest[one]):  # stable: equal ones in the order of the plan
        able = [host for host, room in rooms.items() if name in room.lengths]
        roomy = [host for host in able if rooms[host].slots] or able
        if not roomy:
            raise UserError(f"no host can ever start {name}", "lower what `resources` asks for")
        done = {host: free[host][0] + rooms[host].lengths[name] for host in roomy}
        dealt[name] = soonest = min(done, key=done.__getitem__)
        heapq.heapreplace(free[soonest], done[soonest])
    return {name: dealt[name] for name in longest}


def ends(dealt: Mapping[str, str], rooms: Mapping[str, Room]) -> dict[str, float]:
    """When each host is done, in the unit of the lengths, if it starts its sessions longest first."""
    own = {host: [room.lengths[name] for name, at in dealt.items() if at == host] for host, room in rooms.items()}
    return {host: max(filled_slots([*own[host], *room.busy], room.slots)) for host, room in rooms.items()}


def least(dealt: Collection[str], rooms: Mapping[str, Room]) -> float:
    """The least time in which any deal of these sessions can end: all work over all slots, or the longest session."""
    shortest = [min(room.lengths[name] for room in rooms.values() if name in room.lengths) for name in dealt]
    slots = sum(max(1, room.slots) for room in rooms.values())
    return max(sum(shortest) / slots, max(shortest, default=0.0))


class Candidate(NamedTuple):
    """A host, and the plan of the whole grid for it."""

    host: str
    plan: Plan
    facts: HostFacts
    known: Knowledge


def rooms_of(candidates: Sequence[Candidate]) -> dict[str, Room]:
    """What each host can hold of the plan that all of them have."""
    asking = _asking(candidates)
    known = _lengths(asking)
    found: dict[str, Room] = {}
    for one in candidates:
        able, slots = _holds(one, asking[one.host])
        found[one.host] = Room(slots, {name: length for name, length in known[one.host].items() if name in able})
    return found


def _asking(candidates: Sequence[Candidate]) -> dict[str, tuple[Session, ...]]:
    """What each host would start."""
    return {one.host: processes(one.plan.current) for one in candidates}


def _holds(one: Candidate, asking: Sequence[Session]) -> tuple[set[str], int]:
    """The sessions that a host can ever hold, and how many fit at once now."""
    on, asked = stage(one.plan, one.facts), {own.name: own.resources for own in asking}
    possible = {request for request in {*asked.values()} if not never_fits(request, on.capacity)}
    able = [name for name, request in asked.items() if request in possible]
    return {*able}, fits([asked[name] for name in able], on)[0] if able else 0


def _lengths(asking: Mapping[str, Sequence[Session]]) -> dict[str, dict[str, float]]:
    """Seconds of each session on each host. What one host does not know another one may; else episodes count."""
    each = {host: {own.name: float(own.expected_s) for own in sessions} for host, sessions in asking.items()}
    counts = {own.name: own.count for own in next(iter(asking.values()))}
    best = {name: max(of[name] for of in each.values()) for name in counts}
    timed = [name for name in counts if best[name] and counts[name]]
    pace = sum(best[name] for name in timed) / sum(counts[name] for name in timed) if timed else 1.0
    return {
        host: {name: of[name] or best[name] or pace * max(1, counts[name]) for name in counts}
        for host, of in each.items()
    }


# One cut for all hosts


def cut_together(grid: Grid, candidates: Sequence[Candidate]) -> Cut:
    """The ranges of all combos with `shards: auto`: large ones first, small ones last, for the slots of all hosts."""
    automatic = {one.key for one in grid.combos if one.settings.shards == "auto"}
    if not automatic:
        return {}
    sessions = [one for one in candidates[0].plan.current if combo_of(one) in automatic and one.count]
    wholes = {key: _whole(same) for key, same in grouped(sessions, replicate_of).items()}
    asking = _asking(candidates)
    slots = sum(max(1, _holds(one, asking[one.host])[1]) for one in candidates)
    combos = [Uncut(one.count, _pace(one, candidates)) for one in wholes.values()]
    if all(one.pace for one in combos):
        cuts = [*tapered(combos, slots)]
    else:  # without times: as many equal ranges as fill the slots
        numbers = best_shards(combos, [], slots)
        cuts = [[*ranges(0, one.episodes, number)] for one, number in zip(combos, numbers, strict=True)]
    return {
        key: [range(one.first + at.start, one.first + at.stop) for at in cut]
        for (key, one), cut in zip(wholes.items(), cuts, strict=True)
    }


def _pace(session: Session, candidates: Sequence[Candidate]) -> Pace | None:
    """The slowest that is known."""
    found = [pace for one in candidates if (pace := one.known.pace(session))]
    return max(found, key=lambda pace: pace.seconds, default=None)


def tapered(combos: Sequence[Uncut], slots: int) -> Iterator[list[range]]:
    """The ranges of each combo: each half of what is left for a slot, but at least ten times as long as a start."""
    left = sum(one.length(one.episodes) for one in combos)
    for one in combos:
        assert one.pace
        shortest = one.episodes
        if one.pace.seconds:
            shortest = max(1, math.ceil(_STARTS * one.pace.start_up / one.pace.seconds))
        found, at = list[range](), 0
        while at < one.episodes:
            rest = one.episodes - at
            size = max(shortest, math.ceil(left / (_PARTS * slots) / one.pace.seconds)) if one.pace.seconds else rest
            sizes = [size]
            if rest < size + shortest:  # the last ones are equal
                sizes = [len(part) for part in ranges(0, rest, max(1, min(rest // shortest, -(-rest // size))))]
            for number in sizes:
                found.append(range(at, at + number))
                at += number
                left -= number * one.pace.seconds
        yield found


def cut_of(plan: Plan) -> Cut:
    """The cut that a plan has."""
    counted = grouped((one for one in plan.sessions if not one.flag), replicate_of)
    return {key: [one.episodes for one in same] for key, same in counted.items()}


def recut(plan: Plan, cut: Cut) -> Plan:
    """The plan with another cut of the same episodes."""
    pieces: list[Session] = []
    for key, same in grouped(plan.sessions, replicate_of).items():
        wanted = cut.get(key)
        if not wanted or [*wanted] == [one.episodes for one in same]:
            pieces += same
        else:
            session, seconds = _whole(same), sum(one.expected_s for one in same)
            for at in wanted:
                piece = session if at == session.episodes else range_session(session, at.start, len(at))
                pieces.append(replace(piece, expected_s=math.ceil(seconds * len(at) / session.count)))
    return replace(plan, sessions=distinct(ordered(pieces))) if cut else plan


def _whole(same: Sequence[Session]) -> Session:
    """The session of all episodes of a combo's seed."""
    first, count = min(one.first for one in same), sum(one.count for one in same)
    if len(same) == 1:
        return same[0]
    one = replace(same[0], name=name_of_combo(same[0]), first=first, count=count)
    return replace(one, digest=session_digest(one))


def same_work(candidates: Sequence[Candidate]) -> None:
    """Raise UserError if the hosts would not run the same sessions."""
    first = candidates[0]
    names = {process_of(one): one for one in first.plan.sessions}
    for other in candidates[1:]:
        differ = [one.name for one in other.plan.sessions if process_of(one) not in names]
        if differ or other.plan.digest != first.plan.digest:
            what = f"{differ[0]} is in one plan only" if differ else "commands, folders or files differ"
            raise UserError(
                f"{first.host} and {other.host} would not run the same work: {what}",
                "paths must mean the same on all hosts; policies that a glob finds must be on each of them",
                code="hosts_differ",
            )
