"""Which session may start now, and why others wait. `rules` decides on facts from the driver, /proc and the leases.

Model servers are admitted by the same rules. Nothing here blocks: the dispatcher's loop waits for the measurements of
`book`, or until `due()`.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from comborun.host.admission import leases
from comborun.host.admission.leasebook import LeaseBook
from comborun.host.record.events import Events
from comborun.host.system import files
from comborun.host.system.process import setting
from comborun.rules import records
from comborun.rules.events import Kind
from comborun.rules.facts import Fact
from comborun.rules.holds import Notice
from comborun.rules.names import AttemptLayout, RunLayout
from comborun.rules.room.capacity import Blocker, Request, never
from comborun.rules.room.ledger import Ledger
from comborun.rules.room.order import BackfillQueue, Stagger, WarmUp
from comborun.rules.room.waits import Wait, WarmedUp
from comborun.rules.run_files import attempts_of

WAITS_MOST = 32
"""most lines about sessions that don't fit; the others wait for the same"""
_NOTHING = Request()
GPU_MEMORY = "gpu_memory"
"""the class of a failure"""
_TOGETHER_S = 30.0
_REPORT_S = 30.0
"""least seconds between two events about the use of GPUs"""


@dataclass
class Pick:
    name: str
    gpus: tuple[int, ...] = ()
    never: Fact | None = None
    """why it can never start on this host; then nothing was leased"""


