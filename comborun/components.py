"""Components of one program on the GPUs of one host: who is where, what memory that takes, which layouts would fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from comborun.amounts import several

GPUS = "cluster"
"""RLinf's name for all GPUs, where a placement says nothing else"""
NODES = "node"
"""and for machines as such: processes without a GPU"""
LAYOUTS = ((8, False), (4, False), (2, False), (2, True), (1, True))
"""GPUs in all, and whether the components share them: the layouts that people ask about"""


@dataclass(frozen=True)
class Component:
    """A part of a program that runs in processes of its own, such as `env` and `rollout` of RLinf."""

    name: str
    placement: str
    """the string, as the grid has it"""
    node_group: str
    processes: tuple[tuple[int, ...], ...]
    """the host's GPUs of each, by index; they are numbered from 0, as RLinf does it in the end"""
    gpu_memory: int = 0
    """MiB that a process takes on each of its GPUs, or each copy in it; 0: not said"""
    copies: int = 0
    """copies of the environment in all, shared out evenly to the processes; 0: it has none"""
    videos: int = 0
    """that each process writes; 0: not said"""

    @property
    def gpus(self) -> tuple[int, ...]:
        return tuple(sorted({gpu for process in self.processes for gpu in process}))

    @property
    def uneven(self) -> bool:
        """Whether its copies can't be shared out evenly, which RLinf asserts when it starts."""
        return bool(self.copies % len(self.processes))

    @property
    def process_memory(self) -> int:
        """MiB that one process takes on each of its GPUs; 0: not said."""
        return self.gpu_memory * (self.copies // len(self.processes) if self.copies else 1)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """From the JSON of a plan."""
        return cls(**{**data, "processes": tuple(map(tuple, data["processes"]))})


def claimed(components: Iterable[Component]) -> tuple[int, ...]:
    """The GPUs of all of them together."""
    return tuple(sorted({gpu for component in components for gpu in component.gpus}))


def on_gpu(components: Iterable[Component], gpu: int) -> Iterator[tuple[Component, int]]:
    """Every process on a GPU: its component, and its number there."""
    for component in components:
        for number, process in enumerate(component.processes):
            if gpu in process:
                yield component, number


def memory_on(components: Iterable[Component], gpu: int) -> int:
    """MiB that they take on a GPU; 0 where that is not said of each of them."""
    taken = [component.process_memory for component, _ in on_gpu(components, gpu)]
    return sum(taken) if all(taken) else 0


def videos_of(components: Iterable[Component]) -> int:
    """How many videos the program is to leave; 0: not said."""
    return sum(component.videos * len(component.processes) for component in components)


def gibibytes(mib: int) -> str:
    """As people read it."""
    return f"{mib / 1024:.1f} GiB"


@dataclass(frozen=True)
class Room:
    """A GPU of the host and what sessions may have of it."""

    gpu: int
    mib: int | None
    """None: nvidia-smi did not tell"""


@dataclass(frozen=True)
class Layout:
    """One way to put components on the GPUs of a host, in their order."""

    gpus: int
    shared: bool
    components: tuple[Component, ...]
    """placed on the GPUs from 0 on, whether the host has them or not"""
    memory: int
    """MiB on the GPU that has most to hold; 0: not said"""
    problem: str
    """why this host can't; empty: it can"""

    @property
    def kind(self) -> str:
        if self.gpus == 1:
            return "1 GPU"
        return f"{self.gpus} GPUs, {'shared' if self.shared else 'dedicated'}"

    @property
    def told(self) -> str:
        return ", ".join(f"{one.name} {one.placement}{_copies(one)}" for one in self.components)


def _copies(component: Component) -> str:
    return f" ({several(component.copies, 'copy', 'copies')})" if component.copies else ""


def layouts(components: Sequence[Component], rooms: Sequence[Room]) -> tuple[Layout, ...]:
    """What the usual layouts would take of this host, the largest first.

    Copies are as many as before, or the next number that can be dealt evenly; one for each process, where
    more don't fit.
    """
    placed = [component for component in components if component.gpus]
    wanted = [(count, shared) for count, shared in LAYOUTS if not _pointless(count, shared, len(placed))]
    return tuple(_layout(placed, count, shared, rooms) for count, shared in wanted)


def _pointless(gpus: int, shared: bool, components: int) -> bool:
    return components == 0 or (shared and components == 1 and gpus > 1) or (not shared and gpus % components > 0)


def _layout(components: Sequence[Component], gpus: int, shared: bool, rooms: Sequence[Room]) -> Layout:
    each = gpus if shared else gpus // len(components)
    laid = tuple(
        _on(component, range(each) if shared else range(place * each, (place + 1) * each))
        for place, component in enumerate(components)
    )
    problem = _problem(laid, gpus, rooms)
    fewest = tuple(replace(one, copies=len(one.processes)) if one.copies else one for one in laid)
    if problem and not _problem(fewest, gpus, rooms):
        laid, problem = fewest, ""
    memory = max(memory_on(laid, gpu) for gpu in range(gpus))
    return Layout(gpus, shared, laid, memory, problem)


def _on(component: Component, gpus: range) -> Component:
    """One process on each GPU."""
    text = f"{gpus[0]}" if len(gpus) == 1 else f"{gpus[0]}-{gpus[-1]}"
    copies = -(-component.copies // len(gpus)) * len(gpus)
    return replace(component, placement=text, processes=tuple((gpu,) for gpu in gpus), copies=copies)


def _problem(components: Sequence[Component], gpus: int, rooms: Sequence[Room]) -> str:
    if gpus > len(rooms):
        return f"needs {gpus} GPUs"
    return next(filter(None, (too_much(components, place, room) for place, room in enumerate(rooms[:gpus]))), "")


def too_much(components: Iterable[Component], gpu: int, room: Room) -> str:
    """Why they don't fit there; empty where they do, or where nobody can tell."""
    memory = memory_on(components, gpu)
    if room.mib is None or memory <= room.mib:
        return ""
    return f"takes {gibibytes(memory)} of GPU {room.gpu}, which offers {gibibytes(room.mib)}"
