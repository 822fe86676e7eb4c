"""What each host of a run on several can hold, what it has still to do, and how long sessions take there: for moves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from comborun.errors import UserError
from comborun.model.work import combo_of, grouped, process_of, processes
from comborun.planner.moving import Place
from comborun.planner.packing import Stage, beside, stage_of
from comborun.remote.run_orders import laptop_secrets
from comborun.rules.holds import DRAINING
from comborun.rules.records import integers
from comborun.rules.room.capacity import never
from comborun.rules.vocabulary import Life, Outcome

if TYPE_CHECKING:
    from comborun.model.plan import Plan, Session
    from comborun.model.work import Combo
    from comborun.monitor.status import RunStatus, SessionStatus
    from comborun.monitor.watch import Look
    from comborun.remote.boxes import BoxState
    from comborun.rules.deal import Deal
    from comborun.rules.room.capacity import Request

MOST_MOVES = 4
"""of a session under one deal"""
_SAMPLE = 1000
"""sessions by which the speeds of hosts that have run nothing are compared"""
_ROUNDS = 4
"""in which the paces of hosts and of environments are told apart"""


class Seen(NamedTuple):
    """A host that has just answered."""

    look: Look
    state: BoxState


class Rooms(NamedTuple):
    places: Mapping[str, Place]
    timed: bool
    """False: no length is known, and all are counts of episodes"""


def rooms_of(seen: Mapping[str, Seen], deal: Deal) -> Rooms:
    """`seen`: the hosts that have answered and were not given up."""
    lengths, timed = lengths_of({host: one.look for host, one in seen.items()})
    return Rooms({host: _place(one, deal, lengths[host]) for host, one in seen.items()}, timed)


def may_move(looks: Mapping[str, Look]) -> bool:
    """Whether one may have room while sessions wait somewhere. The rest takes long where there are many sessions."""
    waiting = {host: sum(one.life is Life.QUEUED for one in look.status.proper) for host, look in looks.items()}
    slots = {host: look.status.slots or look.view.plan.limits.parallel for host, look in looks.items()}
    return any(waiting.values()) and any(waiting[host] <= slots[host] for host in looks)


def _place(one: Seen, deal: Deal, lengths: Mapping[str, float]) -> Place:
    status, state, plan = one.look.status, one.state, one.look.view.plan
    on, current = _stage(plan, status, state), _current(plan)
    asked = {own.name: own.resources for own in processes(current)}
    closed = {shut.environment for shut in status.closed}
    barred = {process_of(own) for own in current if own.environment in closed} if closed else set()
    impossible = {request for request in {*asked.values()} if _is_impossible(request, on)}
    process = {own.name: process_of(own) for own in plan.sessions}
    by_process = grouped(status.proper, lambda own: process.get(own.name, own.name))
    running = {name: own for name, own in by_process.items() if any(session.alive for session in own)}
    order = [name for name in dict.fromkeys(map(process_of, plan.current)) if name in by_process]
    queued = {name for name, own in by_process.items() if any(session.life is Life.QUEUED for session in own)}
    waiting = [name for name in order if name in queued and name not in running]
    held = status.hold.kind if status.hold else ""
    gives = not state.stopped and held in {"", DRAINING}
    held_by = [(asked[name], own[0].gpus) for name, own in running.items()]
    return Place(
        lengths={name: lengths[name] for name in asked if asked[name] not in impossible and name not in barred},
        room=lambda names: beside([asked[name] for name in names], on, held_by),
        running=tuple(_left(own, status, lengths.get(name, 0.0)) for name, own in running.items()),
        waiting=tuple(waiting),
        movable=frozenset(name for name in waiting if gives and _is_movable(name, by_process[name], deal)),
        takes=_takes(status, state) and (state.lives or _can_start(plan)),
        stuck=bool(held) or not (state.lives or state.done),
    )


def _current(plan: Plan) -> list[Session]:
    """The sessions that the run has, on whatever host."""
    return [one for one in plan.sessions if one.flag != "dropped"]


def _takes(status: RunStatus, state: BoxState) -> bool:
    """Whether it starts what it gets."""
    return (
        (state.lives or state.done)
        and not state.stopped
        and status.hold is None
        and status.elsewhere is None
        and status.outage is None
        and not status.disk_full
        and not status.dispatcher_held
    )


def _can_start(plan: Plan) -> bool:
    """Whether its dispatcher can be started from here."""
    try:
        laptop_secrets(dict(plan.secrets))
    except UserError:
        return False
    return True


def _is_movable(name: str, own: Sequence[SessionStatus], deal: Deal) -> bool:
    last = deal.moves.get(name)
    return name in deal.of and not any(one.attempt for one in own) and (last is None or last.epoch < MOST_MOVES)


# What fits


def _stage(plan: Plan, status: RunStatus, state: BoxState) -> Stage:
    """What the run may use of the host now, without what its own sessions hold."""
    uses, memory = state.uses, status.use.memory
    if uses:
        gpu_memory, main = (int(uses.get(f"reserve_{key}_mib") or 0) for key in ("gpu", "memory"))
        plan = replace(
            plan, gpus=integers(uses, "gpus"), reserve=replace(plan.reserve, gpu_memory=gpu_memory, memory=main)
        )
    held: defaultdict[int, int] = defaultdict(int)
    requests = {own.name: own.request for own in plan.sessions}
    requests |= {server.name: server.request for server in plan.server_instances}
    holders = [(one.name, one.gpus) for one in status.busy]
    holders += [(one.name, one.gpus) for one in status.servers if one.alive]
    for name, gpus in holders:
        for gpu in gpus:
            held[gpu] += requests[name].gpu_memory if name in requests else 0
    cards = [
        replace(card, used=None if card.used is None else max(0, card.used - held[card.index]))
        for card in status.use.gpus
    ]
    on = stage_of(plan, cards, memory.total if memory else 0, memory.free if memory else None)
    capacity = replace(on.capacity, quarantine=frozenset(one.gpu for one in status.quarantine))
    return replace(on, capacity=capacity, slots=status.slots or on.slots)


def _is_impossible(request: Request, on: Stage) -> bool:
    """Whether it can never start, or needs a GPU whose memory is not known now."""
    has = on.capacity
    unknown = request.gpus > 0 and sum(gpu in has.totals for gpu in has.candidates(request)) < request.gpus
    return unknown or never(request, has) is not None


# How long sessions take


class _Ran(NamedTuple):
    """What a session has shown of its pace."""

    session: Session
    seconds: float
    share: float
    """the part of it that was done in that time"""


def lengths_of(looks: Mapping[str, Look]) -> tuple[dict[str, dict[str, float]], bool]:
    """Seconds of each process on each host: by what has run of this run, else by what was measured before it.

    Returns False beside it if no time is known; then lengths are counts of episodes.
    """
    ran = {host: [*_shown(look)] for host, look in looks.items()}
    sessions = [*{one.name: one for look in looks.values() for one in _current(look.view.plan)}.values()]
    known = dict.fromkeys((one.name for one in sessions), 0.0)
    for look in looks.values():
        for one in look.view.plan.sessions:
            if one.expected_s and one.name in known:
                known[one.name] = max(known[one.name], float(one.expected_s))
    measured = {host: _measured(look.view.plan, known) for host, look in looks.items()}
    speeds = dict.fromkeys(looks, 1.0)
    for _ in range(_ROUNDS):
        speeds = _speeds(_usual_work(sessions, known, ran, speeds), ran, measured)
    work, combos = _usual_work(sessions, known, ran, speeds), _paces(ran, speeds, combo_of)
    for one in sessions:
        if pace := combos.get(combo_of(one)):
            work[one.name] = max(1, one.count) * pace
    timed = any(ran.values()) or any(known.values())
    whole = dict[str, float]()
    for one in sessions:
        name = process_of(one)
        whole[name] = whole.get(name, 0.0) + work[one.name]
    return {host: {name: speeds[host] * seconds for name, seconds in whole.items()} for host in looks}, timed


def _measured(plan: Plan, known: Mapping[str, float]) -> dict[str, float]:
    """What the host's plan expects of some of the sessions, as far as it expects anything."""
    expected = ((one.name, float(one.expected_s)) for one in plan.sessions if one.expected_s and one.name in known)
    return dict(islice(expected, _SAMPLE))


