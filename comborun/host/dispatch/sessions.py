"""The sessions of a run as its dispatcher knows them: the state of each, and their order."""

from __future__ import annotations

from comborun.rules.names import SERVERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar, Iterator, Mapping, Tuple

    from comborun.host.system.children import Opening
    from comborun.rules.facts import Fact
    from comborun.rules.room.placement import Blocker

    Gpus = Tuple[int, ...]


class Known:
    """The facts about a session, with any engine."""

    def __init__(self, name: str, flag: str = "") -> None:
        self.name = name
        self.flag = flag
        self.attempt = 0
        """the latest; 0 before there is one"""

    @property
    def over(self) -> bool:
        """Whether it has ended, and no further attempt follows."""
        return False

    @property
    def end(self) -> Mapping[str, Any]:
        """The end record of its latest attempt, or empty."""
        return {}


# The states of a session. Times are seconds of the monotonic clock.


class State:
    """One of the classes below; each holds what is valid only in that state."""

    __slots__ = ()
    left: ClassVar[bool] = False
    """whether the run goes on until it has ended"""

    @property
    def takes_slot(self) -> bool:
        return False


class New(State):
    """Its files were not read yet."""

    __slots__ = ()


class Dropped(State):
    """It was amended away before it ran, so it never starts."""

    __slots__ = ()


class Queued(State):
    __slots__ = ("not_before", "until", "why")
    left = True

    def __init__(self, why: Fact | None = None, not_before: float | None = None, until: str = "") -> None:
        self.why = why
        """why it runs once more; None for its first attempt"""
        self.not_before = not_before
        """when its wait for a retry is over; None: it does not wait"""
        self.until = until
        """the same as a time of day"""


class Granted(State):
    """An attempt was granted, and its end is not known."""

    __slots__ = ("gpus",)
    left = True

    def __init__(self, gpus: Gpus) -> None:
        self.gpus = gpus

    @property
    def takes_slot(self) -> bool:
        return True


class Starting(Granted):
    __slots__ = ("again_at", "budget", "due")

    def __init__(self, gpus: Gpus, budget: int, due: float) -> None:
        super().__init__(gpus)
        self.budget = budget
        """what failed starts may still cost"""
        self.due = due
        """when its begin is overdue"""
        self.again_at: float | None = None
        """when to open its window again, after a refusal"""


class Alive(Granted):
    """Its command runs."""

    __slots__ = ("ready",)

    def __init__(self, gpus: Gpus) -> None:
        super().__init__(gpus)
        self.ready = False
        """a model server answers"""


class Running(Alive):
    __slots__ = ("supervisor",)

    def __init__(self, gpus: Gpus, supervisor: tuple[str, str] = ("", "")) -> None:
        super().__init__(gpus)
        self.supervisor = supervisor
        """pid and start; empty until its files were read"""


class Orphaned(Alive):
    """Its supervisor is gone, its processes live."""

    __slots__ = ("watcher",)

    def __init__(self, gpus: Gpus) -> None:
        super().__init__(gpus)
        self.watcher: Opening | None = None
        """the child that watches it"""


class Closing(Running):
    """Its command has ended and its slot is free; its supervisor writes the end."""

    __slots__ = ()

    @property
    def takes_slot(self) -> bool:
        return False


class Ending(Granted):
    """A model server that is being ended."""

    __slots__ = ("ender",)

    def __init__(self, gpus: Gpus, ender: Opening) -> None:
        super().__init__(gpus)
        self.ender = ender
        """the child that ends it"""


class Lost(Granted):
    """None of its processes lives, and there is no end."""

    __slots__ = ("counted", "finalizer", "freed")

    def __init__(self, gpus: Gpus, *, freed: bool, counted: bool) -> None:
        super().__init__(gpus)
        self.freed = freed
        """whether its slot was free before"""
        self.counted = counted
        """whether its loss is part of an event that was counted"""
        self.finalizer: Opening | None = None
        """the child that writes its end"""

    @property
    def takes_slot(self) -> bool:
        return not self.freed


class Ended(State):
    __slots__ = ("end",)

    def __init__(self, end: Mapping[str, Any]) -> None:
        self.end = end


class Session(Known):
    """A session in the queue of a dispatcher."""

    def __init__(self, name: str, place: int) -> None:
        super().__init__(name)
        self.place = place
        """its number in the plan's order"""
        self.servers: tuple[str, ...] = ()
        """the model servers that it uses"""
        self.state: State = New()

    @property
    def path(self) -> str:
        """Its name where a model server's may stand, too."""
        return self.name

    @property
    def over(self) -> bool:
        return isinstance(self.state, Ended)

    @property
    def end(self) -> Mapping[str, Any]:
        return self.state.end if isinstance(self.state, Ended) else {}


class Server(Session):
    """A session that becomes ready and has clients. It takes no slot, and the run does not wait for its end."""

    def __init__(self, name: str) -> None:
        super().__init__(name, -1)
        self.kind = ""
        self.gpu: int | None = None
        """the GPU whose sessions it serves; None: it is the only one of its kind"""
        self.restarts = 0
        """most restarts in a row"""
        self.due = False
        """whether it must be started"""
        self.refused: Blocker | None = None
        """what it waits for before it can start"""
        self.complained = 0
        """the attempt whose failure was reported"""

    @property
    def path(self) -> str:
        return SERVERS + self.name

    @property
    def lives(self) -> bool:
        return isinstance(self.state, Granted)

    @property
    def ready(self) -> bool:
        return isinstance(self.state, Alive) and self.state.ready


class Queue:
    """All sessions in plan order, and the model servers. Counts are kept as the states of sessions change."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.sessions: dict[str, Session] = {}
        self.servers: dict[str, Server] = {}
        self.left = 0
        """sessions that have not ended"""
        self.busy = 0
        """slots that are taken"""
        self._start = 0

    def __getitem__(self, name: str) -> Session:
        return self.sessions[name]

    def __iter__(self) -> Iterator[Session]:
        return (self.sessions[name] for name in self.names)

    def add(self, name: str) -> Session:
        session = self.sessions[name] = Session(name, len(self.names))
        self.names.append(name)
        return session

    def only(self, name: str) -> Session:
        """Start only this session from now on. The caller restores the former `names` later."""
        self.names = []
        self.sessions.pop(name, None)
        self._start = 0
        return self.add(name)

    def restore(self, names: list[str]) -> None:
        self.names, self._start = names, 0

    def set(self, session: Session, state: State) -> None:
        before, session.state = session.state, state
        if isinstance(session, Server):
            return
        self.busy += state.takes_slot - before.takes_slot
        self.left += state.left - before.left
        if isinstance(state, Queued):
            self._start = min(self._start, session.place)

    def waiting(self) -> Iterator[tuple[Session, Queued]]:
        names = self.names
        while self._start < len(names) and not isinstance(self.sessions[names[self._start]].state, Queued):
            self._start += 1
        for place in range(self._start, len(names)):
            session = self.sessions[names[place]]
            if isinstance(session.state, Queued):
                yield session, session.state
