"""The sessions of a run as the dispatcher knows them: the rows of queue.tsv, and where each one is in its life."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator, Mapping

    from comborun.host.engines import Opening

NEW, QUEUED, STARTING, RUNNING = "new", "queued", "starting", "running"
ORPHANED, CLOSING, LOST, ENDED, DROPPED = "orphaned", "closing", "lost", "ended", "dropped"
TAKES_SLOT = frozenset((STARTING, RUNNING, ORPHANED, LOST))
BUSY = TAKES_SLOT | {CLOSING}
"""not ended, and more than queued"""
_LEFT = BUSY | {QUEUED}

SMOKE = "smoke"
_NAME = re.compile("[A-Za-z0-9_-]+")
_GPUS = re.compile("[0-9]{1,4}")
_SERVERS = re.compile("[a-z][a-z0-9-]*(,[a-z][a-z0-9-]*)*")
_SERVERS_COLUMN = 8
"""of the columns from the fourth of queue.tsv on: the model servers that a session asks"""


class Row:
    """A line of queue.tsv. `flag` is nothing, `smoke`, or `dropped`: amended away, so it never starts again."""

    __slots__ = ("columns", "flag", "gpus", "name")

    def __init__(self, name: str, gpus: int, flag: str, columns: tuple[str, ...]) -> None:
        self.name = name
        self.gpus = gpus
        self.flag = flag
        self.columns = columns

    @property
    def served(self) -> bool:
        """Whether it asks a model server."""
        return len(self.columns) > _SERVERS_COLUMN and bool(_SERVERS.fullmatch(self.columns[_SERVERS_COLUMN]))


def rows(text: str) -> Iterator[Row]:
    """The rows of queue.tsv; what is no row is passed over."""
    for line in text.split("\n"):
        words = line.split("\t")
        if len(words) > 1 and _NAME.fullmatch(words[0]) and _GPUS.fullmatch(words[1]):
            flag = words[2] if len(words) > 2 and words[2] in (SMOKE, DROPPED) else ""
            yield Row(words[0], int(words[1]), flag, tuple(words[3:]))


class Session:
    """One session: its row, its latest attempt, and what the dispatcher is waiting for with it.

    Times are of the monotonic clock, in seconds, unless they are said to be a time of day.
    """

    __slots__ = (
        "again_at", "attempt", "budget", "due", "family", "flag", "gpus", "had", "life", "mute", "name", "opening",
        "outcome", "place", "retry_at", "retry_until", "retry_why", "served", "stalled_told", "supervisor",
        "undertaker", "watcher",
    )  # fmt: skip

    def __init__(self, name: str, place: int) -> None:
        self.name = name
        self.place = place
        self.flag = ""
        self.served = False
        self.attempt = 0
        self.life = NEW
        self.outcome = ""
        self.gpus: tuple[int, ...] = ()
        self.had: tuple[int, ...] | None = None
        """the GPUs of its latest attempt; None: this dispatcher knows of no start"""
        self.opening: Opening | None = None
        self.due = 0.0
        """when its begin is overdue"""
        self.again_at: float | None = None
        """when to start it again, after a refusal"""
        self.budget = 0
        self.retry_at: float | None = None
        self.retry_until = ""
        self.retry_why = ""
        """it has ended, and waits to start again for this reason"""
        self.supervisor: tuple[str, str] | None = None
        self.undertaker: Opening | None = None
        """the child that writes the end of a lost one"""
        self.watcher: Opening | None = None
        """the child that watches an orphan"""
        self.mute = False
        """its loss is part of an event that has been counted"""
        self.stalled_told = 0
        self.family = "sessions"

    @property
    def pends(self) -> bool:
        """It is to start again, or was never started."""
        return self.life == QUEUED


class Queue:
    """All sessions in plan order. The numbers follow from the lives."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.sessions: dict[str, Session] = {}
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
        """From now on this one alone is started; `names` of before are to be put back by who asks for it."""
        self.names = []
        self.sessions.pop(name, None)
        self._start = 0
        return self.add(name)

    def restore(self, names: list[str]) -> None:
        self.names, self._start = names, 0

    def set_life(self, session: Session, life: str) -> None:
        before, session.life = session.life, life
        self.busy += (life in TAKES_SLOT) - (before in TAKES_SLOT)
        self.left += (life in _LEFT) - (before in _LEFT)
        if life == QUEUED:
            self._start = min(self._start, session.place)

    def waiting(self) -> Iterator[Session]:
        """Those that are queued, in order."""
        names = self.names
        while self._start < len(names) and self.sessions[names[self._start]].life != QUEUED:
            self._start += 1
        for place in range(self._start, len(names)):
            session = self.sessions[names[place]]
            if session.life == QUEUED:
                yield session

    def size(self) -> int:
        """Sessions that count."""
        return sum(session.flag != DROPPED for session in self)

    def lives(self) -> Mapping[str, str]:
        return {name: session.life for name, session in self.sessions.items()}