def _shown(look: Look) -> list[_Ran]:
    of = {one.name: one for one in _current(look.view.plan)}
    return [
        _Ran(of[one.name], one.seconds, one.latest.done / one.planned)
        for one in look.status.sessions
        if one.name in of
        and one.planned
        and one.seconds
        and one.latest.whole
        and one.latest.done > 0
        and one.outcome is not Outcome.LOST
    ]


def _usual_work(
    sessions: Sequence[Session],
    known: Mapping[str, float],
    ran: Mapping[str, Sequence[_Ran]],
    speeds: Mapping[str, float],
) -> dict[str, float]:
    """Seconds of each session on a usual host: as was measured before, else by its environment, else by all.

    Policies are taken as equal here: most differ less than hosts do, and a host may have run some of them only.
    """
    environments, overall = (_paces(ran, speeds, key) for key in (attrgetter("environment"), lambda _: ""))
    counted = [one for one in sessions if known[one.name] and one.count]
    usual = sum(known[one.name] for one in counted) / sum(one.count for one in counted) if counted else 0.0
    paces = {one.name: environments.get(one.environment) or overall.get("") or usual or 1.0 for one in sessions}
    return {one.name: known[one.name] or max(1, one.count) * paces[one.name] for one in sessions}


def _paces(
    ran: Mapping[str, Sequence[_Ran]], speeds: Mapping[str, float], key: Callable[[Session], Combo | str]
) -> dict[Combo | str, float]:
    """Seconds of an episode on a usual host."""
    seconds, done = defaultdict[object, float](float), defaultdict[object, float](float)
    for host, own in ran.items():
        for one in own:
            seconds[key(one.session)] += one.seconds
            done[key(one.session)] += one.share * max(1, one.session.count) * speeds[host]
    return {name: seconds[name] / done[name] for name in seconds if done[name]}  # type: ignore[misc]


def _speeds(
    work: Mapping[str, float], ran: Mapping[str, Sequence[_Ran]], measured: Mapping[str, Mapping[str, float]]
) -> dict[str, float]:
    """How many times as long as on a usual host sessions take on each."""
    found = dict[str, float]()
    for host, own in ran.items():
        done = sum(work[one.session.name] * one.share for one in own if one.session.name in work)
        if done:
            found[host] = sum(one.seconds for one in own) / done
        elif expected := measured[host]:
            found[host] = sum(expected.values()) / sum(work[name] for name in expected)
    mean = sum(found.values()) / len(found) if found else 1.0
    return {host: found.get(host, mean) for host in ran}


def _left(own: Sequence[SessionStatus], status: RunStatus, length: float) -> float:
    """Seconds until a process ends that runs; of one whose pace is unknown, as if it had just begun."""
    ends = [one.expected.likeliest for one in own if one.alive and one.expected]
    planned = sum(one.planned for one in own) or 1
    waiting = length * sum(one.planned for one in own if one.life is Life.QUEUED) / planned
    if ends and status.now is not None:
        return max(0.0, max(ends) - status.now) + waiting
    return length * sum(one.remaining for one in own if one.alive) / planned + waiting
