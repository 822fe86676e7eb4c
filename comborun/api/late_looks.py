"""Rounds of looks at several hosts, in which no host waits long for another."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from threading import Condition, Thread
from typing import TYPE_CHECKING, Generic, TypeVar

from comborun.errors import HostError, UserError

if TYPE_CHECKING:
    from comborun.monitor.watch import Clock

PATIENCE_S = 2.0
"""seconds that hosts have for their answers once one of them has answered"""
_SLOWER = 1.5
"""a host that once took longer has so many times as long as then"""
_STEP_S = 0.1
"""seconds between two questions whether the user still types a password"""
T = TypeVar("T")


class LateError(HostError):
    """A host has not answered yet. The look at it goes on."""


class LateLooks(Generic[T]):
    """Rounds of looks at hosts. A look that is late goes on beyond its round; another round takes what it brings."""

    def __init__(
        self,
        asks: Mapping[str, Callable[[], T]],
        clock: Clock,
        asking: Callable[[], bool],
        patience: float = PATIENCE_S,
        gone: Callable[[Iterable[T]], Collection[str]] = lambda _: (),
    ) -> None:
        """`asking`: whether the user is asked something for a login, which takes its time. `gone`: the hosts that
        were given up, by the answers of others: they get no more than their patience.
        """
        self._asks, self._clock, self._asking = asks, clock, asking
        self._patience = dict.fromkeys(asks, patience)
        self._gone = gone
        self._news = Condition()
        self._begun: dict[str, float] = {}
        """the hosts with a look that goes on, or whose result nobody has taken"""
        self._found: dict[str, T | Exception] = {}

    def begin(self) -> dict[str, T | UserError]:
        """Begin a round. Returns what came late, after the round before."""
        late = self._taken()
        for host in self._asks:
            if host not in self._begun:
                self._begun[host] = self._clock.elapsed()
                Thread(target=self._look, args=(host,), name=f"look at {host}", daemon=True).start()
            else:
                self._begun[host] = float("-inf")  # it had its time in the round before
        return late

    def end(self, more: float = 0.0) -> dict[str, T | UserError]:
        """The answer of each host, or why there is none; LateError for one that takes so much longer than the first.

        `more`: seconds beyond its patience, where nobody looks again and a login has to come first.
        """
        first: float | None = None
        with self._news:
            while True:
                now = self._clock.elapsed()
                if first is None and any(not isinstance(one, Exception) for one in self._found.values()):
                    first = now
                gone = self._gone([one for one in self._found.values() if not isinstance(one, Exception)])
                awaited = [host for host in self._begun if host not in self._found]
                left = [self._left(host, now if host in gone else now - more, first) for host in awaited]
                if max(left, default=0.0) <= 0 and not self._asking():
                    break
                self._news.wait(_STEP_S if first is not None else None)
        found = self._taken()
        return {host: found.get(host) or LateError("no answer yet") for host in self._asks}

    def _left(self, host: str, now: float, first: float | None) -> float:
        if self._begun[host] == float("-inf"):
            return 0.0
        return 1.0 if first is None else first + self._patience[host] - now

    def _taken(self) -> dict[str, T | UserError]:
        with self._news:
            found, self._found = self._found, {}
        taken = dict[str, T | UserError]()
        for host, one in found.items():
            del self._begun[host]
            if isinstance(one, Exception) and not isinstance(one, UserError):
                raise one
            taken[host] = one
        return taken

    def _look(self, host: str) -> None:
        begun = self._clock.elapsed()
        found: T | Exception
        try:
            found = self._asks[host]()
            took = _SLOWER * (self._clock.elapsed() - begun)
            self._patience[host] = max(self._patience[host], took)
        except Exception as error:  # noqa: BLE001  whoever takes it raises what is no answer of a host
            found = error
        with self._news:
            self._found[host] = found
            self._news.notify_all()
