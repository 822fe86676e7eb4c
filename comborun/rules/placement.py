"""The formula for the free resources of a host. Pure: the plan and the dispatcher both use it.

    free on a GPU = total - max(used by others, reserve) - HEADROOM - sum over ours of max(request, measured)

Main memory is counted in the same way, without the headroom. All memory is in MiB. Unknown memory is never free.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Tuple

    Gpus = Tuple[int, ...]
    OfGpu = Dict[int, int]

HEADROOM = 128
"""MiB of each GPU that are leased to nobody: contexts grow a little after they were measured"""


@dataclass(frozen=True)
class Request:
    """The resources that a session requests. 0 and empty: not requested. Equal requests fit or wait together."""

    gpus: int = 0
    gpu_memory: int = 0
    """on each GPU"""
    cpus: int = 0
    memory: int = 0
    tokens: tuple[str, ...] = ()
    """names of what only one on the host may have"""
    group: str = ""
    """what the two caps count: sessions of it on a GPU, and on the host"""
    per_gpu: int = 0
    per_host: int = 0
    only: tuple[int, ...] = ()
    """no other GPUs will do"""
    alone: bool = False
    """it has its GPUs to itself, whatever it says of their memory"""

    @property
    def asks(self) -> bool:
        """Whether it asks for anything that has to be shared out."""
        return bool(self.gpus or self.cpus or self.memory or self.tokens or (self.group and self.per_host))

    def but(self, gpu_memory: int, alone: bool) -> Request:
        """The same with so much memory on each GPU."""
        return replace(self, gpu_memory=gpu_memory, alone=alone and self.gpus > 0)


@dataclass
class Blocker:
    """Why a request does not fit now."""

    reason: str
    """gpu gpu_memory cpus host_memory token cap alone stagger lease unknown"""
    why: str
    rank: int = 1
    """among the reasons of several GPUs, the one with the highest rank is reported"""
    free: int = 0
    urgent: bool = False
    """it takes a new measurement, and no end of a session"""
    of: str = ""
    """the token, or the group whose cap on the host is reached"""


def grantable(total: int, others: int, reserve: int, headroom: int = 0) -> int:
    """What may be leased of a memory."""
    return total - max(others, reserve) - headroom


def others_use(used: int, held: int, asked: int, known_before: int | None) -> int:
    """MiB of a GPU that others use: the used memory minus the memory of our processes.

    In a container the driver can't assign processes to sessions. Then `known_before` is the last certain number; others
    use at least the used memory minus what our sessions asked for.
    """
    if known_before is None:
        return max(0, used - held)
    return max(min(known_before, used), used - asked)


@dataclass
class Capacity:
    """What a host has for the sessions of a run, as last measured."""

    gpus: Gpus = ()
    """those that may be used"""
    per_gpu: int = 0
    """sessions on one GPU at most; 0: not said, and then one that asks for no GPU memory has its GPUs alone"""
    cpus: int | None = None
    """None: not limited"""
    reserve: int = 0
    """of each GPU's memory, for others"""
    memory_reserve: int = 0
    gpu_memory: OfGpu = field(default_factory=dict)
    """what may be leased of each GPU; one that is missing is unknown"""
    memory: int | None = None
    totals: OfGpu = field(default_factory=dict)
    """GPU -> how large it is"""
    memory_total: int | None = None
    use_by_others: dict[int | None, str] = field(default_factory=dict)
    """GPU (None: main memory) -> what others use of it, in words"""
    has_driver: bool = False
    """whether there is a driver that says what others hold of a GPU"""
    measured: bool = True
    """whether there was any answer of the driver at all"""
    fresh: bool = True
    """whether the last measurement still counts"""
    closed: dict[int, str] = field(default_factory=dict)
    """GPU -> why nothing starts there"""
    most: OfGpu = field(default_factory=dict)
    """GPU -> no more of this run's sessions there, since some ran out of its memory"""

    def measure_gpu(self, gpu: int, total: int, others: int) -> None:
        """What was measured of a GPU."""
        self.totals[gpu] = total
        self.gpu_memory[gpu] = grantable(total, others, self.reserve, HEADROOM)
        self.use_by_others[gpu] = f"others use {others}" + (f" (reserved: {self.reserve})" if self.reserve else "")

    def measure_memory(self, total: int, others: int) -> None:
        """What was measured of main memory."""
        self.memory_total = total
        self.memory = grantable(total, others, self.memory_reserve)
        self.use_by_others[None] = f"others use {others}" + (
            f" (reserved: {self.memory_reserve})" if self.memory_reserve else ""
        )

    def needs(self, request: Request, gpu: int) -> int:
        """MiB that have to be free there: a tenth of the GPU for one that does not say what it takes."""
        return request.gpu_memory or (self.totals.get(gpu, 10) // 10 if self.has_driver else 0)

    def candidates(self, request: Request) -> list[int]:
        """The GPUs that it may get at all."""
        if not request.gpus:
            return []
        return [gpu for gpu in self.gpus if not request.only or gpu in request.only]

    def alone(self, request: Request) -> bool:
        """Whether it has its GPUs to itself."""
        return request.alone or (bool(request.gpus) and not request.gpu_memory and not self.per_gpu)


def never(request: Request, capacity: Capacity) -> str:
    """Why it can't ever start there, however long it waits; empty: it can."""
    candidates = capacity.candidates(request)
    sizes = {gpu: capacity.totals[gpu] - capacity.reserve - HEADROOM for gpu in candidates if gpu in capacity.totals}
    fitting = [gpu for gpu in candidates if gpu not in sizes or sizes[gpu] >= request.gpu_memory]
    if request.gpus > len(candidates):
        among = f" of {','.join(map(str, request.only))}" if request.only else ""
        return f"it asks for {request.gpus} GPU{'s' * (request.gpus != 1)}{among}, and may use {len(candidates)}"
    if capacity.cpus is not None and request.cpus > capacity.cpus:
        return f"it asks for {request.cpus} core{'s' * (request.cpus != 1)}, and may use {capacity.cpus}"
    if capacity.memory_total is not None and request.memory > capacity.memory_total - capacity.memory_reserve:
        has = f"the host has {capacity.memory_total}, reserved {capacity.memory_reserve}"
        return f"it asks for {request.memory} MiB of memory; {has}"
    if len(fitting) < request.gpus:
        of_each = "a GPU" if request.gpus == 1 else f"each of {request.gpus} GPUs"
        has = ", ".join(f"GPU {gpu} has {capacity.totals.get(gpu, 'an unknown number')}" for gpu in candidates)
        kept = f"reserved {capacity.reserve}, headroom {HEADROOM}"
        return f"it asks for {request.gpu_memory} MiB of {of_each}; {has} ({kept})"
    return ""
