"""The resource ledger of one host: what is leased, and which request fits. Pure: dispatcher and plan use it."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field, replace

from comborun.rules.facts import Fact
from comborun.rules.names import attempt_number
from comborun.rules.room.capacity import HEADROOM, Blocker, Request
from comborun.rules.room.waits import Wait

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterable, Iterator, Mapping, Tuple

    from comborun.rules.room.capacity import Capacity

    Gpus = Tuple[int, ...]
    OfGpu = Dict[int, int]


@dataclass(eq=False)
class Lease:
    """The resources that a session holds from its grant to its end. They count by its request or by its measured use,
    whichever is more.
    """

    run: str
    """the run's id; empty in a plan"""
    who: str
    request: Request
    gpus: Gpus = ()
    at: str = ""
    """the attempt's folder; empty in a plan"""
    cores: tuple[int, ...] = ()
    since: int = 0
    """seconds since 1970"""
    mib: OfGpu = field(init=False)
    """GPU -> MiB that count"""
    memory: int = field(init=False)
    """MiB of main memory that count"""

    def __post_init__(self) -> None:
        self.charge({}, 0)

    @property
    def marker(self) -> str:
        return f"{self.run}/{self.who}/{attempt_number(self.at.rpartition('/')[2])}"

    def charge(self, held: Mapping[int, int], resident: int) -> None:
        """Set the measured use: MiB of each GPU and of main memory."""
        self.mib = {gpu: max(self.request.gpu_memory, held.get(gpu, 0)) for gpu in self.gpus}
        self.memory = max(self.request.memory, resident)

    def as_data(self) -> dict[str, Any]:
        """For the file of its run, which runs of other versions read, too."""
        held = {"gpus": self.gpus, "cores": self.cores, "request": asdict(self.request)}
        return {"who": self.who, "at": self.at, "since": self.since, **held}

    @classmethod
    def of(cls, run: str, fields: Mapping[str, Any]) -> Lease:
        """From the file of another run. Raises TypeError, KeyError, ValueError."""
        request = {**fields["request"], "tokens": tuple(fields["request"]["tokens"]), "only": ()}
        gpus, cores = tuple(map(int, fields["gpus"])), tuple(map(int, fields["cores"]))
        return cls(run, str(fields["who"]), Request(**request), gpus, str(fields["at"]), cores, int(fields["since"]))


def cores_of(amount: float) -> float:
    """A sum of cores without the error of binary fractions: ten times 0.1 are 1."""
    rounded = round(amount, 3)
    return int(rounded) if rounded == int(rounded) else rounded


class Leased:
    """Leases and their sums."""

    def __init__(self) -> None:
        self.leases: dict[str, Lease] = {}
        self.cpus: float = 0
        self.memory = 0
        self.load: Counter[int] = Counter()
        """GPU -> sessions"""
        self.mib: Counter[int] = Counter()
        self.alone: Counter[int] = Counter()
        self.groups: Counter[tuple[str, int | None]] = Counter()

    def count(self, lease: Lease, sign: int) -> None:
        """Add a lease, or with -1 take it away."""
        self.cpus = cores_of(self.cpus + sign * lease.request.cpus)
        self.memory += sign * lease.memory
        self.groups[lease.request.group, None] += sign
        for gpu in lease.gpus:
            self.load[gpu] += sign
            self.mib[gpu] += sign * lease.mib[gpu]
            self.alone[gpu] += sign * lease.request.alone
            self.groups[lease.request.group, gpu] += sign


@dataclass
class Reservation:
    """Resources reserved for requests that were overtaken as often as allowed."""

    cpus: float = 0
    memory: int = 0
    gpus: dict[int, str] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)


