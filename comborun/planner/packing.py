"""The dispatcher's admission, played without a host: what fits at once, and when all ends. Pure.

A session starts when everything that it asks for is free: a slot, GPUs with its memory on each, cores, main memory,
its tokens, its group's caps. Sessions start in plan order; one that doesn't fit lets those behind it pass. Memory is in
MiB. What is not known of a host limits nothing here, and is named by whoever tells of it.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from comborun.amounts import MIB
from comborun.resources import NOTHING, Request

if TYPE_CHECKING:
    from comborun.facts import HostFacts
    from comborun.plan import Plan, Session

_HOST = -1
"""stands for the host among GPUs, where starts without a GPU are spaced"""


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
            gpus[index] = max(0, card.total - max(card.used, reserve.gpu_memory) - reserve.headroom)
    total = host.memory // MIB
    used = total - host.available // MIB if host.available is not None else 0
    memory = max(0, total - max(used, reserve.memory)) if total else None
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


class _Host:
    """What is taken at one moment of a play."""

    def __init__(self, room: Capacity) -> None:
        self.room = room
        self.busy = 0
        self.cpus = 0
        self.memory = 0
        self.on: Counter[int] = Counter()
        self.promised: Counter[int] = Counter()
        self.alone: set[int] = set()
        self.groups: Counter[tuple[str, int | None]] = Counter()
        self.tokens: set[str] = set()
        for server in room.servers:
            self.take(server, self.choose(server) or ())
        self.busy = 0

    def lacks(self, task: Task) -> str:
        """What is not free for it; empty: it may start."""
        room, asked = self.room, task.request
        if asked.cpus and room.cpus is not None and self.cpus + asked.cpus > room.cpus:
            return "CPUs"
        if asked.memory and room.memory is not None and self.memory + asked.memory > room.memory:
            return "memory"
        if taken := self.tokens.intersection(asked.tokens):
            return f"`{min(taken)}`"
        if asked.per_host and self.groups[asked.group, None] >= asked.per_host:
            return f"per_host of {asked.group}"
        if self.choose(task) is None:
            return self._gpu_reason(task)
        return "slots" if self.busy >= room.slots else ""

    def choose(self, task: Task) -> tuple[int, ...] | None:
        """The GPUs that have room with the fewest sessions, then with the most memory free, as the host chooses them;
        None where there are too few."""
        if not task.gpus:
            return ()
        wanted = task.request.only or tuple(self.room.gpus)
        open_ = [gpu for gpu in wanted if gpu in self.room.gpus and self._holds(gpu, task)]
        if len(open_) < task.gpus:
            return None
        return tuple(sorted(open_, key=lambda gpu: (self.on[gpu], -self._free(gpu)))[: task.gpus])

    def _free(self, gpu: int) -> int:
        """Memory that isn't promised; 0 where it isn't known."""
        free = self.room.gpus[gpu]
        return 0 if free is None else free - self.promised[gpu]

    def _holds(self, gpu: int, task: Task) -> bool:
        room, asked = self.room, task.request
        if room.per_gpu and self.on[gpu] >= room.per_gpu:
            return False
        if asked.per_gpu and self.groups[asked.group, gpu] >= asked.per_gpu:
            return False
        if not asked.gpu_memory:
            return bool(room.per_gpu) or not self.on[gpu]
        free = room.gpus[gpu]
        return gpu not in self.alone and (free is None or self.promised[gpu] + asked.gpu_memory <= free)

    def _gpu_reason(self, task: Task) -> str:
        """Of GPUs that have no room: memory where that would be the only thing missing."""
        if task.request.gpu_memory and self.choose(replace(task, request=replace(task.request, gpu_memory=1))):
            return "GPU memory"
        return "GPUs"

    def take(self, task: Task, gpus: Iterable[int], sign: int = 1) -> None:
        """Give a task what it asks for; with -1 take it back."""
        asked = task.request
        self.busy += sign
        self.cpus += sign * asked.cpus
        self.memory += sign * asked.memory
        self.groups[asked.group, None] += sign
        for gpu in gpus:
            self.on[gpu] += sign
            self.promised[gpu] += sign * asked.gpu_memory
            self.groups[asked.group, gpu] += sign
            if not asked.gpu_memory and not self.room.per_gpu:
                (self.alone.add if sign > 0 else self.alone.discard)(gpu)
        if sign > 0:
            self.tokens.update(asked.tokens)
        else:
            self.tokens.difference_update(asked.tokens)


def beside_servers(room: Capacity) -> Capacity:
    """What is left for sessions while the servers hold theirs; a GPU that a server has alone is not among it."""
    held = _Host(room)
    free = {gpu: memory for gpu, memory in room.gpus.items() if gpu not in held.alone}
    return replace(
        room,
        cpus=None if room.cpus is None else max(0, room.cpus - held.cpus),
        memory=None if room.memory is None else max(0, room.memory - held.memory),
        gpus={gpu: None if memory is None else max(0, memory - held.promised[gpu]) for gpu, memory in free.items()},
        servers=(),
    )


def play(tasks: Sequence[Task], room: Capacity) -> Played:
    """Run `tasks` in their order as the dispatcher would; each takes its seconds, whatever runs beside it.

    One that fits on no empty host never ends.
    """
    host, running = _Host(room), list[tuple[float, int, tuple[int, ...]]]()
    ends, spaced = [math.inf] * len(tasks), defaultdict[int, float](float)
    now, most, short_of = 0.0, 0, ""
    queues: defaultdict[tuple[int, Request], deque[int]] = defaultdict(deque)
    for place, task in enumerate(tasks):
        queues[task.kind].append(place)
    while queues:
        index, lacking = _next(host, tasks, [queue[0] for queue in queues.values()])
        short_of = short_of or lacking
        gpus = () if index is None else host.choose(tasks[index]) or ()
        ready = max(spaced[where] for where in gpus or (_HOST,))
        if index is not None and ready <= now:
            _leave(queues, tasks[index].kind)
            host.take(tasks[index], gpus)
            spaced.update(dict.fromkeys(gpus or (_HOST,), now + room.stagger))
            ends[index] = now + tasks[index].seconds
            heapq.heappush(running, (ends[index], index, gpus))
            most = max(most, host.busy)
        elif index is not None and (not running or ready < running[0][0]):
            now = ready
        elif running:
            now, ended, held = heapq.heappop(running)
            host.take(tasks[ended], held, -1)
        else:
            break
    return Played(tuple(ends), most, short_of)


def _next(host: _Host, tasks: Sequence[Task], first: Iterable[int]) -> tuple[int | None, str]:
    """Who starts, of the first of each kind of request, and what the first one lacks that may not."""
    lacking = ""
    for index in sorted(first):
        lack = host.lacks(tasks[index])
        if not lack:
            return index, lacking
        lacking = lacking or lack
    return None, lacking


def _leave(queues: dict[tuple[int, Request], deque[int]], kind: tuple[int, Request]) -> None:
    queues[kind].popleft()
    if not queues[kind]:
        del queues[kind]


def fits(tasks: Sequence[Task], room: Capacity) -> tuple[int, str]:
    """How many of `tasks` run at once when they are taken in turn, for as long as any fits; and what limits that."""
    host, at = _Host(room), 0
    first = ""
    refused: set[tuple[int, Request]] = set()
    kinds = {task.kind for task in tasks}
    while len(refused) < len(kinds):
        task = tasks[at % len(tasks)]
        at += 1
        if task.kind in refused:
            continue
        if lack := host.lacks(task):
            first = first or lack
            refused.add(task.kind)
            continue
        host.take(task, host.choose(task) or ())
    return host.busy, first
