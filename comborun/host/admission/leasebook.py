"""The leases of this user's runs on the host, compared with the last measurement."""

from __future__ import annotations

import math
import os
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from comborun.host.admission.leases import Leases
from comborun.host.system import files, machine, ownership, process
from comborun.host.system.driver import CARDS, PROCESSES, Processes, Question, cards
from comborun.host.system.ownership import Owners
from comborun.host.system.process import setting
from comborun.rules import records
from comborun.rules.endings.evidence import Evidence, fact
from comborun.rules.facts import Fact
from comborun.rules.names import AttemptLayout, RunLayout
from comborun.rules.room.capacity import Blocker, Capacity, Card, Request, others_use
from comborun.rules.room.ledger import Lease, Ledger
from comborun.rules.room.waits import Wait, WaitFor

_LEASES_S = 1.0
"""seconds between two reads of other runs' leases, while one of our sessions waits"""
_BUSY_TIMES = 6
"""factor for the time between two measurements while our own sessions are in the way: their ends are reported"""
_MOST_MIB = 512
"""allowed on a GPU that a session was not granted; Isaac Sim leaves some 200 there"""


@dataclass
class Measured:
    """The use of the host in MiB. What the answer lacks is unknown, never 0."""

    number: int = 0
    at: float = field(default_factory=time.monotonic)
    cards: dict[int, Card] = field(default_factory=dict)
    listed: set[int] = field(default_factory=set)
    """GPUs of which all processes are known"""
    held: dict[tuple[str, int], int] = field(default_factory=dict)
    """marker and GPU -> MiB"""
    users: list[tuple[int, str, int, int]] = field(default_factory=list)
    """GPU, marker or empty, pid and MiB of each process on a GPU"""
    memory: tuple[int, int] | None = None
    """main memory: total and available"""
    resident: dict[str, int] = field(default_factory=dict)
    """marker -> MiB of main memory, without shared pages"""

    def share_out(self, processes: Processes) -> None:
        """Assign the GPUs' memory to attempts, by the marker of each process."""
        index_of = {card.bus: index for index, card in self.cards.items()}
        self.listed = {index for bus, index in index_of.items() if bus in processes.listed}
        owners = Owners() if processes.held else None
        for bus, pid, mib in processes.held:
            marker, index = owners.of(pid) if owners else None, index_of.get(bus)
            if index is not None and marker is None:
                self.listed.discard(index)  # an unknown pid: the list can't be trusted
            elif index is not None:
                self.users.append((index, marker or "", pid, mib))
            if index is not None and marker:
                self.held[marker, index] = self.held.get((marker, index), 0) + mib


class Measuring:
    """A running measurement, used like driver.Question.

    It asks for the processes first. Memory that grows between the two questions then counts as use by others, so
    nothing is leased twice.
    """

    def __init__(self, number: int, lock: str, *, gpus: bool, memory: bool) -> None:
        self._number = number
        self._lock = lock
        self._memory = memory
        self._processes: Processes | None = None
        self._question = Question(PROCESSES, lock) if gpus else None

    def descriptors(self) -> list[int]:
        return self._question.descriptors() if self._question else []

    def due(self) -> float:
        return self._question.due() if self._question else 0.0

    def look(self) -> Measured | None:
        """The answer, once there is one."""
        if self._question and not self._question.look():
            return None
        if self._question and self._processes is None:
            self._processes = Processes(self._question.lines)
            self._question = Question(CARDS, self._lock)
            return None
        measured = Measured(self._number)
        if self._question and self._processes:
            measured.cards = {card.index: card for card in cards(self._question.lines)}
            measured.share_out(self._processes)
        total, available = machine.memory_kib()
        if total is not None and available is not None:
            measured.memory = total // 1024, available // 1024
        if self._memory:
            measured.resident = {marker: use.kib >> 10 for marker, use in ownership.uses().items()}
        return measured


