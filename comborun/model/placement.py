"""RLinf's component placement strings (`cluster.component_placement`): which process of a component has which GPUs.

    string    := part ("," part)*             empty parts are skipped; a number is read as its digits
    part      := resources [":" processes]
    resources := N | N-M (N <= M) | "all" (in any case)
    processes := N | N-M                      without them: one for each resource, counted on from the last one
    N         := text that Python's int() accepts: with blanks, a plus sign, underscores, digits of any script

Resources ascend over all parts, and each must exist. Processes ascend without a gap, from any first one. Within a part,
one of the two counts divides the other: each process has several consecutive resources, or each resource several
consecutive processes.

The rules and their order are those of RLinf a3816b59 (parse_rank_config in
rlinf/scheduler/cluster/utils.py, ComponentPlacement and FlexiblePlacementStrategy in rlinf/scheduler/placement).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from comborun.errors import UserError
from comborun.text import several

MOST_PROCESSES = 100_000
"""most processes of one component; RLinf has no limit, and would fill the memory of the host"""

_SHAPE = "such as 0-3, all, or 0-1:0-3 for the processes 0 to 3 on the GPUs 0 and 1"


class PlacementError(UserError):
    """A placement string that RLinf refuses."""


Part = tuple[range, range]
"""consecutive GPUs, and the consecutive processes on them"""


def parse_placement(text: str | int, resources: int) -> dict[int, list[int]]:
    """Process -> its GPUs, both ascending, on a host with `resources` GPUs, numbered from 0.

    Raises PlacementError for everything that RLinf refuses, and for more than MOST_PROCESSES.
    """
    whole = str(text)
    placed: dict[int, list[int]] = {}
    last: Part | None = None
    for written in filter(None, map(str.strip, whole.split(","))):
        last = _part(written, last, resources)
        gpus, processes = last
        each, sharing = max(1, len(gpus) // len(processes)), max(1, len(processes) // len(gpus))
        placed |= {process: list(gpus[at * each // sharing :][:each]) for at, process in enumerate(processes)}
    if not placed:
        raise PlacementError(f"`{whole}` places no process", _SHAPE)
    return placed


def _part(text: str, before: Part | None, resources: int) -> Part:
    """One part, checked against the one before it, in RLinf's order."""
    sides = text.split(":")
    if len(sides) > 2:
        raise PlacementError(f"`{text}` has more than one colon", "GPUs:processes; a comma begins the next part")
    gpus = _resources(sides[0].strip(), text, resources)
    if before and gpus[0] <= before[0][-1]:
        raise _out_of_order(gpus, before[0], text)
    expected = before[1].stop if before else 0
    processes = _processes(sides[1].strip(), text) if len(sides) == 2 else range(expected, expected + len(gpus))
    if before and processes[0] != expected:
        raise PlacementError(
            f"`{text}`: its first process is {processes[0]}, and {expected} comes next",
            "the numbers of processes go on from part to part, without a gap or a repeat",
        )
    if processes.stop > MOST_PROCESSES:
        raise PlacementError(f"`{text}`: too many processes for a host", f"number them below {MOST_PROCESSES:,}")
    if len(processes) % len(gpus) and len(gpus) % len(processes):
        raise PlacementError(
            f"`{text}`: {len(processes)} processes can't be shared out evenly to {len(gpus)} GPUs",
            "in each part, one number must divide the other; a comma begins another part",
        )
    return gpus, processes


def _resources(side: str, part: str, resources: int) -> range:
    ranks = range(resources) if side.lower() == "all" else _ranks(side, part)
    if ranks is None:
        raise PlacementError(f"`{part}` names no GPU", _SHAPE)
    if resources < 1:
        raise PlacementError(f"`{part}`: the host has no GPU", "`nvidia-smi -L` on the host lists them")
    if ranks[-1] >= resources:
        there = f"the host has {resources}, numbered 0 to {resources - 1}"
        raise PlacementError(f"`{part}`: there is no GPU {ranks[-1]}: {there}", "lower it, or write `all`")
    return ranks


def _processes(side: str, part: str) -> range:
    if side.lower() == "all":
        raise PlacementError(f"`{part}`: processes can't be `all`", "`all` alone has one process for each GPU")
    ranks = _ranks(side, part)
    if ranks is None:
        raise PlacementError(f"`{part}` names no process", "leave the colon out: one process for each GPU")
    return ranks


def _ranks(text: str, part: str) -> range | None:
    """One or two numbers; None without text. A minus sign counts as the dash of a range."""
    if not text:
        return None
    try:
        ends = [int(end) for end in text.split("-")]
    except ValueError:
        ends = []
    if len(ends) not in {1, 2}:
        raise PlacementError(f"`{part}`: `{text}` is neither a number nor a range", _SHAPE)
    first, last = ends[0], ends[-1]
    if first > last:
        raise PlacementError(f"`{part}`: {first} is above {last}", f"write {last}-{first}")
    return range(first, last + 1)


