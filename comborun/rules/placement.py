"""Who gets which part of a host: the formula. Pure: the plan and the dispatcher both use it.

    free on a GPU = total - max(used by others, reserve) - HEADROOM - sum over ours of max(request, measured)

Main memory is counted in the same way, without the headroom. All memory is in MiB. What is not known is never free.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Dict, Iterable, Mapping, Tuple

    Gpus = Tuple[int, ...]
    OfGpu = Dict[int, int]

HEADROOM = 128
"""MiB of each GPU that are promised to nobody: contexts grow a little after they were measured"""


@dataclass(frozen=True)
class Request:
    """What one asks of a host. 0 and empty: not said. Requests that are equal fit or wait together."""

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
    only: Gpus = ()
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
class Lack:
    """Why somebody can't start now."""

    reason: str
    """gpu gpu_memory cpus host_memory token cap alone stagger memory lease unknown"""
    why: str
    rank: int = 1
    """of the reasons of several GPUs the one with the highest rank is told"""
    free: int = 0
    urgent: bool = False
    """it takes a new measurement, and no end of a session"""
    of: str = ""
    """the token, or the group whose cap on the host is reached"""


def for_us(total: int, others: int, reserve: int, headroom: int = 0) -> int:
    """What may be promised of a memory: others count by their use or by the reserve, whichever is more."""
    return total - max(others, reserve) - headroom


def others_use(used: int, held: int, asked: int, known_before: int | None) -> int:
    """What others use of a GPU: what is used less what our processes hold.

    Where the driver can't tell whose the processes are (in a container), `known_before` is what others last used for
    certain; they use at least what is used less what ours asked for.
    """
    if known_before is None:
        return max(0, used - held)
    return max(min(known_before, used), used - asked)


@dataclass
class Room:
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
    """what may be promised of each GPU; one that is missing is unknown"""
    memory: int | None = None
    totals: OfGpu = field(default_factory=dict)
    """GPU -> how large it is"""
    memory_total: int | None = None
    told: dict[int | None, str] = field(default_factory=dict)
    """GPU (None: main memory) -> what others use of it, in words"""
    measured: bool = True
    """whether there was any answer of the driver at all"""
    fresh: bool = True
    """whether the last measurement still counts"""
    closed: dict[int, str] = field(default_factory=dict)
    """GPU -> why nothing starts there"""
    most: OfGpu = field(default_factory=dict)
    """GPU -> no more of this run's sessions there, since some ran out of its memory"""

    def tell_gpu(self, gpu: int, total: int, others: int) -> None:
        """What was measured of a GPU."""
        self.totals[gpu] = total
        self.gpu_memory[gpu] = for_us(total, others, self.reserve, HEADROOM)
        self.told[gpu] = f"others use {others}" + (f" (reserved: {self.reserve})" if self.reserve else "")

    def tell_memory(self, total: int, others: int) -> None:
        """What was measured of main memory."""
        self.memory_total = total
        self.memory = for_us(total, others, self.memory_reserve)
        self.told[None] = f"of {total} others use {others} (reserved: {self.memory_reserve})"

    def candidates(self, request: Request) -> list[int]:
        """The GPUs that it may get at all."""
        if not request.gpus:
            return []
        return [gpu for gpu in self.gpus if not request.only or gpu in request.only]

    def alone(self, request: Request) -> bool:
        """Whether it has its GPUs to itself."""
        return request.alone or (bool(request.gpus) and not request.gpu_memory and not self.per_gpu)


@dataclass
class Share:
    """What somebody has been promised."""

    who: str
    """in words, where it belongs to another run"""
    request: Request
    gpus: Gpus
    ours: bool
    """of this run"""
    alone: bool
    mib: OfGpu
    """GPU -> what counts: its request, or what it was measured to hold if that is more"""
    memory: int


