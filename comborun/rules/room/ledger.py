"""The resource ledger of one host: what is allocated, and which request fits. Pure: dispatcher and plan use it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from comborun.rules.room.placement import HEADROOM, Blocker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Dict, Iterable, Mapping, Tuple

    from comborun.rules.room.placement import Capacity, Request

    Gpus = Tuple[int, ...]
    OfGpu = Dict[int, int]


@dataclass
class Share:
    who: str
    """the holder in words, if it belongs to another run"""
    request: Request
    gpus: Gpus
    ours: bool
    """whether it belongs to this run"""
    alone: bool
    mib: OfGpu
    """GPU -> its request, or its measured use if that is more"""
    memory: int


class Tally:
    def __init__(self) -> None:
        self.cpus = self.memory = 0
        self.load: Counter[int] = Counter()
        self.mib: Counter[int] = Counter()
        self.alone: Counter[int] = Counter()
        self.groups: Counter[tuple[str, int | None]] = Counter()

    def count(self, share: Share, sign: int) -> None:
        """Add a share, or with -1 take it away."""
        self.cpus += sign * share.request.cpus
        self.memory += sign * share.memory
        self.groups[share.request.group, None] += sign
        for gpu in share.gpus:
            self.load[gpu] += sign
            self.mib[gpu] += sign * share.mib[gpu]
            self.alone[gpu] += sign * share.alone
            self.groups[share.request.group, gpu] += sign


@dataclass
class Reservation:
    """Resources reserved for requests that were overtaken as often as allowed."""

    cpus: int = 0
    memory: int = 0
    gpus: dict[int, str] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)


class Ledger:
    """All leases on a host: of this run, and of this user's other runs."""

    def __init__(self, capacity: Capacity) -> None:
        self.capacity = capacity
        self.shares: dict[str, Share] = {}
        self.ours, self.foreign = Tally(), Tally()
        self.tokens: dict[str, str] = {}
        self.back: dict[int, int] = {}
        """GPU -> MiB that were given back, but that no measurement has shown to be free yet"""
        self.kept = Reservation()

    def take(self, key: str, request: Request, gpus: Iterable[int] = (), foreign: str = "") -> Share:
        """Lease a request. `foreign`: the holder in words, if it is not of this run."""
        gpus = tuple(gpus)
        alone = request.alone if foreign else self.capacity.alone(request)
        mib = dict.fromkeys(gpus, request.gpu_memory)
        return self._enter(key, Share(foreign or key, request, gpus, not foreign, alone, mib, request.memory))

    def _enter(self, key: str, share: Share) -> Share:
        self.shares[key] = share
        self._tally(share).count(share, 1)
        self.tokens.update(dict.fromkeys(share.request.tokens, share.who))
        return share

    def _tally(self, share: Share) -> Tally:
        return self.ours if share.ours else self.foreign

    def give_back(self, key: str) -> Share | None:
        """End the lease of `key`."""
        share = self.shares.pop(key, None)
        if share:
            self._tally(share).count(share, -1)
            self.tokens = {token: who for token, who in self.tokens.items() if who != share.who}
        return share

    def charge(self, key: str, held: Mapping[int, int], resident: int = 0) -> None:
        """Set the measured use of a lease. It counts if it is more than the request."""
        share = self.shares[key]
        tally = self._tally(share)
        tally.count(share, -1)
        for gpu in share.gpus:
            share.mib[gpu] = max(share.request.gpu_memory, held.get(gpu, 0))
        share.memory = max(share.request.memory, resident)
        tally.count(share, 1)

    def without(self, keys: Iterable[str]) -> Ledger:
        """The ledger as it would be without these leases."""
        other, gone = Ledger(self.capacity), set(keys)
        for key, share in self.shares.items():
            if key not in gone:
                other._enter(key, share)
        return other

    def load(self, gpu: int) -> int:
        return self.ours.load[gpu] + self.foreign.load[gpu]

    def _in_group(self, group: str, gpu: int | None) -> int:
        """The number of sessions of a group on a GPU, or on the host."""
        return self.ours.groups[group, gpu] + self.foreign.groups[group, gpu]

    def free(self, gpu: int) -> int | None:
        """MiB that are free for another session, perhaps negative; None: unknown."""
        capacity = self.capacity.gpu_memory.get(gpu)
        if capacity is None:
            return None
        return capacity - self.ours.mib[gpu] - self.foreign.mib[gpu] - self.back.get(gpu, 0)

    def choose(
        self, request: Request, who: str = "", bars: Callable[[int], Blocker | None] = lambda _: None
    ) -> tuple[int, ...] | Blocker:
        """The GPUs for a request: the least loaded ones with room, in the order of their numbers; or why there are
        none.

        `bars`: other reasons against a GPU at the moment.
        """
        blocker = self._host_blocks(request, who)
        if blocker or not request.gpus:
            return blocker or ()
        blockers, fitting = [], []
        for gpu in self.capacity.candidates(request):
            blocker = self._gpu_blocks(request, gpu, who) or bars(gpu) or self._memory_blocks(request, gpu)
            if blocker:
                blockers.append(blocker)
            else:
                fitting.append(gpu)
        if len(fitting) < request.gpus:
            most = max(blockers, key=lambda one: (one.rank, one.free), default=Blocker("gpu", "there is no GPU for it"))
            most.urgent = any(one.urgent for one in blockers)
            return most
        return self.least(fitting, request.gpus)

    def least(self, gpus: Iterable[int], wanted: int) -> tuple[int, ...]:
        """The GPUs with the fewest sessions, then with the most free memory; rank 0 is on the lowest."""
        ranked = sorted(gpus, key=lambda gpu: (self.load(gpu), -(self.free(gpu) or 0)))
        return tuple(sorted(ranked[:wanted]))

    def _host_blocks(self, request: Request, who: str) -> Blocker | None:
        for token in request.tokens:
            holder = self.tokens.get(token) or self.kept.tokens.get(token, who)
            if holder != who:
                return Blocker("token", f"only one on the host may have {token}, and {holder} has it", of=token)
        count = self._in_group(request.group, None)
        if request.group and 0 < request.per_host <= count:
            why = f"{count} of {request.group} run, as many as its per_host allows"
            return Blocker("cap", why, of=request.group)
        return self._cpus_block(request) or self._main_memory_blocks(request)

    def _cpus_block(self, request: Request) -> Blocker | None:
        limit = self.capacity.cpus
        taken = self.ours.cpus + self.foreign.cpus + self.kept.cpus
        if not request.cpus or limit is None or request.cpus <= limit - taken:
            return None
        rest = _rest(self.foreign.cpus, self.kept.cpus)
        return Blocker("cpus", f"needs {request.cpus} cores; this run holds {self.ours.cpus} of {limit}{rest}")

    def _main_memory_blocks(self, request: Request) -> Blocker | None:
        if not request.memory:
            return None
        if self.capacity.memory is None or not self.capacity.fresh:
            return Blocker("unknown", "main memory is being measured", urgent=True)
        free = self.capacity.memory - self.ours.memory - self.foreign.memory - self.kept.memory
        if request.memory <= free:
            return None
        capacity = f"{max(0, free)} of {self.capacity.memory_total or 0} MiB of main memory are free"
        use = f"{self.capacity.use_by_others.get(None, '')}, this run holds {self.ours.memory}"
        rest = _rest(self.foreign.memory, self.kept.memory)
        return Blocker("host_memory", f"needs {request.memory} MiB; {capacity}: {use}{rest}")

    def _gpu_blocks(self, request: Request, gpu: int, who: str) -> Blocker | None:
        """Why a GPU is refused for another reason than memory."""
        capacity, load = self.capacity, self.load(gpu)
        if gpu in capacity.closed:
            return Blocker("gpu", f"GPU {gpu} is {capacity.closed[gpu]}")
        if self.kept.gpus.get(gpu, who) != who:
            return Blocker("gpu", f"GPU {gpu} is kept for {self.kept.gpus[gpu]}, which has waited longer")
        if self.ours.alone[gpu] + self.foreign.alone[gpu]:
            return Blocker("gpu", f"a session uses GPU {gpu} alone", 2)
        if load and capacity.alone(request):
            why = "ran out of GPU memory" if request.alone else "has no gpu_memory in the grid"
            return Blocker("gpu", f"{why}, so it needs an empty GPU; GPU {gpu} has {several(load)}", 2)
        return self._many(request, gpu)

    def _many(self, request: Request, gpu: int) -> Blocker | None:
        """Why a GPU is refused because of the number of its sessions."""
        capacity, load, ours = self.capacity, self.load(gpu), self.ours.load[gpu]
        in_group = self._in_group(request.group, gpu)
        if capacity.per_gpu and load >= capacity.per_gpu:
            return Blocker("gpu", f"GPU {gpu} has {several(load)}, and limits.per_gpu is {capacity.per_gpu}", 3)
        if ours >= capacity.most.get(gpu, ours + 1):
            return Blocker(
                "cap",
                f"GPU {gpu} has {several(ours)}; its limit is {capacity.most[gpu]} since one ran out of memory",
                3,
            )
        if request.group and 0 < request.per_gpu <= in_group:
            return Blocker(
                "cap", f"GPU {gpu} has {several(in_group)} of {request.group}, as many as its per_gpu allows", 3
            )
        return None

    def _memory_blocks(self, request: Request, gpu: int) -> Blocker | None:
        free, asked, blocker = self.free(gpu), self.capacity.needs(request, gpu), None
        if free is not None and not request.gpu_memory:
            free = self.most(gpu)  # sessions of this run share it as the limits allow
        if not self.capacity.measured:  # the name of its GPU must be known
            blocker = Blocker("unknown", f"GPU {gpu} is being measured", 6, urgent=True)
        elif not asked:
            pass
        elif free is None:
            blocker = Blocker("unknown", f"nvidia-smi does not tell how much memory of GPU {gpu} is used", 6)
        elif free < asked <= free + self.back.get(gpu, 0):
            blocker = Blocker("unknown", f"GPU {gpu} is measured again, since something ended there", 5, urgent=True)
        elif free < asked:
            least = "" if request.gpu_memory else ", a tenth, since the grid sets no gpu_memory"
            blocker = Blocker("gpu_memory", f"needs {asked} MiB{least}; {self._told(gpu)}", 4, free=free)
        elif not self.capacity.fresh:
            blocker = Blocker("unknown", f"GPU {gpu} is measured again", 5, urgent=True)
        return blocker

    def _told(self, gpu: int) -> str:
        """Says who uses the memory of a GPU."""
        load, mib = self.ours.load[gpu], self.ours.mib[gpu]
        free, total = max(0, self.free(gpu) or 0), self.capacity.totals.get(gpu, 0)
        parts = [self.capacity.use_by_others.get(gpu, "")]
        if load:
            parts.append(f"{several(load)} of this run {'holds' if load == 1 else 'hold'} {mib}")
        if self.foreign.mib[gpu]:
            parts.append(f"other runs of yours hold {self.foreign.mib[gpu]}")
        return f"{free} of {total} MiB of GPU {gpu} are free: {', '.join([*parts, f'headroom {HEADROOM}'])}"

    def keep(self, who: str, request: Request, gpus: Iterable[int]) -> None:
        """Reserve what a request needs for the rest of this round."""
        self.kept.cpus += request.cpus
        self.kept.memory += request.memory
        self.kept.gpus.update(dict.fromkeys(gpus, who))

    # If this run had no sessions

    def most(self, gpu: int) -> int:
        """MiB of a GPU that this run could have if it had no sessions there; 0 if unknown."""
        capacity = self.capacity.gpu_memory.get(gpu)
        return 0 if capacity is None else capacity - self.foreign.mib[gpu]

    def open(self, request: Request) -> list[int]:
        """The GPUs that a request could have."""
        alone, foreign = self.capacity.alone(request), self.foreign
        there = [gpu for gpu in self.capacity.candidates(request) if gpu not in self.capacity.closed]
        there = [gpu for gpu in there if not foreign.alone[gpu] and not (alone and foreign.load[gpu])]
        needs = self.capacity.needs
        return [gpu for gpu in there if not needs(request, gpu) or self.most(gpu) >= needs(request, gpu)]

    def possible(self, request: Request, barred: Iterable[int] = ()) -> bool:
        """Whether a request could start."""
        limit, memory = self.capacity.cpus, self.capacity.memory
        if request.cpus and limit is not None and request.cpus > limit - self.foreign.cpus:
            return False
        if request.memory and (memory is None or request.memory > memory - self.foreign.memory):
            return False
        return len(set(self.open(request)) - set(barred)) >= request.gpus


def _rest(foreign: int, kept: int) -> str:
    others = f", other runs of yours hold {foreign}" if foreign else ""
    return f"{others}, {kept} are kept for a session that has waited longer" if kept else others


def several(count: int) -> str:
    return f"{count} session" if count == 1 else f"{count} sessions"
