"""Simulates the dispatcher's admission (`rules/room`): how many sessions fit at once, and when all end. Pure.

Memory is in MiB. Unknown resources limit nothing here. A forecast gives a number only if all its inputs are known."""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from typing import TYPE_CHECKING, NamedTuple

from comborun.errors import UserError
from comborun.model.work import Combo, combo_of, processes
from comborun.rules.facts import Fact
from comborun.rules.room.capacity import Blocker, Capacity, Card, Request
from comborun.rules.room.capacity import never as never_fits
from comborun.rules.room.ledger import Lease, Ledger
from comborun.rules.room.order import BackfillQueue, Stagger
from comborun.rules.room.waits import Wait, WaitFor
from comborun.text import MIB
from comborun.words import say

if TYPE_CHECKING:
    from comborun.grid import Grid
    from comborun.model.plan import Plan, Session
    from comborun.model.resources import HostFacts
    from comborun.planner.knowledge import Knowledge


@dataclass(frozen=True)
class Stage:
    """The resources of a host for a plan."""

    capacity: Capacity
    slots: int
    stagger: float = 0.0
    """seconds between two starts on one GPU, and between two without a GPU"""
    servers: tuple[Request, ...] = ()
    """model servers hold their resources from the first start to the last end, and take no slot"""


class Job(NamedTuple):
    seconds: float
    request: Request


class Shortage(NamedTuple):
    """What a session lacks."""

    waits_for: str
    of: str
    """the token, or the group whose cap is reached"""

    def __str__(self) -> str:
        if self.waits_for == WaitFor.TOKEN:
            return f"`{self.of}`"
        return f"per_host of {self.of}" if self.of else _RESOURCES.get(self.waits_for, "GPUs")


@dataclass(frozen=True)
class Simulated:
    ends: tuple[float, ...]
    """end of each job in seconds from the first start, in the order of the jobs"""
    most: int
    short_of: Shortage | None
    """of most of the waiting sessions while most ran; None if none waited"""

    @property
    def makespan(self) -> float:
        return max(self.ends, default=0.0)


def stage(plan: Plan, host: HostFacts) -> Stage:
    """What `plan` may use of `host` now. Others count by their use or by the reserve, whichever is more."""
    return stage_of(plan, host.cards, host.memory, host.available)