class LeaseBook:
    """The ledger of one run and of this user's other runs, and its measurements."""

    def __init__(self, run: str, run_id: str) -> None:
        self.layout = RunLayout(run)
        self.capacity = Capacity(measured=False)
        self.ledger = Ledger(self.capacity, run_id)
        self.made = self.ledger.ours.leases
        """leases of this run, by session"""
        self.leases = Leases(run_id)
        self.memory_asked = False
        """whether a request asks for main memory"""
        self._measured = Measured()
        self._measuring: Measuring | None = None
        self._asked_at, self._ask_at = -math.inf, math.inf
        self._others_before: dict[int, int] = {}
        """GPU -> MiB that others used when that was last certain"""
        self._stale = False
        """whether the lease file is out of date"""
        self.fallen: set[int] = set()
        """GPUs that the driver lists no more, though it lists others"""
        self._missing: set[int] = set()
        """GPUs without a row in the last answer"""
        self._leases_at = -_LEASES_S
        self._cores: list[int] = []
        self._inner = machine.inner_pids()

    def configure(self, policy: Mapping[str, str]) -> None:
        capacity = self.capacity
        capacity.gpus = records.integers(policy, "gpus")
        capacity.per_gpu = records.integer(policy, "per_gpu") or 0
        capacity.cpus = records.integer(policy, "cpus") or None
        capacity.reserve = records.integer(policy, "reserve_gpu_mib") or 0
        capacity.memory_reserve = records.integer(policy, "reserve_memory_mib") or 0
        self._measured_capacity()

    def open(self, requests: Iterable[Request]) -> None:
        """Prepare for these requests. There will be no others."""
        requests = list(requests)
        self.capacity.has_driver = shutil.which("nvidia-smi") is not None
        self.memory_asked = any(request.memory for request in requests)
        asked = any(request.cpus for request in requests)
        self._cores = machine.cores()[: self.capacity.cpus] if asked and self.capacity.cpus and machine.binds() else []

    # Measurements

    @property
    def use_of_gpus(self) -> dict[str, object]:
        """What was measured last on each GPU: MiB of our sessions, and of others by user and program; no arguments."""
        found: dict[str, object] = {}
        for index, card in sorted(self._measured.cards.items()):
            if index not in self.capacity.gpus:
                continue
            sessions: dict[str, int] = {}
            others: dict[tuple[str, str], int] = {}
            for gpu, marker, pid, mib in self._measured.users:
                if gpu == index and marker.startswith(f"{self.ledger.run}/"):
                    name = marker.rpartition("/")[0].partition("/")[2]
                    sessions[name] = sessions.get(name, 0) + mib
                elif gpu == index:
                    program = process.read(f"{pid}/comm").decode("utf-8", "replace").strip()
                    whose = process.owner(f"/proc/{pid}"), program
                    others[whose] = others.get(whose, 0) + mib
            known = {"used": card.used, "total": card.total, "busy": card.utilization}
            found[str(index)] = {
                **known,
                "sessions": sessions,
                "others": [[*whose, mib] for whose, mib in others.items()],
            }
        return found

    def descriptors(self) -> list[int]:
        return self._measuring.descriptors() if self._measuring else []

    def due(self) -> float:
        return self._measuring.due() if self._measuring else self._ask_at

    def serve(self) -> bool:
        """Continue measuring. True if a measurement is complete."""
        now = time.monotonic()
        if not self._measuring and now >= self._ask_at:
            self._ask_at, self._asked_at = math.inf, now
            gpus, policy = bool(self.capacity.gpus), self.layout.policy
            self._measuring = Measuring(self._measured.number + 1, policy, gpus=gpus, memory=self.memory_asked)
        measured = self._measuring.look() if self._measuring else None
        if measured is None:
            return False
        self._measuring = None
        self.take_in(measured)
        return True

    def want(self, after: float = 0.0) -> None:
        """Measure, unless the last measurement is younger than `after` seconds: then as soon as it is that old."""
        if not self._measuring:
            self._ask_at = min(self._ask_at, max(self._asked_at + after, time.monotonic()))

    def want_for(self, blocker: Blocker, request: Request) -> None:
        """Measure for a blocked request: resources may become free without an end of our sessions."""
        pause = setting("COMBORUN_MEMORY_ASK_MS", 5000) / 1000
        if blocker.urgent:
            self.want(0.0 if self._measured.memory or not request.memory else pause)
        elif blocker.waits_for == WaitFor.GPU_MEMORY:
            self.want(pause * (_BUSY_TIMES if self.ledger.open(request) else 1))
        elif blocker.waits_for in (WaitFor.UNKNOWN, WaitFor.HOST_MEMORY):
            self.want(pause)

    def look_fresh(self) -> None:
        self.capacity.fresh = time.monotonic() - self._measured.at <= setting("COMBORUN_FRESH_MS", 5000) / 1000

    def take_in(self, measured: Measured) -> None:
        self._measured = measured
        self.capacity.measured = True
        self._find_fallen()
        pending = self.ledger.pending_release
        self.ledger.pending_release = [
            one for one in pending if one[2] > measured.number or one[0] not in measured.cards
        ]
        self.leases.read()
        self._take_foreign()
        for lease in self.made.values():
            self._charge(lease)
        self._measured_capacity()
        self._find_misplaced()

    def _find_fallen(self) -> None:
        """Note GPUs that two answers in a row lack: one answer may be torn."""
        cards = self._measured.cards
        missing = {gpu for gpu in self.capacity.gpus if gpu not in cards} if cards else set()
        self.fallen = (self.fallen - set(cards)) | (missing & self._missing)
        if missing - self.fallen:
            self.want(setting("COMBORUN_MEMORY_ASK_MS", 5000) / 1000)
        self._missing = missing

    def _find_misplaced(self) -> None:
        """Record in attempt-N/wrong_gpu which sessions hold memory on GPUs that they were not granted. Nothing ends."""
        for who, lease in self.made.items():
            held = {gpu: mib for (marker, gpu), mib in self._measured.held.items() if marker == lease.marker}
            wrong = [gpu for gpu, mib in held.items() if gpu not in lease.gpus and mib > _MOST_MIB]
            record, session = AttemptLayout(lease.at).wrong_gpu, self.layout.session_json(who)
            if not (wrong and lease.gpus and os.path.exists(session)) or os.path.exists(record):
                continue
            if files.read(session).get("pin") != "none":
                used = [[gpu, mib] for gpu, mib in sorted(held.items())]
                reason = fact(Evidence.WRONG_GPU, used=used, granted=list(lease.gpus))
                files.write(record, [("since", int(time.time())), (records.REASON, reason)])
        self._look_again()

    def _look_again(self) -> None:
        """Measure now and then while sessions with GPUs run, because programs load late."""
        if any(lease.gpus for lease in self.made.values()):
            self._ask_at = min(self._ask_at, time.monotonic() + setting("COMBORUN_SEAT_S", 60.0))

    def _charge(self, lease: Lease) -> None:
        """Charge a lease with its measured use, or with its last known use if the driver names no processes."""
        measured, marker = self._measured, lease.marker
        held = {gpu: measured.held.get((marker, gpu), 0) for gpu in lease.gpus}
        held = {gpu: mib if gpu in measured.listed else max(mib, lease.mib[gpu]) for gpu, mib in held.items()}
        self.ledger.charge(lease, held, measured.resident.get(marker, 0) if self.memory_asked else 0)

    def _measured_capacity(self) -> None:
        """Compute what the last measurement leaves for this user's runs."""
        measured, capacity = self._measured, self.capacity
        capacity.gpu_memory, capacity.memory = {}, None
        for card in measured.cards.values():
            if card.index in capacity.gpus and card.total is not None and card.used is not None:
                capacity.measure_gpu(card.index, card.total, self._others(card.index, card.used))
        if measured.memory:
            total, available = measured.memory
            held = sum(measured.resident.get(lease.marker, 0) for lease in self.ledger)
            capacity.measure_memory(total, max(0, total - available - held))

    def _others(self, gpu: int, used: int) -> int:
        """MiB of a GPU that are used by others than this user's runs."""
        there = [lease for lease in self.ledger if gpu in lease.gpus]
        held = sum(self._measured.held.get((lease.marker, gpu), 0) for lease in there)
        listed = gpu in self._measured.listed and not (self._inner and not held)
        if not there or listed:
            self._others_before[gpu] = others_use(used, held, 0, None)
            return self._others_before[gpu]
        asked = sum(lease.mib[gpu] for lease in there)
        return others_use(used, held, asked, self._others_before.get(gpu, 0))

    # Other runs

    def look_at_others(self) -> None:
        """Read other runs' leases now and then while a session waits; without the lock, since nothing is decided."""
        now = time.monotonic()
        if now - self._leases_at >= _LEASES_S:
            self._leases_at = now
            self.leases.read()
            self._take_foreign()

    def _take_foreign(self) -> None:
        """Put their leases into the ledger. Memory that they gave back counts until a measurement shows it."""
        there, now = self.ledger.foreign.leases, {lease.marker: lease for lease in self.leases.others}
        for marker in set(there) - set(now):
            self._give_back(marker)
        for marker, lease in now.items():
            if marker not in there:
                self.ledger.take(lease)
            self._charge(there[marker])

    # Ours

    def lease(
        self, name: str, request: Request, at: str, choose: Callable[[], tuple[int, ...] | Blocker]
    ) -> tuple[int, ...] | Blocker:
        """Lease to a session what `choose` returns, under the lock of all runs of this user; or say why not."""
        if why := self.leases.enter():
            return Blocker(why)
        self._take_foreign()
        chosen = choose()
        if not isinstance(chosen, Blocker):
            self.note(name, request, chosen, at)
            if not self._write():
                self.drop(name)
                chosen = Blocker(Fact(Wait.LEASES_UNWRITABLE, folder=self.leases.folder))
        self.leases.leave()
        return chosen

    def note(
        self, name: str, request: Request, gpus: Sequence[int], at: str, cores: tuple[int, ...] | None = None
    ) -> None:
        """Note a lease that was just made, or that a former dispatcher made."""
        if cores is None:
            taken = {core for lease in self.ledger for core in lease.cores}
            cores = machine.allocate_cores(self._cores, taken, request.cpus)
        self.ledger.take(Lease(self.ledger.run, name, request, tuple(gpus), at, cores, int(time.time())))
        self._stale = True
        self._look_again()

    def drop(self, name: str) -> None:
        if name in self.made:
            self._stale = True
            self._give_back(name)

    def _give_back(self, key: str) -> None:
        """End a lease. Its memory counts until a later measurement: a driver may be slow, or a process linger."""
        lease = self.ledger.give_back(key)
        later = self._measured.number + (2 if self._measuring else 1)
        self.ledger.pending_release += [(gpu, mib, later) for gpu, mib in lease.mib.items() if mib] if lease else []

    def _write(self) -> bool:
        self._stale = not self.leases.write(self.made.values())
        return not self._stale

    def flush(self) -> None:
        """Publish ended leases for other runs; now and then, and before the dispatcher leaves."""
        if self._stale and not self.leases.enter():
            self._write()  # our part is certain, even if a file of another run is broken
            self.leases.leave()

    def grant(self, name: str, gpus: Sequence[int]) -> dict[str, object]:
        """Fields of a grant. A GPU without a known UUID is given by its index."""
        lease, known = self.made.get(name), self._measured.cards
        fields: dict[str, object] = {"cores": ",".join(map(str, lease.cores))} if lease and lease.cores else {}
        if gpus and all(gpu in known for gpu in gpus):
            fields["uuids"] = ",".join(known[gpu].uuid for gpu in gpus)
        return fields