class Admission:
    """The waiting sessions, their order, and what blocks each of them; `leasebook` keeps the leases."""

    def __init__(self, run: str, run_id: str, events: Events, tell: Callable[[str, str, Fact], None]) -> None:
        self._events = events
        self.book = LeaseBook(run, run_id)
        self._capacity, self._ledger = self.book.capacity, self.book.ledger
        self.line = BackfillQueue(self._ledger)
        self.spacing, self.warm = Stagger(0.0), WarmUp(0.0)
        self.short = Shortages(self._ledger, self.book.layout, events, tell)
        self.barred: Callable[[str], Collection[int]] = lambda _: ()
        """GPUs that a session can't use now, because its server there is not ready"""
        self._requests: dict[str, Request] = {}
        self._alone: set[str] = set()
        """sessions that need an empty GPU: they ran out of its memory more than once"""
        self._report_at = -math.inf
        self.nobody = False
        """whether the last look examined no session, since all are held back"""

    # Before the first start

    def configure(self, policy: Mapping[str, str]) -> None:
        self.book.configure(policy)
        self.spacing.seconds = (records.integer(policy, "stagger_ms") or 0) / 1000
        self.warm.seconds = (records.integer(policy, "warm_up_ms") or 0) / 1000

    def register(self, who: str, request: Request, program: str = "") -> None:
        """Note the request of a session; again after an amendment. A model server has no program."""
        self._requests[who] = request
        if program:
            self.warm.programs[who] = program

    def open(self) -> None:
        """Read the state of earlier sessions from the run's files, after all requests are known."""
        self.short.open()
        self.book.open(self._requests.values())
        if not self.warm.seconds:
            return
        for name, program in self.warm.programs.items():
            numbers = () if program in self.warm.warm else attempts_of(self.book.layout, name)
            if any(os.path.exists(self.book.layout.attempt(name, number).progressed) for number in numbers):
                self.warm.warm.add(program)

    def _request(self, name: str) -> Request:
        request = self._requests.get(name, _NOTHING)
        return replace(request, alone=True) if name in self._alone else request

    def wants(self, name: str) -> int:
        return self._request(name).gpus

    def quarantine(self, gpus: Iterable[int]) -> None:
        """Close exactly these GPUs for starts."""
        self._capacity.quarantine = frozenset(gpus)

    def usable(self, name: str) -> int:
        """The number of open GPUs among those that a session may ever get."""
        return len(set(self._capacity.candidates(self._request(name))) - self._capacity.quarantine)

    # The loop

    def due(self) -> float:
        return min(self.book.due(), self.spacing.next(time.monotonic()), self.warm.due())

    def serve(self) -> None:
        """Continue measuring; report now and then who uses the GPUs."""
        now = time.monotonic()
        if self.book.serve() and now >= self._report_at and (use := self.book.use_of_gpus):
            self._report_at = now + setting("COMBORUN_GPU_USE_S", _REPORT_S)
            self._events.write(Kind.GPU_USE, gpus=use)

    # Who may start

    def round(self) -> None:
        if self.line.refused:
            self.book.look_at_others()
        self.line.round()
        for name in self.warm.late(time.monotonic()):
            self._events.write(Kind.WARM, name, reason=Fact(WarmedUp.LATE, seconds=self.warm.seconds))

    def pick(self, names: Iterable[str], folder: Callable[[str], str]) -> Pick | None:
        """The next session that may start, in the order of the queue. Its resources are leased to it.

        `folder`: of the attempt that a session would have.
        """
        self.nobody = True
        for name in names:
            request = self._request(name)
            if self.warm.waits_for(name):
                continue
            self.nobody = False
            if request in self.line.refused:
                continue
            if why := never(request, self._capacity):
                return Pick(name, never=why)
            gpus = self.lease(name, folder(name))
            if not isinstance(gpus, Blocker):
                self.line.started(request)
                return Pick(name, gpus)
            self.line.refuse(name, request, gpus, self.barred(name))
        return None

    def lease(self, name: str, at: str) -> tuple[int, ...] | Blocker:
        """Lease a session's request for the attempt in that folder, or say why that can't be done now."""
        request = self._request(name)
        chosen = self._choose(name, request)
        if isinstance(chosen, Blocker) or not request.asks:
            return chosen
        return self.book.lease(name, request, at, lambda: self._choose(name, request))

    def _choose(self, name: str, request: Request) -> tuple[int, ...] | Blocker:
        if not request.gpus and self.spacing.left(None, time.monotonic()):
            return Blocker(Fact(Wait.STARTS_APART, seconds=self.spacing.seconds))
        if not request.asks:
            return ()
        barred = self.barred(name)

        def bars(gpu: int) -> Blocker | None:
            if gpu in barred:
                return Blocker(Fact(Wait.SERVER_NOT_READY_THERE, gpu=gpu), 3)
            if self.spacing.left(gpu, time.monotonic()):
                return Blocker(Fact(Wait.STARTS_APART, seconds=self.spacing.seconds, gpu=gpu), 2)
            return None

        self.book.look_fresh()
        found = self._ledger.choose(request, name, bars)
        if isinstance(found, Blocker):
            self.book.want_for(found, request)
        return found

    def waits(self, names: Sequence[str]) -> list[tuple[str, Fact]]:
        """What queued sessions wait for."""
        blockers = [(name, self.line.refused.get(self._request(name), ("", None))[1]) for name in names]
        waits = [(name, blocker.fact) for name, blocker in blockers if blocker][:WAITS_MOST]
        first = [(name, self.warm.waits_for(name)) for name in names]
        return waits + [(name, Fact(Wait.WARMS_UP, session=before)) for name, before in first if before]

    def reserve(self, name: str, others: Collection[str]) -> None:
        """Reserve GPUs for a model server, chosen as if only `others` of this run were running.

        It may wait for GPUs of another server: that one ends when its clients have ended, and these must not wait for
        this server.
        """
        request = self._request(name)
        self._capacity.fresh = True  # the real start checks this again
        without = self._ledger.without(key for key in self.book.made if key not in others)
        gpus = without.choose(request, name)
        if not isinstance(gpus, Blocker):
            self._ledger.reserve(name, request, gpus)

    # Starts and ends

    def grant(self, name: str, gpus: Sequence[int]) -> dict[str, object]:
        fields = {"gpus": ",".join(map(str, gpus)), **self.book.grant(name, gpus)}
        if name in self._alone:
            fields["alone"] = 1
        return {**fields, "await": 1} if self.warm.seconds and name in self.warm.programs else fields

    def begun(self, name: str, gpus: Sequence[int]) -> None:
        now = time.monotonic()
        self.spacing.started(gpus, now)
        self._warms(name)

    def _warms(self, name: str) -> None:
        if self.warm.started(name, time.monotonic()):
            self._events.write(Kind.WARMING, name)

    def adopt(self, name: str, gpus: Sequence[int], at: str, grant: Mapping[str, object]) -> None:
        """Take over the lease of a running attempt, as its grant says."""
        self.again(name, alone="alone" in grant)
        request = self._request(name)
        self._warms(name)
        if name in self.book.made or not (request.asks or gpus):
            return
        self.book.note(name, request, gpus, at, records.integers(grant, "cores"))

    def lapsed(self, name: str, at: str) -> bool:
        """Whether it was so slow to begin that another run may have taken its lease."""
        return self._request(name).asks and leases.lapsed(at)

    def give_back(self, name: str) -> None:
        self.short.left(name)
        self.book.drop(name)

    def progressed(self, name: str, how: str = WarmedUp.PROGRESSED) -> None:
        if self.warm.reached(name):
            self._events.write(Kind.WARM, name, reason=Fact(how))

    def ended(self, name: str, gpus: Sequence[int], at: str, failure: str, *, stopped: bool = False) -> bool:
        """Learn from an end, after `give_back`. `failure`: its class, empty if it succeeded or was stopped.

        Returns whether it ran out of memory beside other sessions of this run: then the GPU itself is not at fault.
        """
        beside = self.short.ended(name, gpus, failure)
        if os.path.exists(AttemptLayout(at).progressed) or not (failure or stopped):
            self.progressed(name, WarmedUp.ENDED)
        else:
            self.warm.failed(name)
        return beside

    def again(self, name: str, *, alone: bool) -> None:
        """Whether its next attempt needs an empty GPU."""
        (self._alone.add if alone else self._alone.discard)(name)