def stage_of(plan: Plan, cards: Sequence[Card], memory: int, available: int | None) -> Stage:
    """The same for a host with these GPUs, and so many bytes of memory; 0: unknown."""
    limits = plan.limits
    capacity = Capacity(plan.gpus, limits.per_gpu, plan.cpus, plan.reserve.gpu_memory, plan.reserve.memory)
    capacity.totals = {card.index: card.total for card in cards if card.total is not None}
    capacity.has_driver = bool(capacity.totals)
    for card in cards:
        if card.index in plan.gpus and card.total is not None and card.used is not None:
            capacity.measure_gpu(card.index, card.total, card.used)
    if total := memory // MIB:
        capacity.measure_memory(total, total - available // MIB if available is not None else 0)
    return Stage(capacity, limits.parallel, limits.stagger, tuple(one.request for one in plan.server_instances))


_RESOURCES: dict[str, str] = {WaitFor.CPUS: "CPUs", WaitFor.HOST_MEMORY: "memory", WaitFor.GPU_MEMORY: "GPU memory"}
_APART, _GPU_APART = Blocker(Fact(Wait.STARTS_APART)), Blocker(Fact(Wait.STARTS_APART), 2)
_UNKNOWN = 1 << 60
"""MiB; unknown memory limits nothing here"""


class _Host:
    """A simulated host: its ledger, its sessions, and the times of the last starts."""

    def __init__(self, on: Stage) -> None:
        self.slots = on.slots
        self.busy = 0
        has = on.capacity
        known = {gpu: has.gpu_memory.get(gpu, _UNKNOWN) for gpu in has.gpus}
        memory = _UNKNOWN if has.memory is None else has.memory
        self.ledger = Ledger(replace(has, gpu_memory=known, memory=memory))
        self.line = BackfillQueue(self.ledger)
        self.spacing = Stagger(on.stagger)
        self.now = 0.0
        for number, server in enumerate(on.servers):
            chosen = self.ledger.choose(server)
            self.ledger.take(Lease("", f"server {number}", server, () if isinstance(chosen, Blocker) else chosen))

    def choose(self, request: Request) -> tuple[int, ...] | Blocker:
        chosen = self.ledger.choose(request, bars=lambda gpu: _GPU_APART if self.spacing.left(gpu, self.now) else None)
        if isinstance(chosen, Blocker):
            return chosen
        if self.busy >= self.slots:
            return Blocker(Fact(Wait.SLOTS_TAKEN))
        return _APART if not request.gpus and self.spacing.left(None, self.now) else chosen

    def start(self, key: str, request: Request, gpus: tuple[int, ...]) -> None:
        self.ledger.take(Lease("", key, request, gpus))
        self.spacing.started(gpus, self.now)
        self.busy += 1

    def end(self, key: str) -> None:
        self.ledger.give_back(key)
        self.busy -= 1


def simulate(jobs: Sequence[Job], on: Stage) -> Simulated:
    """Start `jobs` in order as the dispatcher would. Each takes its seconds, whatever runs beside it.

    A job that does not fit on the empty host never ends.
    """
    host, running = _Host(on), list[tuple[float, int]]()
    ends = [math.inf] * len(jobs)
    most, short_of = 0, None
    queues: defaultdict[object, deque[int]] = defaultdict(deque)
    for place, job in enumerate(jobs):
        queues[job.request].append(place)
    while queues:
        lacking: Counter[Shortage] = Counter()
        for index, blocked_by in _starts(host, jobs, queues):
            if blocked_by is None:
                ends[index] = host.now + jobs[index].seconds
                heapq.heappush(running, (ends[index], index))
            elif blocked_by.waits_for != WaitFor.STAGGER:
                lacking[blocked_by] += len(queues[jobs[index].request])
        if host.busy > most:
            most, short_of = host.busy, max(lacking, key=lacking.__getitem__, default=None)
        ready = host.spacing.next(host.now)
        if running and running[0][0] <= ready:
            host.now, ended = heapq.heappop(running)
            host.end(str(ended))
        elif ready < math.inf:
            host.now = ready
        else:
            break
    return Simulated(tuple(ends), most, short_of)


def _starts(
    host: _Host, jobs: Sequence[Job], queues: dict[object, deque[int]]
) -> Iterator[tuple[int, Shortage | None]]:
    """All that start now, and the first of each request that can't, with what it lacks."""
    host.line.round()
    waiting = set(queues)
    while first := sorted(queues[kind][0] for kind in waiting & queues.keys()):
        for index in first:
            request = jobs[index].request
            chosen = host.choose(request)
            if isinstance(chosen, Blocker):
                waiting.discard(request)
                if chosen.waits_for not in {WaitFor.SLOT, WaitFor.STAGGER} or request.gpus:
                    host.line.refuse(str(index), request, chosen)
                yield index, Shortage(chosen.waits_for, chosen.of)
                continue
            queues[request].popleft()
            if not queues[request]:
                del queues[request]
            host.start(str(index), request, chosen)
            host.line.started(request)
            yield index, None
            break


def fits(requests: Sequence[Request], on: Stage) -> tuple[int, Shortage | None]:
    """How many of `requests` run at once if they are started in turn as long as one fits, and what limits that."""
    host, kinds = _Host(replace(on, stagger=0.0)), len({*requests})
    refused: dict[Request, Shortage] = {}
    for at, request in enumerate(cycle(requests)):
        if request not in refused:
            _start_or_refuse(host, str(at), request, refused)
        if len(refused) == kinds:
            break
    return host.busy, next(iter(refused.values()), None)


def _start_or_refuse(host: _Host, key: str, request: Request, refused: dict[Request, Shortage]) -> None:
    chosen = host.choose(request)
    if isinstance(chosen, Blocker):
        refused[request] = Shortage(chosen.waits_for, chosen.of)
    else:
        host.start(key, request, chosen)


def beside(requests: Sequence[Request], on: Stage, running: Sequence[tuple[Request, tuple[int, ...]]]) -> int:
    """How many of `requests` could start now, in this order, beside what runs on its GPUs already."""
    host = _Host(replace(on, stagger=0.0))
    refused: dict[Request, Shortage] = {}
    for number, (request, gpus) in enumerate(running):
        host.start(f"running {number}", request, gpus)
    for number, request in enumerate(requests):
        if host.busy >= host.slots:
            break
        if request not in refused:
            _start_or_refuse(host, str(number), request, refused)
    return host.busy - len(running)


def at_once(plan: Plan, host: HostFacts) -> int:
    return fits([one.resources for one in processes(plan.sessions)], stage(plan, host))[0]


def check_fit(plan: Plan, host: HostFacts) -> None:
    """Raise UserError if a request can never be met; it names each with its numbers."""
    capacity = stage(plan, host).capacity
    asking = [(one.name, one.resources) for one in processes(plan.sessions)]
    asking += [(f"the server {one.name}", one.resources) for one in plan.servers]
    first = {request: who for who, request in reversed(asking)}
    reasons = [f"\n  {who}: {say(why)}" for request, who in first.items() if (why := never_fits(request, capacity))]
    if reasons:
        raise UserError(
            f"{host.called} can never start this:{''.join(reversed(reasons))}",
            "lower what `resources` asks for, or what `reserve` keeps; `combo doctor` shows what the host has",
        )


# The forecast
PARALLEL = "limits.parallel"
_FILLED = {"gpu_memory": " MiB", "memory": " MiB", "cpus": " (its share of the cores)"}
"""requests that may be filled in, and their units"""


@dataclass(frozen=True)
class Outlook:
    at_once: int
    limited: str
    """the limiting resource; empty if all sessions run at once"""
    never: tuple[str, ...]
    """sessions that need more than the host has free now"""
    makespan: float | None
    """seconds; None if the time of a session is unknown"""
    sequential: float | None
    """seconds of all combos one after another, each in one session"""
    unknown: tuple[str, ...]
    told: str
    """where the times are from; empty: nothing is known"""
    filled: tuple[str, ...]
    """requests of sessions that are not from the grid"""


def outlook(plan: Plan, grid: Grid, host: HostFacts, known: Knowledge) -> Outlook:
    """The forecast of `plan`, which lay_out has made from the other arguments."""
    sessions = processes(plan.current)
    jobs, on = [Job(float(one.expected_s), one.resources) for one in sessions], stage(plan, host)
    never = tuple(one.name for one in sessions if not fits([one.resources], replace(on, slots=1))[0])
    possible = [job for job, one in zip(jobs, sessions, strict=True) if one.name not in never]
    first = simulate([job._replace(seconds=1.0) for job in possible], replace(on, stagger=0.0))
    if first.short_of is None:
        limited = "what is free now" if never else ""
    elif first.short_of.waits_for != WaitFor.SLOT:
        limited = str(first.short_of)
    else:
        measured = "the best that was measured" if known.best else "one for each core"
        limited = PARALLEL if grid.limits.parallel else measured
    unknown = tuple(dict.fromkeys(one.label for one in plan.current if not one.expected_s))
    return Outlook(
        at_once=first.most,
        limited=limited,
        never=never,
        makespan=None if unknown or never else simulate(jobs, on).makespan,
        sequential=_sequential(plan.current, known) if not unknown else None,
        unknown=unknown,
        told=known.origin,
        filled=tuple(_filled(plan.current, grid)) if known.origin else (),
    )


def _sequential(sessions: Sequence[Session], known: Knowledge) -> float:
    """Seconds of all combos one after another, with one start-up each."""
    counts: defaultdict[Combo, int] = defaultdict(int)
    for one in sessions:
        counts[combo_of(one)] += one.count
    paces = {combo_of(one): pace for one in sessions if (pace := known.pace(one))}
    return sum(pace.length(counts[combo]) for combo, pace in paces.items())


def _filled(sessions: Sequence[Session], grid: Grid) -> Iterator[str]:
    """Says which requests the grid leaves open and a measurement has filled in."""
    asked = {combo.key: combo.settings.resources.request for combo in grid.combos}
    for key, unit in _FILLED.items():
        values = {getattr(one.request, key) for one in sessions if not getattr(asked[combo_of(one)], key)} - {0}
        if values:
            least, most = min(values), max(values)
            yield f"{key} {least}{f' to {most}' if most > least else ''}{unit}"
