"""The sessions of a run as its dispatcher knows them: the state of each, and their order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from comborun.host.system.children import Child
from comborun.host.system.files import Json
from comborun.rules.facts import Fact
from comborun.rules.names import SERVERS
from comborun.rules.room.capacity import Blocker


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
    def end(self) -> Json:
        """The end record of its latest attempt, or empty."""
        return {}


# The states of a session. Times are seconds of the monotonic clock.


class State:
    """One of the classes below; each holds what is valid only in that state."""

    left = False
    """whether the run goes on until it has ended"""

    @property
    def takes_slot(self) -> bool:
        return False


class New(State):
    """Its files were not read yet."""


class Dropped(State):
    """It was amended away before it ran, so it never starts."""


@dataclass(eq=False)
class Queued(State):
    why: Fact | None = None
    """why it runs once more; None for its first attempt"""
    not_before: float | None = None
    """when its wait for a retry is over; None: it does not wait"""
    until: str = ""
    """the same as a time of day"""
    left = True


@dataclass(eq=False)
class Granted(State):
    """An attempt was granted, and its end is not known."""

    gpus: tuple[int, ...]
    left = True

    @property
    def takes_slot(self) -> bool:
        return True


@dataclass(eq=False)
class Starting(Granted):
    budget: int
    """what failed starts may still cost"""
    due: float
    """when its begin is overdue"""
    again_at: float | None = None
    """when to open its window again, after a refusal"""


@dataclass(eq=False)
class Alive(Granted):
    """Its command runs."""

    ready: bool = field(default=False, init=False)
    """a model server answers"""


@dataclass(eq=False)
class Running(Alive):
    supervisor: tuple[str, str] = ("", "")
    """pid and start; empty until its files were read"""


@dataclass(eq=False)
class Orphaned(Alive):
    """Its supervisor is gone, its processes live."""

    watcher: Child | None = None
    """the child that watches it"""


class Closing(Running):
    """Its command has ended and its slot is free; its supervisor writes the end."""

    @property
    def takes_slot(self) -> bool:
        return False


@dataclass(eq=False)
class Ending(Granted):
    """A model server that is being ended."""

    ender: Child
    """the child that ends it"""


@dataclass(eq=False)
class Lost(Granted):
    """None of its processes lives, and there is no end."""

    freed: bool
    """whether its slot was free before"""
    counted: bool
    """whether its loss is part of an event that was counted"""
    finalizer: Child | None = None
    """the child that writes its end"""

    @property
    def takes_slot(self) -> bool:
        return not self.freed


@dataclass(eq=False)
class Ended(State):
    end: Json


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
    def end(self) -> Json:
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