def _out_of_order(gpus: range, before: range, part: str) -> PlacementError:
    if gpus[-1] >= before[0]:
        again = max(gpus[0], before[0])
        message = f"`{part}`: an earlier part has GPU {again} already"
        return PlacementError(message, f"name each GPU once; `{again}:0-1` puts two processes on it")
    return PlacementError(f"`{part}`: GPU {gpus[0]} after {before[-1]}", "name GPUs in ascending order")


GPUS = "cluster"
"""RLinf's name for all GPUs, the default"""
NODES = "node"
"""RLinf's name for machines: for processes without a GPU"""
LAYOUTS = ((8, False), (4, False), (2, False), (2, True), (1, True))
"""GPUs in all, and whether the components share them: the layouts that people ask about"""


@dataclass(frozen=True)
class Component:
    """A part of a program with its own processes, such as `env` and `rollout` of RLinf."""

    name: str
    placement: str
    node_group: str
    processes: tuple[tuple[int, ...], ...]
    """the host's GPUs of each process, by index"""
    gpu_memory: int = 0
    """MiB of a process on each of its GPUs; with copies, MiB of one copy; 0: unknown"""
    copies: int = 0
    """copies of the environment in all, the same number for each process; 0: none"""
    videos: int = 0
    """videos that each process writes; 0: unknown"""

    @property
    def gpus(self) -> tuple[int, ...]:
        return tuple(sorted({gpu for process in self.processes for gpu in process}))

    @property
    def process_memory(self) -> int:
        """MiB of one process on each of its GPUs; 0: unknown."""
        return self.gpu_memory * (self.copies // len(self.processes) if self.copies else 1)


def claimed(components: Iterable[Component]) -> tuple[int, ...]:
    return tuple(sorted({gpu for component in components for gpu in component.gpus}))


def on_gpu(components: Iterable[Component], gpu: int) -> Iterator[tuple[Component, int]]:
    """Every process on a GPU: its component, and its number there."""
    for component in components:
        for number, process in enumerate(component.processes):
            if gpu in process:
                yield component, number


def memory_on(components: Iterable[Component], gpu: int) -> int:
    """MiB of all processes on a GPU; 0 if that of one is unknown."""
    taken = [component.process_memory for component, _ in on_gpu(components, gpu)]
    return sum(taken) if all(taken) else 0


def gibibytes(mib: int) -> str:
    return f"{mib / 1024:.1f} GiB"


Budgets = Mapping[int, int | None]
"""GPU of the host -> MiB for sessions; None: unknown"""


@dataclass(frozen=True)
class Layout:
    """One way to put components on the GPUs of a host, in their order."""

    gpus: int
    shared: bool
    components: tuple[Component, ...]
    """placed on the GPUs from 0 on, even if the host does not have them"""
    memory: int
    """MiB on the fullest GPU; 0: unknown"""
    problem: str
    """why it does not fit this host; empty: it fits"""

    @property
    def kind(self) -> str:
        if self.gpus == 1:
            return "1 GPU"
        return f"{self.gpus} GPUs, {'shared' if self.shared else 'dedicated'}"

    @property
    def description(self) -> str:
        return ", ".join(f"{one.name} {one.placement}{copies_text(one.copies)}" for one in self.components)


def copies_text(count: int) -> str:
    return f" ({several(count, 'copy', 'copies')})" if count else ""


def layouts(components: Sequence[Component], rooms: Budgets) -> tuple[Layout, ...]:
    """The usual layouts on this host, the largest first.

    The number of copies stays, or is rounded up to be even; it is one for each process if more don't fit.
    """
    placed = [component for component in components if component.gpus]
    many = len(placed)
    wanted = [
        (gpus, shared) for gpus, shared in LAYOUTS if many and ((many > 1 or gpus == 1) if shared else gpus % many == 0)
    ]
    return tuple(_layout(placed, gpus, shared, rooms) for gpus, shared in wanted)


def _layout(components: Sequence[Component], gpus: int, shared: bool, rooms: Budgets) -> Layout:
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
    text = f"{gpus[0]}" if len(gpus) == 1 else f"{gpus[0]}-{gpus[-1]}"
    copies = -(-component.copies // len(gpus)) * len(gpus)
    return replace(component, placement=text, processes=tuple((gpu,) for gpu in gpus), copies=copies)


def _problem(components: Sequence[Component], gpus: int, rooms: Budgets) -> str:
    if gpus > len(rooms):
        return f"needs {gpus} GPUs"
    return too_much(components, zip(range(gpus), rooms, strict=False), rooms)


def too_much(components: Sequence[Component], gpus: Iterable[tuple[int, int]], rooms: Budgets) -> str:
    """Why they don't fit; empty if they do, or if it is unknown. `gpus`: number in the placement, GPU of the host."""
    for number, gpu in gpus:
        memory, room = memory_on(components, number), rooms[gpu]
        if room is not None and memory > room:
            return f"takes {gibibytes(memory)} of GPU {gpu}, which offers {gibibytes(room)}"
    return ""
