"""When sessions may start beside others, and what an out-of-memory teaches. Pure."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Sequence

    from comborun.rules.placement import Request


class Spacing:
    """Starts on one GPU are so many seconds apart, and so are those without a GPU on the host (None)."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._last: dict[int | None, float] = {}

    def started(self, gpus: Sequence[int], now: float) -> None:
        if self.seconds:
            self._last.update(dict.fromkeys(gpus or (None,), now))

    def left(self, where: int | None, now: float) -> float:
        """Seconds until the next may start there."""
        last = self._last.get(where)
        return 0.0 if last is None else max(0.0, last + self.seconds - now)

    def next(self, now: float) -> float:
        """When the next of these waits is over; infinite: nobody waits for one."""
        over = (last + self.seconds for last in self._last.values())
        return min((moment for moment in over if moment > now), default=float("inf"))


class WarmUp:
    """The first session of each program starts before the others of it, and fills caches (of shaders, say) that these
    then find. They wait until it makes progress, has ended, or takes longer than `seconds`; 0: nobody waits."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.first: dict[str, str] = {}
        """program -> who warms it up"""
        self._since: dict[str, float] = {}
        self.warm: set[str] = set()

    def waits_for(self, who: str, program: str) -> str:
        """The one of its program that comes first; empty: none."""
        first = self.first.get(program, "") if self.seconds else ""
        return "" if first == who else first

    def started(self, who: str, program: str, now: float) -> bool:
        """Whether it warms its program up."""
        if not self.seconds or program in self.warm or program in self.first:
            return False
        self.first[program], self._since[program] = who, now
        return True

    def reached(self, who: str, program: str) -> bool:
        """It makes progress, or has ended well: whether that was waited for."""
        return self.first.get(program) == who and self._over(program)

    def failed(self, who: str, program: str) -> None:
        """It ended before it had warmed anything up; the next one is the first."""
        if self.first.get(program) == who:
            del self.first[program], self._since[program]

    def late(self, now: float) -> list[str]:
        """Those that took too long: nobody waits for them any more."""
        late = [program for program, since in self._since.items() if now - since >= self.seconds]
        names = [self.first[program] for program in late]
        for program in late:
            self._over(program)
        return names

    def due(self) -> float:
        """When the next one has taken too long."""
        return min(self._since.values(), default=float("inf")) + self.seconds

    def _over(self, program: str) -> bool:
        del self.first[program], self._since[program]
        self.warm.add(program)
        return True


class Fewer:
    """Where a session ran out of a GPU's memory beside others, fewer run there at once from then on.

    Those that ran together and fail within `WINDOW` seconds are one event: together they take away what failed, and
    half at most.
    """

    WINDOW = 30.0

    def __init__(self) -> None:
        self.most: dict[int, int] = {}
        """GPU -> how many at once"""
        self._events: dict[int, _Event] = {}

    def heed(self, gpu: int, there: int, began: float, now: float) -> bool:
        """A session that began then has run out of memory, one of so many that were there; whether fewer start now."""
        event = self._events.get(gpu)
        if event is None or now - event.last >= self.WINDOW or began > event.first:
            event = self._events[gpu] = _Event(now)
        event.there, event.last, event.failed = max(event.there, there), now, event.failed + 1
        if event.there == 1:
            return False
        most = max((event.there + 1) // 2, event.there - event.failed)
        if most >= self.most.get(gpu, most + 1):
            return False
        self.most[gpu] = most
        return True

    def alone(self, gpu: int) -> bool:
        """Whether those that failed there last had it to themselves."""
        event = self._events.get(gpu)
        return event is None or event.there == 1

    def before(self, gpu: int) -> int:
        """How many were there in the last event."""
        return self._events[gpu].there


class _Event:
    def __init__(self, now: float) -> None:
        self.first = self.last = now
        self.there = self.failed = 0


def ask_for_more(request: Request, held: int, most: int) -> Request:
    """What a session asks for after it first ran out of a GPU's memory beside others: twice what it asked for, or held.

    Where it said nothing, or the run can have no more than `most` MiB of a GPU, it starts alone.
    """
    wanted = 2 * max(request.gpu_memory, held)
    alone = not request.gpu_memory or wanted > most
    return request.but(request.gpu_memory if alone else wanted, alone=alone)
