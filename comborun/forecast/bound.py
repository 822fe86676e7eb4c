"""A time before which no order of a plan's sessions can end, if each takes what is expected of it. Pure."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comborun.planner.packing import Capacity, Task


@dataclass(frozen=True)
class Bound:
    """A time before which no order of the sessions can end, if each takes as long as is expected."""

    seconds: float
    of: str
    """what keeps it from being less"""


def bound(tasks: Sequence[Task], room: Capacity) -> Bound:
    """The longest session, or the largest over all resources of demand x time / capacity."""
    found = [Bound(max((task.seconds for task in tasks), default=0.0), "the longest session")]
    found.append(Bound(sum(task.seconds for task in tasks) / max(1, room.slots), "sessions at once"))
    if room.cpus:
        found.append(Bound(sum(task.seconds * task.request.cpus for task in tasks) / room.cpus, "CPUs"))
    if room.memory:
        found.append(Bound(sum(task.seconds * task.request.memory for task in tasks) / room.memory, "memory"))
    found += _gpu_bounds(tasks, room)
    found += _shared_bounds(tasks)
    return max(found, key=lambda one: one.seconds)


def _shared_bounds(tasks: Sequence[Task]) -> list[Bound]:
    """Of tokens, which one session has at a time, and of groups with a cap on the host."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for task in tasks:
        asked = task.request
        for token in asked.tokens:
            seconds[f"`{token}`"] += task.seconds
        if asked.per_host:
            seconds[f"per_host of {asked.group}"] += task.seconds / asked.per_host
    return [Bound(total, of) for of, total in seconds.items()]


def _gpu_bounds(tasks: Sequence[Task], room: Capacity) -> list[Bound]:
    asking = [task for task in tasks if task.gpus]
    if not asking or not room.gpus:
        return []
    found: list[Bound] = []
    places = room.per_gpu * len(room.gpus)
    if places:
        found.append(Bound(sum(task.seconds * task.gpus for task in asking) / places, "sessions on a GPU"))
    else:
        alone = sum(task.seconds * task.gpus for task in asking if not task.request.gpu_memory)
        found.append(Bound(alone / len(room.gpus), "GPUs"))
    memory = [free for free in room.gpus.values() if free is not None]
    total = sum(memory)
    if len(memory) == len(room.gpus) and total:
        demand = sum(task.seconds * task.gpus * task.request.gpu_memory for task in asking)
        found.append(Bound(demand / total, "GPU memory"))
    return found
