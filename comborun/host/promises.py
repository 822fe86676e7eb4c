"""What the runs of this user have been promised of the host, set against what was last measured."""

from __future__ import annotations

import math
import os
import re
import time

from comborun.host import machine
from comborun.host.leases import Leases, Promise
from comborun.host.measuring import Measured, Measuring
from comborun.rules.names import RunLayout
from comborun.rules.placement import Lack, Ledger, Request, Room, others_use

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Iterable, Mapping, Sequence

    Choose = Callable[[], "tuple[int, ...] | Lack"]

_LEASES_S = 1.0
"""between two looks at what other runs have promised, while one of ours waits"""
_BUSY_TIMES = 6
"""so many times as long between two measurements while our own sessions are in the way: their end tells us"""


class Promises:
    """The ledger of one run and of this user's other runs, and the measurements that it goes by."""

    def __init__(self, run: str, run_id: str) -> None:
        self.layout = RunLayout(run)
        self.run_id = run_id
        self.room = Room()
        self.room.measured = False
        self.ledger = Ledger(self.room)
        self.leases = Leases(run_id)
        self.made: dict[str, Promise] = {}
        """those of this run"""
        self.memory_asked = False
        """somebody asks for main memory"""
        self._measured = Measured()
        self._measuring: Measuring | None = None
        self._asked_at, self._ask_at = -math.inf, math.inf
        self._back: list[tuple[int, int, int]] = []
        """GPU, MiB that were given back, and the number of the measurement that will show it"""
        self._base: dict[int, int] = {}
        """GPU -> what others used of it, when that was last known for certain"""
        self._stale = False
        """the lease file says something else than is so"""
        self._leases_at = -_LEASES_S
        self._cores: list[int] = []
        self._inner = machine.inner_pids()

    def configure(self, policy: Mapping[str, str]) -> None:
        """By dispatch/policy.tsv; again after an amendment."""
        gpus = policy.get("gpus", "").split(",")
        self.room.gpus = tuple(int(gpu) for gpu in gpus if gpu.isdecimal())
        self.room.per_gpu = number(policy, "per_gpu")
        self.room.cpus = number(policy, "cpus") or None
        self.room.reserve = number(policy, "reserve_gpu_mib")
        self.room.memory_reserve = number(policy, "reserve_memory_mib")
        self._tell_room()

    def open(self, requests: Iterable[Request]) -> None:
        """All who may ask are known."""
        asked = any(request.cpus for request in requests)
        self._cores = machine.cores()[: self.room.cpus] if asked and self.room.cpus and machine.binds() else []

    # Measurements

    def descriptors(self) -> list[int]:
        return self._measuring.descriptors() if self._measuring else []

    def due(self) -> float:
        return self._measuring.due() if self._measuring else self._ask_at

    def serve(self) -> bool:
        """Whether a measurement has come."""
        now = time.monotonic()
        if not self._measuring and now >= self._ask_at:
            self._ask_at, self._asked_at = math.inf, now
            gpus, policy = bool(self.room.gpus), self.layout.policy
            self._measuring = Measuring(self._measured.number + 1, policy, gpus=gpus, memory=self.memory_asked)
        told = self._measuring.look() if self._measuring else None
        if told is None:
            return False
        self._measuring = None
        self.heard(told)
        return True

    def want(self, after: float = 0.0) -> None:
        """Measure, unless that was done less than `after` seconds ago: then as soon as that is over."""
        if not self._measuring:
            self._ask_at = min(self._ask_at, max(self._asked_at + after, time.monotonic()))

    def want_for(self, lack: Lack, request: Request) -> None:
        """What somebody waits for may become free without any end of ours."""
        pause = _seconds("COMBORUN_MEMORY_ASK_MS", 5000)
        if lack.urgent:
            self.want(0.0 if self._measured.memory or not request.memory else pause)
        elif lack.reason == "gpu_memory":
            own = any(self.ledger.could_have(request, gpu) for gpu in self.room.candidates(request))
            self.want(pause * (_BUSY_TIMES if own else 1))
        elif lack.reason in ("unknown", "host_memory", "memory"):
            self.want(pause)

    def look_fresh(self) -> None:
        """Whether the last measurement still counts."""
        self.room.fresh = time.monotonic() - self._measured.at <= _seconds("COMBORUN_FRESH_MS", 5000)

    def heard(self, told: Measured) -> None:
        """A measurement has come."""
        self._measured = told
        self.room.measured = True
        self._back = [one for one in self._back if one[2] > told.number or one[0] not in told.cards]
        self._count_back()
        self.leases.read()
        self._take_foreign()
        for who, promise in self.made.items():
            self._charge(who, promise.gpus)
        self._tell_room()

    def _charge(self, key: str, gpus: Iterable[int]) -> None:
        """What it holds counts; where the driver names no processes, what it was last seen to hold."""
        marker, before = self._marker(key), self.ledger.shares[key].mib
        held = {gpu: self._measured.held.get((marker, gpu), 0) for gpu in gpus}
        held = {gpu: mib if gpu in self._measured.listed else max(mib, before[gpu]) for gpu, mib in held.items()}
        self.ledger.charge(key, held, self._measured.resident.get(marker, 0) if self.memory_asked else 0)

    def _tell_room(self) -> None:
        """What the last measurement leaves for this user's runs."""
        told, room = self._measured, self.room
        room.gpu_memory = {}
        for card in told.cards.values():
            if card.index in room.gpus:
                room.tell_gpu(card.index, card.total, self._others(card.index, card.used))
        room.memory = None
        if told.memory:
            total, available = told.memory
            held = sum(told.resident.get(self._marker(key), 0) for key in self.ledger.shares)
            room.tell_memory(total, max(0, total - available - held))

    def _others(self, gpu: int, used: int) -> int:
        """MiB of that GPU that others than this user's runs use."""
        there = [key for key, share in self.ledger.shares.items() if gpu in share.gpus]
        held = sum(self._measured.held.get((self._marker(key), gpu), 0) for key in there)
        listed = gpu in self._measured.listed and not (self._inner and not held)
        if not there or listed:
            self._base[gpu] = others_use(used, held, 0, None)
            return self._base[gpu]
        asked = sum(self.ledger.shares[key].mib[gpu] for key in there)
        return others_use(used, held, asked, self._base.get(gpu, 0))

    def _marker(self, key: str) -> str:
        """What the processes of a share carry; the key of another run's is that."""
        promise = self.made.get(key)
        return f"{self.run_id}/{promise.marker}" if promise else key

    # Other runs

    def look_at_others(self) -> None:
        """Now and then, while somebody waits; without the lock, since nothing is decided."""
        now = time.monotonic()
        if now - self._leases_at >= _LEASES_S:
            self._leases_at = now
            self.leases.read()
            self._take_foreign()

    def _take_foreign(self) -> None:
        """Their promises into the ledger; what they gave back counts until a measurement has shown it."""
        before = {key for key, share in self.ledger.shares.items() if not share.ours}
        now = {f"{promise.run}/{promise.marker}": promise for promise in self.leases.others}
        for key in before - set(now):
            self._give_back(key)
        for key, promise in now.items():
            if key not in before:
                whose = f"{promise.who} of the run {promise.run}"
                self.ledger.take(key, promise.request, promise.gpus, foreign=whose)
            self._charge(key, promise.gpus)

    # Ours

    def make(self, name: str, request: Request, at: str, choose: Choose) -> tuple[int, ...] | Lack:
        """Promise it what it chooses, for all runs of this user; or why it can't have that now."""
        why = self.leases.enter()
        if why:
            return Lack("lease", why)
        if self.leases.news:
            self._take_foreign()
        chosen = choose()
        if not isinstance(chosen, Lack):
            self.take(name, request, chosen, at)
            if not self._write():
                self.drop(name)
                chosen = Lack("lease", f"can't write in {self.leases.folder}")
        self.leases.leave()
        return chosen

    def take(self, name: str, request: Request, gpus: Sequence[int], at: str) -> Promise:
        """It has that: it was just chosen, or a former dispatcher has promised it."""
        share = self.ledger.take(name, request, gpus)
        promise = self.made[name] = Promise(name, request, gpus, at)
        promise.alone = share.alone
        taken = {core for one in (*self.made.values(), *self.leases.others) for core in one.cores}
        promise.cores = machine.hand_out(self._cores, taken, request.cpus)
        self._stale = True
        return promise

    def drop(self, name: str) -> None:
        """It gives all of it back."""
        if self.made.pop(name, None):
            self._stale = True
            self._give_back(name)

    def _give_back(self, key: str) -> None:
        """A driver takes its time, and a process may linger: a measurement that begins later tells."""
        share = self.ledger.give_back(key)
        later = self._measured.number + (2 if self._measuring else 1)
        self._back += [(gpu, mib, later) for gpu, mib in share.mib.items() if mib] if share else []
        self._count_back()

    def _count_back(self) -> None:
        self.ledger.back = {}
        for gpu, mib, _ in self._back:
            self.ledger.back[gpu] = self.ledger.back.get(gpu, 0) + mib

    def _write(self) -> bool:
        self._stale = not self.leases.write(self.made.values())
        return not self._stale

    def flush(self) -> None:
        """Tell the other runs what has ended since; now and then, and before the dispatcher leaves."""
        if (self._stale or (self.made and self.leases.old)) and not self.leases.lock():
            self._write()  # what is ours can be told, whatever others have left
            self.leases.leave()

    def grant(self, name: str, gpus: Sequence[int]) -> dict[str, object]:
        """Fields of its grant; where a GPU's UUID is not known the index has to do."""
        promise, cards = self.made.get(name), self._measured.cards
        told: dict[str, object] = {"cores": ",".join(map(str, promise.cores))} if promise and promise.cores else {}
        if gpus and all(gpu in cards for gpu in gpus):
            told["uuids"] = ",".join(cards[gpu].uuid for gpu in gpus)
        return told


def number(policy: Mapping[str, str], key: str) -> int:
    """A value of policy.tsv."""
    text = policy.get(key, "")
    return int(text) if re.fullmatch("[0-9]{1,12}", text) else 0


def _seconds(variable: str, default_ms: int) -> float:
    text = os.environ.get(variable, "")
    return (int(text) if re.fullmatch("[1-9][0-9]{0,8}", text) else default_ms) / 1000
