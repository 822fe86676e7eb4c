"""The order of sessions that wait for resources, and the pauses between starts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from comborun.rules.room.capacity import Blocker, Request
from comborun.rules.room.ledger import Ledger, Reservation
from comborun.rules.room.waits import WaitFor

_NOT_PASSED = frozenset((WaitFor.UNKNOWN, WaitFor.TOKEN, WaitFor.SLOT, WaitFor.LEASE))
"""others may always overtake a session that waits for one of these; a token is reserved for it at once"""


class BackfillQueue:
    """First come, first served; a request that fits overtakes those that don't.

    A request that doesn't fit may be overtaken N times, where N is the number of sessions that ran when it first had to
    wait. Then its resources are reserved on the GPUs where it will fit first, so none starves. Resources that processes
    outside this run use are never reserved: those processes may never end.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.refused: dict[Request, tuple[str, Blocker]] = {}
        """request -> the first session with this request, and why it must wait, in this round"""
        self._passes: dict[Request, int] = {}
        """request -> how often it may still be overtaken"""
        self._barred: dict[Request, frozenset[int]] = {}

    def round(self) -> None:
        self.refused.clear()
        self._barred.clear()
        self.ledger.reserved = Reservation()

    def refuse(self, who: str, request: Request, blocker: Blocker, barred: Iterable[int] = ()) -> None:
        """Let a request wait, and all equal ones. `barred`: GPUs that it may not use."""
        self.refused[request] = who, blocker
        self._barred[request] = frozenset(barred)
        for token in request.tokens:
            self.ledger.reserved.tokens.setdefault(token, who)
        if blocker.waits_for in _NOT_PASSED or blocker.of or not self.ledger.possible(request, barred):
            return
        if self._passes.setdefault(request, len(self.ledger.ours.leases)) <= 0:
            self._reserve(who, request)

    def started(self, request: Request) -> None:
        """Count an overtaking for each waiting request that needs some of the same."""
        self._passes.pop(request, None)
        for asked, (who, _) in self.refused.items():
            if asked in self._passes and _compete(asked, request):
                self._passes[asked] -= 1
                if self._passes[asked] == 0:
                    self._reserve(who, asked)

    def _reserve(self, who: str, request: Request) -> None:
        taken = self._barred[request].union(self.ledger.reserved.gpus)
        free = [gpu for gpu in self.ledger.open(request) if gpu not in taken]
        gpus = self.ledger.least(free, request.gpus) if len(free) >= request.gpus else ()  # reserved for others
        self.ledger.reserve(who, request, gpus)


def _compete(one: Request, other: Request) -> bool:
    return bool((one.gpus and other.gpus) or (one.cpus and other.cpus) or (one.memory and other.memory))


class Stagger:
    """Starts on one GPU are a fixed time apart, and so are starts without a GPU on the host (None)."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._last: dict[int | None, float] = {}

    def started(self, gpus: Sequence[int], now: float) -> None:
        if self.seconds:
            self._last.update(dict.fromkeys(gpus or (None,), now))

    def left(self, where: int | None, now: float) -> float:
        """Seconds until the next start is allowed on this GPU."""
        last = self._last.get(where)
        return 0.0 if last is None else max(0.0, last + self.seconds - now)

    def next(self, now: float) -> float:
        """The time when the next wait is over; infinite if nothing waits."""
        over = (last + self.seconds for last in self._last.values())
        return min((moment for moment in over if moment > now), default=float("inf"))


class WarmUp:
    """The first session of each program starts alone and fills caches for the others.

    The others wait until it makes progress, has ended, or takes longer than `seconds`; 0: no session waits.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.programs: dict[str, str] = {}
        """session -> its program"""
        self.warm: set[str] = set()
        self._first: dict[str, tuple[str, float]] = {}
        """program -> the session that warms it up, and since when"""

    def waits_for(self, who: str) -> str:
        """The session that warms up this session's program; empty: none."""
        first, _ = self._first.get(self.programs.get(who, ""), ("", 0.0))
        return "" if first == who else first

    def started(self, who: str, now: float) -> bool:
        """Note a start. Returns whether this session warms up its program."""
        program = self.programs.get(who)
        if not self.seconds or program is None or program in self.warm or program in self._first:
            return False
        self._first[program] = who, now
        return True

    def reached(self, who: str) -> bool:
        """Note progress or a success. Returns whether others waited for it."""
        waited = self.failed(who)
        if waited:
            self.warm.add(self.programs[who])
        return waited

    def failed(self, who: str) -> bool:
        """Note that it ended too early; the next session becomes the first."""
        program = self.programs.get(who, "")
        first = self._first.get(program, ("", 0.0))[0] == who
        if first:
            del self._first[program]
        return first

    def late(self, now: float) -> list[str]:
        """First sessions that took too long; the others stop waiting for them."""
        late = [who for who, since in self._first.values() if now - since >= self.seconds]
        return [who for who in late if self.reached(who)]

    def due(self) -> float:
        """The time when the next first session has taken too long."""
        return min((since for _, since in self._first.values()), default=float("inf")) + self.seconds
