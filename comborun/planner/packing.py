"""The dispatcher's admission (`rules.placement`), played without a host: what fits at once, and when all ends. Pure.

Memory is in MiB. What is not known of a host limits nothing here, and is named by whoever tells of it.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

from comborun.errors import UserError
from comborun.resources import NOTHING
from comborun.rules import placement
from comborun.rules.ledger import Ledger
from comborun.rules.order import Line, Stagger
from comborun.rules.placement import HEADROOM, Lack, Request, Room, grantable
from comborun.text import MIB

if TYPE_CHECKING:
    from comborun.plan import Plan, Session
    from comborun.resources import HostFacts


@dataclass(frozen=True)
class Capacity:
    """What a host has for sessions. None: not known, or not limited."""

    slots: int
    cpus: int | None = None
    memory: int | None = None
    gpus: Mapping[int, int | None] = field(default_factory=lambda: MappingProxyType({}))
    """index -> what may be promised of its memory"""
    per_gpu: int = 0
    """sessions on one GPU; 0: as many as its memory holds, and one that says no memory has it alone"""
    stagger: float = 0.0
    """seconds between two starts on one GPU, and between two without a GPU"""
    servers: tuple[Task, ...] = ()
    """hold what they ask for from the first start to the last end; they take no slot"""


@dataclass(frozen=True)
class Task:
    """A session as admission sees it."""

    seconds: float
    gpus: int = 0
    request: Request = NOTHING

    @classmethod
    def of(cls, session: Session) -> Task:
        return cls(float(session.expected_s), session.gpus, session.request)

    @property
    def kind(self) -> tuple[int, Request]:
        return self.gpus, self.request

    @cached_property
    def asked(self) -> placement.Request:
        """In the words of the host's rules."""
        return replace(self.request, gpus=self.gpus)


@dataclass(frozen=True)
class Played:
    """How a plan goes."""

    ends: tuple[float, ...]
    """seconds from the first start, in the order of the tasks"""
    most: int
    """sessions that ran at once"""
    short_of: str
    """what the first one lacked that had to wait; empty where none had to"""

    @property
    def makespan(self) -> float:
        return max(self.ends, default=0.0)


def capacity(plan: Plan, host: HostFacts) -> Capacity:
    """What `plan` may use of `host` as it is now: others count by their use or by the reserve, whichever is more."""
    reserve = plan.reserve
    cards = {card.index: card for card in host.cards}
    gpus: dict[int, int | None] = {}
    for index in plan.gpus:
        card = cards.get(index)
        if card is None or card.total is None or card.used is None:
            gpus[index] = None
        else:
            gpus[index] = max(0, grantable(card.total, card.used, reserve.gpu_memory, HEADROOM))
    total = host.memory // MIB
    used = total - host.available // MIB if host.available is not None else 0
    memory = max(0, grantable(total, used, reserve.memory)) if total else None
    return Capacity(
        slots=plan.limits.parallel,
        cpus=plan.cpus,
        memory=memory,
        gpus=MappingProxyType(gpus),
        per_gpu=plan.limits.per_gpu,
        stagger=plan.limits.stagger,
        servers=tuple(_servers(plan)),
    )


def _servers(plan: Plan) -> Iterator[Task]:
    for server in plan.servers:
        if server.each_gpu:
            places = server.request.only or plan.gpus
            yield from (Task(0.0, 1, replace(server.request, only=(gpu,))) for gpu in places)
        else:
            yield Task(0.0, server.gpus, server.request)


_WORDS = {"cpus": "CPUs", "host_memory": "memory", "gpu_memory": "GPU memory"}
"""of what a session lacks, as a plan tells it"""
_UNKNOWN = 1 << 60
"""MiB: what is not known limits nothing here"""


class _Play:
    """A host in a play: its ledger, who runs there, and when something started where."""

    def __init__(self, room: Capacity) -> None:
        self.slots = room.slots
        self.busy = 0
        self.ledger = Ledger(_room(room))
        self.line = Line(self.ledger)
        self.spacing = Stagger(room.stagger)
        self.now = 0.0
        for number, server in enumerate(room.servers):
            chosen = self.ledger.choose(server.asked)
            self.ledger.take(f"server {number}", server.asked, () if isinstance(chosen, Lack) else chosen)

    def choose(self, task: Task) -> tuple[int, ...] | Lack:
        """The GPUs that it gets now, or what it lacks."""
        chosen = self.ledger.choose(task.asked, bars=self._bars)
        if isinstance(chosen, Lack):
            return chosen
        if self.busy >= self.slots:
            return Lack("slots", "")
        return Lack("stagger", "") if not task.gpus and self.spacing.left(None, self.now) else chosen

    def _bars(self, gpu: int) -> Lack | None:
        return Lack("stagger", "", 2) if self.spacing.left(gpu, self.now) else None

    def start(self, key: str, task: Task, gpus: tuple[int, ...]) -> None:
        self.ledger.take(key, task.asked, gpus)
        self.spacing.started(gpus, self.now)
        self.busy += 1

    def end(self, key: str) -> None:
        self.ledger.give_back(key)
        self.busy -= 1