class Shortages:
    """After an out-of-memory on a GPU one session fewer runs at once there.

    dispatch/gpu_caps has the most that run at once from then on, by GPU. `resume` removes it.
    """

    def __init__(
        self, ledger: Ledger, layout: RunLayout, events: Events, tell: Callable[[str, str, Fact], None]
    ) -> None:
        self._ledger = ledger
        self._file = layout.gpu_caps
        self._events, self._tell = events, tell
        self._most: dict[int, int] = {}
        """GPU -> most sessions that run there at once"""
        self._there: dict[str, dict[int, int]] = {}
        """session -> the number of sessions on each of its GPUs when it left"""
        self._reduced: dict[int, float] = {}
        """GPU -> when its limit was last reduced, by the monotonic clock"""

    def open(self) -> None:
        """Read the file; a GPU that is not in it has no limit."""
        caps = files.read(self._file)
        found = {int(gpu): records.integer(caps, gpu) or 0 for gpu in caps if gpu.isdecimal()}
        self._ledger.capacity.most = self._most = {gpu: most for gpu, most in found.items() if most > 0}

    def left(self, name: str) -> None:
        """Note who was beside it, before its slot is free."""
        if lease := self._ledger.ours.leases.get(name):
            self._there[name] = {gpu: self._ledger.ours.load.get(gpu, 0) for gpu in lease.gpus}

    def ended(self, name: str, gpus: Sequence[int], failure: str) -> bool:
        """Handle an end. Returns whether it ran out of a GPU's memory beside others of this run."""
        there = self._there.pop(name, None)
        if failure != GPU_MEMORY or there is None:
            return False
        crowded = [self._reduce(gpu, there.get(gpu, 1), name) for gpu in gpus]
        return any(crowded)

    def _reduce(self, gpu: int, there: int, name: str) -> bool:
        """Let one session fewer run on this GPU, of the number `there`. Returns whether it was not alone.

        Sessions that run out together count as one event.
        """
        now = time.monotonic()
        if now - self._reduced.get(gpu, -_TOGETHER_S) < _TOGETHER_S:
            return True
        if there > 1 and there - 1 < self._most.get(gpu, there):
            self._most[gpu], self._reduced[gpu] = there - 1, now
            caps = [(str(gpu), most) for gpu, most in sorted(self._most.items())]
            files.write(self._file, [*caps, ("at", time.time())])
            self._events.write(Kind.GPU_CAP, name, gpu=gpu, most=there - 1)
            self._tell("host", name, Fact(Notice.FEWER, gpu=gpu, most=there - 1, sessions=there))
        return there > 1