@dataclass
class Tally:
    """What several shares come to."""

    cpus: int = 0
    memory: int = 0
    load: OfGpu = field(default_factory=dict)
    """GPU -> how many are there"""
    mib: OfGpu = field(default_factory=dict)
    alone: OfGpu = field(default_factory=dict)
    groups: dict[tuple[str, int | None], int] = field(default_factory=dict)

    def count(self, share: Share, sign: int) -> None:
        """Add a share, or with -1 take it away."""
        self.cpus += sign * share.request.cpus
        self.memory += sign * share.memory
        for gpu in share.gpus:
            self.load[gpu] = self.load.get(gpu, 0) + sign
            self.mib[gpu] = self.mib.get(gpu, 0) + sign * share.mib[gpu]
            self.alone[gpu] = self.alone.get(gpu, 0) + sign * share.alone
        if share.request.group:
            for where in (None, *share.gpus):
                key = share.request.group, where
                self.groups[key] = self.groups.get(key, 0) + sign


@dataclass
class Kept:
    """What is kept for those that were passed often enough."""

    cpus: int = 0
    memory: int = 0
    gpus: dict[int, str] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)


class Ledger:
    """All promises on a host: of this run, and of this user's other runs."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self.shares: dict[str, Share] = {}
        self.ours, self.foreign = Tally(), Tally()
        self.tokens: dict[str, str] = {}
        self.back: dict[int, int] = {}
        """GPU -> MiB that were given back, and that no measurement has shown to be free again"""
        self.kept = Kept()

    def take(self, key: str, request: Request, gpus: Iterable[int] = (), foreign: str = "") -> Share:
        """Promise it; `foreign`: whose it is, in words, if not this run's."""
        gpus = tuple(gpus)
        alone = request.alone if foreign else self.room.alone(request)
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
        """All of it."""
        share = self.shares.pop(key, None)
        if share:
            self._tally(share).count(share, -1)
            for token in share.request.tokens:
                if self.tokens.get(token) == share.who:
                    del self.tokens[token]
        return share

    def charge(self, key: str, held: Mapping[int, int], resident: int = 0) -> None:
        """What it was measured to hold counts where that is more than it asked for."""
        share = self.shares[key]
        tally = self._tally(share)
        tally.count(share, -1)
        for gpu in share.gpus:
            share.mib[gpu] = max(share.request.gpu_memory, held.get(gpu, 0))
        share.memory = max(share.request.memory, resident)
        tally.count(share, 1)

    def without(self, keys: Iterable[str]) -> Ledger:
        """The same, had these given back what they have."""
        other, gone = Ledger(self.room), set(keys)
        for key, share in self.shares.items():
            if key not in gone:
                other._enter(key, share)
        return other

    def load(self, gpu: int) -> int:
        """Sessions there."""
        return self.ours.load.get(gpu, 0) + self.foreign.load.get(gpu, 0)

    def _in_group(self, group: str, gpu: int | None) -> int:
        return self.ours.groups.get((group, gpu), 0) + self.foreign.groups.get((group, gpu), 0)

    def free(self, gpu: int) -> int | None:
        """MiB for one more, perhaps less than none; None: unknown."""
        room = self.room.gpu_memory.get(gpu)
        if room is None:
            return None
        return room - self.ours.mib.get(gpu, 0) - self.foreign.mib.get(gpu, 0) - self.back.get(gpu, 0)

    def choose(
        self, request: Request, who: str = "", bars: Callable[[int], Lack | None] = lambda _: None
    ) -> tuple[int, ...] | Lack:
        """The GPUs that it gets: the least loaded ones that have room, in the order of their numbers; or why not.

        `bars`: what else speaks against a GPU just now.
        """
        lack = self._host_lacks(request, who)
        if lack or not request.gpus:
            return lack or ()
        lacks, fitting = [], []
        for gpu in self.room.candidates(request):
            lack = self._gpu_lacks(request, gpu, who) or bars(gpu) or self._memory_lacks(request, gpu)
            if lack:
                lacks.append(lack)
            else:
                fitting.append(gpu)
        if len(fitting) < request.gpus:
            most = max(lacks, key=lambda one: (one.rank, one.free), default=Lack("gpu", "there is no GPU for it"))
            most.urgent = any(one.urgent for one in lacks)
            return most
        return self.least(fitting, request.gpus)

    def least(self, gpus: Iterable[int], wanted: int) -> tuple[int, ...]:
        """Those with the fewest sessions, then with the most memory free; rank 0 is on the lowest."""
        ranked = sorted(gpus, key=lambda gpu: (self.load(gpu), -(self.free(gpu) or 0)))
        return tuple(sorted(ranked[:wanted]))

    def _host_lacks(self, request: Request, who: str) -> Lack | None:
        for token in request.tokens:
            holder = self.tokens.get(token) or self.kept.tokens.get(token, who)
            if holder != who:
                return Lack("token", f"only one on the host may have {token}, and {holder} has it", of=token)
        count = self._in_group(request.group, None)
        if request.group and 0 < request.per_host <= count:
            why = f"{count} of {request.group} run, as many as its per_host allows"
            return Lack("cap", why, of=request.group)
        return self._cpus_lack(request) or self._main_memory_lacks(request)

    def _cpus_lack(self, request: Request) -> Lack | None:
        limit = self.room.cpus
        taken = self.ours.cpus + self.foreign.cpus + self.kept.cpus
        if not request.cpus or limit is None or request.cpus <= limit - taken:
            return None
        rest = _rest(self.foreign.cpus, self.kept.cpus)
        return Lack("cpus", f"asks for {request.cpus} cores; of {limit} are promised {self.ours.cpus} here{rest}")

    def _main_memory_lacks(self, request: Request) -> Lack | None:
        if not request.memory:
            return None
        if self.room.memory is None or not self.room.fresh:
            return Lack("unknown", "main memory is being measured", urgent=True)
        if request.memory <= self.room.memory - self.ours.memory - self.foreign.memory - self.kept.memory:
            return None
        promised = f"promised here {self.ours.memory}{_rest(self.foreign.memory, self.kept.memory)}"
        return Lack("host_memory", f"asks for {request.memory} MiB; {self.room.told.get(None, '')}, {promised}")

    def _gpu_lacks(self, request: Request, gpu: int, who: str) -> Lack | None:
        """For reasons other than memory."""
        room, load, ours = self.room, self.load(gpu), self.ours.load.get(gpu, 0)
        in_group = self._in_group(request.group, gpu)
        lack = None
        if gpu in room.closed:
            lack = Lack("gpu", f"GPU {gpu} is {room.closed[gpu]}")
        elif self.kept.gpus.get(gpu, who) != who:
            lack = Lack("gpu", f"GPU {gpu} is kept for {self.kept.gpus[gpu]}, which has waited for longer")
        elif self.ours.alone.get(gpu, 0) + self.foreign.alone.get(gpu, 0):
            lack = Lack("gpu", f"on GPU {gpu} is a session that has it alone", 2)
        elif load and request.alone:
            lack = Lack("alone", f"ran out of GPU memory, so it starts alone; on GPU {gpu} are {load}", 2)
        elif load and room.alone(request):
            lack = Lack("gpu", f"says nothing of its gpu_memory, so it starts alone; on GPU {gpu} are {load}", 2)
        elif room.per_gpu and load >= room.per_gpu:
            lack = Lack("gpu", f"sessions on GPU {gpu}: {load}, and limits.per_gpu is {room.per_gpu}", 3)
        elif ours >= room.most.get(gpu, ours + 1):
            lack = Lack("cap", f"on GPU {gpu} are {ours}, and no more than {room.most[gpu]} for now", 3)
        elif request.group and 0 < request.per_gpu <= in_group:
            lack = Lack("cap", f"on GPU {gpu} are {in_group} of {request.group}, as many as its per_gpu allows", 3)
        return lack

    def _memory_lacks(self, request: Request, gpu: int) -> Lack | None:
        free, asked, lack = self.free(gpu), request.gpu_memory, None
        if not self.room.measured:  # so that it can be told the name of its GPU
            lack = Lack("unknown", f"GPU {gpu} is being measured", 6, urgent=True)
        elif not asked:
            pass
        elif free is None:
            lack = Lack("unknown", f"nvidia-smi does not tell how full GPU {gpu} is", 6)
        elif free < asked <= free + self.back.get(gpu, 0):
            lack = Lack("unknown", f"GPU {gpu} is measured again, since something ended there", 5, urgent=True)
        elif free < asked:
            lack = Lack("gpu_memory", f"asks for {asked} MiB; {self._told(gpu)}", 4, free=free)
        elif not self.room.fresh:
            lack = Lack("unknown", f"GPU {gpu} is measured again", 5, urgent=True)
        return lack

    def _told(self, gpu: int) -> str:
        """Where the memory of a GPU is."""
        load, mib = self.ours.load.get(gpu, 0), self.ours.mib.get(gpu, 0)
        free, total = max(0, self.free(gpu) or 0), self.room.totals.get(gpu, 0)
        told = f"of the {total} MiB of GPU {gpu} {free} are free: {self.room.told.get(gpu, '')}"
        if load:
            told += f", {load} of this run {'holds or is' if load == 1 else 'hold or are'} promised {mib}"
        if self.foreign.mib.get(gpu):
            told += f", other runs of yours {self.foreign.mib[gpu]}"
        return f"{told}, headroom {HEADROOM}"

    # If nothing of this run ran

    def most(self, gpu: int) -> int:
        """MiB that this run could have there, if nothing of it were there; 0 where that is unknown."""
        room = self.room.gpu_memory.get(gpu)
        return 0 if room is None else room - self.foreign.mib.get(gpu, 0)

    def could_have(self, request: Request, gpu: int) -> bool:
        """Whether it could have that GPU."""
        if gpu in self.room.closed or self.foreign.alone.get(gpu):
            return False
        if self.room.alone(request) and self.foreign.load.get(gpu):
            return False
        return not request.gpu_memory or self.most(gpu) >= request.gpu_memory

    def possible(self, request: Request, barred: Iterable[int] = ()) -> bool:
        """Whether it could start."""
        limit, memory = self.room.cpus, self.room.memory
        if request.cpus and limit is not None and request.cpus > limit - self.foreign.cpus:
            return False
        if request.memory and (memory is None or request.memory > memory - self.foreign.memory):
            return False
        open_ = set(self.room.candidates(request)) - set(barred)
        return sum(self.could_have(request, gpu) for gpu in open_) >= request.gpus