def _room(capacity: Capacity) -> Room:
    room = Room(tuple(capacity.gpus), capacity.per_gpu, capacity.cpus)
    room.gpu_memory = {gpu: _UNKNOWN if free is None else free for gpu, free in capacity.gpus.items()}
    room.memory = _UNKNOWN if capacity.memory is None else capacity.memory
    return room


def _lacking(lack: Lack) -> str:
    """In a word; empty for a start that has to wait for the one before it."""
    if lack.reason == "token":
        return f"`{lack.of}`"
    if lack.of:
        return f"per_host of {lack.of}"
    if lack.reason == "stagger":
        return ""
    return "slots" if lack.reason == "slots" else _WORDS.get(lack.reason, "GPUs")


def beside_servers(room: Capacity) -> Capacity:
    """What is left for sessions while the servers hold theirs; a GPU that a server has alone is not among it."""
    held = _Play(room).ledger.ours
    free = {gpu: memory for gpu, memory in room.gpus.items() if not held.alone.get(gpu)}
    return replace(
        room,
        cpus=None if room.cpus is None else max(0, room.cpus - held.cpus),
        memory=None if room.memory is None else max(0, room.memory - held.memory),
        gpus={gpu: None if memory is None else max(0, memory - held.mib.get(gpu, 0)) for gpu, memory in free.items()},
        servers=(),
    )


def play(tasks: Sequence[Task], room: Capacity) -> Played:
    """Run `tasks` in their order as the dispatcher would; each takes its seconds, whatever runs beside it.

    One that fits on no empty host never ends.
    """
    host, running = _Play(room), list[tuple[float, int]]()
    ends = [math.inf] * len(tasks)
    most, short_of = 0, ""
    queues: defaultdict[object, deque[int]] = defaultdict(deque)
    for place, task in enumerate(tasks):
        queues[task.asked].append(place)
    while queues:
        for index, lacking in _starts(host, tasks, queues):
            short_of = short_of or lacking
            if index is not None:
                ends[index] = host.now + tasks[index].seconds
                heapq.heappush(running, (ends[index], index))
        most = max(most, host.busy)
        ready = host.spacing.next(host.now)
        if running and running[0][0] <= ready:
            host.now, ended = heapq.heappop(running)
            host.end(str(ended))
        elif ready < math.inf:
            host.now = ready
        else:
            break
    return Played(tuple(ends), most, short_of)


def _starts(host: _Play, tasks: Sequence[Task], queues: dict[object, deque[int]]) -> Iterator[tuple[int | None, str]]:
    """All that start at this moment: of each who it is, or what the one lacks that has to wait."""
    host.line.round()
    waiting = set(queues)
    while first := sorted(queues[kind][0] for kind in waiting & queues.keys()):
        for index in first:
            task = tasks[index]
            chosen = host.choose(task)
            if isinstance(chosen, Lack):
                waiting.discard(task.asked)
                if chosen.reason not in {"slots", "stagger"} or task.gpus:
                    host.line.refuse(str(index), task.asked, chosen)
                yield None, _lacking(chosen)
                continue
            queues[task.asked].popleft()
            if not queues[task.asked]:
                del queues[task.asked]
            host.start(str(index), task, chosen)
            host.line.started(task.asked)
            yield index, ""
            break


def fits(tasks: Sequence[Task], room: Capacity) -> tuple[int, str]:
    """How many of `tasks` run at once when they are taken in turn, for as long as any fits; and what limits that."""
    host, at = _Play(replace(room, stagger=0.0)), 0
    first = ""
    refused: set[object] = set()
    kinds = {task.asked for task in tasks}
    while len(refused) < len(kinds):
        task = tasks[at % len(tasks)]
        at += 1
        if task.asked in refused:
            continue
        chosen = host.choose(task)
        if isinstance(chosen, Lack):
            first = first or _lacking(chosen)
            refused.add(task.asked)
            continue
        host.start(str(at), task, chosen)
    return host.busy, first


def check_fit(plan: Plan, host: HostFacts) -> None:
    """Raise UserError, naming every request that no wait will meet, with the numbers."""
    room = Room(plan.gpus, plan.limits.per_gpu, plan.cpus, plan.reserve.gpu_memory, plan.reserve.memory)
    room.totals = {card.index: card.total for card in host.cards if card.total is not None}
    room.memory_total = host.memory // MIB or None
    asking = [(one.name, Task.of(one).asked) for one in plan.sessions]
    asking += [(f"the server {one.name}", Task(0.0, one.gpus, one.request).asked) for one in plan.servers]
    first = {request: who for who, request in reversed(asking)}
    reasons = [f"\n  {who}: {why}" for request, who in first.items() if (why := placement.never(request, room))]
    if reasons:
        raise UserError(
            f"{host.called} can never start this:{''.join(reversed(reasons))}",
            "lower what `resources` asks for, or what `reserve` keeps; `combo doctor` shows what the host has",
        )