class Ledger:
    """All leases on a host: of this run by session, and of this user's other runs by marker."""

    def __init__(self, capacity: Capacity, run: str = "") -> None:
        self.capacity = capacity
        self.run = run
        self.ours, self.foreign = Leased(), Leased()
        self.pending_release: list[tuple[int, int, int]] = []
        """GPU, MiB that were given back, and the number of the measurement that will show that they are free"""
        self.reserved = Reservation()

    def take(self, lease: Lease) -> None:
        if lease.run == self.run:
            lease.request = replace(lease.request, alone=self.capacity.alone(lease.request))
        self._enter(lease)

    def _enter(self, lease: Lease) -> None:
        of_run = self._of_run(lease)
        of_run.leases[lease.who if of_run is self.ours else lease.marker] = lease
        of_run.count(lease, 1)

    def _of_run(self, lease: Lease) -> Leased:
        return self.ours if lease.run == self.run else self.foreign

    def __iter__(self) -> Iterator[Lease]:
        yield from self.ours.leases.values()
        yield from self.foreign.leases.values()

    def give_back(self, key: str) -> Lease | None:
        """End a lease. `key`: the session, or the marker for another run."""
        for of_run in (self.ours, self.foreign):
            if lease := of_run.leases.pop(key, None):
                of_run.count(lease, -1)
                return lease
        return None

    def charge(self, lease: Lease, held: Mapping[int, int], resident: int = 0) -> None:
        """Set the measured use of a lease, in MiB."""
        of_run = self._of_run(lease)
        of_run.count(lease, -1)
        lease.charge(held, resident)
        of_run.count(lease, 1)

    def without(self, sessions: Iterable[str]) -> Ledger:
        """The ledger as it would be without the leases of these sessions."""
        other, gone = Ledger(self.capacity, self.run), set(sessions)
        for lease in self:
            if lease.run != self.run or lease.who not in gone:
                other._enter(lease)
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
        return capacity - self.ours.mib[gpu] - self.foreign.mib[gpu] - self._pending(gpu)

    def _pending(self, gpu: int) -> int:
        return sum(mib for at, mib, _ in self.pending_release if at == gpu)

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
            none = Blocker(Fact(Wait.NO_GPU_FOR_IT))
            most = max(blockers, key=lambda one: (one.rank, one.free), default=none)
            most.urgent = any(one.urgent for one in blockers)
            return most
        return self.least(fitting, request.gpus)

    def least(self, gpus: Iterable[int], wanted: int) -> tuple[int, ...]:
        """The GPUs with the fewest sessions, then with the most free memory; rank 0 is on the lowest."""
        ranked = sorted(gpus, key=lambda gpu: (self.load(gpu), -(self.free(gpu) or 0)))
        return tuple(sorted(ranked[:wanted]))

    def _host_blocks(self, request: Request, who: str) -> Blocker | None:
        for token in request.tokens:
            lease = next((lease for lease in self if token in lease.request.tokens), None)
            holder = lease.who if lease else self.reserved.tokens.get(token, who)
            run = lease.run if lease and lease.run != self.run else ""
            if run or holder != who:
                return Blocker(Fact(Wait.TOKEN_TAKEN, token=token, session=holder, run=run), of=token)
        count = self._in_group(request.group, None)
        if request.group and 0 < request.per_host <= count:
            return Blocker(Fact(Wait.GROUP_FULL_ON_HOST, group=request.group, sessions=count), of=request.group)
        return self._cpus_block(request) or self._main_memory_blocks(request)

    def _cpus_block(self, request: Request) -> Blocker | None:
        limit, held, foreign, kept = self.capacity.cpus, self.ours.cpus, self.foreign.cpus, self.reserved.cpus
        if not request.cpus or limit is None or request.cpus <= cores_of(limit - held - foreign - kept):
            return None
        return Blocker(Fact(Wait.CORES_TAKEN, needs=request.cpus, held=held, of=limit, foreign=foreign, kept=kept))

    def _main_memory_blocks(self, request: Request) -> Blocker | None:
        if not request.memory:
            return None
        capacity, held, foreign, kept = self.capacity, self.ours.memory, self.foreign.memory, self.reserved.memory
        if capacity.memory is None or not capacity.fresh:
            return Blocker(Fact(Wait.MEMORY_UNMEASURED), urgent=True)
        free = capacity.memory - held - foreign - kept
        if request.memory <= free:
            return None
        of_this_user = {"held_mib": held, "foreign_mib": foreign, "kept_mib": kept}
        others, reserve = capacity.others.get(None), capacity.memory_reserve
        of_host = {"total_mib": capacity.memory_total or 0, "others_mib": others, "reserve_mib": reserve}
        free = max(0, free)
        return Blocker(Fact(Wait.MEMORY_TAKEN, needs_mib=request.memory, free_mib=free, **of_host, **of_this_user))

    def _gpu_blocks(self, request: Request, gpu: int, who: str) -> Blocker | None:
        """Why a GPU is refused for another reason than memory."""
        capacity, load = self.capacity, self.load(gpu)
        if gpu in capacity.quarantine:
            return Blocker(Fact(Wait.GPU_IN_QUARANTINE, gpu=gpu))
        if self.reserved.gpus.get(gpu, who) != who:
            return Blocker(Fact(Wait.GPU_KEPT, gpu=gpu, session=self.reserved.gpus[gpu]))
        if self.ours.alone[gpu] + self.foreign.alone[gpu]:
            return Blocker(Fact(Wait.GPU_USED_ALONE, gpu=gpu), 2)
        if load and capacity.alone(request):
            code = Wait.GPU_NOT_EMPTY_AGAIN if request.alone else Wait.GPU_NOT_EMPTY
            return Blocker(Fact(code, gpu=gpu, sessions=load), 2)
        return self._many(request, gpu)

    def _many(self, request: Request, gpu: int) -> Blocker | None:
        """Why a GPU is refused because of the number of its sessions."""
        capacity, load, ours = self.capacity, self.load(gpu), self.ours.load[gpu]
        in_group = self._in_group(request.group, gpu)
        if capacity.per_gpu and load >= capacity.per_gpu:
            return Blocker(Fact(Wait.GPU_FULL, gpu=gpu, sessions=load, per_gpu=capacity.per_gpu), 3)
        if ours >= capacity.most.get(gpu, ours + 1):
            return Blocker(Fact(Wait.GPU_REDUCED, gpu=gpu, sessions=ours, most=capacity.most[gpu]), 3)
        if request.group and 0 < request.per_gpu <= in_group:
            return Blocker(Fact(Wait.GROUP_FULL_ON_GPU, gpu=gpu, sessions=in_group, group=request.group), 3)
        return None

    def _memory_blocks(self, request: Request, gpu: int) -> Blocker | None:
        free, asked, blocker = self.free(gpu), self.capacity.needs(request, gpu), None
        if free is not None and not request.gpu_memory:
            free = self.most(gpu)  # sessions of this run share it as the limits allow
        if not self.capacity.measured:  # the name of its GPU must be known
            blocker = Blocker(Fact(Wait.GPU_UNMEASURED, gpu=gpu), 6, urgent=True)
        elif not asked:
            pass
        elif free is None:
            blocker = Blocker(Fact(Wait.GPU_USE_UNKNOWN, gpu=gpu), 6)
        elif free < asked <= free + self._pending(gpu):
            blocker = Blocker(Fact(Wait.GPU_MEASURED_AFTER_END, gpu=gpu), 5, urgent=True)
        elif free < asked:
            blocker = Blocker(self._gpu_memory_taken(gpu, asked, tenth=not request.gpu_memory), 4, free=free)
        elif not self.capacity.fresh:
            blocker = Blocker(Fact(Wait.GPU_MEASURED_AGAIN, gpu=gpu), 5, urgent=True)
        return blocker

    def _gpu_memory_taken(self, gpu: int, asked: int, *, tenth: bool) -> Fact:
        capacity = self.capacity
        return Fact(
            Wait.GPU_MEMORY_TAKEN,
            gpu=gpu,
            needs_mib=asked,
            tenth=tenth,
            free_mib=max(0, self.free(gpu) or 0),
            total_mib=capacity.totals.get(gpu, 0),
            others_mib=capacity.others.get(gpu),
            reserve_mib=capacity.reserve,
            sessions=self.ours.load[gpu],
            held_mib=self.ours.mib[gpu],
            foreign_mib=self.foreign.mib[gpu],
            headroom_mib=HEADROOM,
        )

    def reserve(self, who: str, request: Request, gpus: Iterable[int]) -> None:
        """Reserve what a request needs for the rest of this round."""
        self.reserved.cpus = cores_of(self.reserved.cpus + request.cpus)
        self.reserved.memory += request.memory
        self.reserved.gpus.update(dict.fromkeys(gpus, who))

    # If this run had no sessions

    def most(self, gpu: int) -> int:
        """MiB of a GPU that this run could have if it had no sessions there; 0 if unknown."""
        capacity = self.capacity.gpu_memory.get(gpu)
        return 0 if capacity is None else capacity - self.foreign.mib[gpu]

    def open(self, request: Request) -> list[int]:
        """The GPUs that a request could have."""
        alone, foreign = self.capacity.alone(request), self.foreign
        there = [gpu for gpu in self.capacity.candidates(request) if gpu not in self.capacity.quarantine]
        there = [gpu for gpu in there if not foreign.alone[gpu] and not (alone and foreign.load[gpu])]
        needs = self.capacity.needs
        return [gpu for gpu in there if not needs(request, gpu) or self.most(gpu) >= needs(request, gpu)]

    def possible(self, request: Request, barred: Iterable[int] = ()) -> bool:
        """Whether a request could start."""
        limit, memory = self.capacity.cpus, self.capacity.memory
        if request.cpus and limit is not None and request.cpus > cores_of(limit - self.foreign.cpus):
            return False
        if request.memory and (memory is None or request.memory > memory - self.foreign.memory):
            return False
        return len(set(self.open(request)) - set(barred)) >= request.gpus