def never(request: Request, room: Room) -> str:
    """Why it can't ever start there, however long it waits; empty: it can."""
    candidates = room.candidates(request)
    sizes = {gpu: room.totals[gpu] - room.reserve - HEADROOM for gpu in candidates if gpu in room.totals}
    fitting = [gpu for gpu in candidates if gpu not in sizes or sizes[gpu] >= request.gpu_memory]
    if request.gpus > len(candidates):
        among = f" of {','.join(map(str, request.only))}" if request.only else ""
        return f"it asks for {request.gpus} GPU{'s' * (request.gpus != 1)}{among}, and may use {len(candidates)}"
    if room.cpus is not None and request.cpus > room.cpus:
        return f"it asks for {request.cpus} cores, and may use {room.cpus}"
    if room.memory_total is not None and request.memory > room.memory_total - room.memory_reserve:
        has = f"the host has {room.memory_total}, reserved {room.memory_reserve}"
        return f"it asks for {request.memory} MiB of memory; {has}"
    if len(fitting) < request.gpus:
        most = f"{len(fitting)} can give that, the largest {max(sizes.values())} MiB"
        return f"it asks for {request.gpu_memory} MiB on {request.gpus} of its GPUs; {most}"
    return ""


def _rest(foreign: int, kept: int) -> str:
    told = f", to other runs of yours {foreign}" if foreign else ""
    return f"{told}, kept for one that has waited for longer {kept}" if kept else told
