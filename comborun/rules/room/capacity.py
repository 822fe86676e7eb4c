"""The formula for the free resources of a host. Pure: the plan and the dispatcher both use it.

    free on a GPU = total - max(used by others, reserve) - HEADROOM - sum over ours of max(request, measured)

Main memory is counted in the same way, without the headroom. All memory is in MiB. Unknown memory is never free.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from comborun.rules.facts import Fact
from comborun.rules.room.waits import Never, waits_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Tuple

    Gpus = Tuple[int, ...]
    OfGpu = Dict[int, int]

HEADROOM = 128
"""MiB of each GPU that are never leased: contexts grow a little after they were measured"""


@dataclass(frozen=True)
class Card:
    """A GPU as nvidia-smi reports it, in MiB and percent. Unknown numbers are None, never 0."""

    index: int
    uuid: str = ""
    name: str = ""
    total: int | None = None
    used: int | None = None
    driver: str = ""
    bus: str = ""
    utilization: int | None = None


@dataclass(frozen=True)
class Request:
    """The resources that a session requests. 0 and empty: not requested. Equal requests fit or wait together."""

    gpus: int = 0
    gpu_memory: int = 0
    """on each GPU"""
    cpus: float = 0
    """cores, or thousandths of one"""
    memory: int = 0
    tokens: tuple[str, ...] = ()
    """names that only one session on the host may have at a time"""
    group: str = ""
    """the sessions that the two caps count together"""
    per_gpu: int = 0
    per_host: int = 0
    only: tuple[int, ...] = ()
    """if not empty, only these GPUs"""
    alone: bool = False
    """it gets its GPUs alone, even with `gpu_memory`"""

    @property
    def asks(self) -> bool:
        """Whether it requests any limited resource."""
        return bool(self.gpus or self.cpus or self.memory or self.tokens or (self.group and self.per_host))


@dataclass
class Blocker:
    """Why a request does not fit now."""

    fact: Fact
    """with a code of `Wait`"""
    rank: int = 1
    """among the reasons of several GPUs, the one with the highest rank is reported"""
    free: int = 0
    urgent: bool = False
    """it needs a new measurement, not the end of a session"""
    of: str = ""
    """the token, or the group whose cap is reached"""

    @property
    def waits_for(self) -> str:
        return waits_for(self.fact)


def grantable(total: int, others: int, reserve: int, headroom: int = 0) -> int:
    """The part of a memory that may be leased."""
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
    """The resources of a host for the sessions of a run, as last measured."""

    gpus: Gpus = ()
    """GPUs that may be used"""
    per_gpu: int = 0
    """most sessions on one GPU; 0: not given, so a session without `gpu_memory` has its GPUs alone"""
    cpus: int | None = None
    """None: not limited"""
    reserve: int = 0
    """MiB of each GPU for others"""
    memory_reserve: int = 0
    gpu_memory: OfGpu = field(default_factory=dict)
    """GPU -> MiB that may be leased; a missing GPU is unknown"""
    memory: int | None = None
    totals: OfGpu = field(default_factory=dict)
    """GPU -> its total MiB"""
    memory_total: int | None = None
    others: dict[int | None, int] = field(default_factory=dict)
    """GPU (None: main memory) -> MiB that others use"""
    has_driver: bool = False
    """whether a driver reports what others hold of a GPU"""
    measured: bool = True
    """whether the driver has answered"""
    fresh: bool = True
    """whether the last measurement is recent enough"""
    quarantine: frozenset[int] = frozenset()
    """GPUs on which nothing starts"""
    most: OfGpu = field(default_factory=dict)
    """GPU -> the most sessions of this run there, after some ran out of its memory"""

    def measure_gpu(self, gpu: int, total: int, others: int) -> None:
        self.totals[gpu] = total
        self.gpu_memory[gpu] = grantable(total, others, self.reserve, HEADROOM)
        self.others[gpu] = others

    def measure_memory(self, total: int, others: int) -> None:
        self.memory_total = total
        self.memory = grantable(total, others, self.memory_reserve)
        self.others[None] = others

    def needs(self, request: Request, gpu: int) -> int:
        """MiB that must be free on a GPU: a tenth of it for a session that does not say what it needs."""
        return request.gpu_memory or (self.totals.get(gpu, 10) // 10 if self.has_driver else 0)

    def candidates(self, request: Request) -> list[int]:
        """The GPUs that a request may ever get."""
        if not request.gpus:
            return []
        return [gpu for gpu in self.gpus if not request.only or gpu in request.only]

    def alone(self, request: Request) -> bool:
        """Whether a request gets its GPUs alone."""
        return request.alone or (bool(request.gpus) and not request.gpu_memory and not self.per_gpu)


def never(request: Request, capacity: Capacity) -> Fact | None:
    """Why a request can never start on this host; None if it can."""
    candidates = capacity.candidates(request)
    least = request.gpu_memory + capacity.reserve + HEADROOM
    fitting = [gpu for gpu in candidates if capacity.totals.get(gpu, least) >= least]
    if request.gpus > len(candidates):
        return Fact(Never.GPUS_TOO_MANY, gpus=request.gpus, may_use=len(candidates), only=list(request.only))
    if capacity.cpus is not None and request.cpus > capacity.cpus:
        return Fact(Never.CORES_TOO_MANY, cores=request.cpus, may_use=capacity.cpus)
    total, reserve = capacity.memory_total, capacity.memory_reserve
    if total is not None and request.memory > total - reserve:
        return Fact(Never.MEMORY_TOO_MUCH, mib=request.memory, total_mib=total, reserve_mib=reserve)
    if len(fitting) < request.gpus:
        has = {str(gpu): capacity.totals.get(gpu) for gpu in candidates}
        return Fact(
            Never.GPU_MEMORY_TOO_MUCH,
            mib=request.gpu_memory,
            gpus=request.gpus,
            totals_mib=has,
            reserve_mib=capacity.reserve,
            headroom_mib=HEADROOM,
        )
    return None
